"""bench/compare.py on a tiny shape: tables, errors, exit codes; its parts with engines that only pretend."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "bench/compare.py"
WISP = os.environ.get("WISP", str(SOURCE / "build/release/wisp"))  # CMake sets it
TIMEOUT = 240  # seconds
sys.path.insert(0, str(SOURCE / "bench"))

from comparison import engines, llama_bench, tables  # noqa: E402
from comparison.measure import Measurer  # noqa: E402
from comparison.random_models import SHAPES, TYPES, list_tensors, make_model  # noqa: E402

# A wisp whose every test takes as long, except that it knows no Q8_0.
PRETENDER = """#!{python}
import json, sys, time
if {seconds}: time.sleep({seconds})
if "q8_0" in " ".join(sys.argv): sys.exit("wisp: error: no | Q8_0")
value = lambda flag: [int(n) for n in sys.argv[sys.argv.index(flag) + 1].split(",")]
rows = [dict(n_prompt=p, n_gen=0) for p in value("-p") if p] + [dict(n_prompt=0, n_gen=n) for n in value("-n") if n]
common = dict(n_depth=value("-d")[0], n_seq=value("-b")[0], device="paper", backends="none", samples_ts=[1234.5])
print(json.dumps([row | common for row in rows]))
"""


class FolderTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def run_script(self, *args, wisp=WISP):
        command = [sys.executable, "-B", SCRIPT, "--wisp", wisp, "--models", self.folder, *args]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT)

    def pretender(self, seconds=0):
        path = self.folder / "pretender"
        path.write_text(PRETENDER.format(python=sys.executable, seconds=seconds))
        path.chmod(0o755)
        return path


def cells(text, start):
    """The cells of the rows that begin with the cell `start`."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] == start]


class ScriptTest(FolderTest):
    def test_tables_of_a_tiny_model(self):
        done = self.run_script("--shapes", "tiny", "--test", "decode,prompt,load", "--runs", "1", "--backend", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n| shape | weights | test | wisp tok/s |\n|---|---|---|---:|\n"), 2)
        rows = cells(done.stdout, "tiny")
        self.assertEqual([row[1:3] for row in rows], [["Q4_0", test] for test in (
            "tg128", "pp512", "pp2048", "first token")])
        for row in rows:
            self.assertGreater(float(row[3].replace(",", "")), 0)
        command = f"bench -m {self.folder}/tiny-q4_0.gguf -p 512,2048 -n 128 -d 0 -b 1 -r 1 -o json"
        self.assertEqual(done.stdout.count(command), 2, done.stdout)  # one process for both tables
        self.assertEqual(done.stderr.count("tg128"), 1, done.stderr)

    def test_every_type_computes(self):
        done = self.run_script("--shapes", "tiny", "--test", "types", "--types", ",".join(TYPES), "--runs", "2",
                               "--repeats", "3", "--backend", "cpu", "-t", "1", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["type"] for row in rows], TYPES)
        for row in rows:
            self.assertEqual(len(row["wisp"]["runs"]), 6)
            self.assertIn("1 thread", row["wisp"]["device"])
            self.assertNotIn("ratio", row)

    def test_an_error_stays_in_its_cell(self):
        done = self.run_script("--shapes", "smollm-135m,tiny", "--test", "types", "--types", "q4_k,q8_0,q4_1",
                               "--runs", "2", wisp=self.pretender())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(cells(done.stdout, "tiny"), [
            ["tiny", "Q4_K", "tg128", "1,234"], ["tiny", "Q8_0", "tg128", "error: no / Q8_0"],
            ["tiny", "Q4_1", "tg128", "1,234"]])
        self.assertEqual(cells(done.stdout, "SmolLM2-135M")[0][3], "error: rows of 576 hold no q4_k blocks of 256")
        self.assertEqual(done.stderr.count("Q8_0"), 2)  # a failure is not repeated

    def test_a_process_that_hangs_is_ended(self):
        done = self.run_script("--shapes", "tiny", "--test", "decode", "--limit", "0.5",
                               wisp=self.pretender(seconds=100))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(cells(done.stdout, "tiny")[0][3], "error: not done after 0.5 s")

    def test_nothing_new_after_the_budget(self):
        done = self.run_script("--shapes", "tiny", "--test", "decode,depth", "--runs", "9", "--budget", "0.5",
                               wisp=self.pretender(seconds=0.3))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row[2] for row in cells(done.stdout, "tiny")], ["tg128"])
        self.assertRegex(done.stdout, r"Cut short: tiny q4_0 tg128 \(wisp: [1-4] of 9 runs\)")
        self.assertIn("Left out, no time: tiny q4_0 tg128 @ d4096, tiny q4_0 tg128 @ d16384", done.stdout)

    def test_exit_codes(self):
        nowhere = self.folder / "nowhere"
        for code, flags, what in ((2, ["--test", "speed"], "'speed'"), (2, ["--shapes", "tiny,huge"], "'huge'"),
                                  (2, ["--runs", "0"], "--runs"), (2, ["--budget", "-1"], "--budget"),
                                  (2, ["--nothing"], "--nothing"), (1, ["--wisp", nowhere], f"no wisp at {nowhere}"),
                                  (1, ["--llama", nowhere], f"no libllama.so in {nowhere}")):
            done = self.run_script(*flags)
            self.assertEqual((done.returncode, done.stdout), (code, ""), flags)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("compare.py: error: ", done.stderr)
            self.assertIn(what, done.stderr)


