// Writing GGUF version 3.
#include <algorithm>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/gguf.h"
#include "formats/gguf_layout.h"
#include "formats/output_file.h"
#include "formats/quoted.h"

namespace wisp::formats {

namespace {

// The part of the file before the tensor data, built in memory.
class Header {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void number(T value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    text_.append(bytes, sizeof(T));
  }
  void type(GgufValueType value) { number(static_cast<uint32_t>(value)); }
  void string(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    text_ += value;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool is_exact_f32(double value) {
  return value != value || static_cast<double>(static_cast<float>(value)) == value;
}

// Writes a value's type id and bytes.
class ValueWriter {
 public:
  explicit ValueWriter(Header& header) : header_(header) {}

  void operator()(bool value) {
    header_.type(GgufValueType::boolean);
    header_.number(static_cast<uint8_t>(value));
  }
  void operator()(int64_t value) {
    if (std::in_range<uint32_t>(value)) {
      header_.type(GgufValueType::u32);
      header_.number(static_cast<uint32_t>(value));
    } else if (std::in_range<int32_t>(value)) {
      header_.type(GgufValueType::i32);
      header_.number(static_cast<int32_t>(value));
    } else {
      header_.type(GgufValueType::i64);
      header_.number(value);
    }
  }
  void operator()(uint64_t value) {
    header_.type(GgufValueType::u64);
    header_.number(value);
  }
  void operator()(double value) {
    if (is_exact_f32(value)) {
      header_.type(GgufValueType::f32);
      header_.number(static_cast<float>(value));
    } else {
      header_.type(GgufValueType::f64);
      header_.number(value);
    }
  }
  void operator()(const std::string& value) {
    header_.type(GgufValueType::string);
    header_.string(value);
  }
  void operator()(const std::vector<int64_t>& values) {
    const bool narrow = std::all_of(values.begin(), values.end(),
                                    [](int64_t value) { return std::in_range<int32_t>(value); });
    array(narrow ? GgufValueType::i32 : GgufValueType::i64, values.size());
    for (const int64_t value : values) {
      narrow ? header_.number(static_cast<int32_t>(value)) : header_.number(value);
    }
  }
  void operator()(const std::vector<double>& values) {
    const bool narrow = std::all_of(values.begin(), values.end(), is_exact_f32);
    array(narrow ? GgufValueType::f32 : GgufValueType::f64, values.size());
    for (const double value : values) {
      narrow ? header_.number(static_cast<float>(value)) : header_.number(value);
    }
  }
  void operator()(const std::vector<std::string>& values) {
    array(GgufValueType::string, values.size());
    for (const std::string& value : values) header_.string(value);
  }
  void operator()(const std::vector<bool>& values) {
    array(GgufValueType::boolean, values.size());
    for (const bool value : values) header_.number(static_cast<uint8_t>(value));
  }

 private:
  void array(GgufValueType element, size_t count) {
    header_.type(GgufValueType::array);
    header_.type(element);
    header_.number(static_cast<uint64_t>(count));
  }

  Header& header_;
};

// Writes a tensor's info and returns its bytes.
uint64_t write_tensor_info(const GgufTensor& tensor, uint64_t offset, Header& header) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const auto& shape = tensor.shape;
  if (!info.gguf_id) fail("GGUF has no type {}", info.name);
  if (shape.empty() || shape.size() > kGgufMaxDims || element_count(shape) == 0) {
    fail("expected 1 to {} dimensions above zero, found {}", kGgufMaxDims, shape_text(shape));
  }
  header.string(tensor.name);
  header.number(static_cast<uint32_t>(shape.size()));
  for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) header.number(*dim);
  header.number(*info.gguf_id);
  header.number(offset);
  return tensor_bytes(tensor.dtype, shape);
}

Header make_header(const Metadata& metadata, std::span<const GgufTensor> tensors) {
  const uint64_t alignment = gguf_alignment(metadata);
  Header header;
  for (const char letter : kGgufMagic) header.number(letter);
  header.number(uint32_t{3});
  header.number(static_cast<uint64_t>(tensors.size()));
  header.number(static_cast<uint64_t>(metadata.values().size()));
  ValueWriter writer(header);
  for (const auto& [key, value] : metadata.values()) {
    header.string(key);
    std::visit(writer, value);
  }
  uint64_t offset = 0;
  std::unordered_set<std::string_view> names;
  for (const GgufTensor& tensor : tensors) {
    with_context("tensor " + in_quotes(tensor.name), [&] {
      if (!names.insert(tensor.name).second) fail("the name is used twice");
      const uint64_t bytes = write_tensor_info(tensor, offset, header);
      offset = checked_add(offset, round_up(bytes, alignment), "size of the file");
    });
  }
  return header;
}

}  // namespace

void write_gguf(OutputFile& file, const Metadata& metadata, std::span<const GgufTensor> tensors) {
  const Header header =
      with_context(file.path().string(), [&] { return make_header(metadata, tensors); });
  const uint64_t alignment = gguf_alignment(metadata);
  file.write(header.text());
  for (const GgufTensor& tensor : tensors) {
    file.pad(alignment);
    const std::span<const std::byte> data = tensor.data();
    ensure(data.size() == tensor_bytes(tensor.dtype, tensor.shape), "a tensor gives its bytes");
    file.write(data);
  }
  file.pad(alignment);
}

void write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                std::span<const GgufTensor> tensors) {
  OutputFile file(path);
  write_gguf(file, metadata, tensors);
  file.commit();
}

}  // namespace wisp::formats
