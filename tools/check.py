#!/usr/bin/env python3
"""The project's checks; each problem is one line, `path:line: what`. Exit 1 if there is one.

check.py                all checks
check.py sizes format   only these
check.py --fast         all but clang-tidy
check.py tidy --base main   clang-tidy on what differs from main
"""

import argparse
import pathlib
import sys
import time

from checks import clang, structure, wording
from checks.tree import Problem, Tree

CHECKS = {
    "format": clang.check_format,
    "includes": structure.check_includes,
    "sizes": structure.check_sizes,
    "orphans": structure.check_orphans,
    "wgsl": wording.check_wgsl,
    "environment": wording.check_environment,
    "words": wording.check_words,
    "headers": wording.check_headers,
    "scripts": wording.check_scripts,
    "tidy": clang.check_tidy,
}


def run_check(name, tree, options):
    """The problems of one check; a tool that is missing is one too."""
    try:
        return CHECKS[name](tree, **(options if name == "tidy" else {}))
    except FileNotFoundError as error:
        return [Problem("tools/check.py", 1, f"{name}: {error}")]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="checks:\n" + "\n".join(f"  {n:12} {f.__doc__.splitlines()[0]}"
                                       for n, f in CHECKS.items()))
    parser.add_argument("names", nargs="*", metavar="CHECK")
    parser.add_argument("--fast", action="store_true", help="leave out clang-tidy")
    parser.add_argument("--base", metavar="COMMIT", help="tidy only what differs from COMMIT")
    parser.add_argument("--build", default="build/release", metavar="DIR",
                        help="build folder with compile_commands.json (default %(default)s)")
    parser.add_argument("-j", "--jobs", type=int, help="parallel clang-tidy runs (default: cores)")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent,
                        help=argparse.SUPPRESS)
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in CHECKS]:
        parser.error(f"unknown check {unknown[0]} (there are: {', '.join(CHECKS)})")
    names = args.names or [n for n in CHECKS if not (args.fast and n == "tidy")]
    tree = Tree(args.root)
    options = {"build": args.build, "base": args.base, "jobs": args.jobs}
    failed = 0
    for name in names:
        start = time.monotonic()
        problems = run_check(name, tree, options)
        for problem in problems:
            print(problem)
        bad = any(problem.fatal for problem in problems)
        failed += bad
        print(f"check {name:12} {'FAILED' if bad else 'ok'} ({time.monotonic() - start:.1f} s)",
              flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
