"""Every error is one clear line on stderr, with nothing on stdout: exit 1, or 2 for wrong usage."""

import json
import signal
import struct
import unittest

from program import (BROKEN, MODELS, TIMEOUT, FolderCase, add_tokenizer, copy_model, edit_config,
                     edit_header, run, run_in_shell, start)

LLAMA = MODELS / "llama"
CPU = ["--backend", "cpu"]


class Case(FolderCase):
    def check(self, status, texts, *args, stdin=""):
        """Runs the program, which has to fail in one line that holds all `texts`."""
        with self.subTest(args=args):
            done = run(*args, stdin=stdin)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertRegex(done.stderr, r"\Awisp: error: [^\n]+\n\Z")
            for text in [texts] if isinstance(texts, str) else texts:
                self.assertIn(text, done.stderr)

    def generate(self, texts, model, tokens="1,2,3", count=2, flags=()):
        self.check(1, texts, "generate", "-m", model, "--tokens", tokens, "-n", count, "--json",
                   *CPU, *flags)


class ModelFilesTest(Case):
    def test_broken_gguf(self):
        for name, text in (("cut_in_data.gguf", "data"), ("cut_at_90.gguf", "cut_at_90.gguf"),
                           ("offset_past_end.gguf", "offset"),
                           ("huge_tensor_count.gguf", "tensor"),
                           ("type_unknown.gguf", "unknown type id"),
                           ("type_q8_k.gguf", "Q8_K"), ("empty.gguf", "empty.gguf"),
                           ("wrong_magic.gguf", "wrong_magic.gguf")):
            self.generate(text, BROKEN / name)
            self.check(1, text, "inspect", BROKEN / name)
            self.check(1, text, "tokenize", "-m", BROKEN / name, "hello")

    def test_what_is_no_model(self):
        self.generate("nowhere", self.folder / "nowhere")
        self.generate("config.json", self.folder)
        self.generate("notes.txt", BROKEN / "notes.txt")
        self.generate("model.pth", BROKEN / "model.pth")

    def test_overlapping_tensors(self):
        model = copy_model("llama", self.folder)

        def overlap(header):
            first, second = list(header)[1:3]
            size = header[first]["data_offsets"][1] - header[first]["data_offsets"][0]
            begin = header[second]["data_offsets"][0]
            header[first]["data_offsets"] = [begin, begin + size]

        edit_header(model, overlap)
        self.generate("overlap", model)

    def test_config(self):
        model = copy_model("llama", self.folder)
        edit_config(model, lambda config: config.pop("hidden_size"))
        self.generate(["config.json", "hidden_size"], model)
        self.check(1, "hidden_size", "inspect", model)
        edit_config(model, lambda config: config.update(hidden_size="64"))
        self.generate("hidden_size", model)
        edit_config(model, lambda config: config.update(hidden_size=64, model_type="perceptron"))
        self.generate("perceptron", model)
        edit_config(model, lambda config: config.update(model_type="llama", tilt=1))
        self.generate("field 'tilt': 1 is not known for the family 'llama'", model)
        edit_config(model, lambda config: config.update(tilt=None, intermediate_size=48))
        self.check(1, "expected [48, 64]", "inspect", model)
        (model / "config.json").write_text("{")
        self.generate("config.json", model)

    def test_nothing_is_printed_before_an_error(self):
        model = self.folder / "model.gguf"
        raw = (MODELS / "gguf_llama/model.gguf").read_bytes()
        for key in (b"general.name", b"tokenizer.ggml.model"):
            name = raw.index(key) + len(key)
            # A u64 in place of a string whose length becomes its value; the rest is the next key.
            broken = raw[:name] + struct.pack("<IQ", 10, 1) + raw[name + 12 + struct.unpack_from(
                "<Q", raw, name + 4)[0]:]
            model.write_bytes(broken + bytes(32))
            self.check(1, key.decode(), "inspect", model)

    def test_a_context_beyond_all_memory(self):
        model = copy_model("llama", self.folder)
        edit_config(model, lambda config: config.update(max_position_embeddings=1 << 28))
        for flags in (["-n", "4294967295"], ["-n", "1", "-c", str(1 << 28)]):
            self.check(1, ["268435456", "rope table"], "generate", "-m", model, "--tokens", "1",
                       *flags, *CPU)
        # Nor where nothing grows with the context.
        self.check(1, "268435456, the most", "generate", "-m", MODELS / "rwkv4", "--tokens", "1",
                   "-n", "1", "-c", str((1 << 28) + 1), *CPU)

    def test_names_that_are_no_text(self):
        model = self.folder / "model.gguf"
        raw = (MODELS / "gguf_llama/model.gguf").read_bytes()
        model.write_bytes(raw.replace(struct.pack("<Q", 5) + b"llama",
                                      struct.pack("<Q", 5) + b"\xc2\x9bm\xff\n"))
        self.check(1, "'  m\ufffd ' is not supported", "inspect", model)
        self.check(1, "Too many levels of symbolic links", "inspect", self.loop())

    def loop(self):
        model = self.folder / "loop"
        model.mkdir()
        (model / "config.json").symlink_to("config.json")
        return model

    def test_deeply_nested_json(self):
        model = copy_model("llama", self.folder)
        add_tokenizer(model)
        original = (model / "config.json").read_text()
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            deep = opening * 300000 + "1" + closing * 300000
            for field in ("hidden_size", "model_type", "eos_token_id"):
                (model / "config.json").write_text(
                    original.rstrip()[:-1] + f',"{field}":{deep}' + "}")
                for args in (["inspect", model], ["tokenize", "-m", model, "hello"]):
                    self.check(1, ["config.json", "nested too deeply"], *args)
        (model / "config.json").write_text(original)
        for name in ("generation_config.json", "tokenizer_config.json", "chat_template.json"):
            old = (model / name).read_bytes() if (model / name).exists() else None
            (model / name).write_text('{"chat_template":%s,"eos_token_id":%s}' % (deep, deep))
            self.check(1, [name, "nested too deeply"], "run", "-m", model, "-p", "hello", *CPU)
            (model / name).unlink()
            if old is not None:
                (model / name).write_bytes(old)
        lines = self.folder / "lines"
        lines.write_text('{"tokens":%s,"n":1}' % deep)
        self.check(1, ["line 1", "nested too deeply"], "generate", "-m", LLAMA, "--batch", lines,
                   *CPU)

    def test_missing_tensor(self):
        model = copy_model("llama", self.folder)
        edit_header(model, lambda header: header.pop("model.layers.1.mlp.up_proj.weight"))
        self.generate("model.layers.1.mlp.up_proj.weight", model)

    def test_unused_tensor(self):
        model = copy_model("llama", self.folder)

        def rename(header):
            header["model.layers.1.mlp.extra.weight"] = {
                "dtype": "F32", "shape": [0], "data_offsets": [0, 0]}

        edit_header(model, rename)
        self.generate("model.layers.1.mlp.extra.weight", model)

    def test_wrong_shape(self):
        model = copy_model("llama", self.folder)

        def transpose(header):
            header["model.layers.0.mlp.up_proj.weight"]["shape"].reverse()

        edit_header(model, transpose)
        self.generate(["model.layers.0.mlp.up_proj.weight", "[96, 64]", "[64, 96]"], model)


    def test_weights_that_are_no_numbers(self):
        model = copy_model("llama", self.folder)
        flags = ["logits", "-m", model, "--tokens", "1,2", "-o", self.folder / "out.safetensors", *CPU, "--check-tensors"]
        self.assertEqual(run(*flags).returncode, 0)
        path = model / "model.safetensors"
        raw = bytearray(path.read_bytes())
        size = struct.unpack_from("<Q", raw)[0]
        header = json.loads(raw[8:8 + size])
        name, row, column = "model.layers.1.mlp.down_proj.weight", 5, 7
        _, columns = header[name]["shape"]
        self.assertEqual(header[name]["dtype"], "BF16")
        struct.pack_into("<H", raw, 8 + size + header[name]["data_offsets"][0] + 2 * (row * columns + column), 0x7f80)
        path.write_bytes(raw)
        self.check(1, [f"weight '{name}': row 5 holds a NaN or an infinity in block 7 (BF16)"], *flags)


