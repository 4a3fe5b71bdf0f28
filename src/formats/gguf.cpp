#include "formats/gguf.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/byte_reader.h"
#include "formats/gguf_layout.h"
#include "formats/quoted.h"

namespace wisp::formats {

namespace {

// Fewest bytes that one of these takes in a file, to bound counts before anything is allocated.
constexpr uint64_t kMinPairBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;

// A scalar metadata type and the C++ type that it is read as; std::string_view stands for string.
template <GgufValueType kId, typename T>
struct Kind {
  static constexpr GgufValueType id = kId;
  using Value = T;
};

template <typename... Kinds>
struct KindList {
  // Calls body(T()) with the C++ type of the kind `type`; false when there is none.
  template <typename Body>
  static bool visit(GgufValueType type, Body&& body) {
    return ((Kinds::id == type && (body(typename Kinds::Value()), true)) || ...);
  }
};

using Scalars =
    KindList<Kind<GgufValueType::u8, uint8_t>, Kind<GgufValueType::i8, int8_t>,
             Kind<GgufValueType::u16, uint16_t>, Kind<GgufValueType::i16, int16_t>,
             Kind<GgufValueType::u32, uint32_t>, Kind<GgufValueType::i32, int32_t>,
             Kind<GgufValueType::f32, float>, Kind<GgufValueType::boolean, bool>,
             Kind<GgufValueType::string, std::string_view>, Kind<GgufValueType::u64, uint64_t>,
             Kind<GgufValueType::i64, int64_t>, Kind<GgufValueType::f64, double>>;

// A scalar of file type T as Metadata holds it in arrays.
template <typename T>
auto read_element(ByteReader& reader) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return std::string(reader.string("string"));
  } else if constexpr (std::is_same_v<T, bool>) {
    const auto value = reader.number<uint8_t>("bool");
    if (value > 1) fail("a bool has the value {}", value);
    return value == 1;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(reader.number<T>("float"));
  } else {
    return checked_cast<int64_t>(reader.number<T>("integer"), "integer");
  }
}

template <typename T>
MetadataValue read_scalar(ByteReader& reader) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    const auto value = reader.number<uint64_t>("integer");
    if (std::in_range<int64_t>(value)) return static_cast<int64_t>(value);
    return value;
  } else {
    return read_element<T>(reader);
  }
}

template <typename T>
MetadataValue read_array_of(ByteReader& reader, uint64_t count) {
  constexpr uint64_t element_bytes = std::is_same_v<T, std::string_view> ? 8 : sizeof(T);
  if (count > reader.remaining() / element_bytes) {
    fail("an array of {} elements does not fit in the {} bytes left", count, reader.remaining());
  }
  std::vector<decltype(read_element<T>(reader))> elements;
  elements.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) elements.push_back(read_element<T>(reader));
  return elements;
}

MetadataValue read_array(ByteReader& reader) {
  const auto type = reader.number<uint32_t>("array element type");
  const auto count = reader.number<uint64_t>("array length");
  if (static_cast<GgufValueType>(type) == GgufValueType::array) {
    fail("arrays of arrays are not supported");
  }
  MetadataValue value;
  const bool known = Scalars::visit(static_cast<GgufValueType>(type), [&](auto element) {
    value = read_array_of<decltype(element)>(reader, count);
  });
  if (!known) fail("unknown array element type {}", type);
  return value;
}

MetadataValue read_value(ByteReader& reader) {
  const auto type = reader.number<uint32_t>("value type");
  if (static_cast<GgufValueType>(type) == GgufValueType::array) return read_array(reader);
  MetadataValue value;
  const bool known = Scalars::visit(static_cast<GgufValueType>(type), [&](auto element) {
    value = read_scalar<decltype(element)>(reader);
  });
  if (!known) fail("unknown value type {}", type);
  return value;
}

// A metadata key or tensor name: UTF-8, not empty.
std::string read_name(ByteReader& reader, std::string_view what) {
  const std::string_view name = reader.string(what);
  if (name.empty()) fail("{} at byte {} is empty", what, reader.position());
  if (!is_utf8(name)) fail("{} {} is not UTF-8", what, in_quotes(name));
  return std::string(name);
}

Metadata read_metadata(ByteReader& reader, uint64_t count) {
  Metadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    std::string key = read_name(reader, "metadata key");
    if (metadata.contains(key)) fail("metadata key {} appears twice", in_quotes(key));
    MetadataValue value =
        with_context("metadata " + in_quotes(key), [&] { return read_value(reader); });
    metadata.set(std::move(key), std::move(value));
  }
  return metadata;
}

