#!/usr/bin/env python3
"""Writes tests/data/codecs, gguf and safetensors with the Python packages gguf and safetensors.

Run by hand when a codec is added: pip install gguf==0.19.0 safetensors==0.8.0, then run this; the
results are committed. codecs.safetensors holds, for each type T, "T.blocks" and what they decode to,
"T.values", for types with a reference encoder "T.input" and its blocks, "T.encoded", and for those
with a grid "T.grid", its values.
"""

from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors.numpy import save_file

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
BLOCKS = 64
# Byte offsets of the f16 scales in a block.
SCALES = {"F16": [], "BF16": [], "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q4_K": [0, 2], "Q6_K": [208]}
SCALES |= {"Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q5_K": [0, 2]}
SCALES |= {"IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "NVFP4": [], "TQ1_0": [52], "TQ2_0": [64]}
SCALES |= {"IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0]}
SCALES |= {"IQ1_M": [48]}
# Types that store such a scale as the highest nibbles of the four u16 at its offset.
SPREAD_SCALES = ["IQ1_M"]
# Byte offsets of scales that are one byte: over the blocks they take every value once.
BYTE_SCALES = {"MXFP4": [0], "NVFP4": [0, 1, 2, 3]}
GRIDS = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]
ENCODERS = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]
SPECIAL_SCALES = np.array(
    [0.0, -0.0, 65504.0, -65504.0, 6e-8, -6e-8, 6.1e-5, 1.0, -1.0, np.inf, -np.inf, np.nan], np.float16
)


def random_blocks(name, rng):
    """Random bytes, with scales that run from special ones through all magnitudes."""
    _, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    byte_scales = BYTE_SCALES.get(name, [])
    count = BLOCKS if SCALES[name] else 256 // len(byte_scales) if byte_scales else 65536 // 16
    blocks = rng.integers(0, 256, (count, size), np.uint8)
    if byte_scales:
        blocks[:, byte_scales] = rng.permutation(256).reshape(count, -1)
    for offset in SCALES[name]:
        scales = (rng.standard_normal(count) * 10.0 ** rng.uniform(-7, 4, count)).astype(np.float16)
        special = rng.permutation(SPECIAL_SCALES)
        scales[: len(special)] = special
        if name in SPREAD_SCALES:
            words = blocks[:, offset : offset + 8].copy().view(np.uint16) & 0xFFF
            words |= scales.view(np.uint16)[:, None] >> np.array([0, 4, 8, 12], np.uint16) << 12
            blocks[:, offset : offset + 8] = words.view(np.uint8)
        else:
            blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(count, 2)
    return blocks


def encoder_input(name, rng):
    """Values of many magnitudes, with blocks of zeros, of one value, and of alternating signs."""
    if not SCALES[name]:
        bits = rng.integers(0, 2**32, 4096, np.uint32)
        halves = rng.integers(0, 0x7C00, 1024, np.uint16).view(np.float16).astype(np.float32)
        near = halves.view(np.uint32) + rng.choice(np.array([0xFFF, 0x1000, 0x1001], np.uint32), 1024)
        top = rng.integers(0, 2**16, 1024, np.uint32) << 16 | rng.choice(
            np.array([0x7FFF, 0x8000, 0x8001], np.uint32), 1024
        )
        return np.concatenate([bits, near, top]).view(np.float32).reshape(-1, 32)
    scale = 10.0 ** rng.uniform(-4, 5, (BLOCKS, 1))
    values = (rng.standard_normal((BLOCKS, 32)) * scale).astype(np.float32)
    values[0] = 0.0
    values[1] = -0.0
    values[2] = 1.5
    values[3] = -1.5
    values[4] = np.where(np.arange(32) % 2 == 0, 3.0, -3.0)
    values[5] = np.arange(32) - 16
    values[6] = np.arange(32) / 4 + 1
    values[7, 1:] = 0.0
    return values


def write_codecs():
    rng = np.random.default_rng(20240607)
    tensors = {}
    with np.errstate(all="ignore"):
        for name in SCALES:
            kind = GGMLQuantizationType[name]
            blocks = random_blocks(name, rng)
            tensors[f"{name}.blocks"] = blocks
            tensors[f"{name}.values"] = gguf.quants.dequantize(blocks, kind).astype(np.float32)
            if name in GRIDS:
                kind_of_blocks = getattr(gguf.quants, name)
                tensors[f"{name}.grid"] = kind_of_blocks.grid.reshape(kind_of_blocks.grid_shape).astype(np.int8)
            if name in ENCODERS:
                values = encoder_input(name, rng)
                tensors[f"{name}.input"] = values
                tensors[f"{name}.encoded"] = gguf.quants.quantize(values, kind).view(np.uint8)
    save_file(tensors, DATA / "codecs" / "codecs.safetensors")


def add_everything(writer):
    writer.add_uint8("test.u8", 255)
    writer.add_int8("test.i8", -128)
    writer.add_uint16("test.u16", 65535)
    writer.add_int16("test.i16", -32768)
    writer.add_uint32("test.u32", 2**32 - 1)
    writer.add_int32("test.i32", -(2**31))
    writer.add_uint64("test.u64", 2**64 - 1)
    writer.add_int64("test.i64", -(2**63))
    writer.add_float32("test.f32", 0.1)
    writer.add_float64("test.f64", 0.1)
    writer.add_bool("test.yes", True)
    writer.add_bool("test.no", False)
    writer.add_string("test.string", "naïve 日本 🙂")
    writer.add_array("test.ints", [1, -2, 3])
    writer.add_array("test.floats", [0.5, -1.25])
    writer.add_array("test.strings", ["a", "é", "long " * 10])
    writer.add_array("test.bools", [True, False, True])


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_ggufs():
    rng = np.random.default_rng(7)
    values = rng.standard_normal((4, 512)).astype(np.float32)
    writer = gguf.GGUFWriter(DATA / "gguf" / "python.gguf", "llama")
    add_everything(writer)
    writer.add_tensor("plain", values[:, :3].copy())
    writer.add_tensor("vector", values[0, :5].copy())
    writer.add_tensor("half", values[:2, :6].astype(np.float16).reshape(2, 3, 2))
    for name in ["Q8_0", "Q4_0", "Q4_1"]:
        kind = GGMLQuantizationType[name]
        writer.add_tensor(name, gguf.quants.quantize(values[:, :64].copy(), kind), raw_dtype=kind)
    writer.add_tensor("ints", np.arange(7, dtype=np.int32))
    finish(writer)

    split = gguf.GGUFWriter(DATA / "gguf" / "split.gguf", "llama", split_max_tensors=2)
    split.add_uint32("test.u32", 5)
    for index in range(5):
        split.add_tensor(f"tensor.{index}", np.full((2, 3), index, np.float32))
    finish(split)


def write_safetensors():
    kinds = {"F32": "f4", "F16": "f2", "F64": "f8", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}
    kinds |= {"U8": "u1", "U16": "u2", "U32": "u4", "U64": "u8", "BOOL": "?"}
    tensors = {name: np.arange(6).astype(kind).reshape(2, 3) for name, kind in kinds.items()}
    tensors["scalar"] = np.array(1.5, np.float32)
    tensors["empty"] = np.zeros((0, 4), np.float32)
    save_file(tensors, DATA / "safetensors" / "python.safetensors", metadata={"format": "np"})


if __name__ == "__main__":
    for folder in ["codecs", "gguf", "safetensors"]:
        (DATA / folder).mkdir(parents=True, exist_ok=True)
    write_codecs()
    write_ggufs()
    write_safetensors()
