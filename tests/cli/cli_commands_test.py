"""Commands that need no tokenizer, on tiny models."""

import json
import pathlib
import re
import subprocess
import unittest

import program
from program import MODELS, FolderCase, csv, golden, output, read_safetensors, run

PRECISE = ["--math", "exact", "--kv", "f32"]
EXACT = ["--backend", "cpu", *PRECISE]
BOUNDS = {"cpu": 3e-4, "webgpu": 6e-4}  # of the largest error over the deviation of the logits


class LogitsTest(FolderCase):
    def logits(self, name, *flags):
        path = self.folder / "out.safetensors"
        tokens, _, _ = golden(name)
        self.assertEqual(output("logits", "-m", MODELS / name, "--tokens", csv(tokens), "-o", path,
                                *flags), "")
        tensors = read_safetensors(path)
        self.assertEqual(list(tensors), ["logits"])
        return tensors["logits"]

    def check_golden(self, name, backend, *flags):
        _, want, _ = golden(name)
        flat = [x for row in want for x in row]
        mean = sum(flat) / len(flat)
        deviation = (sum((x - mean) ** 2 for x in flat) / len(flat)) ** 0.5
        shape, got = self.logits(name, "--backend", backend, *PRECISE, *flags)
        self.assertEqual(shape, [len(want), len(want[0])])
        worst = max(abs(a - b) for a, b in zip(got, flat))
        self.assertLess(worst / deviation, BOUNDS[backend])

    def test_every_position_against_golden_logits(self):
        for name in ("llama", "qwen3_odd"):
            for flags in ([], ["--chunk", "1"], ["--chunk", "7"]):
                with self.subTest(name=name, flags=flags):
                    self.check_golden(name, "cpu", *flags)

    def test_the_same_on_webgpu(self):
        for flags in ([], ["--chunk", "1"]):
            with self.subTest(flags=flags):
                self.check_golden("llama", "webgpu", *flags)

    def test_file_appears_whole_or_not_at_all(self):
        path = self.folder / "out.safetensors"
        path.write_text("old")
        done = run("logits", "-m", MODELS / "llama", "--tokens", "1,288", "-o", path, *EXACT)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(path.read_text(), "old")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["out.safetensors"])

    def test_refuses_to_replace_a_device(self):
        done = run("logits", "-m", MODELS / "llama", "--tokens", "1", "-o", "/dev/null", *EXACT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a regular file", done.stderr)
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())