struct TensorInfo {
  TensorView view;
  uint64_t offset = 0;  // from the start of the data
  uint64_t bytes = 0;
};

// What follows the name.
void read_tensor_info(ByteReader& reader, TensorInfo& info) {
  const auto dims = reader.number<uint32_t>("number of dimensions");
  if (dims < 1 || dims > kGgufMaxDims) {
    fail("expected 1 to {} dimensions, found {}", kGgufMaxDims, dims);
  }
  for (uint32_t i = 0; i < dims; ++i) {
    info.view.shape.push_back(reader.number<uint64_t>("dimension"));
  }
  std::reverse(info.view.shape.begin(), info.view.shape.end());
  const auto type = reader.number<uint32_t>("type id");
  info.offset = reader.number<uint64_t>("offset");
  info.view.dtype = dtype_from_gguf(type);
  if (std::find(info.view.shape.begin(), info.view.shape.end(), 0) != info.view.shape.end()) {
    fail("shape {} has a zero", shape_text(info.view.shape));
  }
  info.bytes = with_context("shape " + shape_text(info.view.shape),
                            [&] { return tensor_bytes(info.view.dtype, info.view.shape); });
}

std::vector<TensorInfo> read_tensor_infos(ByteReader& reader, uint64_t count) {
  std::vector<TensorInfo> infos;
  infos.reserve(static_cast<size_t>(count));
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    TensorInfo& info = infos.emplace_back();
    info.view.name = read_name(reader, "tensor name");
    if (!names.insert(info.view.name).second)
      fail("tensor {} appears twice", in_quotes(info.view.name));
    with_context("tensor " + in_quotes(info.view.name), [&] { read_tensor_info(reader, info); });
  }
  return infos;
}

void locate_data(std::span<const std::byte> bytes, uint64_t data_start, uint64_t alignment,
                 TensorInfo& info) {
  if (info.offset % alignment != 0) {
    fail("offset {} is not a multiple of the alignment {}", info.offset, alignment);
  }
  const uint64_t available = bytes.size() > data_start ? bytes.size() - data_start : 0;
  if (info.offset > available || info.bytes > available - info.offset) {
    fail("{} bytes at offset {} end outside the {} bytes of tensor data", info.bytes, info.offset,
         available);
  }
  info.view.data =
      bytes.subspan(static_cast<size_t>(data_start + info.offset), static_cast<size_t>(info.bytes));
}

uint32_t read_version(ByteReader& reader) {
  const auto magic = reader.take(4, "magic");
  if (std::memcmp(magic.data(), kGgufMagic, sizeof(kGgufMagic)) != 0) {
    fail("not a GGUF file: expected it to start with 'GGUF', found {}",
         in_quotes({reinterpret_cast<const char*>(magic.data()), magic.size()}));
  }
  const auto version = reader.number<uint32_t>("version");
  if ((version & 0xffff) == 0 && version != 0) fail("big-endian GGUF is not supported");
  if (version != 2 && version != 3) {
    fail("GGUF version {} is not supported, only 2 and 3 are", version);
  }
  return version;
}

void bound_count(uint64_t count, uint64_t min_bytes, const ByteReader& reader,
                 std::string_view what) {
  if (count > reader.remaining() / min_bytes) {
    fail("{} {} do not fit in the {} bytes left", count, what, reader.remaining());
  }
}

}  // namespace

Gguf parse_gguf(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Gguf file;
  file.version = read_version(reader);
  const auto tensor_count = reader.number<uint64_t>("tensor count");
  const auto key_count = reader.number<uint64_t>("metadata key count");
  bound_count(tensor_count, kMinTensorInfoBytes, reader, "tensors");
  bound_count(key_count, kMinPairBytes, reader, "metadata keys");
  file.metadata = read_metadata(reader, key_count);
  file.alignment = gguf_alignment(file.metadata);
  bound_count(tensor_count, kMinTensorInfoBytes, reader, "tensors");
  std::vector<TensorInfo> infos = read_tensor_infos(reader, tensor_count);
  const uint64_t data_start = round_up(reader.position(), file.alignment);
  file.tensors.reserve(infos.size());
  for (TensorInfo& info : infos) {
    with_context("tensor " + in_quotes(info.view.name),
                 [&] { locate_data(bytes, data_start, file.alignment, info); });
    file.tensors.push_back(std::move(info.view));
  }
  require_disjoint(file.tensors);
  return file;
}

}  // namespace wisp::formats
