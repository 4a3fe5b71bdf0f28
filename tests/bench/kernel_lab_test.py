"""The kernel laboratory from outside: a tiny sweep, wrong kernels, wrong flags."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LAB = os.environ.get("KERNEL_LAB", str(SOURCE / "build/release/kernel_lab"))  # CMake sets it
TIMEOUT = 240  # seconds


def run(*args):
    return subprocess.run([LAB, *map(str, args)], capture_output=True, text=True, timeout=TIMEOUT)


class KernelLab(unittest.TestCase):
    def test_measures_and_checks_kernels(self):
        done = run("--op", "linear,attention", "--type", "q4_0,f16", "--shape", "64x256", "--heads",
                   "4x2x32,3x1x48x32", "--k", "1,3", "--depth", "5", "-r", "1", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        kernels = {(r["op"], r["class"], r["type"]): r["kernel"] for r in rows}
        self.assertIn("linear_decode_q8", kernels["linear", "decode", "Q4_0"])
        self.assertIn("linear_decode_f32", kernels["linear", "decode", "F16"])
        self.assertIn("linear_prefill", kernels["linear", "prefill", "Q4_0"])
        self.assertIn("attention/decode", kernels["attention", "decode", "F16"])
        self.assertIn("attention/prefill", kernels["attention", "prefill", "F16"])
        for row in rows:
            self.assertEqual(row["wrong"], "")
            self.assertGreater(row["streamed_us"], 0)
            self.assertGreater(row["in_sequence_us"], 0)
            self.assertGreater(row["bytes"], 0)
        self.assertEqual({r["columns"] for r in rows}, {1, 3})
        self.assertEqual({r["shape"] for r in rows if r["op"] == "attention"},
                         {"4x2x32", "3x1x48x32"})

    def test_has_all_ops(self):
        done = run("--type", "q4_0", "--shape", "64x256", "--width", "64", "--heads", "2x1x32",
                   "--k", "2", "--depth", "200", "-r", "1", "--copies", "3", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual({r["op"] for r in rows},
                         {"linear", "attention", "rope_kv", "norm", "layer_norm", "glu", "activate",
                          "softcap", "quantize", "add", "embed", "sample"})
        self.assertEqual({r["wrong"] for r in rows}, {""})
        self.assertTrue(any("attention/merge" in r["kernel"] for r in rows))

    def test_prints_a_table(self):
        done = run("--backend", "cpu", "--op", "linear", "--type", "q8_0", "--shape", "64x256",
                   "--class", "decode", "--k", "2", "--bandwidth", "0.001", "-r", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wall time", done.stderr)
        head, rule, row = done.stdout.splitlines()
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        self.assertEqual(cells[:5], ["linear", "Q8_0", "decode", "64x256", "2"])
        self.assertTrue(cells[9].endswith("%"), cells)
        self.assertEqual(head.count("|"), rule.count("|"))
        self.assertEqual(head.count("|"), row.count("|"))

    def test_finds_a_wrong_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            kernels = pathlib.Path(folder) / "kernels"
            shutil.copytree(SOURCE / "kernels", kernels)
            add = kernels / "add.wgsl"
            text = add.read_text()
            self.assertIn("(SCALE)", text)
            add.write_text(text.replace("(SCALE)", "(SCALE + 0.001)"))
            done = run("--op", "add", "--width", "40", "--k", "2", "-r", "1", "--class", "decode",
                       "--kernels", kernels)
        self.assertEqual(done.returncode, 1)
        self.assertIn("wrong: add f32 40 k=2: ", done.stderr)

    def test_wrong_flags_are_usage_errors(self):
        for flags, what in ((["--op", "nothing"], "'nothing'"), (["--type", "q9"], "'q9'"),
                            (["--shape", "12"], "'12'"), (["--shape", "12x"], "'12x'"),
                            (["--heads", "5x2x64"], "KV heads"), (["--k", "0"], "--k"),
                            (["--heads", "4x2x64x32"], "one KV head"),
                            (["--op", "linear", "--type", "q4_0", "--shape", "8x40"], "no case"),
                            (["--nothing"], "--nothing")):
            done = run(*flags)
            self.assertEqual((done.returncode, done.stdout), (2, ""), flags)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("kernel_lab: error: ", done.stderr)
            self.assertIn(what, done.stderr)


if __name__ == "__main__":
    unittest.main()
