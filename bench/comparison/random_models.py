"""GGUF files of real model shapes with random weights, whose speed is that of the real ones."""

import dataclasses
import os
import pathlib
import random
import struct

ALIGNMENT = 32
POOL_BYTES = 16 << 20
CONTEXT = 32768


@dataclasses.dataclass(frozen=True)
class Shape:
    label: str
    family: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_size: int
    vocab: int
    tied: bool = True  # the head is the embedding
    experts: int = 0  # of a layer, of which `chosen` serve a token; ffn is the size of one
    chosen: int = 0
    attends: tuple = ()  # the layers that do; empty: all
    taps: int = 0  # of the convolutions of the others
    inner: int = 0  # their channels: those of a scan, or the values of DeltaNet's heads
    state: int = 0  # elements a channel, or of a key
    state_heads: int = 0  # of DeltaNet
    key_heads: int = 0
    time_rank: int = 0  # of a scan

    @property
    def head_norms(self):
        return self.family.startswith(("qwen3", "lfm2"))

    @property
    def gates(self):
        return self.family == "qwen35"

    @property
    def recurrent(self):
        return self.taps > 0

    def attending(self, layer):
        return layer in self.attends if self.recurrent else True


SHAPES = {
    "tiny": Shape("tiny", "llama", 4, 256, 512, 4, 2, 64, 512),
    "smollm-135m": Shape("SmolLM2-135M", "llama", 30, 576, 1536, 9, 3, 64, 49152),
    "qwen3-0.6b": Shape("Qwen3-0.6B", "qwen3", 28, 1024, 3072, 16, 8, 128, 151936),
    "llama-1b": Shape("Llama-3.2-1B", "llama", 16, 2048, 8192, 32, 8, 64, 128256),
    "qwen3-4b": Shape("Qwen3-4B", "qwen3", 36, 2560, 9728, 32, 8, 128, 151936),
    "llama-8b": Shape("Llama-3.1-8B", "llama", 32, 4096, 14336, 32, 8, 128, 128256, tied=False),
    "qwen3-30b-a3b": Shape("Qwen3-30B-A3B", "qwen3moe", 48, 2048, 768, 32, 4, 128, 151936, tied=False, experts=128,
                           chosen=8),
    "lfm2-1.2b": Shape("LFM2-1.2B", "lfm2", 16, 2048, 8192, 32, 8, 64, 65536, attends=(2, 5, 8, 10, 12, 14), taps=3),
    "qwen3.5-4b": Shape("Qwen3.5-4B", "qwen35", 32, 2560, 9216, 16, 4, 256, 248320, attends=tuple(range(3, 32, 4)), taps=4,
                        inner=4096, state=128, state_heads=32, key_heads=16),
    "mamba-2.8b": Shape("Mamba-2.8B", "mamba", 64, 2560, 0, 0, 0, 0, 50280, taps=4, inner=5120, state=16, time_rank=160),
}


@dataclasses.dataclass(frozen=True)
class Storage:
    number: int  # ggml's
    values: int  # of a block
    size: int  # of a block, bytes
    # Scales that keep weights near N(0, 0.02), (byte of the block, value): f16, and plain bytes.
    halves: tuple = ()
    bytes: tuple = ()


STORAGE = {
    "f32": Storage(0, 1, 4),
    "f16": Storage(1, 1, 2),
    "q4_0": Storage(2, 32, 18, ((0, 0.004),)),
    "q4_1": Storage(3, 32, 20, ((0, 0.004), (2, -0.03))),
    "q5_0": Storage(6, 32, 22, ((0, 0.002),)),
    "q5_1": Storage(7, 32, 24, ((0, 0.002), (2, -0.03))),
    "q8_0": Storage(8, 32, 34, ((0, 0.0003),)),
    "q2_k": Storage(10, 256, 84, ((80, 0.0024), (82, 0.0036))),
    "q3_k": Storage(11, 256, 110, ((108, 4e-4),)),
    "q4_k": Storage(12, 256, 144, ((0, 1e-4), (2, 7e-4))),
    "q5_k": Storage(13, 256, 176, ((0, 5e-5), (2, 7e-4))),
    "q6_k": Storage(14, 256, 210, ((208, 1e-5),)),
    "iq2_xxs": Storage(16, 256, 66, ((0, 4e-4),)),
    "iq2_xs": Storage(17, 256, 74, ((0, 4e-4),)),
    "iq3_xxs": Storage(18, 256, 98, ((0, 1.5e-4),)),
    "iq1_s": Storage(19, 256, 50, ((0, 0.003),)),
    "iq4_nl": Storage(20, 32, 18, ((0, 0.0003),)),
    "iq3_s": Storage(21, 256, 110, ((0, 1.5e-4),)),
    "iq2_s": Storage(22, 256, 82, ((0, 4e-4),)),
    "iq4_xs": Storage(23, 256, 136, ((0, 1.6e-5),)),
    "tq1_0": Storage(34, 256, 54, ((52, 0.025),)),
    "tq2_0": Storage(35, 256, 66, ((64, 0.02),)),
    "mxfp4": Storage(39, 32, 17, bytes=((0, 120),)),
}
TYPES = [name for name in STORAGE if name != "f32"]  # of matrices


