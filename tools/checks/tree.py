"""The files under check, and what the checks report."""

import dataclasses
import functools
import pathlib
import re
import subprocess


@dataclasses.dataclass(frozen=True)
class Problem:
    path: str  # relative to the root
    line: int  # from 1
    what: str
    fatal: bool = True  # False: reported, but does not fail the check

    def __str__(self):
        return f"{self.path}:{self.line}: {'' if self.fatal else 'note: '}{self.what}"


class Tree:
    """A source tree: paths are strings relative to `root`, contents are read once."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = sorted(self._list())
        self.file_set = frozenset(self.files)

    def _list(self):
        if (self.root / ".git").exists():
            # Tracked and new files alike, so that a check before the commit sees both.
            command = ["git", "-C", str(self.root), "ls-files", "-co", "--exclude-standard", "-z"]
            listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            paths = listed.split("\0")
        else:
            paths = [str(p.relative_to(self.root)) for p in self.root.rglob("*")]
        return {p for p in paths if p and (self.root / p).is_file()}

    def under(self, folders, suffixes):
        """Files below one of `folders` ("" is everything) that end in one of `suffixes`."""
        starts = tuple(f"{folder}/" if folder else "" for folder in folders)
        return [f for f in self.files if f.startswith(starts) and f.endswith(tuple(suffixes))]

    @functools.cache
    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def lines(self, path):
        """(number, line) pairs, from 1."""
        return enumerate(self.text(path).splitlines(), 1)

    @functools.cache
    def layers(self):
        """The layer names of CMakeLists.txt, lowest first."""
        found = re.search(r"set\(WISP_LAYERS\s+([^)]*)\)", self.text("CMakeLists.txt"))
        return found.group(1).split() if found else []


def grep(tree, paths, pattern, what):
    """One Problem for each line of `paths` that matches `pattern`; `what` may use {0}, the match."""
    regex = re.compile(pattern, re.IGNORECASE)
    problems = []
    for path in paths:
        for number, line in tree.lines(path):
            if found := regex.search(line):
                problems.append(Problem(path, number, what.format(found.group(0).strip())))
    return problems
