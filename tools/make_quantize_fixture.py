#!/usr/bin/env python3
"""Writes tests/data/quantize: rows, and how well llama.cpp's encoders do on them; and tests/data/imatrix.

Run by hand when an encoder is added: pip install gguf==0.19.0 safetensors==0.8.0, then
make_quantize_fixture.py LIBGGML_BASE MODEL.gguf with the shared library libggml-base of llama.cpp and
a model whose token_embd.weight is Q8_0 or better; the result is committed. reference.safetensors holds
for each kind of rows "KIND.rows" (f16) and, for types T, "KIND.T.errors": the mean squared error
without importance, then with "importance" the plain and the weighted one.
"""

import ctypes
import struct
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors.numpy import save_file

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
TYPES = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]
SHAPE = (24, 1024)


def embeddings(path):
    """Rows of the token embeddings, laid end to end."""
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name == "token_embd.weight":
            rows = gguf.quants.dequantize(np.asarray(tensor.data[1000:1100]), tensor.tensor_type)
            return rows.reshape(-1)[: SHAPE[0] * SHAPE[1]].reshape(SHAPE)
    raise SystemExit(f"{path}: no token_embd.weight")


def encode(library, kind, rows, importance):
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = np.zeros((rows.shape[0], rows.shape[1] // elements * size), np.uint8)
    weights = None if importance is None else importance.ctypes.data
    library.ggml_quantize_chunk(int(kind), rows.ctypes.data, blocks.ctypes.data, 0, *rows.shape, weights)
    return gguf.quants.dequantize(blocks, kind)


def write_imatrices():
    """The same importances in the form of llama-imatrix today, and in its older one."""
    sums = {"blk.0.attn_q.weight": [[2.0, 4.0, 0.0]], "blk.0.ffn_up_exps.weight": [[8.0, 4.0], [7.0, 7.0], [1.0, 3.0]]}
    counts = {"blk.0.attn_q.weight": [4.0], "blk.0.ffn_up_exps.weight": [2.0, 0.0, 1.0]}
    writer = gguf.GGUFWriter(DATA / "imatrix" / "imatrix.gguf", "")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["wiki.train.raw"])
    writer.add_uint32("imatrix.chunk_count", 2)
    writer.add_uint32("imatrix.chunk_size", 512)
    binary = struct.pack("<i", len(sums))
    for name, values in sums.items():
        writer.add_tensor(f"{name}.in_sum2", np.array(values, np.float32))
        writer.add_tensor(f"{name}.counts", np.array(counts[name], np.float32)[:, None])
        means = [v / c if c else 1.0 for row, c in zip(values, counts[name]) for v in row]
        binary += struct.pack("<i", len(name)) + name.encode()
        binary += struct.pack(f"<ii{len(means)}f", 2, len(means), *(2 * mean for mean in means))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    dataset = b"wiki.train.raw"
    (DATA / "imatrix" / "imatrix.dat").write_bytes(binary + struct.pack("<ii", 2, len(dataset)) + dataset)


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    library.ggml_quantize_chunk.argtypes += [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    rng = np.random.default_rng(11)
    kinds = {
        "gauss": rng.standard_normal(SHAPE) * 0.02,
        "heavy": rng.standard_t(3, SHAPE) * 0.02,
        "embeddings": embeddings(sys.argv[2]),
    }
    importance = np.exp(rng.standard_normal(SHAPE[1])).astype(np.float32)
    tensors = {"importance": importance}
    for name, values in kinds.items():
        half = values.astype(np.float16)
        rows = half.astype(np.float32)
        tensors[f"{name}.rows"] = half
        for type_name in TYPES:
            kind = GGMLQuantizationType[type_name]
            library.ggml_quantize_init(int(kind))
            plain = (encode(library, kind, rows, None) - rows).astype(np.float64) ** 2
            weighed = (encode(library, kind, rows, importance) - rows).astype(np.float64) ** 2
            errors = [plain.mean(), weighed.mean(), (weighed * importance).mean()]
            tensors[f"{name}.{type_name}.errors"] = np.array(errors, np.float32)
    save_file(tensors, DATA / "quantize" / "reference.safetensors")
    write_imatrices()


if __name__ == "__main__":
    main()
