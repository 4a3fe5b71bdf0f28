"""clang-format and clang-tidy over the C++ files."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

from .structure import includes, resolve
from .tree import Problem

CPP = (".cpp", ".h")
FOLDERS = ("src", "tests", "bench")
MESSAGE = re.compile(r"^(.+?):(\d+):\d+: (?:warning|error): (.*)$")


def tool(name):
    """The pinned version: other versions format and warn differently."""
    found = shutil.which(f"{name}-14")
    if found is None:
        raise FileNotFoundError(f"{name}-14 is not installed (tools/setup.sh checks)")
    return found


def problems_of(tree, output):
    """The messages about files of the tree, each once."""
    problems = []
    for line in output.splitlines():
        if found := MESSAGE.match(line):
            path = pathlib.Path(found[1])
            if path.is_absolute():
                path = pathlib.Path(os.path.relpath(path, tree.root))
            problems.append(Problem(str(path), int(found[2]), found[3]))
    return list(dict.fromkeys(problems))


def check_format(tree):
    """clang-format would change nothing."""
    files = tree.under(FOLDERS, CPP)
    if not files:
        return []
    done = subprocess.run([tool("clang-format"), "--dry-run", "-Werror", *files], cwd=tree.root,
                          capture_output=True, text=True)
    places = {}
    for problem in problems_of(tree, done.stderr):
        places.setdefault(problem.path, []).append(problem.line)
    problems = [Problem(path, lines[0], f"clang-format changes {len(lines)} lines (make format)")
                for path, lines in places.items()]
    if done.returncode != 0 and not problems:
        problems.append(Problem(".clang-format", 1, done.stderr.strip().splitlines()[0]))
    return problems


def include_closure(tree, path, known):
    """`path` and the project's files that it includes, directly or not."""
    if path not in known:
        known[path] = set()  # ends cycles
        found = {path}
        for _, name, quoted in includes(tree, path):
            if quoted and (target := resolve(tree, path, name)):
                found |= include_closure(tree, target, known)
        known[path] = found
    return known[path]


def changed_files(tree, base):
    """Files that differ from the commit `base`, uncommitted and new ones too."""
    def git(*command):
        return subprocess.run(["git", "-C", str(tree.root), *command], check=True,
                              capture_output=True, text=True).stdout.splitlines()
    return set(git("diff", "--name-only", "--relative", base)) | \
        set(git("ls-files", "-o", "--exclude-standard"))


def fingerprint(tree, entry, closure):
    """Names everything that decides clang-tidy's verdict, but for the system's headers."""
    digest = hashlib.sha256()
    digest.update((tree.root / ".clang-tidy").read_bytes())
    digest.update(json.dumps([entry.get("command"), entry.get("arguments")]).encode())
    for path in sorted(closure):
        digest.update(f"\0{path}\0".encode() + (tree.root / path).read_bytes())
    return digest.hexdigest()


def check_tidy(tree, build="build/release", base=None, jobs=None):
    """clang-tidy over the sources in compile_commands.json; clean results are remembered there.

    With `base`, only sources that differ from that commit, or include a header that does.
    """
    database = tree.root / build / "compile_commands.json"
    if not database.exists():
        return [Problem(f"{build}/compile_commands.json", 1, "missing: run make first")]
    clang_tidy = tool("clang-tidy")
    cache = tree.root / build / "tidy-clean"
    cache.mkdir(exist_ok=True)
    changed = changed_files(tree, base) if base else None
    known, work, seen = {}, [], set()
    for entry in json.loads(database.read_text()):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), tree.root)
        if path in seen or path not in tree.file_set or not path.startswith(
                tuple(f + "/" for f in FOLDERS)):
            continue
        seen.add(path)
        closure = include_closure(tree, path, known)
        if changed is not None and not closure & changed:
            continue
        mark = cache / fingerprint(tree, entry, closure)
        if not mark.exists():
            work.append((path, mark))
    if not seen:
        return [Problem(f"{build}/compile_commands.json", 1, "names no source of the tree")]

    def run(item):
        path, mark = item
        command = [clang_tidy, "-p", str(database.parent), "--quiet",
                   "--extra-arg=-Wno-unknown-warning-option", str(tree.root / path)]
        done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
        found = problems_of(tree, done.stdout)
        if done.returncode == 0 and not found:
            mark.touch()
        elif not found:
            lines = done.stderr.strip().splitlines() or ["clang-tidy failed"]
            found.append(Problem(path, 1, lines[-1]))
        return found

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        results = list(pool.map(run, work))
    return list(dict.fromkeys(problem for result in results for problem in result))
