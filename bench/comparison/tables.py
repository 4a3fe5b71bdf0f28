"""Which tables there are, and how their rows look."""

import dataclasses
import statistics

from .engines import Test
from .random_models import SHAPES, odd_row

DENSE_SHAPES = [name for name, shape in SHAPES.items() if name != "tiny" and not shape.experts and not shape.recurrent]
EXPERT_SHAPES = [name for name, shape in SHAPES.items() if shape.experts]
RECURRENT_SHAPES = [name for name, shape in SHAPES.items() if shape.recurrent]
SERVED_SHAPES = ["qwen3-4b", "llama-8b"]
OTHER_TYPES = ["q4_k", "q8_0"]
ERROR_WIDTH = 100


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    tests: list
    shapes: list = dataclasses.field(default_factory=lambda: DENSE_SHAPES)
    unit: str = "tok/s"


TABLES = {
    "decode": Table("Generating 128 tokens", [Test("tg", 128)]),
    "depth": Table("Generating 128 tokens after a long prompt", [Test("tg", 128, 4096), Test("tg", 128, 16384)]),
    "types": Table("Generating 128 tokens, other types of weights", [Test("tg", 128)]),
    "batch": Table("Generating 128 tokens in many sequences at once, in all",
                   [Test("tg", 128, 0, 16), Test("tg", 128, 0, 64)], SERVED_SHAPES),
    "prompt": Table("Reading a prompt", [Test("pp", 512), Test("pp", 2048)]),
    "experts": Table("Generating and reading with a model of experts", [Test("tg", 128), Test("pp", 512)], EXPERT_SHAPES),
    "recurrent": Table("Generating and reading with layers that keep states", [Test("tg", 128), Test("pp", 512)],
                       RECURRENT_SHAPES),
    "load": Table("From the start of the program to the first token, file and kernels cached", [Test("load")],
                  unit="s"),
}


@dataclasses.dataclass(frozen=True)
class Row:
    table: str
    shape: str
    type: str
    test: Test

    def __str__(self):
        return f"{self.shape} {self.type} {self.test}"


def rows_of(name, shapes, types):
    """The rows of a table, for the given shapes or, without, for its own that have such weights."""
    table = TABLES[name]
    return [Row(name, shape, kind, test) for shape in shapes or table.shapes for kind in types
            if shapes or not odd_row(shape, kind) for test in table.tests]


def number(value, unit):
    if unit == "s":
        return f"{value:.2f}" if value >= 1 else f"{value:.3f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def ratio(unit, ours, theirs):
    """How many times faster we are."""
    return theirs / ours if unit == "s" else ours / theirs


def cell(outcome, unit):
    if outcome.error:
        return "error: " + outcome.error[:ERROR_WIDTH].replace("|", "/")
    return number(statistics.median(outcome.values), unit)


def head(name, engines):
    unit = TABLES[name].unit
    titles = ["shape", "weights", "test", *(f"{engine} {unit}" for engine in engines)]
    rule = ["---", "---", "---", *["---:"] * len(engines)]
    if len(engines) == 2:
        titles, rule = [*titles, "ratio"], [*rule, "---:"]
    return f"| {' | '.join(titles)} |\n|{'|'.join(rule)}|"


def line(row, outcomes):
    """outcomes: those of each engine, ours first."""
    unit = TABLES[row.table].unit
    cells = [SHAPES[row.shape].label, row.type.upper(), str(row.test), *(cell(o, unit) for o in outcomes)]
    if len(outcomes) == 2:
        medians = [None if o.error else statistics.median(o.values) for o in outcomes]
        cells.append("" if None in medians else f"{ratio(unit, *medians):.2f}")
    return f"| {' | '.join(cells)} |"


def record(row, outcomes):
    """The row as a JSON object with every run."""
    unit = TABLES[row.table].unit
    result = {"table": row.table, "shape": row.shape, "type": row.type, "test": str(row.test), "unit": unit}
    for name, outcome in outcomes.items():
        if outcome.error:
            result[name] = {"error": outcome.error}
        else:
            result[name] = {"median": statistics.median(outcome.values), "runs": outcome.values}
        result[name] |= {"device": outcome.device, "command": outcome.command}
    pair = list(outcomes.values())
    if len(pair) == 2 and not any(o.error for o in pair):
        result["ratio"] = ratio(unit, *(statistics.median(o.values) for o in pair))
    return result