class TokensTest(Case):
    def test_out_of_range(self):
        self.generate(["288", "vocabulary of 288"], LLAMA, "1,288")
        self.generate("-1", LLAMA, "5,-1")
        self.generate("99999999999999999999", LLAMA, "99999999999999999999")
        self.check(1, "2147483648", "logits", "-m", LLAMA, "--tokens", "2147483648", "-o",
                   self.folder / "out", *CPU)

    def test_none(self):
        self.generate("no tokens", LLAMA, "")
        path = self.folder / "ids"
        path.write_text(" \n")
        self.generate([str(path), "no tokens"], LLAMA, f"@{path}")

    def test_files(self):
        self.generate("nowhere", LLAMA, f"@{self.folder / 'nowhere'}")
        path = self.folder / "ids"
        for text in ("1,2,x", "1,,2", "1.5", "0x10", ",1", "1;2"):
            path.write_text(text)
            self.generate([str(path), "expected token ids"], LLAMA, f"@{path}")

    def test_prompt_longer_than_the_context(self):
        self.generate(["20", "16"], LLAMA, ",".join(["1"] * 20), flags=["-c", "16"])
        self.generate(["300", "256"], MODELS / "gpt2", ",".join(["1"] * 300))
        self.check(1, ["20", "16"], "logits", "-m", LLAMA, "--tokens", ",".join(["1"] * 20), "-o",
                   self.folder / "out", "-c", "16", *CPU)

    def test_context_longer_than_the_model(self):
        self.generate(["1000", "256", "learned"], MODELS / "gpt2", flags=["-c", "1000"])


