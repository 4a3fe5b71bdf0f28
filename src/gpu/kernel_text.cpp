// From a KernelSpec to the final WGSL text: files, includes, prelude, declared bindings.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "gpu/kernel.h"
#include "gpu/kernel_table.h"

namespace wisp::gpu {
namespace {

std::filesystem::path& kernel_directory() {
  static std::filesystem::path directory;
  return directory;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool take(std::string_view& text, std::string_view prefix) {
  text = trim(text);
  if (!text.starts_with(prefix)) return false;
  text = trim(text.substr(prefix.size()));
  return true;
}

std::string_view take_name(std::string_view& text) {
  text = trim(text);
  size_t size = 0;
  while (size < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[size])) || text[size] == '_')) {
    ++size;
  }
  const std::string_view name = text.substr(0, size);
  text = trim(text.substr(size));
  return name;
}

std::string constant_text(const std::string& name, const ConstantValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) {
    return fmt::format("const {}: bool = {};", name, *b ? "true" : "false");
  }
  if (const auto* i = std::get_if<int32_t>(&value)) {
    // The most negative literal cannot be written as one.
    if (*i == INT32_MIN) return fmt::format("const {}: i32 = -2147483647i - 1i;", name);
    return fmt::format("const {}: i32 = {}i;", name, *i);
  }
  if (const auto* u = std::get_if<uint32_t>(&value)) {
    return fmt::format("const {}: u32 = {}u;", name, *u);
  }
  const float f = std::get<float>(value);
  if (!std::isfinite(f)) fail("constant {} is not finite", name);
  std::string digits = fmt::format("{:.9g}", f);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return fmt::format("const {}: f32 = {}f;", name, digits);
}

// Builds the text line by line.
class Builder {
 public:
  Builder(const KernelSpec& spec, const Capabilities& capabilities)
      : spec_(spec), capabilities_(capabilities) {}

  KernelText build() {
    prelude();
    for (const std::string& file : spec_.includes) include(file);
    include(spec_.file);
    finish_params();
    return std::move(text_);
  }

 private:
  void line(std::string_view text, std::string_view file, uint32_t number) {
    text_.wgsl.append(text);
    text_.wgsl.push_back('\n');
    text_.origins.push_back({std::string(file), number});
  }
  void prelude_line(std::string_view text) {
    line(text, "prelude", static_cast<uint32_t>(text_.origins.size() + 1));
  }

  void require(bool wanted, bool there, std::string_view feature) {
    if (wanted && !there) fail("needs {}, which the adapter does not have", feature);
  }

  void prelude() {
    require(spec_.uses_f16, capabilities_.f16, "f16");
    require(spec_.uses_subgroups, capabilities_.subgroups, "subgroups");
    require(spec_.uses_matrix, !capabilities_.matrices.empty(), "cooperative matrices");
    if (spec_.uses_f16) prelude_line("enable f16;");
    if (spec_.uses_subgroups && capabilities_.subgroups_need_enable)
      prelude_line("enable subgroups;");
    if (spec_.uses_matrix) prelude_line("enable wgpu_cooperative_matrix;");
    const char* axes[] = {"X", "Y", "Z"};
    uint64_t invocations = 1;
    for (size_t i = 0; i < 3; ++i) {
      prelude_line(fmt::format("const WORKGROUP_{}: u32 = {}u;", axes[i], spec_.workgroup_size[i]));
      invocations *= spec_.workgroup_size[i];
    }
    if (invocations == 0 || invocations > capabilities_.max_invocations) {
      fail("workgroup of {} invocations; the adapter allows 1 to {}", invocations,
           capabilities_.max_invocations);
    }
    if (spec_.uses_subgroups) {
      prelude_line(constant_text("SUBGROUP_MIN_SIZE", capabilities_.subgroup_min_size));
      prelude_line(constant_text("SUBGROUP_MAX_SIZE", capabilities_.subgroup_max_size));
    }
    for (const auto& [name, value] : spec_.constants) prelude_line(constant_text(name, value));
  }

  struct SourceLine {
    std::string text;
    uint32_t number = 0;
  };

