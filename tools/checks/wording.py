"""Checks on what the text of files may hold."""

import re
import subprocess

from .tree import Problem, grep

CPP = (".cpp", ".h")
RUST = ("guard_rs", "rust", "text_rs", "webgpu_rs")
# The one place that reads an environment variable.
ENVIRONMENT_READER = "src/base/log.cpp"
BINARY = (".gguf", ".safetensors", ".bin", ".png", ".spv", ".wasm", ".so", ".a", ".zst", ".gz")
LOCK_FILES = ("Cargo.lock",)
# Written as patterns, so that this file does not hold what it looks for.
FORBIDDEN = (
    (r"(?<![\w.}])/(work|workspace|root|home/\w+)(?=/)", "names a path of one machine: {0}"),
    (r"\b(pypi\.org|files\.pythonhosted|registry\.npmjs|(static|index)\.crates\.io"
     r"|(deb|security|snapshot)\.debian\.org|proxy\.golang\.org|repo1?\.maven)",
     "names a package host ({0}); name the package instead"),
    (r"\bissues?[ /]#?\d+", "names an issue number: {0}"),
)
UNFINISHED = r"\b(TODO|FIXME|XXX)\b|\bGTEST_SKIP\b|\bDISABLED_\w+|@unittest\.skip"


def check_wgsl(tree):
    """WGSL is specialised by including; it has no conditional text."""
    return grep(tree, tree.under(("",), (".wgsl",)),
                r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif|define|undef)\b",
                "{0}: WGSL has no preprocessor; choose by include or prelude constant")


def check_environment(tree):
    """Only the log level comes from the environment."""
    cpp = [f for f in tree.under(("src", "tests", "bench"), CPP) if f != ENVIRONMENT_READER]
    rust = tree.under(RUST, (".rs",))
    what = "{0}: only " + ENVIRONMENT_READER + " reads the environment"
    return (grep(tree, cpp, r"\b(secure_)?getenv\b|\bstd::environ\b", what) +
            grep(tree, rust, r"\benv::vars?(_os)?\b", what))


def check_words(tree):
    """No machine paths, package hosts, issue numbers or unfinished work."""
    text = [f for f in tree.files if not f.endswith(BINARY + LOCK_FILES)]
    problems = [p for pattern, what in FORBIDDEN for p in grep(tree, text, pattern, what)]
    code = tree.under(("src", "tests", "bench", "kernels") + RUST,
                      CPP + (".wgsl", ".rs", ".py"))
    own = [f for f in code if not f.startswith("tests/tools/")]
    return problems + grep(tree, own, UNFINISHED, "unfinished or skipped: {0}")


def check_headers(tree):
    """A header starts with a comment that says what it is, and has #pragma once."""
    problems = []
    for path in tree.under(("src", "include", "bench", "tests"), (".h",)):
        lines = [line for _, line in tree.lines(path)]
        if not lines or not re.match(r"//\s*\S", lines[0]):
            problems.append(Problem(path, 1, "a header's first line is a comment that says what "
                                             "it is"))
        if not path.endswith("-inl.h") and "#pragma once" not in lines:
            problems.append(Problem(path, 1, "no #pragma once"))
    return problems


def check_scripts(tree):
    """Shell and Python files parse."""
    problems = []
    shell = [f for f in tree.files if f.endswith(".sh") or f == ".ci/run"]
    for path in shell:
        done = subprocess.run(["bash", "-n", str(tree.root / path)], capture_output=True, text=True)
        if done.returncode != 0:
            found = re.search(r"line (\d+): (.*)", done.stderr)
            problems.append(Problem(path, int(found[1]) if found else 1,
                                    found[2] if found else done.stderr.strip()))
    for path in tree.under(("",), (".py",)):
        try:
            compile(tree.text(path), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            problems.append(Problem(path, error.lineno or 1, f"syntax error: {error.msg}"))
    return problems