class ModelsTest(FolderTest):
    def test_a_whole_file_is_kept_and_another_replaced(self):
        path = make_model(self.folder, "tiny", "q4_0")
        whole = path.read_bytes()
        changed = whole[:-1] + bytes([whole[-1] ^ 1])
        path.write_bytes(changed)
        make_model(self.folder, "tiny", "q4_0")
        self.assertEqual(path.read_bytes(), changed)
        path.write_bytes(whole[:-32])
        make_model(self.folder, "tiny", "q4_0")
        self.assertEqual(path.read_bytes(), whole)
        self.assertEqual(list(self.folder.iterdir()), [path])

    def test_shapes_are_the_real_ones(self):
        # Million weights of the published models.
        for name, millions in (("smollm-135m", 134.5), ("qwen3-0.6b", 596), ("llama-1b", 1236), ("qwen3-4b", 4022),
                               ("llama-8b", 8030), ("qwen3-30b-a3b", 30519)):
            matrices = [tensor for tensor in list_tensors(SHAPES[name], "f16") if tensor.storage == "f16"]
            weights = sum(tensor.bytes() for tensor in matrices) / 2
            self.assertAlmostEqual(weights / 1e6 / millions, 1, delta=1e-3, msg=name)


class Pretend(engines.Engine):
    """Notes its runs in `log`; each value is larger than the one before."""

    def __init__(self, name, log):
        super().__init__(name, [], 1, 1)
        self.log, self.value = log, 0

    def command(self, model, tests):
        return [self.name, model]

    def run(self, model, tests):
        self.log.append((self.name, model, [str(test) for test in tests]))
        self.value += 1 if self.name == "wisp" else 2
        return {test: [self.value] for test in tests}, self.name


class MeasureTest(unittest.TestCase):
    def measure(self, names, rounds):
        log = []
        rows = [row for name in names for row in tables.rows_of(name, ["tiny"], ["q4_0"])]
        pair = [Pretend("wisp", log), Pretend("llama.cpp", log)]
        measurer = Measurer(rows, pair, rounds, lambda shape, kind: f"{shape}-{kind}", note=lambda text: None)
        return log, [(row, measurer.outcomes(row)) for row in rows]

    def test_engines_take_turns_and_share_processes(self):
        log, rows = self.measure(["decode", "prompt"], 3)
        tests = ["tg128", "pp512", "pp2048"]
        self.assertEqual(log, [("wisp", "tiny-q4_0", tests), ("llama.cpp", "tiny-q4_0", tests)] * 3)
        self.assertEqual(rows[0][1]["wisp"].values, [1, 2, 3])
        self.assertEqual(tables.line(rows[2][0], list(rows[2][1].values())),
                         "| tiny | Q4_0 | pp2048 | 2.0 | 4.0 | 0.50 |")
        record = tables.record(*rows[2])
        self.assertEqual((record["ratio"], record["llama.cpp"]["runs"]), (0.5, [2, 4, 6]))

    def test_processes_of_their_own_for_depths_and_sequences(self):
        log, _ = self.measure(["depth", "batch"], 1)
        self.assertEqual([tests for name, _, tests in log if name == "wisp"],
                         [["tg128 @ d4096"], ["tg128 @ d16384"], ["tg128 x 16"], ["tg128 x 64"]])

    def test_the_first_load_does_not_count_and_less_is_better(self):
        log, rows = self.measure(["load"], 1)
        self.assertEqual(len(log), 4)
        self.assertEqual(tables.line(rows[0][0], list(rows[0][1].values())),
                         "| tiny | Q4_0 | first token | 2.00 | 4.00 | 2.00 |")


class PretendModel:
    """Stands for llama.cpp's model and session: notes what is decoded."""

    def __init__(self):
        self.log = []

    def session(self, context, **options):
        self.context = context
        return self

    def batch(self, entries):
        return entries

    def decode(self, entries):
        self.log += [(position, sequence, wanted) for _, position, sequence, wanted in entries]

    def clear(self):
        self.log.clear()

    def synchronize(self):
        pass


class LlamaBenchTest(unittest.TestCase):
    def test_what_is_decoded(self):
        model = PretendModel()
        bench = llama_bench.Bench(model, 8, 2, 1)
        bench.prompt(1, 2)
        self.assertEqual(model.log, [(0, 0, False), (0, 1, False), (1, 0, False), (2, 0, True), (1, 1, False),
                                     (2, 1, True)])
        bench.generate(0, 2)
        self.assertEqual(model.log, [(0, 0, True), (0, 1, True), (1, 0, True), (1, 1, True)])
        row = bench.measure("n_gen", 3, 1, 4)
        self.assertEqual((row["n_gen"], row["n_prompt"], row["n_depth"], row["n_seq"]), (3, 0, 1, 2))
        self.assertEqual(len(row["samples_ts"]), 4)
        self.assertIn(engines.Test("tg", 3, 1, 2), engines.rates([row]))

    def test_a_batch_of_llama_cpp(self):
        batch = llama_bench.llama_cpp.Session.batch([(7, 5, 0, False), (8, 6, 3, True)])
        self.assertEqual((batch.n_tokens, batch.token[:2], batch.pos[:2], batch.logits[:2]), (2, [7, 8], [5, 6], [0, 1]))
        self.assertEqual([batch.seq_id[i][0] for i in range(2)], [0, 3])
        self.assertEqual(batch.n_seq_id[:2], [1, 1])


if __name__ == "__main__":
    unittest.main()