class GenerateTest(FolderCase):
    def generate(self, *args, backend="cpu"):
        return json.loads(output("generate", "-m", MODELS / "llama", "--backend", backend, *PRECISE,
                                 "--json", *args))

    def generate_batch(self, lines, *args):
        """The tokens of each answer."""
        path = self.folder / "batch.jsonl"
        path.write_text("".join(json.dumps({"tokens": t, "n": n}) + "\n" for t, n in lines))
        printed = output("generate", "-m", MODELS / "llama", *EXACT, "--json", "--batch", path,
                         *args)
        answers = [json.loads(line) for line in printed.splitlines()]
        for answer in answers:
            self.assertEqual(list(answer), ["tokens"])
        return [answer["tokens"] for answer in answers]

    def test_greedy_tokens(self):
        tokens, _, greedy = golden("llama")
        for backend in BOUNDS:
            got = self.generate("--tokens", csv(tokens), "-n", len(greedy), backend=backend)
            self.assertEqual(got, {"tokens": [greedy]})

    def test_copies_and_plain_output(self):
        tokens, _, greedy = golden("llama")
        got = self.generate("--tokens", csv(tokens), "-n", "3", "--copies", "5")
        self.assertEqual(got, {"tokens": [greedy[:3]] * 5})
        plain = output("generate", "-m", MODELS / "llama", *EXACT, "--tokens", csv(tokens), "-n", 3)
        self.assertEqual(plain, csv(greedy[:3]) + "\n")

    def test_nothing_to_generate(self):
        self.assertEqual(self.generate("--tokens", "5", "-n", "0"), {"tokens": [[]]})

    def test_stops_at_the_end_of_the_context(self):
        done = run("generate", "-m", MODELS / "llama", *EXACT, "--json", "--tokens", "1,2,3", "-n",
                   "4000000000")
        self.assertEqual(done.returncode, 0)
        # 512 positions, the last of which still chooses a token
        self.assertEqual(len(json.loads(done.stdout)["tokens"][0]), 510)
        self.assertIn("the context is full after 510 of 4000000000 tokens", done.stderr)

    def test_beyond_the_positions_of_the_model(self):
        model = MODELS / "llama_yarn"  # made for 64 positions
        prompt = csv([3 + i % 50 for i in range(90)])
        done = run("generate", "-m", model, *EXACT, "--json", "--tokens", prompt, "-n", "8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["tokens"][0]), 8)
        self.assertRegex(done.stderr, "a context of 97 is more than the 64 positions")
        # Beside it a shorter one stops where it stops alone.
        batch = self.folder / "batch.jsonl"
        batch.write_text(f'{{"tokens":[{prompt}],"n":8}}\n{{"tokens":[5,6,7],"n":80}}\n')
        both = run("generate", "-m", model, *EXACT, "--json", "--batch", batch)
        lines = [json.loads(line)["tokens"] for line in both.stdout.splitlines()]
        self.assertEqual(lines[0], json.loads(done.stdout)["tokens"][0])
        self.assertEqual(len(lines[1]), 62)
        self.assertIn("the context is full after 62 of 80 tokens", both.stderr)

    def test_tokens_from_a_file(self):
        tokens, _, greedy = golden("llama")
        path = self.folder / "ids.txt"
        for text in (csv(tokens) + "\n", " ".join(map(str, tokens)), ", ".join(map(str, tokens)),
                     "\n".join(map(str, tokens)) + "\n\n", csv(tokens) + ",\r\n"):
            path.write_text(text)
            self.assertEqual(self.generate("--tokens", f"@{path}", "-n", "2"),
                             {"tokens": [greedy[:2]]})

    def test_batch_is_bitwise_the_same_as_alone(self):
        tokens, _, _ = golden("llama")
        lines = [(tokens[:1], 9), (tokens * 3, 4), (tokens[:17], 0), (tokens[3:40], 6),
                 (tokens[:1], 9)]
        alone = {}
        for i, (prompt, count) in enumerate(lines):
            path = self.folder / "alone.safetensors"
            [got] = self.generate_batch([(prompt, count)], "--logits", path)
            alone[i] = (got, read_safetensors(path)["logits.0"])
            self.assertEqual(len(got), count)
            self.assertEqual(alone[i][1][0], [count, 288])
        for flags in ([], ["--shuffle", "1"], ["--shuffle", "77"]):
            path = self.folder / "all.safetensors"
            got = self.generate_batch(lines, "--logits", path, *flags)
            tensors = read_safetensors(path)
            self.assertEqual(sorted(tensors), [f"logits.{i}" for i in range(len(lines))])
            for i in range(len(lines)):
                self.assertEqual((got[i], tensors[f"logits.{i}"]), alone[i])

    def test_logits_choose_the_tokens(self):
        tokens, want, greedy = golden("llama")
        path = self.folder / "out.safetensors"
        [got] = self.generate_batch([(tokens, 5)], "--logits", path)
        (rows, vocab), logits = read_safetensors(path)["logits.0"]
        self.assertEqual(rows, 5)
        best = [max(range(vocab), key=lambda t: (logits[i * vocab + t], -t)) for i in range(5)]
        self.assertEqual(best, got)
        self.assertEqual(best, greedy[:5])
        self.assertLess(max(abs(a - b) for a, b in zip(logits[:vocab], want[-1])), 1e-3)

    def test_malformed_batch_lines_are_named(self):
        good = '{"tokens":[1],"n":1}\n'
        for line, reason in (("{", "not valid JSON"), ("", "not valid JSON"), ("[1]", "a JSON object"),
                             ('{"n":1}', '"tokens"'), ('{"tokens":[1]}', '"n"'),
                             ('{"tokens":[],"n":1}', "empty"), ('{"tokens":[1.5],"n":1}', "integer"),
                             ('{"tokens":["1"],"n":1}', "integer"),
                             ('{"tokens":[-1],"n":1}', "out of range"),
                             ('{"tokens":[288],"n":1}', "outside the vocabulary of 288"),
                             ('{"tokens":[1],"n":-1}', "out of range"),
                             ('{"tokens":[1],"n":18446744073709551615}', "out of range"),
                             ('{"tokens":[1],"n":1,"x":1}', '"x"')):
            with self.subTest(line=line):
                path = self.folder / "batch.jsonl"
                path.write_text(good + line + "\n" + good)
                done = run("generate", "-m", MODELS / "llama", *EXACT, "--batch", path, "--json")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, r"\Awisp: error: [^\n]*: line 2: [^\n]*\n\Z")
                self.assertIn(reason, done.stderr)


