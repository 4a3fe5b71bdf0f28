#!/usr/bin/env python3
"""Copy a GGUF file with all its matrices expanded to F16 (the others to F32). Needs the package gguf.

usage: expand_gguf.py IN.gguf OUT.gguf"""

import sys

import gguf
import numpy as np


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    reader = gguf.GGUFReader(sys.argv[1])
    arch = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(sys.argv[2], arch)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=sub)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        kind = np.float16 if len(tensor.shape) > 1 else np.float32
        writer.add_tensor(tensor.name, values.astype(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
