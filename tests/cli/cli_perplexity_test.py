"""wisp perplexity on a tiny model, against what wisp logits gives."""

import json
import math
import random
import signal
import struct
import unittest

import program
from program import (FolderCase, add_tokenizer, copy_model, csv, edit_config, ids_of, output,
                     read_safetensors, run)

CPU = ["--backend", "cpu"]
BOS = 1
CONTEXT = 48
WINDOWS = 3
HALF = CONTEXT // 2


def text_of(period):
    return "".join(chr(97 + i * i % period) for i in range(150))


def log_softmax(row):
    total = math.log(sum(map(math.exp, row)))
    return [value - total for value in row]


def mean(values):
    return sum(values) / len(values)


def error(values):
    """The standard error of their mean."""
    middle = mean(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / len(values) / (len(values) - 1))


def percentile(values, share):
    at = share * (len(values) - 1)
    low, high = (sorted(values)[i] for i in (math.floor(at), math.ceil(at)))
    return low + (at - math.floor(at)) * (high - low)


class Case(FolderCase):
    def setUp(self):
        super().setUp()
        self.model = copy_model("llama", self.folder)
        add_tokenizer(self.model)
        self.text = self.folder / "text"
        self.text.write_text(text_of(23))
        tokens = [BOS, *ids_of(self.text.read_text())]
        self.windows = [tokens[i * CONTEXT:(i + 1) * CONTEXT] for i in range(WINDOWS)]
        self.nexts = [token for window in self.windows for token in window[HALF + 1:]]

    def log_probs(self):
        """What the model gives at the scored positions."""
        rows = []
        out = self.folder / "out.safetensors"
        for window in self.windows:
            output("logits", "-m", self.model, *CPU, "--tokens", csv([BOS, *window[1:]]), "-o", out)
            (_, vocab), logits = read_safetensors(out)["logits"]
            rows += [log_softmax(logits[i * vocab:(i + 1) * vocab])
                     for i in range(HALF, CONTEXT - 1)]
        out.unlink()
        return rows

    def near(self, found, expected, relative=1e-4):
        self.assertAlmostEqual(found, expected, delta=relative * abs(expected))


class PerplexityTest(Case):
    def test_against_logits(self):
        losses = [-row[token] for row, token in zip(self.log_probs(), self.nexts, strict=True)]
        want = math.exp(mean(losses))
        flags = ["perplexity", "-m", self.model, *CPU, "-f", self.text, "-c", CONTEXT]
        got = json.loads(output(*flags, "--json"))
        self.near(got["perplexity"], want)
        self.near(got["error"], error(losses) * want)
        self.assertEqual((got["windows"], got["scored_tokens"]), (3, 69))
        lines = output(*flags).splitlines()
        self.assertRegex(lines[0], r"\A\[1\][\d.]+,\[2\][\d.]+,\[3\][\d.]+,\Z")
        self.assertEqual(lines[1:], [f"Final estimate: PPL = {got['perplexity']:.4f} +/- "
                                     f"{got['error']:.5f}"])


