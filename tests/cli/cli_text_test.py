"""Commands that handle text, on a tiny model with a vocabulary of bytes."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest

import program
from program import FolderCase, add_tokenizer, copy_model, csv, ids_of, output, run

CPU = ["--backend", "cpu"]
WILD = ["--temp", "50", "--top-k", "0", "--min-p", "0", "--top-p", "1"]  # any token will do
USER, ASSISTANT, SYSTEM, BOS = 259, 260, 261, 1


class Case(FolderCase):
    def setUp(self):
        super().setUp()
        self.model = copy_model("llama", self.folder)
        add_tokenizer(self.model)

    def run_json(self, *args, stdin=""):
        return json.loads(output("run", "-m", self.model, *CPU, "--json", *args, stdin=stdin))

    def greedy(self, prompt, count):
        """What generate gives, which knows nothing of text."""
        done = output("generate", "-m", self.model, *CPU, "--tokens", csv(prompt), "-n", count,
                      "--json")
        return json.loads(done)["tokens"][0]


class TokenizeTest(Case):
    def test_both_ways(self):
        for text in ("Hello, world", " leading", "emoji 🦊\nline", "-dash"):
            ids = output("tokenize", "-m", self.model, "--no-bos", "--", text)
            self.assertEqual(ids, csv(ids_of(text)) + "\n")
            self.assertEqual(output("detokenize", "-m", self.model, "--tokens", ids.strip()), text)

    def test_special_tokens(self):
        self.assertEqual(output("tokenize", "-m", self.model, "a"), csv([BOS, *ids_of("a")]) + "\n")
        self.assertEqual(output("tokenize", "-m", self.model, "--no-bos", "<|user|>a"),
                         csv([USER, *ids_of("a")]) + "\n")
        self.assertEqual(output("tokenize", "-m", self.model, "--no-bos", "--no-parse-special",
                                "<|user|>"), csv(ids_of("<|user|>")) + "\n")

    def test_file_is_taken_as_it_is(self):
        path = self.folder / "text"
        path.write_bytes(b"a\r\n\n")
        self.assertEqual(output("tokenize", "-m", self.model, "--no-bos", "-f", path),
                         csv(ids_of("a\r\n\n")) + "\n")


class RunTest(Case):
    def test_greedy_text_is_that_of_the_tokens(self):
        want = self.greedy([BOS, USER, *ids_of("hi"), ASSISTANT], 20)
        if 2 in want:
            want = want[:want.index(2) + 1]
        got = self.run_json("-p", "hi", "-n", "20", "--temp", "0")
        self.assertEqual(got["tokens"], want)
        self.assertEqual(got["finish_reason"], "end_token" if want[-1] == 2 else "length")
        text = output("detokenize", "-m", self.model, "--tokens",
                      csv([t for t in want if 3 <= t < 259]))
        self.assertEqual(got["text"], text)
        self.assertEqual(got["timings"]["prompt_tokens"], 5)
        self.assertEqual(got["timings"]["generated_tokens"], len(want))
        plain = run("run", "-m", self.model, *CPU, "-p", "hi", "-n", "20", "--temp", "0")
        self.assertEqual(plain.stdout, text + "\n")
        self.assertRegex(plain.stderr, r"\Aprompt 5 tokens, [\d.]+ tok/s; "
                                       rf"generated {len(want)} tokens(, [\d.]+ tok/s)?\n\Z")

    def test_where_the_prompt_comes_from(self):
        path = self.folder / "prompt"
        path.write_text("hi\n")
        flags = ["-n", "4", "--temp", "0"]
        want = self.run_json("-p", "hi", *flags)["tokens"]
        self.assertEqual(self.run_json("-f", path, *flags)["tokens"], want)
        self.assertEqual(self.run_json("-", *flags, stdin="hi\n")["tokens"], want)
        self.assertEqual(self.run_json(*flags, stdin="hi")["tokens"], want)

    def test_raw_and_system(self):
        flags = ["-n", "6", "--temp", "0"]

        def until_end(tokens):
            return tokens[:tokens.index(2) + 1] if 2 in tokens else tokens

        got = self.run_json("--raw", "-p", "hi", *flags)["tokens"]
        self.assertEqual(got, until_end(self.greedy([BOS, *ids_of("hi")], 6)))
        got = self.run_json("--system", "be", "-p", "hi", *flags)["tokens"]
        self.assertEqual(got, until_end(self.greedy(
            [BOS, SYSTEM, *ids_of("be"), USER, *ids_of("hi"), ASSISTANT], 6)))
        got = self.run_json("--system", "", "-p", "hi", *flags)["tokens"]
        self.assertEqual(got, until_end(self.greedy(
            [BOS, SYSTEM, USER, *ids_of("hi"), ASSISTANT], 6)))

    def test_seed(self):
        flags = ["-p", "hi", "-n", "24", "--temp", "1.5", "--top-k", "0", "--top-p", "1"]
        first = self.run_json(*flags, "--seed", "5")
        self.assertEqual(first["seed"], 5)
        self.assertEqual(self.run_json(*flags, "--seed", "5")["tokens"], first["tokens"])
        self.assertNotEqual(self.run_json(*flags, "--seed", "6")["tokens"], first["tokens"])
        drawn = self.run_json(*flags)
        self.assertEqual(self.run_json(*flags, "--seed", drawn["seed"])["tokens"], drawn["tokens"])

    def test_stop_text(self):
        flags = ["-p", "hi", "-n", "60", "--temp", "2", "--top-k", "0", "--top-p", "1", "--min-p",
                 "0", "--seed", "3"]
        whole = self.run_json(*flags)["text"]
        self.assertGreater(len(whole), 8)
        stop = whole[4:6]
        got = self.run_json(*flags, "--stop", "never to be seen", "--stop", stop)
        self.assertEqual(got["text"], whole[:whole.index(stop)])
        self.assertEqual((got["finish_reason"], got["stop"]), ("stop_text", stop))

    def test_full_context(self):
        done = run("run", "-m", self.model, *CPU, "--raw", "-p", "hi", "-c", "16", "--seed", "1",
                   "--temp", "3", "--top-k", "0", "--json")
        got = json.loads(done.stdout)
        self.assertEqual(got["finish_reason"], "context_full")
        self.assertEqual(len(got["tokens"]), 14)
        self.assertIn("the context of 16 tokens is full", done.stderr)

    def test_nothing_to_generate(self):
        got = self.run_json("-p", "hi", "-n", "0")
        self.assertEqual((got["text"], got["tokens"], got["finish_reason"]), ("", [], "length"))

    def test_interrupt_ends_the_program_after_what_it_has(self):
        program.edit_config(self.model, lambda config: config.update(max_position_embeddings=60000))
        for _ in range(20):  # an answer may draw the end token before the signal comes
            child = subprocess.Popen(
                [program.WISP, "run", "-m", self.model, *CPU, "-c", "60000", "-p", "hi", *WILD],
                bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            first = child.stdout.read(1)
            child.send_signal(signal.SIGINT)
            rest, notes = child.communicate(timeout=program.TIMEOUT)
            self.assertTrue((first + rest).endswith(b"\n"))
            self.assertIn(b"generated", notes)
            if child.returncode == -signal.SIGINT:
                return
            self.assertEqual(child.returncode, 0)
        self.fail("no answer was interrupted")

    def test_default_model(self):
        done = run("run", *CPU, "-p", "Say hello.", "-n", "4", "--temp", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\A\w[^\n]*\n\Z")


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *args):
        self.text = ""
        self.child, self.file = pty.fork()
        if self.child == 0:
            try:
                os.execv(program.WISP, [program.WISP, *map(str, args)])
            finally:
                os._exit(127)

    def expect(self, pattern):
        """Reads until `pattern` is there; what follows it stays for the next call."""
        end = time.monotonic() + program.TIMEOUT
        while not (found := re.search(pattern, self.text)):
            if not select.select([self.file], [], [], end - time.monotonic())[0]:
                raise AssertionError(f"no {pattern!r} in {self.text!r}")
            try:
                piece = os.read(self.file, 4096)
            except OSError:  # the program has gone
                piece = b""
            if not piece:
                raise AssertionError(f"ended without {pattern!r} in {self.text!r}")
            self.text += piece.decode(errors="replace")
        seen, self.text = self.text[:found.end()], self.text[found.end():]
        return seen

    def send(self, text):
        os.write(self.file, text.encode())

    def close(self):
        """The exit status, or minus the signal."""
        status = os.waitpid(self.child, 0)[1]
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)


class ChatTest(Case):
    def chat(self, *args):
        terminal = Terminal("run", "-m", self.model, *CPU, "--seed", "1", *args)
        terminal.expect("/help lists the commands")
        terminal.expect("> ")
        return terminal

    def prompt_tokens(self, terminal, message):
        terminal.send(message + "\n")
        return int(re.search(r"\[prompt (\d+) tokens", terminal.expect(r"\[prompt [^\n]*\n")).group(1))

    def test_history_and_commands(self):
        terminal = self.chat("-n", "3")
        first = self.prompt_tokens(terminal, "hi")
        self.assertEqual(first, 5)
        terminal.expect("> ")
        self.assertGreater(self.prompt_tokens(terminal, "hi"), first + 3)
        terminal.expect("> ")
        terminal.send("/reset\n")
        terminal.expect("begins anew")
        terminal.expect("> ")
        self.assertEqual(self.prompt_tokens(terminal, "hi"), first)
        terminal.send("/help\n")
        terminal.expect("/exit")
        terminal.send("/nonsense\n")
        terminal.expect("unknown command /nonsense")
        terminal.send("/exit\n")
        self.assertEqual(terminal.close(), 0)

    def test_end_of_input_leaves(self):
        terminal = self.chat()
        terminal.send("\x04")
        self.assertEqual(terminal.close(), 0)

    def test_interrupt_stops_the_answer_only(self):
        program.edit_config(self.model, lambda config: config.update(max_position_embeddings=60000))
        terminal = self.chat("-c", "60000", *WILD)
        for _ in range(20):  # an answer may draw the end token before the signal comes
            terminal.send("hi\n")
            time.sleep(0.2)
            os.kill(terminal.child, signal.SIGINT)
            if "stopped" in terminal.expect(r"\[prompt [^\n]*\n"):
                break
            terminal.expect("leaves")
        else:
            self.fail("no answer was stopped")
        terminal.expect("> ")
        terminal.send("\x03")  # at the prompt it does not leave either
        terminal.expect("Ctrl-D leaves")
        terminal.send("/exit\n")
        self.assertEqual(terminal.close(), 0)

    def test_outgrowing_the_context(self):
        terminal = self.chat("-c", "64", "-n", "4")
        terminal.send("x" * 40 + "\n")
        terminal.expect(r"\[prompt 43 tokens")
        terminal.send("y" * 40 + "\n")
        terminal.expect(r"the conversation has \d+ tokens, the context 64: /reset begins a new one, "
                        "or start with --drop-oldest")
        terminal.send("/exit\n")
        self.assertEqual(terminal.close(), 0)

    def test_dropping_the_oldest_turns(self):
        terminal = self.chat("-c", "64", "-n", "4", "--drop-oldest", "--system", "s")
        terminal.send("x" * 40 + "\n")
        terminal.expect(r"\[prompt 45 tokens")
        terminal.send("y" * 40 + "\n")
        terminal.expect("forgot the 1 oldest turns")
        terminal.expect(r"\[prompt 45 tokens")
        terminal.send("z" * 70 + "\n")
        terminal.expect("the conversation has 75 tokens, the context 64")
        terminal.send("/exit\n")
        self.assertEqual(terminal.close(), 0)


if __name__ == "__main__":
    unittest.main()
