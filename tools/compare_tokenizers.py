#!/usr/bin/env python3
"""Compares wisp's token ids with those of llama.cpp and of tokenizer.json on texts.

    compare_tokenizers.py --wisp build/release/tests/text/tokenizer_cases --texts FILE [FILE ...]
        [--llama LIBDIR] MODEL.gguf[=tokenizer.json] ...

Each text is cut into pieces of about 2,000 bytes at line ends, and also taken whole. For each GGUF file
wisp's ids are compared with those of llama.cpp's shared libraries in LIBDIR (libllama*.so, libggml*.so),
and, where a tokenizer.json is named, with wisp's ids from that. Prints the first differences with the
texts of their tokens, and exits 1 when there are any. With --generate N, N bytes of mixed text in many
scripts, with emoji and odd white space, are added to the texts. Standard library only.
"""
import argparse
import ctypes
import glob
import os
import random
import subprocess
import sys

PIECE_BYTES = 2000


class ModelParams(ctypes.Structure):
    """llama_model_params: passed by value in memory, so a larger structure does no harm."""
    _fields_ = [("bytes", ctypes.c_uint8 * 512)]


class LlamaVocab:
    """The vocabulary of a GGUF file in llama.cpp."""

    library = None

    @classmethod
    def load_library(cls, folder):
        for pattern in ("libggml-base*.so*", "libggml.*so*", "libllama.*so*"):
            found = sorted(glob.glob(os.path.join(os.path.abspath(folder), pattern)))
            if not found:
                sys.exit(f"{folder}: no {pattern}")
            cls.library = ctypes.CDLL(found[0], mode=ctypes.RTLD_GLOBAL)
        library = cls.library
        pointer, i32 = ctypes.c_void_p, ctypes.c_int32
        for name, result, arguments in (
                ("llama_model_default_params", ModelParams, []),
                ("llama_model_load_from_file", pointer, [ctypes.c_char_p, ModelParams]),
                ("llama_model_get_vocab", pointer, [pointer]),
                ("llama_model_free", None, [pointer]),
                ("llama_tokenize", i32, [pointer, ctypes.c_char_p, i32, ctypes.POINTER(i32), i32,
                                         ctypes.c_bool, ctypes.c_bool])):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        cls.silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, pointer)(lambda *_: None)
        library.llama_log_set(cls.silent, None)
        library.llama_backend_init()

    def __init__(self, path):
        params = self.library.llama_model_default_params()
        # vocab_only is the first flag behind the pointers; the newer layout has one more field.
        # Before, use_mmap followed it and is on by default.
        params.bytes[64 if params.bytes[65] == 1 else 72] = 1
        self.model = self.library.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            sys.exit(f"llama.cpp cannot load {path}")
        self.vocab = self.library.llama_model_get_vocab(self.model)

    def encode(self, text, special):
        raw = text.encode()
        ids = (ctypes.c_int32 * (len(raw) + 16))()
        count = self.library.llama_tokenize(self.vocab, raw, len(raw), ids, len(ids), False, special)
        return list(ids[:count])

    def close(self):
        self.library.llama_model_free(self.model)


def wisp_ids(program, model, texts, special):
    """Ids of all texts by the program tokenizer_cases."""
    command = [program, "--encode", model] + (["--special"] if special else [])
    data = b"".join(text.encode() + b"\0" for text in texts)
    result = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True)
    lines = result.stdout.decode().split("\n")[:-1]
    if len(lines) != len(texts):
        sys.exit(f"{program}: {len(lines)} lines for {len(texts)} texts")
    return [[int(part) for part in line.split()] for line in lines]


def pieces_of(text):
    pieces, piece, size = [], [], 0
    for line in text.splitlines(keepends=True):
        piece.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            pieces.append("".join(piece))
            piece, size = [], 0
    return pieces + ["".join(piece)] if piece else pieces


