"""tools/run_tests.py counts cases, and nothing passes by not running."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import run_tests  # noqa: E402

CASE = '<testcase name="{}" status="{}" result="{}">{}</testcase>'


def case(name, status="run", result="completed", body=""):
    return CASE.format(name, status, result, body)


class TotalsTest(unittest.TestCase):
    def totals(self, entries, reports):
        """entries: name -> ctest status; reports: name -> cases of its GoogleTest report."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, cases in reports.items():
                (folder / f"{name}.xml").write_text(
                    f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
            junit = folder / "junit"
            junit.write_text("<testsuite>" + "".join(
                f'<testcase name="{n}" status="{s}"/>' for n, s in entries.items()) +
                "</testsuite>")
            return run_tests.totals(junit, folder)

    def test_cases_are_counted(self):
        self.assertEqual(self.totals({"a": "run", "script": "run"}, {"a": [case("x"), case("y")]}),
                         (3, 0))

    def test_failures(self):
        cases = [case("x"), case("y", body='<failure message="no"/>')]
        self.assertEqual(self.totals({"a": "fail", "script": "fail"}, {"a": cases}), (1, 2))

    def test_skipped_and_disabled_cases_fail(self):
        cases = [case("x"), case("y", result="skipped"), case("z", "notrun", "suppressed")]
        self.assertEqual(self.totals({"a": "run"}, {"a": cases}), (1, 2))

    def test_a_crash_or_a_leak_after_good_cases_fails(self):
        self.assertEqual(self.totals({"a": "fail"}, {"a": [case("x")]}), (1, 1))

    def test_a_program_without_cases_fails(self):
        self.assertEqual(self.totals({"a": "run"}, {"a": []}), (0, 1))

    def test_a_program_that_ctest_could_not_start_fails(self):
        self.assertEqual(self.totals({"a": "notrun"}, {}), (0, 1))


if __name__ == "__main__":
    unittest.main()
