"""The engines that are compared: their commands, each a process of its own, and what these say."""

import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys
import threading
import time

PYTHON = sys.executable
LLAMA_BENCH = pathlib.Path(__file__).resolve().parent / "llama_bench.py"
LOAD_TOKENS, LOAD_CONTEXT = 8, 4096


@dataclasses.dataclass(frozen=True)
class Test:
    """A prompt of `count` tokens ("pp"), as many generated ("tg"), or the first token after a start ("load")."""

    kind: str
    count: int = 0
    depth: int = 0  # tokens before
    sequences: int = 1

    def __str__(self):
        if self.kind == "load":
            return "first token"
        parts = [f"{self.kind}{self.count}"]
        if self.depth:
            parts.append(f"@ d{self.depth}")
        if self.sequences > 1:
            parts.append(f"x {self.sequences}")
        return " ".join(parts)

    def process(self):
        """Tests with the same may share a process."""
        return self.kind == "load", self.depth, self.sequences


class Failure(Exception):
    """A measurement that did not work, in one line."""


def execute(command, limit):
    """(standard output, seconds to its first line)."""
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace") as process:
        errors = []
        reader = threading.Thread(target=lambda: errors.extend(process.stderr))
        late = threading.Event()
        watchdog = threading.Timer(limit, lambda: (late.set(), process.kill()))
        try:
            reader.start()
            watchdog.start()
            first = process.stdout.readline()
            seconds = time.perf_counter() - begin
            text = first + process.stdout.read()
            status = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            watchdog.cancel()
        reader.join()
    if late.is_set():
        raise Failure(f"not done after {limit:g} s")
    if status:
        lines = [line.strip() for line in errors if line.strip()]
        raise Failure(lines[-1].removeprefix("wisp: error: ") if lines else f"exit status {status}")
    return text, seconds


def rates(rows):
    """Test -> tokens a second of each run, from the rows of a bench."""
    found = {}
    for row in rows:
        kind, count = ("pp", row["n_prompt"]) if row["n_prompt"] else ("tg", row["n_gen"])
        found[Test(kind, count, row["n_depth"], row["n_seq"])] = row["samples_ts"]
    return found


def bench_flags(tests, repeats):
    counts = {kind: ",".join(str(t.count) for t in tests if t.kind == kind) or "0" for kind in ("pp", "tg")}
    return ["-p", counts["pp"], "-n", counts["tg"], "-d", str(tests[0].depth), "-b", str(tests[0].sequences),
            "-r", str(repeats)]


class Engine:
    """run(model, tests) measures tests that share a process: ({test: [value, ...]}, device). Values are tokens
    a second, of "load" seconds."""

    def __init__(self, name, options, repeats, limit):
        self.name, self.options, self.repeats, self.limit = name, options, repeats, limit

    def run(self, model, tests):
        text, seconds = execute(self.command(model, tests), self.limit)
        try:
            return self.read(json.loads(text), seconds, tests)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise Failure(f"unexpected output: {text[:80]!r}") from error

    def shell(self, model, tests):
        """The command as one would type it in the working directory."""
        here = f"{pathlib.Path.cwd()}/"
        words = ["python3" if word == PYTHON else word.removeprefix(here) for word in self.command(model, tests)]
        return shlex.join(words)


class Wisp(Engine):
    def __init__(self, program, options, repeats, limit):
        super().__init__("wisp", options, repeats, limit)
        self.program = program

    def command(self, model, tests):
        if tests[0].kind == "load":
            prompt = ",".join(str(3 + i) for i in range(LOAD_TOKENS))
            what = ["generate", "-m", model, "--tokens", prompt, "-n", "1", "-c", LOAD_CONTEXT, "--json"]
        else:
            what = ["bench", "-m", model, *bench_flags(tests, self.repeats), "-o", "json"]
        return [str(word) for word in (self.program, *what, *self.options)]

    def read(self, result, seconds, tests):
        if tests[0].kind == "load":
            return {tests[0]: [seconds]}, ""
        return rates(result), f"{result[0]['device']} ({result[0]['backends']})"


class Llama(Engine):
    def __init__(self, libraries, options, repeats, limit):
        super().__init__("llama.cpp", options, repeats, limit)
        self.libraries = libraries

    def command(self, model, tests):
        if tests[0].kind == "load":
            what = ["--first-token", LOAD_TOKENS, "-c", LOAD_CONTEXT]
        else:
            what = bench_flags(tests, self.repeats)
        words = (PYTHON, "-B", LLAMA_BENCH, self.libraries, "-m", model, *what, *self.options)
        return [str(word) for word in words]

    def read(self, result, seconds, tests):
        if tests[0].kind == "load":
            return {tests[0]: [result["seconds"]]}, result["device"]
        return rates(result), result[0]["device"]
