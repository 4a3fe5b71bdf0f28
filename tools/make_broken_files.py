#!/usr/bin/env python3
"""Writes tests/data/broken: small files that must each be refused with one clear line.

EXPECTED.txt lists them with a part of the message. The results are committed; the fuzzers take them as
seeds too.
"""

import json
import shutil
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "tests" / "data" / "broken"
U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
expected = {}


def u32(value):
    return struct.pack("<I", value)


def u64(value):
    return struct.pack("<Q", value)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return u64(len(data)) + data


def pair(key, kind, data):
    return text(key) + u32(kind) + data


def info(name="t", dims=(32,), kind=0, offset=0):
    return text(name) + u32(len(dims)) + b"".join(u64(d) for d in dims) + u32(kind) + u64(offset)


def gguf(pairs=(), infos=(), data=b"", version=3, tensors=None, keys=None, magic=b"GGUF", align=32):
    count = len(infos) if tensors is None else tensors
    head = magic + u32(version) + u64(count) + u64(len(pairs) if keys is None else keys)
    head += b"".join(pairs) + b"".join(infos)
    return head + bytes(-len(head) % align) + data


def put(name, data, message):
    path = ROOT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    expected[name] = message


def put_folder(name, files, message):
    for file, data in files.items():
        path = ROOT / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    expected[name] = message


def alignment(value, kind=U32):
    data = struct.pack({U32: "<I", I32: "<i", U64: "<Q", F32: "<f"}[kind], value)
    return pair("general.alignment", kind, data)