class KlBaseTest(Case):
    def setUp(self):
        super().setUp()
        self.base = self.folder / "base"
        self.flags = ["perplexity", "-m", self.model, *CPU, "-f", self.text, "-c", CONTEXT,
                      "--kl-base", self.base]

    def rows(self):
        """Of the file: where each row starts, its step and its log-probabilities."""
        raw = self.base.read_bytes()
        self.assertEqual(raw[:8], b"_logits_")
        context, vocab, windows = struct.unpack_from("<3I", raw, 8)
        self.assertEqual((context, windows), (CONTEXT, WINDOWS))
        self.assertEqual(struct.unpack_from(f"<{context * windows}i", raw, 20),
                         tuple(token for window in self.windows for token in window))
        first, size = 20 + 4 * context * windows, 2 * (vocab + vocab % 2) + 8
        self.assertEqual(len(raw), first + windows * (context - 1 - HALF) * size)
        for at in range(first, len(raw), size):
            step, smallest = struct.unpack_from("<2f", raw, at)
            codes = struct.unpack_from(f"<{vocab}H", raw, at + 8)
            yield at, step, [step * code + smallest for code in codes]

    def check(self, base):
        """Compares the model, and holds all figures against those of log-probabilities."""
        got = json.loads(output(*self.flags, "--json"))
        own = self.log_probs()
        divergences = [sum(math.exp(b) * (b - p) for b, p in zip(base_row, row) if b > -16)
                       for base_row, row in zip(base, own, strict=True)]
        losses = [-row[token] for row, token in zip(own, self.nexts)]
        base_losses = [-row[token] for row, token in zip(base, self.nexts)]
        ratios = [loss - base_loss for loss, base_loss in zip(losses, base_losses)]
        changes = [math.exp(-loss) - math.exp(-base_loss)
                   for loss, base_loss in zip(losses, base_losses)]
        squares = [change * change for change in changes]
        same = [int(row.index(max(row)) == base_row.index(max(base_row)))
                for row, base_row in zip(own, base)]
        base_perplexity = math.exp(mean(base_losses))
        want = {
            "perplexity": math.exp(mean(losses)),
            "error": math.exp(mean(losses)) * error(losses),
            "windows": WINDOWS,
            "context": CONTEXT,
            "scored_tokens": len(own),
            "kl_divergence": mean(divergences),
            "kl_divergence_error": error(divergences),
            "kl_divergence_max": max(divergences),
            "kl_divergence_p99_9": percentile(divergences, 0.999),
            "kl_divergence_p99": percentile(divergences, 0.99),
            "kl_divergence_median": percentile(divergences, 0.5),
            "same_top": mean(same),
            "same_top_error": error(same),
            "probability_change": mean(changes),
            "probability_change_error": error(changes),
            "probability_change_rms": math.sqrt(mean(squares)),
            "probability_change_rms_error": error(squares) / 2 / math.sqrt(mean(squares)),
            "base_perplexity": base_perplexity,
            "base_perplexity_error": base_perplexity * error(base_losses),
            "perplexity_ratio": math.exp(mean(ratios)),
            "perplexity_ratio_error": math.exp(mean(ratios)) * error(ratios),
        }
        self.assertEqual(list(got), list(want))
        for name, value in want.items():
            with self.subTest(name=name):
                self.near(got[name], value, 1e-3)
        return got

    def test_the_file_holds_what_logits_gives(self):
        done = output(*self.flags)
        self.assertEqual(done.splitlines()[-1],
                         f"{self.base}: log-probabilities of 69 positions written")
        for (_, step, row), own in zip(self.rows(), self.log_probs(), strict=True):
            for found, expected in zip(row, own, strict=True):
                self.assertAlmostEqual(found, max(expected, max(own) - 16), delta=step / 2 + 1e-5)

    def test_same_model(self):
        written = json.loads(output(*self.flags, "--json"))
        self.assertEqual(list(written), ["perplexity", "error", "windows", "context",
                                         "scored_tokens"])
        raw = self.base.read_bytes()
        compared = json.loads(output(*self.flags, "--json"))
        self.assertEqual(compared["perplexity"], written["perplexity"])
        self.near(compared["base_perplexity"], written["perplexity"])
        self.assertLess(abs(compared["kl_divergence"]), 1e-6)
        self.assertGreater(compared["same_top"], 0.98)
        self.assertIn("same top token", output(*self.flags))
        self.assertEqual(self.base.read_bytes(), raw)

    def test_another_model(self):
        output(*self.flags)
        base = self.log_probs()
        edit_config(self.model, lambda config: config.update(rms_norm_eps=0.5))
        got = self.check(base)
        self.assertGreater(got["kl_divergence"], 1e-3)  # else only rounding would be compared

    def test_another_distribution(self):
        output(*self.flags)
        raw = bytearray(self.base.read_bytes())
        draws, base = random.Random(5), []
        for i, (at, _, own) in enumerate(self.rows()):
            codes = [draws.randrange(65536) for _ in own]
            if i % 3 == 0:  # the likeliest token is the same
                codes = [min(code, 65534) for code in codes]
                codes[own.index(max(own))] = 65535
            step = 3e-4  # to values below -16, which do not count
            smallest = -math.log(sum(math.exp(step * code) for code in codes))
            struct.pack_into(f"<2f{len(own)}H", raw, at, step, smallest, *codes)
            base.append([step * code + smallest for code in codes])
        self.base.write_bytes(raw)
        self.assertLess(min(map(min, base)), -16)
        self.near(self.check(base)["same_top"], 1 / 3, 0.1)

    def test_files_of_other_runs(self):
        output(*self.flags)
        whole = self.base.read_bytes()
        other = self.folder / "other"
        other.write_text(text_of(19))

        def with_words(at, *words):
            return whole[:at] + struct.pack(f"<{len(words)}I", *words) + whole[at + 4 * len(words):]

        vocab = struct.unpack_from("<I", whole, 12)[0]
        for raw, change, text in [
                (whole[:-1], {}, f"has {len(whole) - 1} bytes, expected {len(whole)}"),
                (whole + b"x", {}, f"has {len(whole) + 1} bytes, expected {len(whole)}"),
                (whole[:100], {}, "has 100 bytes"),
                (b"_other__" + whole[8:], {}, "not a file of log-probabilities"),
                (whole[:19], {}, "not a file of log-probabilities"),
                (b"", {}, "not a file of log-probabilities"),
                (with_words(12, vocab + 1), {}, f"a vocabulary of {vocab + 1}, expected"),
                (with_words(16, 2), {}, "made of 2 windows"),
                (with_words(8, *[0xffffffff] * 3), {}, "made of 4294967295 windows"),
                (with_words(20 + 4 * 3 * CONTEXT, 0x7fc00000), {}, "not finite"),
                (whole, {CONTEXT: 36}, "windows of 48 tokens"),
                (whole, {self.text: other}, "made of another text")]:
            with self.subTest(text=text):
                self.base.write_bytes(raw)
                done = run(*[change.get(flag, flag) for flag in self.flags], "--json")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, r"\Awisp: error: [^\n]+\n\Z")
                self.assertIn(f"{self.base}: ", done.stderr)
                self.assertIn(text, done.stderr)
                self.assertEqual(self.base.read_bytes(), raw)

    def test_paths(self):
        for path, status, text in ((self.folder, 1, "not a file of log-probabilities"),
                                   (self.folder / "no" / "base", 1, "No such file"),
                                   ("", 2, "path is empty")):
            done = run(*self.flags[:-1], path)
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn(text, done.stderr)

    def test_a_signal_leaves_no_half_written_file(self):
        self.text.write_text(text_of(23) * 2000)  # as long as keeps it busy until the signal comes
        before = set(self.folder.iterdir())
        process = program.start(*self.flags)
        while set(self.folder.iterdir()) == before:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(program.TIMEOUT), -signal.SIGTERM)
        self.assertEqual(set(self.folder.iterdir()), before)


if __name__ == "__main__":
    unittest.main()