class OutputFilesTest(Case):
    def test_cannot_be_written(self):
        out = self.folder / "nowhere/out.safetensors"
        self.check(1, str(out), "logits", "-m", LLAMA, "--tokens", "1", "-o", out, *CPU)
        self.check(1, "not a regular file", "logits", "-m", LLAMA, "--tokens", "1", "-o",
                   self.folder, *CPU)

    def test_closed_standard_files(self):
        out = self.folder / "out"
        args = ["generate", "-m", LLAMA, "--tokens", "1", "-n", "600", "--logits", out, *CPU]
        run(*args)
        want = out.read_bytes()
        out.unlink()
        # Warnings must not get into the file that has taken the number of stderr.
        done = run_in_shell("2>&-", *args)
        self.assertEqual((done.returncode, done.stderr, out.read_bytes()), (0, "", want))
        done = run_in_shell(">&-", *args)
        self.assertEqual(done.returncode, 1)
        self.assertIn("wisp: error: standard output: cannot write", done.stderr)

    def test_a_full_disk_is_told(self):
        for args in (["--version"], ["--help"], ["run", "--help"], ["inspect", LLAMA]):
            done = run_in_shell(">/dev/full", *args)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "wisp: error: standard output: cannot write: No space left on "
                                 "device\n"))

    def test_a_signal_leaves_no_half_written_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # As many rows as keep it busy until the signal comes.
            process = start("generate", "-m", LLAMA, "--tokens", "1", "-n", "512", "--copies",
                            "4096", "--logits", self.folder / "out", *CPU)
            while not list(self.folder.iterdir()):
                self.assertIsNone(process.poll())
            process.send_signal(number)
            self.assertEqual(process.wait(TIMEOUT), -number)
            self.assertEqual(list(self.folder.iterdir()), [])


