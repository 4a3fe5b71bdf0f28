#!/usr/bin/env python3
"""Measure wisp beside llama.cpp and print the tables of docs/performance.md.

Models are files of real shapes with random weights, made in a folder when they are missing. Engines take turns, one
process each: wisp, llama.cpp, wisp, ...; a figure is the median over all. llama.cpp is reached through its shared
libraries, as in the npm packages @node-llama-cpp/linux-x64-vulkan and @node-llama-cpp/linux-x64 (folder bins/...);
without them wisp is measured alone. Exit status: 1 where a measurement failed, 2 for wrong flags."""

import argparse
import json
import pathlib
import sys

from comparison import engines, tables
from comparison.measure import Measurer
from comparison.random_models import SHAPES, TYPES, make_model

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = """tests:
""" + "\n".join(f"  {name:8} {table.title}: {', '.join(map(str, table.tests))}"
                for name, table in tables.TABLES.items()) + """

examples:
  bench/compare.py --llama package/bins/linux-x64-vulkan
  bench/compare.py --test decode,prompt --shapes llama-1b,llama-8b --runs 3 --budget 300"""


def names(known):
    """A type for argparse: a list of some of `known`."""
    def parse(text):
        chosen = list(dict.fromkeys(text.split(",")))
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown name '{name}' (there are: {', '.join(known)})")
        return chosen
    return parse


def at_least_one(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def positive(text):
    value = float(text)
    if not value > 0:
        raise ValueError
    return value


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"compare.py: error: {message}\n")


def parse_flags():
    parser = Parser(description=__doc__, epilog=EXAMPLES, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--test", type=names(list(tables.TABLES)), default=list(tables.TABLES), metavar="A,B",
        help="tables (default: all)")
    add("--shapes", type=names(list(SHAPES)), metavar="A,B",
        help=f"of {', '.join(SHAPES)} (default: all but tiny that have such weights; batch: {', '.join(tables.SERVED_SHAPES)})")
    add("--type", choices=TYPES, default="q4_0", metavar="T",
        help=f"weights of all tables but `types`: {', '.join(TYPES)} (default q4_0)")
    add("--types", type=names(TYPES), default=tables.OTHER_TYPES, metavar="A,B",
        help="weights of the table `types` (default q4_k,q8_0)")
    add("--runs", type=at_least_one, default=5, metavar="N", help="processes of each engine (default 5)")
    add("--repeats", type=at_least_one, default=1, metavar="N", help="runs in each process (default 1)")
    add("--budget", type=positive, metavar="SECONDS", help="start nothing new after so long")
    add("--limit", type=positive, default=600, metavar="SECONDS", help="end a process after so long (default 600)")
    add("-o", dest="output", choices=["md", "json"], default="md", metavar="md|json",
        help="tables (default), or a JSON object a row with all runs")
    add("--models", type=pathlib.Path, default=ROOT / "build/bench_models", metavar="DIR",
        help="folder of the models (default build/bench_models)")
    add("--wisp", type=pathlib.Path, default=ROOT / "build/release/wisp", metavar="FILE",
        help="the program (default build/release/wisp)")
    add("--llama", type=pathlib.Path, metavar="LIBDIR", help="folder of llama.cpp's libraries")
    add("--backend", choices=["auto", "webgpu", "cpu"], default="auto", metavar="auto|webgpu|cpu", help="of wisp")
    add("-t", dest="threads", type=at_least_one, metavar="N", help="threads of both (default: all)")
    return parser.parse_args()


def fail(message):
    raise SystemExit(f"compare.py: error: {message}")


def make_engines(args):
    if not args.wisp.is_file():
        fail(f"no wisp at {args.wisp}: build it, or name it by --wisp")
    threads = ["-t", args.threads] if args.threads else []
    found = [engines.Wisp(args.wisp, ["--backend", args.backend, *threads], args.repeats, args.limit)]
    if args.llama:
        if not list(args.llama.glob("libllama.*so*")):
            fail(f"no libllama.so in {args.llama}")
        found.append(engines.Llama(args.llama, threads, args.repeats, args.limit))
    return found


def note(text):
    print(text, file=sys.stderr, flush=True)


def say(text=""):
    print(text, flush=True)


class Printer:
    """Rows as they come; the rest of a table when it ends."""

    def __init__(self, name, engine_names, wanted):
        """wanted: values of each engine in a row."""
        self.name, self.engine_names, self.wanted = name, engine_names, wanted
        self.left_out, self.short, self.commands, self.devices = [], [], [], []

    def start(self):
        say(f"### {tables.TABLES[self.name].title}\n")
        say(tables.head(self.name, self.engine_names))

    def row(self, row, outcomes):
        if outcomes is None:
            self.left_out.append(str(row))
            return
        say(tables.line(row, list(outcomes.values())))
        for engine, outcome in outcomes.items():
            if not outcome.error and len(outcome.values) < self.wanted:
                self.short.append(f"{row} ({engine}: {len(outcome.values)} of {self.wanted} runs)")
            if outcome.device:
                self.devices.append(f"{engine} on {outcome.device}")
            if outcome.command:
                self.commands.append(outcome.command)

    def end(self):
        say("\n" + "; ".join([f"Medians of {self.wanted}, engines in turn", *dict.fromkeys(self.devices)]))
        for title, rows in (("Left out, no time", self.left_out), ("Cut short", self.short)):
            if rows:
                say(f"\n{title}: {', '.join(rows)}")
        say("\n" + "\n".join(f"    {command}" for command in dict.fromkeys(self.commands)) + "\n")


class JsonPrinter:
    """An object a row, a line each."""

    def __init__(self):
        self.left_out = []

    def start(self):
        pass

    def row(self, row, outcomes):
        if outcomes is None:
            self.left_out.append(str(row))
        else:
            say(json.dumps(tables.record(row, outcomes)))

    def end(self):
        if self.left_out:
            note(f"left out, no time: {', '.join(self.left_out)}")


def main():
    args = parse_flags()
    found = make_engines(args)
    rows = {name: tables.rows_of(name, args.shapes, args.types if name == "types" else [args.type])
            for name in args.test}
    measurer = Measurer([row for part in rows.values() for row in part], found, args.runs,
                        lambda shape, kind: make_model(args.models, shape, kind), args.budget, note)
    failed = False
    for name, part in rows.items():
        # "first token" has one value a process
        wanted = args.runs * (1 if name == "load" else args.repeats)
        printer = JsonPrinter() if args.output == "json" else Printer(name, [e.name for e in found], wanted)
        printer.start()
        for row in part:
            outcomes = measurer.outcomes(row)
            printer.row(row, outcomes)
            failed |= any(o.error for o in (outcomes or {}).values())
        printer.end()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
