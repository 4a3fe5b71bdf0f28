// Recordings: dispatches prepared once (pipeline, bind group, counts, small parameters) and encoded
// again for every step; and Commands, the one command buffer that they are encoded into.
#pragma once

#include <webgpu/webgpu.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/handle.h"
#include "gpu/kernel.h"

namespace wisp::gpu {

class Profiler;

// Commands to be submitted together, run in the order in which they were added: each one sees what
// those before it wrote. Nothing runs before submit(). Made for one submission. Thread rule as
// Device.
class Commands {
 public:
  // `profiler` (may be null) times each dispatch, or with a `name` the submission as a whole; it
  // must outlive the submission.
  explicit Commands(Device& device, Profiler* profiler = nullptr, std::string name = {});
  ~Commands();  // drops what was not submitted
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // Copies size bytes; offsets and size are multiples of 4, the buffers differ. Throws Error when
  // they are not, or when a range does not fit.
  void copy(const Buffer& source, uint64_t source_offset, const Buffer& destination,
            uint64_t destination_offset, uint64_t size);
  // Sets bytes to zero; offset and size are multiples of 4.
  void clear(const Buffer& buffer, uint64_t offset, uint64_t size);
  // Adds a read; see Readback.
  Readback::Read read(Readback& readback, const Buffer& source, uint64_t offset, uint64_t size);

  // Submits. Throws Error, and submits nothing, when the commands are invalid or the device is
  // lost.
  Ticket submit();

 private:
  friend class Recording;
  friend class Profiler;
  WGPUComputePassEncoder pass(const std::string& name);  // the open pass, or a new one
  void end_pass();

  Device* device_;
  Profiler* profiler_;
  std::string name_;  // not empty: of the submission timed as a whole
  EncoderHandle encoder_;
  PassHandle pass_;
  WGPUComputePipeline pipeline_ = nullptr;  // set in the open pass
  WGPUBindGroup group_ = nullptr;
  std::vector<std::pair<Readback*, Readback::Read>> reads_;
  std::shared_ptr<bool> submitted_;
};

// One dispatch of a kernel.
struct Dispatch {
  std::string name{};  // groups rows of the profile; "": the kernel's label
  KernelPtr kernel{};
  // What is bound to binding 0, 1, …; a buffer that the kernel writes must not be bound twice.
  std::vector<Slice> bindings{};
  std::array<uint32_t, 3> workgroups{1, 1, 1};
  // The fields of the kernel's params struct as 32-bit words (word() below); may be set later.
  std::vector<uint32_t> params{};
};

inline uint32_t word(float value) { return std::bit_cast<uint32_t>(value); }
inline uint32_t word(int32_t value) { return static_cast<uint32_t>(value); }
inline uint32_t word(uint32_t value) { return value; }

// A list of dispatches and copies. All objects are made while it is built; encode() makes none.
// What is bound must outlive it. Thread rule as Device.
class Recording {
 public:
  explicit Recording(Device& device);

  // Appends a step and returns its number. Throws Error naming the kernel and the binding when
  // counts, sizes, alignments or limits do not fit, or a written buffer is bound twice.
  size_t dispatch(Dispatch dispatch);
  size_t copy(Slice source, Slice destination);
  // Ends the building: makes what the parameters need. Called once, before the first encode().
  void prepare();

  size_t size() const { return steps_.size(); }
  // Changes what the next encode() records. A count of 0 skips the dispatch.
  void set_workgroups(size_t step, uint32_t x, uint32_t y = 1, uint32_t z = 1);
  void set_params(size_t step, std::span<const uint32_t> params);
  void set_param(size_t step, size_t index, uint32_t value);

  // Adds all steps to `commands`. Parameters must not have changed since an encode() into commands
  // that are not submitted yet: throws Error.
  void encode(Commands& commands);

 private:
  struct Step {
    std::string name;
    KernelPtr kernel;  // null: a copy
    BindGroupHandle group;
    std::array<uint32_t, 3> workgroups{};
    size_t params_at = 0;  // first word in params_
    size_t params_words = 0;
    Slice source, destination;
  };
  void make_group(Step& step, const std::vector<Slice>& bindings);
  Step& at(size_t step);

  Device* device_;
  std::vector<Step> steps_;
  // All parameters; with uniforms each step's begin at a multiple of the uniform alignment.
  std::vector<uint32_t> params_;
  bool params_changed_ = false;
  bool prepared_ = false;
  std::shared_ptr<bool> last_submitted_;  // of the commands last encoded into
  Buffer params_buffer_;
  BindGroupHandle params_group_;
  WGPUBindGroupLayout params_layout_ = nullptr;
};

}  // namespace wisp::gpu
