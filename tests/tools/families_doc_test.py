"""docs/families.md has a row for each family, and the program knows each family that it names."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_families_doc as doc  # noqa: E402


def documented():
    """The cells of each row of the table, by the family's name."""
    rows = {}
    for line in (ROOT / "docs/families.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "family":
            rows[cells[0]] = cells
    return rows


class FamiliesDocTest(unittest.TestCase):
    def test_has_every_family_with_its_names(self):
        rows = documented()
        families = doc.families()
        self.assertEqual(sorted(rows), [name for name, _, _ in families])
        for name, kinds, architectures in families:
            self.assertEqual(rows[name][1:3], [", ".join(kinds), ", ".join(architectures)])

    def test_counts_the_fixtures(self):
        folders, files = doc.fixtures(doc.families())
        for name, cells in documented().items():
            self.assertEqual(cells[3], str(len(folders.get(name, []))), name)
            self.assertEqual(cells[8] == "yes", name in files, name)

    def test_every_family_has_a_fixture(self):
        folders, _ = doc.fixtures(doc.families())
        self.assertEqual([name for name, _, _ in doc.families() if name not in folders], [])

    def test_marks_only_what_passed_in_all_fixtures(self):
        done = {"a_cpu", "a_webgpu", "b_cpu"}
        self.assertEqual(doc.mark(["a", "b"], done, ("_cpu",)), "yes")
        self.assertEqual(doc.mark(["a", "b"], done, ("_cpu", "_webgpu")), "")
        self.assertEqual(doc.mark([], done, ("_cpu",)), "")


if __name__ == "__main__":
    unittest.main()
