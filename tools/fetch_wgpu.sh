#!/usr/bin/env bash
# fetch_wgpu.sh DEST: the pinned wgpu-native, as DEST/include/webgpu/{webgpu.h,wgpu.h} and
# DEST/lib/libwgpu_native.so. It comes inside the Python wheel "wgpu". Does nothing when DEST
# already holds that version.
set -euo pipefail

version=0.32.0
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64)
    platform=manylinux_2_28_x86_64
    sha256=6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568
    ;;
  *)
    echo "setup: error: no pinned WebGPU library for $(uname -s) $(uname -m); give cmake" \
      "-DWISP_WEBGPU_ROOT=<folder with include/webgpu/webgpu.h and lib/>" >&2
    exit 1
    ;;
esac

exec python3 "$(dirname "${BASH_SOURCE[0]}")/fetch_wheel.py" "wgpu==$version" --sha256 "$sha256" \
  --platform "$platform" \
  "wgpu/resources/libwgpu_native-release.so=$1/lib/libwgpu_native.so" \
  "wgpu/resources/webgpu.h=$1/include/webgpu/webgpu.h" \
  "wgpu/resources/wgpu.h=$1/include/webgpu/wgpu.h"