  void include(const std::string& file) {
    if (!included_.insert(file).second) return;
    const std::string source = kernel_source(file);
    std::vector<SourceLine> lines;
    for (size_t at = 0; at < source.size();) {
      const size_t end = std::min(source.find('\n', at), source.size());
      lines.push_back({source.substr(at, end - at), static_cast<uint32_t>(lines.size() + 1)});
      at = end + 1;
    }
    source_lines(lines, file);
  }

  void source_lines(std::span<const SourceLine> lines, const std::string& file) {
    for (size_t i = 0; i < lines.size(); ++i) {
      with_context(fmt::format("{}:{}", file, lines[i].number), [&] {
        std::string_view rest = lines[i].text;
        if (!take(rest, "//!") || !take(rest, "unroll ")) {
          return source_line(lines[i].text, file, lines[i].number);
        }
        const size_t end = end_of_unroll(lines, i);
        unroll(rest, lines.subspan(i + 1, end - i - 1), file);
        i = end;
      });
    }
  }

  // The index of the `//! end` that belongs to the unroll line `begin`.
  static size_t end_of_unroll(std::span<const SourceLine> lines, size_t begin) {
    size_t depth = 0;
    for (size_t i = begin; i < lines.size(); ++i) {
      std::string_view rest = lines[i].text;
      if (!take(rest, "//!")) continue;
      if (take(rest, "unroll ")) ++depth;
      if (rest == "end" && --depth == 0) return i;
    }
    fail("unroll without end");
  }

