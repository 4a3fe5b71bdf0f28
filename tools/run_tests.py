#!/usr/bin/env python3
"""Runs ctest in a build folder and prints totals that count every GoogleTest case.

run_tests.py BUILD_DIR [ctest arguments...]

A program that crashes, reports no case at all, or skips one counts as failed: nothing passes by
not running. The last line is "N passed, N failed"; the exit status is 1 if anything failed.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def gtest_counts(report):
    """(passed, failed) of one GoogleTest XML report; skipped and disabled cases are failures."""
    passed = failed = 0
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        ran = case.get("status") == "run" and case.get("result") == "completed"
        if ran and case.find("failure") is None:
            passed += 1
        else:
            failed += 1
    return passed, failed


def totals(junit, reports):
    """(passed, failed) over ctest's JUnit file `junit`; GoogleTest reports lie in `reports`."""
    passed = failed = 0
    for entry in ElementTree.parse(junit).getroot().iter("testcase"):
        report = reports / (entry.get("name") + ".xml")
        entry_ok = entry.get("status") == "run"
        good, bad = gtest_counts(report) if report.exists() else (int(entry_ok), int(not entry_ok))
        if (not entry_ok or good + bad == 0) and bad == 0:
            bad = 1  # crashed, timed out, leaked at exit, or has no cases
        passed += good
        failed += bad
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    args, ctest_args = parser.parse_known_args()
    build = args.build.resolve()
    reports, junit = build / "test-reports", build / "ctest.xml"
    shutil.rmtree(reports, ignore_errors=True)
    junit.unlink(missing_ok=True)
    # A folder: each program writes <its name>.xml, which is also its ctest name.
    env = os.environ | {"GTEST_OUTPUT": f"xml:{reports}/"}
    command = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error",
               "--parallel", str(os.cpu_count() or 1), "--output-junit", str(junit), *ctest_args]
    # Nothing to read: a test must not wait for whoever started this.
    status = subprocess.run(command, env=env, stdin=subprocess.DEVNULL).returncode
    if not junit.exists():
        sys.exit("run_tests: error: ctest ran no test")
    passed, failed = totals(junit, reports)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