class InspectTest(FolderCase):
    def test_json(self):
        got = json.loads(output("inspect", MODELS / "llama", "--json", "--tensors", "--plan"))
        self.assertEqual(got["config"]["family"], "llama")
        self.assertEqual(got["config"]["hidden_size"], 64)
        self.assertEqual(got["format"], "huggingface")
        self.assertEqual(len(got["layers"]), 3)
        self.assertEqual(got["parameters"], sum(t["parameters"] for t in got["types"]))
        names = [t["name"] for t in got["tensors"]]
        self.assertIn("model.embed_tokens.weight", names)
        self.assertEqual(len(got["plans"]), 2)
        self.assertIn("kv_bytes_per_token", got)

    def test_text(self):
        text = output("inspect", MODELS / "qwen3_odd", "--plan", "--tensors")
        self.assertRegex(text, r"(?m)^head_dim +24$")
        self.assertRegex(text, r"(?m)^layers 0-1 +full attention$")
        self.assertIn("model.layers.1.mlp.up_proj.weight", text)
        self.assertIn("plan prefill:", text)
        self.assertIn("plan decode:", text)
        self.assertNotIn("plan", output("inspect", MODELS / "qwen3_odd"))

    def test_a_plan_has_tables_for_the_context_in_use(self):
        model = program.copy_model("llama", self.folder)
        program.edit_config(model, lambda config: config.update(max_position_embeddings=1 << 28))
        self.assertIn("plan decode:", output("inspect", model, "--plan"))


class BenchTest(FolderCase):
    FLAGS = ["-m", MODELS / "llama", "--backend", "cpu"]

    def test_json_holds_every_run(self):
        rows = json.loads(output("bench", *self.FLAGS, "-p", "16,64", "-n", "4", "-d", "0,64", "-b",
                                 "1,3", "-r", "2", "-o", "json"))
        tests = [(r["n_seq"], r["n_depth"], r["n_prompt"], r["n_gen"]) for r in rows]
        self.assertEqual(tests, [(b, d, p, n) for b in (1, 3) for d in (0, 64)
                                 for p, n in ((16, 0), (64, 0), (0, 4))])
        for row in rows:
            self.assertEqual(len(row["samples_ns"]), 2)
            self.assertEqual(len(row["first_token_ns"]), 2 if row["n_prompt"] else 0)
            tokens = (row["n_prompt"] + row["n_gen"]) * row["n_seq"]
            for time, rate in zip(row["samples_ns"], row["samples_ts"]):
                self.assertGreater(time, 0)
                self.assertAlmostEqual(rate * time / 1e9 / tokens, 1, delta=0.01)
            self.assertAlmostEqual(row["avg_ts"], sum(row["samples_ts"]) / 2, delta=1e-6 * rate)

    def test_table(self):
        lines = output("bench", *self.FLAGS, "-p", "8", "-n", "3", "-r", "1").splitlines()
        self.assertEqual(len(lines), 4)
        header = [cell.strip() for cell in lines[0].strip("|").split("|")]
        self.assertEqual(header, ["model", "size", "params", "backend", "threads", "math", "test",
                                  "t/s", "first token ms"])
        tests = [line.split("|")[7].strip() for line in lines[2:]]
        self.assertEqual(tests, ["pp8", "tg3"])

    def test_depth_of_prompt_tests_is_a_multiple_of_64(self):
        done = run("bench", *self.FLAGS, "-p", "8", "-n", "0", "-d", "10")
        self.assertEqual(done.returncode, 2)
        self.assertIn("multiple of 64", done.stderr)


