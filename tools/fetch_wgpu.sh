#!/bin/sh
# Usage: tools/fetch_wgpu.sh DEST
# Puts the pinned wgpu-native into DEST: include/webgpu/{webgpu.h,wgpu.h}, lib/libwgpu_native.so.
# The library comes inside the PyPI wheel "wgpu", checked by its hash. Does nothing when DEST already
# holds that version. Needs python3 with pip, and unzip through Python's zipfile.
set -eu

VERSION=0.32.0
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64)
    PLATFORM=manylinux_2_28_x86_64
    SHA256=6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568 ;;
  *)
    echo "fetch_wgpu: no pinned WebGPU library for $(uname -s) $(uname -m); give cmake" \
         "-DWISP_WEBGPU_ROOT=<folder with include/webgpu/webgpu.h and lib/>" >&2
    exit 1 ;;
esac

[ $# -eq 1 ] || { echo "usage: $0 DEST" >&2; exit 2; }
mkdir -p "$1"
DEST=$(cd "$1" && pwd)
STAMP="wgpu $VERSION $SHA256"
if [ "$(cat "$DEST/stamp" 2>/dev/null || true)" = "$STAMP" ]; then exit 0; fi

WORK=$(mktemp -d "$DEST/.fetch.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
printf 'wgpu==%s --hash=sha256:%s\n' "$VERSION" "$SHA256" > "$WORK/requirements.txt"
if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
    --only-binary=:all: --platform "$PLATFORM" --dest "$WORK" -r "$WORK/requirements.txt" \
    > "$WORK/log" 2>&1; then
  echo "fetch_wgpu: cannot download the PyPI wheel wgpu $VERSION: is the package index reachable" \
       "(pip config list)?" >&2
  tail -n 5 "$WORK/log" >&2
  exit 1
fi
python3 - "$WORK" <<'PY'
import glob, os, sys, zipfile
work = sys.argv[1]
(wheel,) = glob.glob(os.path.join(work, "*.whl"))
wanted = {"webgpu.h": "include/webgpu", "wgpu.h": "include/webgpu", "libwgpu_native-release.so": "lib"}
with zipfile.ZipFile(wheel) as archive:
    for name, folder in wanted.items():
        out = os.path.join(work, "out", folder, name.replace("-release", ""))
        os.makedirs(os.path.dirname(out), exist_ok=True)
        with open(out, "wb") as file:
            file.write(archive.read("wgpu/resources/" + name))
PY
rm -rf "$DEST/include" "$DEST/lib"
mv "$WORK/out/include" "$WORK/out/lib" "$DEST/"
echo "$STAMP" > "$DEST/stamp"
