"""Runs the program from outside, and makes models for it to run on."""

import array
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODELS = SOURCE / "tests/data/models"
BROKEN = SOURCE / "tests/data/broken"
WISP = os.environ.get("WISP", str(SOURCE / "build/release/wisp"))  # CMake sets it
TIMEOUT = 240  # seconds; sanitizers are slow


def run(*args, stdin=""):
    """The finished process, with stdout and stderr as text."""
    return subprocess.run([WISP, *map(str, args)], input=stdin, capture_output=True, text=True,
                          timeout=TIMEOUT)


def run_in_shell(redirection, *args):
    """The finished process, with a shell's redirection such as 2>&-."""
    return subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", WISP, *map(str, args)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT)


def start(*args):
    """A process that runs, with no input and nobody who reads its output."""
    return subprocess.Popen([WISP, *map(str, args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def output(*args, stdin=""):
    """stdout of a run that succeeds."""
    done = run(*args, stdin=stdin)
    if done.returncode != 0:
        raise AssertionError(f"wisp {args}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def golden(name):
    """tokens, logits rows, greedy tokens of a tiny model."""
    tensors = read_safetensors(MODELS / name / "golden.safetensors")
    (rows, vocab), logits = tensors["logits"]
    return (list(tensors["tokens"][1]), [logits[i * vocab:(i + 1) * vocab] for i in range(rows)],
            list(tensors["greedy"][1]))


def csv(tokens):
    return ",".join(map(str, tokens))


def read_safetensors(path):
    """name -> (shape, array)."""
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = array.array({"F32": "f", "I32": "i", "I64": "q"}[entry["dtype"]])
        values.frombytes(raw[begin:end])
        tensors[name] = (entry["shape"], values)
    return tensors


class FolderCase(unittest.TestCase):
    """Tests with a temporary folder each."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


def copy_model(name, folder):
    """A copy of a tiny model that a test may change."""
    target = pathlib.Path(folder) / name
    shutil.copytree(MODELS / name, target)
    return target


def edit_config(model, edit):
    path = model / "config.json"
    config = json.loads(path.read_text())
    edit(config)
    path.write_text(json.dumps(config))


def edit_header(model, edit):
    """Changes the JSON header of model.safetensors; the data stays."""
    path = model / "model.safetensors"
    raw = path.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:8 + size])
    edit(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size:])


def byte_characters():
    """The printable characters by which byte-level vocabularies write the bytes 0 to 255."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters = {}
    for byte in range(256):
        characters[byte] = chr(byte if byte in printable else 256 + len(
            [b for b in range(byte) if b not in printable]))
    return characters


SPECIAL = {0: "<pad>", 1: "<s>", 2: "</s>", 259: "<|user|>", 260: "<|assistant|>",
           261: "<|system|>"}
FIRST_BYTE = 3  # id of byte 0
TEMPLATE = ("{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}")


def ids_of(text):
    return [FIRST_BYTE + byte for byte in text.encode()]


def add_tokenizer(model, template=TEMPLATE):
    """Gives a model a vocabulary of single bytes and some special tokens."""
    vocab = {character: FIRST_BYTE + byte for byte, character in byte_characters().items()}
    vocab |= {text: number for number, text in SPECIAL.items()}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    (model / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [{"id": number, "content": text, "special": True} | flags
                         for number, text in SPECIAL.items()],
        "pre_tokenizer": level, "decoder": level, "post_processor": None,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}}))
    config = {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True,
              "tokenizer_class": "PreTrainedTokenizerFast"}
    if template is not None:
        config["chat_template"] = template
    (model / "tokenizer_config.json").write_text(json.dumps(config))