  // `rest` follows "unroll ": a variable and how often, a number or a constant.
  void unroll(std::string_view rest, std::span<const SourceLine> body, const std::string& file) {
    const std::string variable(take_name(rest));
    const uint32_t count = unroll_count(rest);
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<SourceLine> lines(body.begin(), body.end());
      for (SourceLine& one : lines) one.text = substituted(one.text, variable, i);
      source_lines(lines, file);
    }
  }

  uint32_t unroll_count(std::string_view text) const {
    for (const auto& [name, value] : spec_.constants) {
      if (name == text && std::holds_alternative<uint32_t>(value)) return std::get<uint32_t>(value);
    }
    uint32_t count = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (status != std::errc() || end != text.data() + text.size()) {
      fail("unroll {} times: expected a number or a u32 constant", text);
    }
    return count;
  }

  // `text` with each $variable as a number. Variables are letters only, so that x_$r_$c works.
  static std::string substituted(std::string_view text, std::string_view variable, uint32_t value) {
    std::string result;
    for (size_t i = 0; i < text.size();) {
      size_t end = i + 1;
      if (text[i] == '$') {
        while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end]))) ++end;
      }
      const std::string_view token = text.substr(i, end - i);
      if (token.size() > 1 && token.substr(1) == variable) {
        result += std::to_string(value);
      } else {
        result += token;
      }
      i = end;
    }
    return result;
  }

  void source_line(std::string_view text, const std::string& file, uint32_t number) {
    std::string_view rest = text;
    if (take(rest, "//!")) {
      if (take(rest, "include ")) return include(std::string(rest));
      if (take(rest, "params ")) {
        if (!params_type_.empty()) fail("a second params line");
        params_type_ = std::string(rest);
        return line(params_declaration(), file, number);
      }
      fail("unknown directive '{}'; there are include, params and unroll", text);
    }
    if (take(rest, "@group(")) return line(declaration(rest), file, number);
    if (struct_name_.empty()) {
      rest = text;
      if (take(rest, "struct ")) {
        struct_name_ = std::string(take_name(rest));
        struct_body_.clear();
        collect(rest);
      }
    } else {
      collect(text);
    }
    line(text, file, number);
  }

  // Keeps the bodies of structs, for the size of the parameters.
  void collect(std::string_view text) {
    struct_body_ += std::string(text.substr(0, text.find("//"))) + "\n";
    const size_t end = struct_body_.find('}');
    if (end == std::string::npos) return;
    structs_.emplace_back(struct_name_, struct_body_.substr(0, end));
    struct_name_.clear();
  }

  std::string params_declaration() const {
    if (capabilities_.immediates) return fmt::format("var<immediate> params: {};", params_type_);
    return fmt::format("@group(1) @binding(0) var<uniform> params: {};", params_type_);
  }

  // `rest` follows "@group(". The line with the binding's number in the text, whatever it had in
  // its file: files combine freely.
  std::string declaration(std::string_view rest) {
    Binding binding;
    const auto number = [&](std::string_view what) {
      uint32_t value = 0;
      const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
      if (status != std::errc() || end == rest.data() + rest.size() || *end != ')') {
        fail("@{} needs a plain number", what);
      }
      rest.remove_prefix(static_cast<size_t>(end - rest.data()) + 1);
      return value;
    };
    if (number("group") != 0) fail("bindings are of group 0; group 1 is for params");
    if (!take(rest, "@binding(")) fail("@binding(N) must follow @group(0) on the line");
    number("binding");
    binding.index = static_cast<uint32_t>(text_.bindings.size());
    std::string result = fmt::format("@group(0) @binding({}){}", binding.index, rest);
    if (!take(rest, "var<")) fail("var<…> must follow on the line");
    if (take(rest, "uniform>")) {
      binding.access = Access::uniform;
    } else if (take(rest, "storage")) {
      if (take(rest, ",")) {
        if (take(rest, "read_write")) {
          binding.access = Access::read_write;
        } else if (!take(rest, "read")) {
          fail("expected read or read_write");
        }
      }
      if (!take(rest, ">")) fail("expected '>'");
    } else {
      fail("expected var<storage, read>, var<storage, read_write> or var<uniform>");
    }
    binding.name = std::string(take_name(rest));
    if (binding.name.empty() || !rest.starts_with(":")) fail("expected 'name: type' on the line");
    text_.bindings.push_back(std::move(binding));
    return result;
  }

  // A params struct has only 4-byte scalars: its layout is then the same everywhere.
  void finish_params() {
    if (params_type_.empty()) return;
    for (const auto& [name, body] : structs_) {
      if (name != params_type_) continue;
      for (size_t at = body.find(':'); at != std::string::npos; at = body.find(':', at + 1)) {
        std::string_view rest = std::string_view(body).substr(at + 1);
        while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest[0])))
          rest.remove_prefix(1);
        const std::string_view type = take_name(rest);
        if (type != "u32" && type != "i32" && type != "f32") {
          fail("params struct {}: fields are u32, i32 or f32, found '{}'", name, type);
        }
        text_.params_bytes += 4;
      }
      if (text_.params_bytes == 0) fail("params struct {} has no fields", name);
      if (capabilities_.immediates && text_.params_bytes > capabilities_.max_immediate_size) {
        fail("params struct {} has {} bytes; the adapter allows {}", name, text_.params_bytes,
             capabilities_.max_immediate_size);
      }
      return;
    }
    fail("no struct {} for the params line", params_type_);
  }

  const KernelSpec& spec_;
  const Capabilities& capabilities_;
  KernelText text_;
  std::set<std::string> included_;
  std::string params_type_;
  std::string struct_name_;  // of the struct being read, "" outside
  std::string struct_body_;
  std::vector<std::pair<std::string, std::string>> structs_;
};

}  // namespace

void set_kernel_directory(const std::filesystem::path& directory) {
  kernel_directory() = directory;
}

std::string kernel_source(std::string_view file) {
  if (!kernel_directory().empty() && std::filesystem::exists(kernel_directory() / file)) {
    return read_text(kernel_directory() / file);
  }
  const std::span<const EmbeddedKernel> table = embedded_kernels();
  const auto found = std::lower_bound(
      table.begin(), table.end(), file,
      [](const EmbeddedKernel& kernel, std::string_view name) { return kernel.file < name; });
  if (found == table.end() || found->file != file) fail("no kernel file '{}'", file);
  return std::string(found->text);
}

KernelText kernel_text(const KernelSpec& spec, const Capabilities& capabilities) {
  return with_context(fmt::format("kernel '{}'", spec.label),
                      [&] { return Builder(spec, capabilities).build(); });
}

}  // namespace wisp::gpu
