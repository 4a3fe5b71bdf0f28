#!/usr/bin/env python3
"""llama.cpp measured as `wisp bench -o json` measures wisp; prints the same fields.

usage: llama_bench.py LIBDIR -m MODEL.gguf [-p 512,...] [-n 128,...] [-d 0] [-b 1] [-r 5] [-t THREADS]
       llama_bench.py LIBDIR -m MODEL.gguf --first-token TOKENS -c CONTEXT

A prompt counts from its first token to its last one's logits, sequence after sequence; generated tokens are one step
after another with logits of all sequences. Times are of what follows `-d` tokens; rates are totals over the sequences.
--first-token: seconds from before the libraries are loaded to the logits after so many prompt tokens."""

import argparse
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peer"))
import llama_cpp  # noqa: E402

LARGEST = 2048  # tokens given at once, as llama-bench does
WARM_UP_TOKENS = 16  # as in wisp bench


def token(position):
    return 3 + position % 200


class Bench:
    """One context, for tests of so many sequences with positions below `context`."""

    def __init__(self, model, context, sequences, threads):
        self.sequences = sequences
        self.session = model.session(context, sequences=sequences, largest=LARGEST, threads=threads)

    def prompts(self, first, count, wanted):
        """Batches with tokens at first ... first + count - 1, the last one's logits perhaps wanted."""
        batches = []
        for sequence in range(self.sequences):
            for begin in range(first, first + count, LARGEST):
                piece = range(begin, min(begin + LARGEST, first + count))
                batches.append(self.session.batch([(token(p), p, sequence, wanted and p == first + count - 1)
                                                   for p in piece]))
        return batches

    def start(self, depth):
        self.session.clear()
        for batch in self.prompts(0, depth, False):
            self.session.decode(batch)
        self.session.synchronize()

    def prompt(self, depth, count):
        """Seconds."""
        batches = self.prompts(depth, count, True)
        self.start(depth)
        begin = time.perf_counter()
        for batch in batches:
            self.session.decode(batch)
        self.session.synchronize()
        return time.perf_counter() - begin

    def generate(self, depth, count):
        """Seconds."""
        batches = [self.session.batch([(token(p), p, sequence, True) for sequence in range(self.sequences)])
                   for p in range(depth, depth + count)]
        self.start(depth)
        begin = time.perf_counter()
        for batch in batches:
            self.session.decode(batch)
            self.session.synchronize()
        return time.perf_counter() - begin

    def measure(self, kind, count, depth, repetitions):
        run = {"n_prompt": self.prompt, "n_gen": self.generate}[kind]
        run(depth, count if kind == "n_prompt" else min(count, WARM_UP_TOKENS))
        rates = [count * self.sequences / run(depth, count) for _ in range(repetitions)]
        row = {"n_prompt": 0, "n_gen": 0, "n_depth": depth, "n_seq": self.sequences, "samples_ts": rates}
        return row | {kind: count}


def measure_all(library, args):
    model = llama_cpp.Model(library, args.model)
    bench = Bench(model, args.depth + max(args.prompt + args.generate), args.sequences, args.threads)
    tests = [("n_prompt", n) for n in args.prompt if n] + [("n_gen", n) for n in args.generate if n]
    rows = [bench.measure(kind, count, args.depth, args.repetitions) for kind, count in tests]
    return [{"device": ", ".join(library.devices())} | row for row in rows]


def first_token(args):
    begin = time.perf_counter()
    library = llama_cpp.Library(args.libdir)
    session = llama_cpp.Model(library, args.model).session(args.context, threads=args.threads)
    session.decode(session.batch([(token(p), p, 0, p == args.first_token - 1) for p in range(args.first_token)]))
    session.synchronize()
    seconds = time.perf_counter() - begin
    return {"device": ", ".join(library.devices()), "seconds": seconds}


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("libdir")
    parser.add_argument("-m", dest="model", required=True)
    parser.add_argument("-p", dest="prompt", type=numbers, default=[512])
    parser.add_argument("-n", dest="generate", type=numbers, default=[128])
    parser.add_argument("-d", dest="depth", type=int, default=0)
    parser.add_argument("-b", dest="sequences", type=int, default=1)
    parser.add_argument("-r", dest="repetitions", type=int, default=5)
    parser.add_argument("-t", dest="threads", type=int, default=0)
    parser.add_argument("-c", dest="context", type=int, default=4096)
    parser.add_argument("--first-token", type=int)
    args = parser.parse_args()
    result = first_token(args) if args.first_token else measure_all(llama_cpp.Library(args.libdir), args)
    print(json.dumps(result), flush=True)
    os._exit(0)  # the libraries' clean-up is not measured


if __name__ == "__main__":
    main()