@dataclasses.dataclass(frozen=True)
class Tensor:
    name: str
    dims: tuple  # the length of a row first, as in GGUF
    storage: str

    def bytes(self):
        kind = STORAGE[self.storage]
        count = 1
        for dim in self.dims:
            count *= dim
        return count // kind.values * kind.size


def vector(name, *dims):
    return Tensor(name, dims, "f32")


def delta_tensors(shape, start, matrix):
    channels = 2 * shape.key_heads * shape.state + shape.inner
    return [matrix(start + "attn_qkv", shape.hidden, channels),
            matrix(start + "attn_gate", shape.hidden, shape.inner),
            matrix(start + "ssm_beta", shape.hidden, shape.state_heads),
            matrix(start + "ssm_alpha", shape.hidden, shape.state_heads),
            vector(start + "ssm_conv1d.weight", shape.taps, channels),
            vector(start + "ssm_dt.bias", shape.state_heads),
            vector(start + "ssm_a", shape.state_heads),
            vector(start + "ssm_norm.weight", shape.inner // shape.state_heads),
            matrix(start + "ssm_out", shape.inner, shape.hidden)]


def scan_tensors(shape, start, matrix):
    return [matrix(start + "ssm_in", shape.hidden, 2 * shape.inner),
            vector(start + "ssm_conv1d.weight", shape.taps, shape.inner),
            vector(start + "ssm_conv1d.bias", shape.inner),
            matrix(start + "ssm_x", shape.inner, shape.time_rank + 2 * shape.state),
            matrix(start + "ssm_dt", shape.time_rank, shape.inner),
            vector(start + "ssm_dt.bias", shape.inner),
            vector(start + "ssm_a", shape.state, shape.inner),
            vector(start + "ssm_d", shape.inner),
            matrix(start + "ssm_out", shape.inner, shape.hidden)]


def list_tensors(shape, storage):
    def matrix(name, columns, rows, *experts):
        return Tensor(f"{name}.weight", (columns, rows, *experts), storage)

    def norm(name, size):
        return Tensor(f"{name}.weight", (size,), "f32")

    q_size, kv_size = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    output_norm = "token_embd_norm" if shape.family == "lfm2" else "output_norm"
    tensors = [matrix("token_embd", shape.hidden, shape.vocab), norm(output_norm, shape.hidden)]
    if not shape.tied:
        tensors.append(matrix("output", shape.hidden, shape.vocab))
    for layer in range(shape.layers):
        start = f"blk.{layer}."
        tensors.append(norm(start + "attn_norm", shape.hidden))
        if shape.family == "mamba":
            tensors += scan_tensors(shape, start, matrix)
            continue
        tensors.append(norm(start + ("post_attention_norm" if shape.gates else "ffn_norm"), shape.hidden))
        if shape.attending(layer):
            tensors += [matrix(start + "attn_q", shape.hidden, q_size * (2 if shape.gates else 1)),
                        matrix(start + "attn_k", shape.hidden, kv_size),
                        matrix(start + "attn_v", shape.hidden, kv_size),
                        matrix(start + "attn_output", q_size, shape.hidden)]
            if shape.head_norms:
                tensors += [norm(start + "attn_q_norm", shape.head_size),
                            norm(start + "attn_k_norm", shape.head_size)]
        elif shape.gates:
            tensors += delta_tensors(shape, start, matrix)
        else:
            tensors += [Tensor(start + "shortconv.conv.weight", (shape.taps, shape.hidden), "f32"),
                        matrix(start + "shortconv.in_proj", shape.hidden, 3 * shape.hidden),
                        matrix(start + "shortconv.out_proj", shape.hidden, shape.hidden)]
        if shape.experts:
            tensors += [Tensor(start + "ffn_gate_inp.weight", (shape.hidden, shape.experts), "f32"),
                        matrix(start + "ffn_gate_exps", shape.hidden, shape.ffn, shape.experts),
                        matrix(start + "ffn_up_exps", shape.hidden, shape.ffn, shape.experts),
                        matrix(start + "ffn_down_exps", shape.ffn, shape.hidden, shape.experts)]
        else:
            tensors += [matrix(start + "ffn_gate", shape.hidden, shape.ffn),
                        matrix(start + "ffn_up", shape.hidden, shape.ffn),
                        matrix(start + "ffn_down", shape.ffn, shape.hidden)]
    return tensors


def odd_row(name, storage):
    """The length of a row that the type's blocks do not divide, or None."""
    widths = (tensor.dims[0] for tensor in list_tensors(SHAPES[name], storage) if tensor.storage == storage)
    return next((width for width in widths if width % STORAGE[storage].values), None)


def attention_metadata(shape):
    kv_heads = shape.kv_heads
    if shape.family == "lfm2":
        kv_heads = [kv_heads * shape.attending(layer) for layer in range(shape.layers)]
    return {"attention.head_count_kv": kv_heads,
            "attention.key_length": shape.head_size,
            "attention.value_length": shape.head_size,
            "rope.dimension_count": shape.head_size,
            "rope.freq_base": 1e6 if shape.head_norms else 1e4}


def state_metadata(shape):
    if not shape.inner:
        return {"shortconv.l_cache": shape.taps} if shape.taps else {}
    values = {"ssm.conv_kernel": shape.taps, "ssm.inner_size": shape.inner, "ssm.state_size": shape.state,
              "ssm.time_step_rank": shape.time_rank or shape.state_heads}
    if shape.gates:
        values |= {"ssm.group_count": shape.key_heads, "full_attention_interval": 4,
                   "rope.dimension_sections": [11, 11, 10, 0], "rope.dimension_count": 64}
    return values


def metadata(name, shape):
    values = {
        "general.architecture": shape.family,
        "general.name": name,
        "tokenizer.ggml.model": "no_vocab",
    }
    for key, value in {
        "context_length": CONTEXT,
        "embedding_length": shape.hidden,
        "block_count": shape.layers,
        "feed_forward_length": shape.ffn,
        "attention.head_count": shape.heads,
        "attention.layer_norm_rms_epsilon": 1e-5,
        **(attention_metadata(shape) if shape.heads else {}),
        "vocab_size": shape.vocab,
        **({"expert_count": shape.experts, "expert_used_count": shape.chosen,
            "expert_feed_forward_length": shape.ffn} if shape.experts else {}),
        **state_metadata(shape),
    }.items():
        values[f"{shape.family}.{key}"] = value
    return values


def gguf_string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_string(value)
    if isinstance(value, list):
        return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    return struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)


