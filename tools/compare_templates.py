#!/usr/bin/env python3
"""Compares wisp's chat templates with Jinja2 set up as transformers sets it up.

    compare_templates.py --wisp build/release/tests/text/tokenizer_cases TEMPLATE.jinja ...

Renders each template with conversations of several kinds (plain, with a system message, with tools and
their answers, with reasoning, with content in parts, with odd characters) and prints the first line that
differs. Where Jinja2 raises, wisp must refuse. Exits 1 when a rendering differs. Needs Jinja2.
"""
import argparse
import difflib
import json
import subprocess
import sys
import time

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = 86400 * 20000  # what tokenizer_cases gives strftime_now


class Generation(jinja2.ext.Extension):
    """{% generation %}: only marks a part."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    result = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
    result.filters["tojson"] = to_json
    result.globals["raise_exception"] = raise_exception
    result.globals["strftime_now"] = lambda fmt: time.strftime(fmt, time.localtime(NOW))
    return result


TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a \"city\" <now> & later",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "Größe 東京"},
        "days": {"type": "integer", "default": 3}, "unit": {"type": "string", "enum": ["c", "f"]}}}}}]
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "id": "call00001",
     "function": {"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}}]}
SYSTEM = {"role": "system", "content": "Be brief.\n"}
USER = {"role": "user", "content": "  Hello \n world \U0001F600 {{ x }} <|im_end|>"}
ANSWER = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi\nthere "}
TOOL = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"t\": 21.5}"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image"}]}
CASES = {
    "one": {"messages": [USER]},
    "no prompt": {"messages": [USER], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, USER]},
    "turns": {"messages": [SYSTEM, USER, ANSWER, USER]},
    "ends with the answer": {"messages": [USER, ANSWER], "add_generation_prompt": False},
    "tools": {"messages": [SYSTEM, USER], "tools": TOOLS},
    "tool call": {"messages": [USER, CALL, TOOL], "tools": TOOLS},
    "tool turns": {"messages": [SYSTEM, USER, CALL, TOOL, ANSWER, USER], "tools": TOOLS},
    "reasoning": {"messages": [USER, dict(ANSWER, reasoning_content="because"), USER]},
    "thinking": {"messages": [USER], "enable_thinking": True},
    "no thinking": {"messages": [USER], "enable_thinking": False},
    "parts": {"messages": [PARTS]},
    "two users": {"messages": [USER, USER]},
    "empty": {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": ""}]},
    "assistant first": {"messages": [ANSWER, USER]},
    "nothing": {"messages": []},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("templates", nargs="+", metavar="TEMPLATE.jinja")
    parser.add_argument("--wisp", required=True, help="the program tokenizer_cases")
    arguments = parser.parse_args()
    counts = {"same": 0, "both refuse": 0, "differ": 0, "only wisp refuses": 0, "only Jinja2 refuses": 0}
    for path in arguments.templates:
        with open(path, encoding="utf-8") as file:
            source = file.read()
        cases = [{"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", **case}
                 for case in CASES.values()]
        run = subprocess.run([arguments.wisp, "--render", path], stdout=subprocess.PIPE, check=True,
                             input=b"".join(json.dumps(case).encode() + b"\0" for case in cases))
        outputs = run.stdout.decode().split("\0")
        for name, variables, output in zip(CASES, cases, outputs):
            try:
                expected, error = environment().from_string(source).render(**variables), None
            except Exception as problem:  # whatever a template raises
                expected, error = None, f"{type(problem).__name__}: {problem}"
            refused, found = output[:1] == "-", output[1:]
            if refused:
                kind = "both refuse" if error else "only wisp refuses"
            else:
                kind = "only Jinja2 refuses" if error else "same" if found == expected else "differ"
            counts[kind] += 1
            if kind in ("same", "both refuse"):
                continue
            print(f"{path}: {name}: {kind}: {error or found[:200]}")
            if kind == "differ":
                for line in list(difflib.unified_diff(expected.splitlines(), found.splitlines(), "Jinja2",
                                                      "wisp", lineterm="", n=0))[3:7]:
                    print("   ", line[:300])
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["differ"] + counts["only wisp refuses"] + counts["only Jinja2 refuses"] else 0


if __name__ == "__main__":
    sys.exit(main())
