"""wisp quantize from outside: files that run, errors, and what is left when it ends early."""

import json
import os
import random
import signal
import struct
import unittest

from program import BROKEN, MODELS, TIMEOUT, FolderCase, output, run, start

LLAMA = MODELS / "gguf_llama" / "model.gguf"
GENERATE = ["--tokens", "1,2,3", "-n", 4, "--backend", "cpu", "--json"]


def write_large(path):
    """A model of one tensor that keeps the program busy for a while."""
    rows, columns = 8192, 4096
    text = lambda value: struct.pack("<Q", len(value)) + value.encode()
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    header += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    header += text("blk.0.attn_q.weight") + struct.pack("<IQQIQ", 2, columns, rows, 0, 0)
    header += bytes(-len(header) % 32)
    part = struct.pack("<65536f", *(random.Random(1).gauss(0, 1) for _ in range(65536)))
    with open(path, "wb") as file:
        file.write(header)
        for _ in range(rows * columns // 65536):
            file.write(part)


class QuantizeTest(FolderCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.gguf"

    def fails(self, status, text, *args):
        with self.subTest(args=args):
            done = run("quantize", *args)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertRegex(done.stderr, r"\Awisp: error: [^\n]+\n\Z")
            self.assertIn(text, done.stderr)

    def test_the_result_runs(self):
        self.out.write_text("old")
        line = output("quantize", LLAMA, self.out, "--type", "q8_0", "-t", 2)
        self.assertRegex(line, r"\A\S+out.gguf: Q8_0, [\d.]+ KiB -> [\d.]+ KiB, \d+\.\d\d bits per "
                               r"weight\n\Z")
        self.assertEqual(output("generate", "-m", self.out, *GENERATE),
                         output("generate", "-m", LLAMA, *GENERATE))
        types = {row["type"] for row in json.loads(output("inspect", self.out, "--json"))["types"]}
        self.assertEqual(types, {"F16", "F32", "Q8_0"})  # F16: rows of no whole blocks
        self.assertEqual([path.name for path in self.folder.iterdir()], ["out.gguf"])

    def test_notes(self):
        matrix = self.folder / "imatrix.dat"
        name = b"blk.0.attn_q.weight"
        columns = next(row["shape"] for row in
                       json.loads(output("inspect", LLAMA, "--tensors", "--json"))["tensors"]
                       if row["name"] == name.decode())[1]
        matrix.write_bytes(struct.pack("<ii", 1, len(name)) + name +
                           struct.pack(f"<ii{columns}f", 1, columns, *range(columns)))
        done = run("quantize", LLAMA, self.out, "--type", "Q4_0", "--imatrix", matrix)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\Anote: (\d+) of \d+ tensors without an entry in \S+\n\Z")
        done = run("quantize", self.out, self.folder / "again.gguf", "--type", "Q8_0")
        self.assertRegex(done.stderr, r"\Anote: \d+ tensors had been quantised before")
        self.assertNotEqual(self.out.read_bytes(), (self.folder / "again.gguf").read_bytes())

    def test_wrong_usage(self):
        self.fails(2, "input", "--type", "Q8_0")
        self.fails(2, "output", LLAMA, "--type", "Q8_0")
        self.fails(2, "--type", LLAMA, self.out)
        self.fails(2, "there is no Q9_X; types are Q4_0, Q4_1,", LLAMA, self.out, "--type", "Q9_X")
        self.fails(2, "path is empty", LLAMA, "", "--type", "Q8_0")

    def test_the_input_is_never_replaced(self):
        model = self.folder / "model.gguf"
        model.write_bytes(LLAMA.read_bytes())
        link = self.folder / "link.gguf"
        os.symlink(model, link)
        for target in (model, link):
            self.fails(2, "is the input", model, target, "--type", "Q8_0")
        self.fails(2, "is the input", LLAMA, model, "--type", "Q8_0", "--imatrix", model)
        self.assertEqual(model.read_bytes(), LLAMA.read_bytes())
        self.assertTrue(link.is_symlink())

    def test_wrong_input(self):
        self.out.write_text("old")
        self.fails(1, "nowhere: no such file", self.folder / "nowhere", self.out, "--type", "Q8_0")
        self.fails(1, "only GGUF files", MODELS / "llama", self.out, "--type", "Q8_0")
        self.fails(1, "cut_in_data.gguf", BROKEN / "cut_in_data.gguf", self.out, "--type", "Q8_0")
        self.fails(1, "No such file", LLAMA, self.folder / "no" / "out", "--type", "Q8_0")
        self.fails(1, "not a regular file", LLAMA, self.folder, "--type", "Q8_0")
        self.fails(1, "notes.txt: not an importance matrix", LLAMA, self.out, "--type", "Q8_0",
                   "--imatrix", BROKEN / "notes.txt")
        self.fails(1, "without an importance matrix", LLAMA, self.out, "--type", "Q8_0",
                   "--imatrix", LLAMA)
        self.assertEqual(self.out.read_text(), "old")
        self.assertEqual(list(self.folder.iterdir()), [self.out])

    def test_a_signal_leaves_no_half_written_file(self):
        model = self.folder / "large.gguf"
        write_large(model)
        process = start("quantize", model, self.out, "--type", "IQ4_XS", "-t", 1)
        while len(list(self.folder.iterdir())) == 1:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT), -signal.SIGTERM)
        self.assertEqual(list(self.folder.iterdir()), [model])


if __name__ == "__main__":
    unittest.main()