class TextTest(Case):
    def test_folder_without_tokenizer(self):
        text = self.folder / "text"
        text.write_text("words " * 100)
        for args in (["run", "-m", LLAMA, "-p", "hello"], ["tokenize", "-m", LLAMA, "hello"],
                     ["detokenize", "-m", LLAMA, "--tokens", "5"],
                     ["perplexity", "-m", LLAMA, "-f", text, "-c", "16"]):
            self.check(1, ["tokenizer.json", str(LLAMA)], *args)

    def test_broken_tokenizer(self):
        model = copy_model("llama", self.folder)
        for text in ("{", "{}", '{"model":{"type":"BPE"}}', "[]"):
            (model / "tokenizer.json").write_text(text)
            self.check(1, "tokenizer.json", "tokenize", "-m", model, "hello")

    def test_chat_templates(self):
        model = copy_model("llama", self.folder)
        for template, text in ((None, "no chat template"), ("{% for %}", "emplate"),
                               ("{{ raise_exception('no way') }}", "no way")):
            add_tokenizer(model, template)
            self.check(1, text, "run", "-m", model, "-p", "hello", *CPU)

    def test_prompts(self):
        model = copy_model("llama", self.folder)
        add_tokenizer(model)
        self.check(1, "the prompt is empty", "run", "-m", model, "-p", "", *CPU)
        self.check(1, "the prompt is empty", "run", "-m", model, "-p", "", *CPU, stdin="unread")
        self.check(1, "too long", "run", "-m", model, "-", *CPU, stdin="x" * (17 << 20))
        self.check(1, "the prompt is empty", "run", "-m", model, "-", *CPU, stdin="\n")
        self.check(1, "the prompt is empty", "run", "-m", model, *CPU)
        self.check(1, "nowhere", "run", "-m", model, "-f", self.folder / "nowhere", *CPU)
        self.check(1, ["602", "512"], "run", "-m", model, "--raw", "-p", "x" * 601, *CPU)
        self.check(1, "262", "detokenize", "-m", model, "--tokens", "262")

    def test_sampling_options(self):
        model = copy_model("llama", self.folder)
        add_tokenizer(model)
        for flag, value in (("--temp", "-1"), ("--temp", "nan"), ("--top-p", "1.5"),
                            ("--min-p", "-0.5"), ("--repeat-penalty", "0")):
            self.check(1, value.split(".")[0].lstrip("-"), "run", "-m", model, "-p", "x", flag,
                       value, *CPU)

    def test_perplexity_of_a_short_text(self):
        model = copy_model("llama", self.folder)
        add_tokenizer(model)
        text = self.folder / "text"
        text.write_text("x" * 30)
        self.check(1, ["31 tokens", "64"], "perplexity", "-m", model, "-f", text, "-c", "32", *CPU)


class UsageTest(Case):
    def test_commands_and_flags(self):
        for text, args in (
                ("subcommand", []), ("fly", ["fly"]), ("--fly", ["run", "--fly"]),
                ("--model", ["generate", "--tokens", "1", "-n", "1"]),
                ("--tokens", ["logits", "-m", LLAMA, "-o", "x"]),
                ("--tokens", ["generate", "-m", LLAMA]),
                ("-n", ["generate", "-m", LLAMA, "--tokens", "1"]),
                ("-n", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "x"]),
                ("-n", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "-1"]),
                ("-n", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "4294967296"]),
                ("'x'", ["generate", "-m", LLAMA, "--tokens", "1,x", "-n", "1"]),
                ("--batch", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "1", "--batch", "x"]),
                ("--backend", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "1", "--backend",
                               "cuda"]),
                ("--math", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "1", "--math", "f64"]),
                ("--threads", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "1", "-t", "0"]),
                ("--threads", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "1", "-t", "9999"]),
                ("--chunk", ["logits", "-m", LLAMA, "--tokens", "1", "-o", "x", "--chunk", "0"]),
                ("--chunk", ["logits", "-m", LLAMA, "--tokens", "1", "-o", "x", "--chunk",
                             "4294967295"]),
                *((f"{flag}: expected a ", ["run", "-p", "x", flag, ""])
                  for flag in ("-n", "--context", "--seed", "--top-k", "--temp", "--min-p")),
                *(("expected a whole number", ["run", "-p", "x", flag, number])
                  for flag in ("-n", "--seed") for number in ("-1", "18446744073709551616", "1x")),
                ("expected a whole number", ["generate", "-m", LLAMA, "--tokens", "1", "-n", "1",
                                             "--shuffle", "-1"]),
                ("--prompt", ["run", "-p", "x", "-f", "y"]),
                ("--prompt", ["run", "-p"]),
                ("source", ["run", "hello"]),
                ("text", ["tokenize", "-m", LLAMA]),
                ("the path is empty", ["inspect", ""]),
                ("the path is empty", ["logits", "-m", LLAMA, "--tokens", "1", "-o", ""]),
                ("-p", ["bench", "-m", LLAMA, "-p", "many"]),
                ("nothing to measure", ["bench", "-m", LLAMA, "-p", "0", "-n", "0"]),
                ("--output", ["bench", "-m", LLAMA, "-o", "xml"])):
            self.check(2, [text, "--help)"], *args)

    def test_an_unknown_adapter_is_named(self):
        self.check(1, "no such adapter", "generate", "-m", LLAMA, "--tokens", "1", "-n", "1",
                   "--backend", "webgpu", "--adapter", "no such adapter")


if __name__ == "__main__":
    unittest.main()
