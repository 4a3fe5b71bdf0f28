#!/usr/bin/env python3
"""Writes docs/families.md from the families' sources, the fixtures and the reports of a test run.

make_families_doc.py [--build build/release] [--output docs/families.md]

Run the tests first (make test): what a report does not show as passed is left empty in the table.
"""

import argparse
import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
ARCHS = ROOT / "src/model/archs"
FIXTURES = ROOT / "tests/data/models"

# Families of which a published file was compared with llama.cpp (docs/text.md, docs/performance.md).
REAL_FILES = {"gemma3": "Gemma 3 270M", "llama": "SmolLM2-135M-Instruct", "qwen2": "Qwen2.5-Coder-0.5B-Instruct"}

HEAD = """# Families

What `wisp` runs, and what the tests prove of each family. tools/make_families_doc.py wrote this page
from a test run.

- golden: logits and greedy tokens equal those of Hugging Face transformers on a small random model, in
  both modes and both kernel classes, on the CPU and on Mesa's CPU driver through WebGPU.
- batch: tokens and logits are the same bits alone and among seven others of mixed lengths and roles,
  for three orders of arrival, slots and pages.
- GGUF: a file that llama.cpp's converter wrote gives what transformers gives, on the CPU.
- real file: a published model was compared with llama.cpp (tools/peer/compare_logits.py, eight prompts of all kinds, weights
  expanded to F16): at most 0.008 of the logits' standard deviation apart, the same token ids and no other choice. Gemma's
  prompt of 3,428 tokens is 0.06 apart; there transformers is 0.0007 from wisp and 0.02 from llama.cpp.

Longrope (phi3) has factors for short and for long contexts. wisp takes those of the model's whole context,
or of the one that `-c` states: not those of a prompt's length, on which results would then depend.

"""


def families():
    """name, HF model types and GGUF architectures of each family, sorted."""
    rows = []
    for path in sorted(ARCHS.glob("*.cpp")):
        for body in re.findall(r"const Arch k\w+ = \{\n(.*?)\n\};", path.read_text(), re.S):
            def names(field, body=body):
                found = re.search(r"\." + field + r" = (\{[^}]*\}|\"[^\"]*\")", body)
                return re.findall(r'"([^"]*)"', found.group(1)) if found else []
            rows.append((names("name")[0], names("hf_model_types"), names("gguf_architectures")))
    return sorted(rows)


def fixtures(rows):
    """The fixtures of each family by its name; those of GGUF files apart, without those of quantised folders."""
    by_type = {kind: name for name, kinds, _ in rows for kind in kinds}
    folders, files = {}, {}
    for path in sorted(FIXTURES.iterdir()):
        if (path / "model.gguf").exists():
            files.setdefault(path.name.removeprefix("gguf_"), []).append(path.name)
        elif path.is_dir():
            config = json.loads((path / "config.json").read_text())
            if "quantization_config" not in config:
                folders.setdefault(by_type[config["model_type"]], []).append(path.name)
    return folders, files


def passed(build, program):
    """Names of the program's cases that ran and passed."""
    report = build / "test-reports" / f"{program}.xml"
    if not report.exists():
        raise SystemExit(f"make_families_doc: error: {report} is missing: run make test first")
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {case.get("name").split("/")[-1] for case in cases
            if case.get("status") == "run" and case.find("failure") is None}


def mark(names, done, suffixes):
    """yes, if every fixture passed with each suffix."""
    return "yes" if names and all(name + s in done for name in names for s in suffixes) else ""


def table(rows, folders, files, golden, batch):
    lines = ["| family | model_type | GGUF architecture | fixtures | golden, CPU | golden, WebGPU "
             "| batch, CPU | batch, WebGPU | GGUF | real file |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name, kinds, architectures in rows:
        own = folders.get(name, [])
        cells = [name, ", ".join(kinds), ", ".join(architectures), str(len(own)),
                 mark(own, golden, ("_cpu_exact", "_cpu_fast")),
                 mark(own, golden, ("_webgpu_exact", "_webgpu_fast")),
                 mark(own, batch, ("_cpu",)), mark(own, batch, ("_webgpu",)),
                 mark(files.get(name, []), golden, ("_cpu_exact", "_cpu_fast")),
                 REAL_FILES.get(name, "")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/families.md")
    args = parser.parse_args()
    rows = families()
    folders, files = fixtures(rows)
    text = table(rows, folders, files, passed(args.build, "model_golden_test"),
                 passed(args.build, "model_invariance_test"))
    args.output.write_text(HEAD + text)


if __name__ == "__main__":
    main()