def gguf_headers():
    good = gguf(
        [pair("general.architecture", STRING, text("llama")), pair("k", ARRAY, u32(I32) + u64(4) + bytes(16))],
        [info("a", (4, 2)), info("b", (32, 2), 8, 32)],
        bytes(32 + 68),
    )
    put("empty.gguf", b"", "magic at byte 0: expected 4 bytes, found 0")
    cuts = {3: "magic", 6: "version", 12: "tensor count", 20: "metadata key count", 40: "do not fit"}
    cuts |= {90: "metadata 'k': array length", 100: "metadata 'k': an array of 4", 110: "2 tensors do not fit"}
    cuts |= {187: "tensor 'b': offset at byte 184", 240: "tensor 'b': 68 bytes at offset 32 end outside the 48"}
    for size, message in cuts.items():
        put(f"cut_at_{size}.gguf", good[:size], message)
    put("cut_in_data.gguf", good[:-1], "tensor 'b': 68 bytes at offset 32 end outside the 99 bytes")
    put("wrong_magic.gguf", gguf(magic=b"GGML"), "expected it to start with 'GGUF', found 'GGML'")
    put("binary_magic.gguf", gguf(magic=b"\x80\x02\x00\n"), "found '\\x80\\x02\\x00\\x0a'")
    for version in [0, 1, 4, 99]:
        put(f"version_{version}.gguf", gguf(version=version), f"GGUF version {version} is not supported")
    put("big_endian.gguf", b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian")
    put("huge_tensor_count.gguf", gguf(tensors=2**64 - 1), "18446744073709551615 tensors do not fit")
    put("large_tensor_count.gguf", gguf(tensors=2**40), "tensors do not fit")
    put("huge_key_count.gguf", gguf(keys=2**63), "metadata keys do not fit")
    put("one_key_too_many.gguf", gguf([pair("k", BOOL, b"\0")], [info()], bytes(128), keys=2), "tensor name at byte 60 is empty")


def gguf_metadata():
    def one(name, data, message):
        put(f"{name}.gguf", gguf([data]), message)

    one("huge_key_length", u64(2**64 - 1) + bytes(64), "metadata key at byte 32: expected 18446744073709551615")
    one("empty_key", pair("", BOOL, b"\0") + bytes(8), "metadata key at byte 32 is empty")
    one("key_not_utf8", pair(b"k\xff\n", BOOL, b"\0"), "metadata key 'k\\xff\\x0a' is not UTF-8")
    one("huge_string", pair("k", STRING, u64(2**60)), "metadata 'k': string at byte")
    one("unknown_value_type", pair("k", 13, bytes(8)), "metadata 'k': unknown value type 13")
    one("unknown_array_type", pair("k", ARRAY, u32(77) + u64(1) + bytes(8)), "unknown array element type 77")
    one("nested_array", pair("k", ARRAY, u32(ARRAY) + u64(1) + u32(U8) + u64(0)), "arrays of arrays")
    one("huge_array", pair("k", ARRAY, u32(U8) + u64(2**64 - 1)), "array of 18446744073709551615 elements")
    one("huge_string_array", pair("k", ARRAY, u32(STRING) + u64(2**61)), "does not fit")
    one("bad_string_in_array", pair("k", ARRAY, u32(STRING) + u64(2) + text("a") + u64(2**50)), "metadata 'k'")
    one("bad_bool", pair("k", BOOL, b"\7"), "metadata 'k': a bool has the value 7")
    one("u64_array_too_large", pair("k", ARRAY, u32(U64) + u64(1) + u64(2**63)), "is out of range")
    twice = [pair("k", BOOL, b"\0")] * 2
    put("key_twice.gguf", gguf(twice), "metadata key 'k' appears twice")
    for value in [0, 3, 48]:
        put(f"alignment_{value}.gguf", gguf([alignment(value)]), f"general.alignment: expected a power of two")
    put("alignment_negative.gguf", gguf([alignment(-32, I32)]), "found -32")
    put("alignment_huge.gguf", gguf([alignment(2**63, U64)]), "general.alignment")
    put("alignment_float.gguf", gguf([alignment(32.0, F32)]), "expected an integer below 2^63, found a float")
    huge = gguf([alignment(2**30)], [info()], bytes(128))
    put("alignment_past_end.gguf", huge, "end outside the 0 bytes of tensor data")


def gguf_tensors():
    def one(name, infos, message, data=bytes(256)):
        put(f"{name}.gguf", gguf((), infos, data), message)

    one("type_q8_k", [info(kind=15)], "tensor 't': type Q8_K is not supported yet")
    one("type_retired", [info(kind=4)], "type Q4_2 is not supported yet")
    one("type_unknown", [info(kind=4711)], "tensor 't': unknown type id 4711")
    one("no_dims", [info(dims=()) + bytes(8)], "expected 1 to 4 dimensions, found 0")
    one("five_dims", [info(dims=(1,) * 5)], "expected 1 to 4 dimensions, found 5")
    one("zero_dim", [info(dims=(32, 0))], "tensor 't': shape [0, 32] has a zero")
    one("overflowing_dims", [info(dims=(2**32, 2**32, 2**32))], "number of elements")
    one("negative_dim", [info(dims=(2**64 - 1,))], "tensor 't': shape [18446744073709551615]")
    one("huge_dim", [info(dims=(2**40,))], "end outside")
    one("not_whole_blocks", [info(dims=(33,), kind=2)], "a row of 33 values is not a whole number of Q4_0 blocks")
    one("row_not_whole_blocks", [info(dims=(16, 2), kind=2)], "a row of 16 values")
    one("offset_past_end", [info(offset=4096)], "128 bytes at offset 4096 end outside the 256 bytes")
    one("offset_huge", [info(offset=2**64 - 32)], "tensor 't'")
    one("offset_unaligned", [info(offset=4)], "offset 4 is not a multiple of the alignment 32")
    one("data_past_end", [info(dims=(65,))], "260 bytes at offset 0 end outside the 256 bytes")
    one("overlap", [info("a", (16,)), info("b", (16,), 0, 32)], "tensors 'a' and 'b' overlap")
    one("name_twice", [info(), info(offset=128)], "tensor 't' appears twice")
    one("name_not_utf8", [info(b"\xed\xa0\x80")], "tensor name '\\xed\\xa0\\x80' is not UTF-8")
    one("name_empty", [info("") + bytes(8)], "tensor name at byte 32 is empty")
    one("name_long", [info("x" * 500 + "\n", kind=15)], "...': type Q8_K")


def gguf_parts():
    def split(index, count, name="t", kind=U16):
        keys = [pair("split.no", kind, struct.pack("<H", index)), pair("split.count", kind, struct.pack("<H", count))]
        return gguf(keys, [info(name)], bytes(128))

    put("missing-00001-of-00002.gguf", split(0, 2), "missing-00002-of-00002.gguf: part 2 of 2 is missing")
    put("second-00002-of-00002.gguf", split(1, 2), "part 2 of 2: open the first part, second-00001-of-00002.gguf")
    put("renamed.gguf", split(0, 2), "has to end in '-00001-of-00002.gguf'")
    put("senseless_split.gguf", split(3, 2), "split.no 3 and split.count 2 make no sense")
    put("same-00001-of-00002.gguf", split(0, 2), "tensor 't' appears in two parts")
    (ROOT / "same-00002-of-00002.gguf").write_bytes(split(1, 2))
    expected["same-00002-of-00002.gguf"] = "open the first part"
    put("other-00001-of-00002.gguf", split(0, 2), "expected split.no 1 and split.count 2, found 2 and 3")
    (ROOT / "other-00002-of-00002.gguf").write_bytes(split(2, 3))
    expected["other-00002-of-00002.gguf"] = "open the first part"


def safetensors(header, data=b"", length=None):
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return u64(len(head) if length is None else length) + head + data


def entry(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def safetensors_files():
    def one(name, header, message, data=bytes(8), length=None):
        put(f"{name}.safetensors", safetensors(header, data, length), message)

    good = safetensors({"t": entry()}, bytes(8))
    put("empty.safetensors", b"", "header length at byte 0: expected 8 bytes, found 0")
    put("cut_in_length.safetensors", good[:5], "header length")
    put("cut_in_header.safetensors", good[:20], "header at byte 8")
    put("cut_in_data.safetensors", good[:-1], "tensor 't': data_offsets [0, 8] end outside the 7 bytes")
    one("header_past_end", {"t": entry()}, "header at byte 8: expected 5000 bytes", length=5000)
    one("header_huge", {"t": entry()}, "header of 100000001 bytes, at most 100000000", length=100000001)
    one("header_max", {"t": entry()}, "header of 18446744073709551615 bytes", length=2**64 - 1)
    one("header_zero", {"t": entry()}, "the header is not valid JSON", length=0)
    one("not_json", b"{'t': 1}", "the header is not valid JSON: error at byte 2 of 8")
    one("unfinished_json", b'{"t": {"dtype": "F32",', "the header is not valid JSON")
    one("json_tail", b"{} {}", "the header is not valid JSON")
    one("json_not_utf8", b'{"\xff\xfe": {}}', "the header is not valid JSON")
    one("json_huge_number", b'{"t": {"dtype": "F32", "shape": [1e999], "data_offsets": [0, 8]}}', "the header is")
    one("json_array", b"[]", "the header: expected a JSON object, found array")
    one("json_null", b"null", "expected a JSON object, found null")
    one("deep", b'{"t": ' + b"[" * 1000 + b"]" * 1000 + b"}", "the header is nested too deeply")
    body = json.dumps(entry()).encode()
    one("name_twice", b'{"t": ' + body + b', "t": ' + body + b"}", "the header: 't' appears twice")
    twice = body[:-1] + b', "dtype": "I32"}'
    one("field_twice", b'{"t": ' + twice + b"}", "'dtype' appears twice")
    one("entry_number", {"t": 5}, "tensor 't': expected an object, found number")
    one("metadata_number", {"__metadata__": {"a": 1}}, "__metadata__: 'a': expected a string, found number")
    one("metadata_string", {"__metadata__": "x"}, "__metadata__: expected an object")
    for field in ["dtype", "shape", "data_offsets"]:
        one(f"no_{field}", {"t": {k: v for k, v in entry().items() if k != field}}, f"tensor 't': '{field}' is missing")
    one("dtype_number", {"t": entry(dtype=1)}, "dtype: expected a string, found number")
    one("dtype_fp8", {"t": entry(dtype="F8_E5M2", shape=(8,))}, "tensor 't': type F8_E5M2 is not supported yet")
    one("dtype_unknown", {"t": entry(dtype="Q4_0")}, "tensor 't': unknown type 'Q4_0'")
    one("dtype_empty", {"t": entry(dtype="")}, "unknown type ''")
    one("shape_string", {"t": {**entry(), "shape": "2"}}, "shape: expected an array, found string")
    one("shape_negative", {"t": entry(shape=(-2,))}, "shape: expected integers from 0 to 2^64 - 1")
    one("shape_float", {"t": entry(shape=(2.0,))}, "shape: expected integers")
    one("shape_above_64_bits", {"t": entry(shape=(2**64,))}, "shape: expected integers")
    one("shape_overflow", {"t": entry(shape=(2**33, 2**33))}, "tensor 't': bytes of a tensor")
    one("shape_overflow_rows", {"t": entry(shape=(2**33, 2**33, 1))}, "tensor 't': number of elements")
    one("shape_mismatch", {"t": entry(shape=(3,))}, "F32 [3] takes 12 bytes, but data_offsets [0, 8] give 8")
    one("offsets_three", {"t": {**entry(), "data_offsets": [0, 8, 8]}}, "data_offsets: expected a begin and an end")
    one("offsets_reversed", {"t": entry(begin=8, end=0)}, "data_offsets: expected a begin and an end")
    one("offsets_past_end", {"t": entry(begin=8, end=16)}, "data_offsets [8, 16] end outside the 8 bytes")
    one("offsets_huge", {"t": entry(begin=2**64 - 8, end=2**64 - 1)}, "end outside")
    overlap = {"a": entry(), "b": entry(begin=4, end=12)}
    one("overlap", overlap, "tensors 'a' and 'b' overlap", bytes(12))
    one("same_range", {"a": entry(), "b": entry()}, "overlap")
    one("name_newline", {"a\nb": 1}, "tensor 'a\\x0ab'")


def folders():
    good = safetensors({"t": entry()}, bytes(8))
    part = "model-00001-of-00002.safetensors"
    index = "model.safetensors.index.json"

    def indexed(name, weight_map, message, shard=good):
        put_folder(name, {"config.json": {}, part: shard, index: {"metadata": {}, "weight_map": weight_map}}, message)

    put_folder("no_config", {"model.safetensors": good}, "has no config.json")
    put_folder("only_gguf", {"x.gguf": b"GGUF"}, "has no config.json; to use x.gguf, give its path")
    put_folder("only_config", {"config.json": {}}, "has no *.safetensors")
    put_folder("only_bin", {"config.json": {}, "pytorch_model.bin": b"PK"}, "has pytorch_model.bin, but no *.safetensors")
    put_folder("two_files", {"config.json": {}, "a.safetensors": good, "b.safetensors": good}, "'t' is in two files")
    put_folder("broken_single", {"config.json": {}, "model.safetensors": good[:-1]}, "model.safetensors: tensor 't'")
    indexed("missing_shard", {"t": part, "u": "model-00002-of-00002.safetensors"}, "model-00002-of-00002.safetensors' is missing")
    indexed("missing_tensor", {"t": part, "u": part}, "tensor 'u' is not here, where the index puts it")
    indexed("path_traversal", {"t": "../no_config/model.safetensors"}, "is not a plain file name")
    indexed("absolute_path", {"t": "/etc/passwd"}, "shard '/etc/passwd' is not a plain file name")
    indexed("parent_folder", {"t": ".."}, "shard '..' is not a plain file name")
    indexed("nul_in_shard", {"t": part + "\0x"}, "is not a plain file name")
    indexed("shard_number", {"t": 1}, "weight_map: 't': expected a string, found number")
    indexed("empty_map", {}, "weight_map is empty")
    indexed("map_array", [], "weight_map: expected an object, found array")
    indexed("broken_shard", {"t": part}, f"{part}: tensor 't'", good[:-1])
    put_folder("no_map", {"config.json": {}, index: {}}, f"{index}: 'weight_map' is missing")
    put_folder("index_not_json", {"config.json": {}, index: b"{"}, "the index is not valid JSON")


def other_files():
    put("model.bin", b"PK\3\4", ".bin files are not supported")
    put("model.onnx", b"\x08\x07", ".onnx files are not supported")
    put("model.pth", b"PK\3\4", ".pth files are not supported")
    put("notes.txt", b"hello", "not a GGUF file; expected a .gguf file or a folder")
    put("empty", b"", "not a GGUF file; expected a .gguf file or a folder")


if __name__ == "__main__":
    shutil.rmtree(ROOT, ignore_errors=True)
    for make in [gguf_headers, gguf_metadata, gguf_tensors, gguf_parts, safetensors_files, folders, other_files]:
        make()
    lines = [f"{name}\t{message}\n" for name, message in sorted(expected.items())]
    (ROOT / "EXPECTED.txt").write_text("".join(lines))
