// Opening GGUF files, split ones too.
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/gguf.h"
#include "formats/quoted.h"

namespace wisp::formats {

namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 5;
constexpr size_t kSuffixSize = sizeof("-00001-of-00002.gguf") - 1;

std::string part_name(std::string_view stem, int64_t part, int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, part, count);
}

// "<stem>-00001-of-00003.gguf" taken apart; the part counts from 1.
struct PartName {
  std::string stem;
  int64_t part = 0;
  int64_t count = 0;
};

std::optional<PartName> parse_part_name(const std::string& file_name) {
  if (file_name.size() <= kSuffixSize) return std::nullopt;
  PartName name;
  const size_t suffix = file_name.size() - kSuffixSize;
  name.stem = file_name.substr(0, suffix);
  const char* part = file_name.data() + suffix + 1;
  const char* count = part + kDigits + sizeof("-of-") - 1;
  std::from_chars(part, part + kDigits, name.part);
  std::from_chars(count, count + kDigits, name.count);
  if (part_name(name.stem, name.part, name.count) != file_name) return std::nullopt;
  return name;
}

// Part `index`, counted from 0, of `count`.
Gguf parse_part(const MappedFile& file, int64_t index, int64_t count) {
  Gguf part = parse_gguf(file.bytes());
  const auto found_count = part.metadata.get_int("split.count");
  const auto found_index = part.metadata.get_int("split.no");
  if (found_count != count || found_index != index) {
    fail("expected split.no {} and split.count {}, found {} and {}", index, count,
         found_index.value_or(0), found_count.value_or(1));
  }
  return part;
}

void append_tensors(std::vector<TensorView>& to, Gguf&& from) {
  to.insert(to.end(), std::make_move_iterator(from.tensors.begin()),
            std::make_move_iterator(from.tensors.end()));
}

// `contents` holds part 0 of `count` and gains the others.
void open_other_parts(const fs::path& path, int64_t count, MappedTensors& contents) {
  const std::string file_name = path.filename().string();
  const auto name = parse_part_name(file_name);
  if (!name || name->part != 1 || name->count != count) {
    fail("{}: the first of {} parts, whose name has to end in '-00001-of-{:05}.gguf'",
         path.string(), count, count);
  }
  for (int64_t index = 1; index < count; ++index) {
    const fs::path part_path = path.parent_path() / part_name(name->stem, index + 1, count);
    if (!fs::exists(part_path)) {
      fail("{}: part {} of {} is missing", part_path.string(), index + 1, count);
    }
    const MappedFile& file = contents.files.emplace_back(part_path);
    with_context(part_path.string(),
                 [&] { append_tensors(contents.tensors, parse_part(file, index, count)); });
  }
  std::unordered_set<std::string_view> names;
  for (const TensorView& tensor : contents.tensors) {
    if (!names.insert(tensor.name).second) {
      fail("{}: tensor {} appears in two parts", path.string(), in_quotes(tensor.name));
    }
  }
  const auto expected = contents.metadata.get_int("split.tensors.count");
  if (expected && *expected != static_cast<int64_t>(contents.tensors.size())) {
    fail("{}: expected {} tensors in all parts, found {}", path.string(), *expected,
         contents.tensors.size());
  }
}

}  // namespace

MappedTensors open_gguf(const fs::path& path) {
  MappedTensors contents;
  contents.files.emplace_back(path);
  int64_t count = 1;
  with_context(path.string(), [&] {
    Gguf first = parse_gguf(contents.files.front().bytes());
    count = first.metadata.get_int("split.count").value_or(1);
    const int64_t index = first.metadata.get_int("split.no").value_or(0);
    if (count < 1 || count > 99999 || index < 0 || index >= count) {
      fail("split.no {} and split.count {} make no sense", index, count);
    }
    if (index != 0) {
      const auto name = parse_part_name(path.filename().string());
      fail("part {} of {}: open the first part{}", index + 1, count,
           name ? ", " + part_name(name->stem, 1, count) : "");
    }
    contents.metadata = std::move(first.metadata);
    append_tensors(contents.tensors, std::move(first));
  });
  if (count > 1) open_other_parts(path, count, contents);
  return contents;
}

}  // namespace wisp::formats
