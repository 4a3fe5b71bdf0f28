#!/usr/bin/env python3
"""Compare wisp with llama.cpp on a real GGUF file: prompt ids and logits over prompts of eight kinds.

usage: compare_logits.py LIBDIR MODEL.gguf WISP [--backend cpu|webgpu] [--f16 F16.gguf] [--kv f32] [--tokens 64] [--only KIND,...]

llama.cpp continues each prompt greedily; wisp is fed prompt and continuation (--math exact) and its logits at the
continued positions must differ by at most --tolerance std (0.1; 0.02 with --f16, which names the same model with weights
expanded to F16: llama.cpp then rounds no activations), the arg-max being the same wherever llama.cpp's two best are more
than twice that apart. With `--kv f32` both keep keys and values in f32 (llama.cpp's f16 cache also sums values in f16,
which shows in long prompts). Needs numpy. Prints a line a prompt and `N passed, N failed`; exits 1 if any failed."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llama_cpp  # noqa: E402

TURN = "<|im_start|>{}\n{}<|im_end|>\n"


def chat(*turns):
    return "".join(TURN.format(role, text) for role, text in turns) + "<|im_start|>assistant\n"


def prompts(long_tokens):
    sentence = "The river carried the small boats past the mill, the orchard and the old stone bridge, while {} people watched. "
    long_text = "".join(sentence.format(i) for i in range(long_tokens // 22))
    return {
        "english": "The three laws of thermodynamics state that",
        "code": "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n    if n < 2:\n",
        "chinese": "中国的首都是北京，它有三千多年的历史。请介绍一下",
        "emoji": "Today was great 😀🎉! We went 🏖️ and saw 👩‍👩‍👧‍👦 playing with a 🐕‍🦺. Then",
        "long": long_text,
        "empty_system": chat(("system", ""), ("user", "What is the capital of France?")),
        "three_turns": chat(("system", "You are a helpful AI assistant."), ("user", "Hi, my name is Ada."),
                            ("assistant", "Hello Ada! How can I help?"), ("user", "Add 17 and 25."),
                            ("assistant", "17 + 25 = 42."), ("user", "What is my name, and what was the sum?")),
        "leading_spaces": "    leading spaces   and  doubled ones\n\n\t tab, then",
    }


def run_wisp(wisp, *arguments):
    done = subprocess.run([wisp, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"wisp {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def read_logits(path):
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8 : 8 + size])["logits"]
    begin, end = entry["data_offsets"]
    return np.frombuffer(raw[8 + size + begin : 8 + size + end], np.float32).reshape(entry["shape"])


def compare(got, want, tolerance):
    """(largest difference over std, positions where a clear arg-max differs)."""
    std = want.std()
    top = np.sort(want, axis=1)
    clear = top[:, -1] - top[:, -2] > 2 * tolerance * std
    differs = (got.argmax(1) != want.argmax(1)) & clear
    return float(np.abs(got - want).max() / std), int(differs.sum())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("libdir")
    parser.add_argument("model")
    parser.add_argument("wisp")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--f16")
    parser.add_argument("--kv", choices=["f16", "f32"], default="f16")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--long", type=int, default=3000)
    parser.add_argument("--only", default="")
    parser.add_argument("--tolerance", type=float)
    args = parser.parse_args()
    path = args.f16 or args.model
    tolerance = args.tolerance or (0.02 if args.f16 else 0.1)
    model = llama_cpp.Model(llama_cpp.Library(args.libdir), path)
    wanted = {kind for kind in args.only.split(",") if kind}
    passed = failed = 0
    for kind, text in prompts(args.long).items():
        if wanted and kind not in wanted:
            continue
        ids = model.tokenize(text, add_special=True)
        ours = [int(i) for i in run_wisp(args.wisp, "tokenize", "-m", args.model, text).strip().split(",")]
        session = model.session(len(ids) + args.tokens + 8, args.kv == "f32")
        tokens, rows = session.greedy(ids, args.tokens)
        session.close()
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/logits.safetensors"
            listing = pathlib.Path(folder, "tokens")
            listing.write_text(",".join(map(str, ids + tokens[:-1])))
            run_wisp(args.wisp, "logits", "-m", path, "--tokens", f"@{listing}", "-o", out, "--math", "exact",
                     "--backend", args.backend, "--kv", args.kv)
            got = read_logits(out)[len(ids) - 1 :]
        error, differing = compare(got, np.stack([np.frombuffer(row, np.float32) for row in rows]), tolerance)
        ok = ours == ids and error <= tolerance and differing == 0
        passed, failed = passed + ok, failed + (not ok)
        print(f"{'ok  ' if ok else 'FAIL'} {kind:15s} {len(ids):5d} tokens, ids {'equal' if ours == ids else 'DIFFER'}, "
              f"largest difference {error:.4f} std, {differing} clear arg-max differ", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