def generated_text(size):
    """Mixed text from a fixed seed."""
    rng = random.Random(11)
    ranges = [(0x20, 0x7E), (0xA1, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5F4), (0x600, 0x6FF),
              (0x900, 0x97F), (0xE00, 0xE5B), (0x1780, 0x17F9), (0x1E00, 0x1EFF), (0x3041, 0x30FF),
              (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F), (0x1F900, 0x1F9FF),
              (0x2000, 0x206F), (0x2190, 0x22FF), (0xFF01, 0xFF5E), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF)]
    odd = [" ", "  ", "\t", "\n", "\n\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u200b", " \n ", "\u2028",
           "\x0b", "\x0c", "\x85", "'s", "'LL", "n't", "123", "1234567", "3.14", "\u00b2", "\u0665", "\u2167",
           "...", "--", "==", "\u200d", "\ufe0f", "e\u0301", "\U0001F469\u200d\U0001F4BB", "http://a.b/c?d=e",
           "CamelCase", "snake_case", "HTTPServer", "don't", "\u0130", "\ufb01", "<|x|>", "</s>", "<s>"]
    parts, length = [], 0
    while length < size:
        if rng.random() < 0.4:
            part = rng.choice(odd)
        else:
            low, high = rng.choice(ranges)
            part = "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 12)))
        parts.append(part + (" " if rng.random() < 0.3 else ""))
        length += len(parts[-1].encode())
        if rng.random() < 0.02:
            parts.append("\n")
    return "".join(parts)


def first_difference(left, right):
    at = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
    return at, left[max(0, at - 2):at + 6], right[max(0, at - 2):at + 6]


def compare(name, texts, wisp, other, show):
    """Prints the differences; returns how many texts differ."""
    bad = [i for i in range(len(texts)) if wisp[i] != other[i]]
    tokens = sum(map(len, wisp))
    print(f"{name}: {len(texts)} texts, {tokens} tokens, {len(bad)} texts differ")
    for i in bad[:show]:
        at, left, right = first_difference(wisp[i], other[i])
        print(f"  text {i} of {len(texts[i])} characters, token {at}: wisp {left}, other {right}")
        if len(texts[i]) < 120:
            print(f"    {texts[i]!r}")
    return len(bad)


def shrink(text, differs):
    """A short part of the text that still differs."""
    changed = True
    while changed:
        changed = False
        step = max(1, len(text) // 2)
        while step >= 1:
            at = 0
            while at < len(text):
                shorter = text[:at] + text[at + step:]
                if shorter and differs(shorter):
                    text, changed = shorter, True
                else:
                    at += step
            step //= 2
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.gguf[=tokenizer.json]")
    parser.add_argument("--wisp", required=True, help="the program tokenizer_cases")
    parser.add_argument("--llama", help="folder with llama.cpp's shared libraries")
    parser.add_argument("--texts", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--generate", type=int, default=0, metavar="BYTES")
    parser.add_argument("--special", action="store_true", help="read special tokens in the texts")
    parser.add_argument("--show", type=int, default=5, help="differences to print for each comparison")
    parser.add_argument("--shrink", action="store_true", help="reduce differing texts to their cause")
    arguments = parser.parse_args()
    texts = []
    for path in arguments.texts:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            texts.append(file.read().replace("\0", " "))
    if arguments.generate:
        texts.append(generated_text(arguments.generate))
    texts = [piece for text in texts for piece in pieces_of(text)] + texts
    if not texts:
        parser.error("no texts")
    if arguments.llama:
        LlamaVocab.load_library(arguments.llama)
    special, failed = arguments.special, 0
    for model in arguments.models:
        path, _, json_path = model.partition("=")
        name = os.path.basename(path)
        wisp = wisp_ids(arguments.wisp, path, texts, special)
        if arguments.llama:
            vocab = LlamaVocab(path)
            other = [vocab.encode(text, special) for text in texts]
            failed += compare(f"{name} against llama.cpp", texts, wisp, other, arguments.show)
            if arguments.shrink:
                def differs(text):
                    return wisp_ids(arguments.wisp, path, [text], special)[0] != vocab.encode(text, special)
                bad = [text for text, a, b in zip(texts, wisp, other) if a != b]
                for text in bad[:arguments.show]:
                    small = shrink(text, differs)
                    print(f"  {small!r}: wisp {wisp_ids(arguments.wisp, path, [small], special)[0]}, "
                          f"llama.cpp {vocab.encode(small, special)}")
            vocab.close()
        if json_path:
            other = wisp_ids(arguments.wisp, json_path, texts, special)
            failed += compare(f"{name} against {json_path}", texts, wisp, other, arguments.show)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
