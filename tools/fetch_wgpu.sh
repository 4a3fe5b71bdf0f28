#!/usr/bin/env bash
# fetch_wgpu.sh DEST: the pinned WebGPU headers, as DEST/include/webgpu/{webgpu.h,wgpu.h}. They come
# inside the Python wheel "wgpu", whose library is not used. Does nothing when DEST already holds
# that version.
set -euo pipefail

# Any platform's wheel has the same headers.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/fetch_wheel.py" wgpu==0.32.0 \
  --sha256 6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568 \
  --platform manylinux_2_28_x86_64 \
  "wgpu/resources/webgpu.h=$1/include/webgpu/webgpu.h" \
  "wgpu/resources/wgpu.h=$1/include/webgpu/wgpu.h"
