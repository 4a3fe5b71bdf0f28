// Kernels: WGSL files with includes and a prelude of constants become compiled pipelines, one for
// each final text. docs/kernels.md tells how the files are written.
#pragma once

#include <webgpu/webgpu.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/capabilities.h"
#include "gpu/device.h"
#include "gpu/handle.h"

namespace wisp::gpu {

// A `const NAME: type = value;` line of the prelude.
using ConstantValue = std::variant<bool, int32_t, uint32_t, float>;

struct KernelSpec {
  std::string label;  // names the kernel in errors and profiles, such as "matvec q4_0 rows=2"
  std::string file;   // main file, relative to kernels/, such as "matvec.wgsl"
  // Files included before the main file, such as "codec/q4_0.wgsl": what varies between variants.
  // Fixed needs are `//! include` lines of the files. Each file is included once.
  std::vector<std::string> includes{};
  std::vector<std::pair<std::string, ConstantValue>> constants{};
  // Prelude constants WORKGROUP_X, WORKGROUP_Y, WORKGROUP_Z, for @workgroup_size.
  std::array<uint32_t, 3> workgroup_size{64, 1, 1};
  // Features whose `enable` lines the text needs. Asking for one that the capabilities lack is an
  // Error: choose the variant from the capabilities.
  bool uses_f16 = false;
  bool uses_subgroups = false;
  bool uses_matrix = false;
};

enum class Access { read, read_write, uniform };

// One `@group(0) @binding(N) var<...> name: ...;` line of the final text.
struct Binding {
  uint32_t index = 0;
  Access access = Access::read;
  std::string name;
};

// The final text, and where its lines came from.
struct KernelText {
  std::string wgsl;
  std::vector<Binding> bindings;  // by rising index, which are 0, 1, 2, ...
  uint32_t params_bytes = 0;      // of the `//! params` struct; 0: none
  struct Origin {
    std::string file;
    uint32_t line = 0;
  };
  std::vector<Origin> origins;  // origins[i] belongs to line i + 1
};

// The text of `spec` for a device with `capabilities`. Pure. Throws Error naming the kernel for a
// missing file, a feature that is not there, a malformed declaration or directive.
KernelText kernel_text(const KernelSpec& spec, const Capabilities& capabilities);

// A compiled kernel; immutable and shared.
class Kernel {
 public:
  const std::string& label() const { return label_; }
  const std::vector<Binding>& bindings() const { return bindings_; }
  uint32_t params_bytes() const { return params_bytes_; }
  WGPUComputePipeline pipeline() const { return pipeline_.get(); }
  WGPUBindGroupLayout layout() const { return layout_.get(); }
  WGPUBindGroupLayout params_layout() const { return params_layout_.get(); }  // null: immediates

 private:
  friend class PipelineCache;
  std::string label_;
  std::vector<Binding> bindings_;
  uint32_t params_bytes_ = 0;
  BindGroupLayoutHandle layout_;
  BindGroupLayoutHandle params_layout_;
  PipelineHandle pipeline_;
};
using KernelPtr = std::shared_ptr<const Kernel>;

// All compiled kernels of one device. Safe from any thread.
class PipelineCache {
 public:
  explicit PipelineCache(Device& device);

  // The kernel of `spec`, compiled on first use of its text. Throws Error with the kernel's label,
  // the file and line, the library's message and the line's text.
  KernelPtr get(const KernelSpec& spec);
  // All of them, compiled in parallel on up to `threads` threads (0: one a processor).
  std::vector<KernelPtr> compile(std::span<const KernelSpec> specs, size_t threads = 0);
  // Number of compiled texts.
  size_t size() const;

 private:
  KernelPtr compile_text(const std::string& label, const KernelText& text);

  Device* device_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_future<KernelPtr>, std::less<>> compiled_;
};

// Developer mode: kernels are read from this folder instead of those built into the program. An
// empty path goes back to the built-in ones. Texts already compiled stay. Not thread-safe: call it
// before kernels are compiled.
void set_kernel_directory(const std::filesystem::path& directory);

// The built-in text of kernels/<file>, or that of the kernel directory. Throws Error naming it.
std::string kernel_source(std::string_view file);

}  // namespace wisp::gpu