class DevicesTest(FolderCase):
    def test_self_test(self):
        done = run("devices", "--self-test", "--backend", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\A[1-9]\d* passed, 0 failed\n\Z")

    def test_kernels(self):
        lines = output("devices", "--kernels", "--backend", "webgpu").splitlines()
        self.assertEqual(lines[0].split(), ["op", "class", "weights", "rows", "file", "variant"])
        for words in ("linear decode q4_0 1 linear_decode_q8.wgsl", "embed decode f16 1+ embed.wgsl"):
            self.assertTrue(any(" ".join(line.split()).startswith(words) for line in lines), words)

    def test_json(self):
        got = json.loads(output("devices", "--json"))
        self.assertIsInstance(got["adapters"], list)
        self.assertTrue(got["cpu"]["name"])
        for i, adapter in enumerate(got["adapters"]):
            self.assertEqual(adapter["index"], i)

    def test_text(self):
        self.assertIn("--backend cpu:\n", output("devices"))


class OutputTest(FolderCase):
    def test_help_and_version(self):
        self.assertRegex(output("--version"), r"\Awisp \d+\.\d+\.\d+\n\Z")
        self.assertEqual(output("run", "--version"), output("--version"))
        commands = re.findall(r"(?m)^  (\w+) ", output("--help").split("Subcommands:")[1])
        self.assertEqual(commands[:3], ["run", "generate", "logits"])
        for command in ("run", "generate", "logits", "tokenize", "detokenize", "inspect",
                        "perplexity", "bench", "devices"):
            text = output(command, "--help")
            self.assertIn("Example", text)
            self.assertIn(f"wisp {command}", text)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([program.WISP, "inspect", MODELS / "llama"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=program.TIMEOUT,
                                  check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "wisp: error: standard output: cannot write: "
                                      "No space left on device\n")

    def test_a_closed_pipe_ends_it_quietly(self):
        child = subprocess.Popen([program.WISP, "inspect", MODELS / "llama", "--plan", "--tensors"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.close()
        self.assertEqual(child.stderr.read(), b"")
        child.stderr.close()
        self.assertEqual(child.wait(program.TIMEOUT), 1)

    def test_profile_and_verbose_go_to_stderr(self):
        done = run("generate", "-m", MODELS / "llama", "--backend", "cpu", "--tokens", "1,2", "-n",
                   "2", "--json", "--verbose", "--profile")
        self.assertEqual(done.returncode, 0)
        json.loads(done.stdout)
        self.assertIn("wisp: info: ", done.stderr)
        self.assertIn("linear", done.stderr)

    def test_profile_tells_the_time_of_steps_and_of_the_processor(self):
        done = run("generate", "-m", MODELS / "llama", "--backend", "webgpu", "--tokens", "1,2",
                   "-n", "4", "--json", "--profile")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\nattn\.qkv +\d+ +[\d.]+ +[\d.]+ +[\d.]+%")
        for name in ("decode", "CPU, decode"):
            self.assertRegex(done.stderr, rf"\n{name} +\d+ +[\d.]+ +[\d.]+\n")


if __name__ == "__main__":
    unittest.main()
