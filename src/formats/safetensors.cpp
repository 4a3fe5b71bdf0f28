#include "formats/safetensors.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/byte_reader.h"
#include "formats/json.h"
#include "formats/output_file.h"
#include "formats/quoted.h"

namespace wisp::formats {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr char kMetadataKey[] = "__metadata__";
constexpr char kWeightMap[] = "weight_map";

const json& member(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) fail("'{}' is missing", key);
  return *found;
}

std::vector<uint64_t> unsigned_array(const json& value, const char* what) {
  if (!value.is_array()) fail("{}: expected an array, found {}", what, value.type_name());
  std::vector<uint64_t> numbers;
  for (const json& element : value) {
    if (!element.is_number_unsigned()) fail("{}: expected integers from 0 to 2^64 - 1", what);
    numbers.push_back(element.get<uint64_t>());
  }
  return numbers;
}

// One entry of the header; `data` is all that follows the header.
TensorView read_entry(const std::string& name, const json& entry, std::span<const std::byte> data) {
  if (!entry.is_object()) fail("expected an object, found {}", entry.type_name());
  TensorView view;
  view.name = name;
  const json& dtype = member(entry, "dtype");
  if (!dtype.is_string()) fail("dtype: expected a string, found {}", dtype.type_name());
  view.dtype = dtype_from_safetensors(dtype.get_ref<const std::string&>());
  view.shape = unsigned_array(member(entry, "shape"), "shape");
  const std::vector<uint64_t> range = unsigned_array(member(entry, "data_offsets"), "data_offsets");
  if (range.size() != 2 || range[0] > range[1]) {
    fail("data_offsets: expected a begin and an end after it, found {}", shape_text(range));
  }
  if (range[1] > data.size()) {
    fail("data_offsets {} end outside the {} bytes of data", shape_text(range), data.size());
  }
  const uint64_t bytes = tensor_bytes(view.dtype, view.shape);
  if (bytes != range[1] - range[0]) {
    fail("{} {} takes {} bytes, but data_offsets {} give {}", dtype_name(view.dtype),
         shape_text(view.shape), bytes, shape_text(range), range[1] - range[0]);
  }
  view.data = data.subspan(static_cast<size_t>(range[0]), static_cast<size_t>(bytes));
  return view;
}

void require_string_map(const json& value, std::string_view what) {
  if (!value.is_object()) fail("{}: expected an object, found {}", what, value.type_name());
  for (const auto& [key, element] : value.items()) {
    if (!element.is_string()) {
      fail("{}: {}: expected a string, found {}", what, in_quotes(key), element.type_name());
    }
  }
}

// A shard has to lie beside its index.
void require_plain_file_name(const std::string& name) {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain) fail("{}: shard {} is not a plain file name", kWeightMap, in_quotes(name));
}

// shard file name -> the tensors that the index puts there.
std::map<std::string, std::vector<std::string>> read_index(std::string_view text) {
  const json index =
      parse_json_object<json>(text, "the index", {.max_depth = 16, .unique_names = true});
  const json& weight_map = member(index, kWeightMap);
  require_string_map(weight_map, kWeightMap);
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, shard] : weight_map.items()) {
    shards[shard.get_ref<const std::string&>()].push_back(tensor);
  }
  for (const auto& [shard, tensors] : shards) require_plain_file_name(shard);
  if (shards.empty()) fail("{} is empty", kWeightMap);
  return shards;
}

}  // namespace

std::vector<TensorView> parse_safetensors(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto header_bytes = reader.number<uint64_t>("header length");
  if (header_bytes > kMaxHeaderBytes) {
    fail("header of {} bytes, at most {} expected", header_bytes, kMaxHeaderBytes);
  }
  const auto header = reader.take(header_bytes, "header");
  const auto data = bytes.subspan(reader.position());
  const json entries =
      parse_json_object<json>({reinterpret_cast<const char*>(header.data()), header.size()},
                              "the header", {.max_depth = 3, .unique_names = true});
  std::vector<TensorView> tensors;
  for (const auto& [name, entry] : entries.items()) {
    if (name == kMetadataKey) {
      require_string_map(entry, kMetadataKey);
      continue;
    }
    const json& value = entry;
    const std::string& tensor_name = name;
    tensors.push_back(with_context("tensor " + in_quotes(name),
                                   [&] { return read_entry(tensor_name, value, data); }));
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return a.data.data() < b.data.data();
  });
  require_disjoint(tensors);
  return tensors;
}

MappedTensors open_safetensors(const fs::path& path) {
  MappedTensors contents;
  const MappedFile& file = contents.files.emplace_back(path);
  contents.tensors = with_context(path.string(), [&] { return parse_safetensors(file.bytes()); });
  return contents;
}

MappedTensors open_safetensors_index(const fs::path& index_path) {
  const std::string text = read_text(index_path, kMaxHeaderBytes);
  const auto shards = with_context(index_path.string(), [&] { return read_index(text); });
  MappedTensors contents;
  std::unordered_map<std::string, std::string> shard_of;  // tensor -> the shard that holds it
  for (const auto& [shard, expected] : shards) {
    const fs::path path = index_path.parent_path() / shard;
    if (!fs::exists(path)) {
      fail("{}: shard {} is missing", index_path.string(), in_quotes(shard));
    }
    MappedTensors part = open_safetensors(path);
    for (TensorView& tensor : part.tensors) {
      const auto [other, inserted] = shard_of.emplace(tensor.name, shard);
      if (!inserted) {
        fail("{}: tensor {} is also in {}", path.string(), in_quotes(tensor.name),
             in_quotes(other->second));
      }
      contents.tensors.push_back(std::move(tensor));
    }
    for (const std::string& tensor : expected) {
      const auto found = shard_of.find(tensor);
      if (found == shard_of.end() || found->second != shard) {
        fail("{}: tensor {} is not here, where the index puts it", path.string(),
             in_quotes(tensor));
      }
    }
    contents.files.push_back(std::move(part.files.front()));
  }
  return contents;
}

void write_safetensors(const fs::path& path, std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return dtype_info(a->dtype).block_bytes > dtype_info(b->dtype).block_bytes;
  });
  json header = json::object();
  uint64_t offset = 0;
  for (const TensorView* tensor : order) {
    with_context(path.string() + ": tensor " + in_quotes(tensor->name), [&] {
      const DTypeInfo& info = dtype_info(tensor->dtype);
      if (info.safetensors_name.empty()) fail("safetensors has no type {}", info.name);
      if (!is_utf8(tensor->name) || tensor->name == kMetadataKey) fail("the name is not allowed");
      if (header.contains(tensor->name)) fail("the name is used twice");
      const uint64_t bytes = tensor_bytes(tensor->dtype, tensor->shape);
      ensure(tensor->data.size() == bytes, "a tensor holds its bytes");
      header[tensor->name] = {{"dtype", info.safetensors_name},
                              {"shape", tensor->shape},
                              {"data_offsets", {offset, offset + bytes}}};
      offset += bytes;
    });
  }
  std::string text = header.dump();
  text.resize(static_cast<size_t>(round_up(text.size(), 8)), ' ');
  const auto header_bytes = static_cast<uint64_t>(text.size());
  OutputFile file(path);
  file.write(std::as_bytes(std::span(&header_bytes, 1)));
  file.write(text);
  for (const TensorView* tensor : order) file.write(tensor->data);
  file.commit();
}

}  // namespace wisp::formats