def aligned(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def header(name, shape, tensors):
    values = metadata(name, shape)
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(values))]
    parts += [gguf_string(key) + gguf_value(value) for key, value in values.items()]
    offset = 0
    for tensor in tensors:
        parts.append(gguf_string(tensor.name) + struct.pack("<I", len(tensor.dims)) +
                     struct.pack(f"<{len(tensor.dims)}Q", *tensor.dims) +
                     struct.pack("<IQ", STORAGE[tensor.storage].number, offset))
        offset += aligned(tensor.bytes())
    raw = b"".join(parts)
    return raw.ljust(aligned(len(raw)), b"\0")


def random_blocks(storage):
    """Some 16 MiB of random blocks. Their number is odd, so that rows do not repeat soon."""
    kind = STORAGE[storage]
    count = POOL_BYTES // kind.size | 1
    raw = bytearray(random.Random(1).randbytes(count * kind.size))
    if storage == "f16":  # keeps signs and fractions; exponents of 0.0039 to 0.031
        raw[1::2] = raw[1::2].translate(bytes(b & 0x83 | 7 + (b >> 2) % 3 << 2 for b in range(256)))
    for place, value in kind.halves:
        low, high = struct.pack("<e", value)
        raw[place :: kind.size] = bytes([low]) * count
        raw[place + 1 :: kind.size] = bytes([high]) * count
    for place, value in kind.bytes:
        raw[place :: kind.size] = bytes([value]) * count
    return memoryview(raw)


class Cycle:
    """The pool's bytes, over and over, into a file."""

    def __init__(self, pool):
        self.pool, self.at = pool, 0

    def write(self, file, size):
        while size > 0:
            piece = self.pool[self.at : self.at + size]
            file.write(piece)
            self.at = (self.at + len(piece)) % len(self.pool)
            size -= len(piece)


def make_model(folder, name, storage):
    """The path of the file of shape `name` in `folder`, written unless it is there whole.

    Raises ValueError where the type's blocks do not fit, OSError where it cannot be written."""
    if width := odd_row(name, storage):
        raise ValueError(f"rows of {width} hold no {storage} blocks of {STORAGE[storage].values}")
    shape = SHAPES[name]
    tensors = list_tensors(shape, storage)
    start = header(name, shape, tensors)
    size = len(start) + sum(aligned(tensor.bytes()) for tensor in tensors)
    path = pathlib.Path(folder) / f"{name}-{storage}.gguf"
    if path.exists() and path.stat().st_size == size:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    try:
        write_model(unfinished, start, tensors, storage)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def f32_values(tensor):
    """Ones for a norm, rates below 0, else random numbers (of a router they spread tokens over the experts)."""
    count = tensor.bytes() // 4
    if tensor.name.endswith("ssm_a"):
        return struct.pack("<f", -1) * count
    if len(tensor.dims) == 1:
        return struct.pack("<f", 1) * count
    draw = random.Random(tensor.name)
    return struct.pack(f"<{count}f", *(draw.uniform(-0.1, 0.1) for _ in range(count)))


def write_model(path, start, tensors, storage):
    cycle = Cycle(random_blocks(storage))
    with open(path, "wb") as file:
        file.write(start)
        for tensor in tensors:
            if tensor.storage == "f32":
                file.write(f32_values(tensor))
            else:
                cycle.write(file, tensor.bytes())
            file.write(bytes(aligned(tensor.bytes()) - tensor.bytes()))
