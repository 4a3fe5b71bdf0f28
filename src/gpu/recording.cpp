#include "gpu/recording.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "gpu/profile.h"
#include "gpu/provider.h"

namespace wisp::gpu {
namespace {

constexpr uint64_t kUniformParamsBytes = 256;  // bound at each dynamic offset

uint64_t slice_size(const Slice& slice) {
  return slice.size ? slice.size : slice.buffer->padded_size() - slice.offset;
}

void check_copy(const Device& device, const Buffer& source, uint64_t source_offset,
                const Buffer& destination, uint64_t destination_offset, uint64_t size) {
  source.check_range(device, source_offset, size, "copy");
  destination.check_range(device, destination_offset, size, "copy");
  if (source_offset % 4 || destination_offset % 4 || size % 4) {
    fail("copy from '{}' to '{}': offsets {}, {} and size {} must be multiples of 4",
         source.label(), destination.label(), source_offset, destination_offset, size);
  }
  if (source.handle() == destination.handle()) {
    fail("copy within one GPU buffer ('{}') is not possible", source.label());
  }
}

}  // namespace

Commands::Commands(Device& device, Profiler* profiler, std::string name)
    : device_(&device),
      profiler_(profiler),
      name_(std::move(name)),
      submitted_(std::make_shared<bool>(false)) {
  device.check();
  const ErrorScope scope;
  encoder_ = EncoderHandle(wgpuDeviceCreateCommandEncoder(device.handle(), nullptr));
  if (scope.failed() || !encoder_) fail("GPU commands: {}", scope.message());
}

Commands::~Commands() {
  if (*submitted_) return;
  if (pass_) end_pass();
  for (const auto& [readback, read] : reads_) readback->cancelled(read);
  if (profiler_) profiler_->cancel();
  *submitted_ = true;  // nothing pending any more
}

WGPUComputePassEncoder Commands::pass(const std::string& name) {
  ensure(static_cast<bool>(encoder_), "commands are submitted once");
  const bool whole = !name_.empty();
  if (pass_ && (!profiler_ || whole)) return pass_.get();
  const WGPUPassTimestampWrites* writes =
      profiler_ ? profiler_->next(whole ? name_ : name, whole) : nullptr;
  if (pass_) end_pass();
  WGPUComputePassDescriptor descriptor = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
  descriptor.timestampWrites = writes;
  pass_ = PassHandle(wgpuCommandEncoderBeginComputePass(encoder_.get(), &descriptor));
  return pass_.get();
}

void Commands::end_pass() {
  wgpuComputePassEncoderEnd(pass_.get());
  pass_.reset();
  pipeline_ = nullptr;
  group_ = nullptr;
}

void Commands::copy(const Buffer& source, uint64_t source_offset, const Buffer& destination,
                    uint64_t destination_offset, uint64_t size) {
  check_copy(*device_, source, source_offset, destination, destination_offset, size);
  ensure(static_cast<bool>(encoder_), "commands are submitted once");
  if (size == 0) return;
  if (pass_) end_pass();
  wgpuCommandEncoderCopyBufferToBuffer(encoder_.get(), source.handle(), source_offset,
                                       destination.handle(), destination_offset, size);
}

void Commands::clear(const Buffer& buffer, uint64_t offset, uint64_t size) {
  buffer.check_range(*device_, offset, size, "clear");
  if (offset % 4 || size % 4) {
    fail("clear of '{}': offset {} and size {} must be multiples of 4", buffer.label(), offset,
         size);
  }
  ensure(static_cast<bool>(encoder_), "commands are submitted once");
  if (size == 0) return;
  if (pass_) end_pass();
  wgpuCommandEncoderClearBuffer(encoder_.get(), buffer.handle(), offset, size);
}

Readback::Read Commands::read(Readback& readback, const Buffer& source, uint64_t offset,
                              uint64_t size) {
  ensure(static_cast<bool>(encoder_), "commands are submitted once");
  if (pass_) end_pass();
  const Readback::Read read = readback.add(encoder_.get(), source, offset, size);
  reads_.emplace_back(&readback, read);
  return read;
}

Ticket Commands::submit() {
  ensure(static_cast<bool>(encoder_), "commands are submitted once");
  device_->check();
  if (pass_) end_pass();
  if (profiler_) profiler_->resolve(*this);
  CommandBufferHandle commands;
  {
    // Some libraries end the process when invalid commands are submitted; finishing them tells.
    const ErrorScope scope;
    commands = CommandBufferHandle(wgpuCommandEncoderFinish(encoder_.get(), nullptr));
    encoder_.reset();
    if (scope.failed() || !commands) fail("invalid GPU commands: {}", scope.message());
  }
  device_->check();
  const Ticket ticket = device_->submit(commands.get());
  *submitted_ = true;
  for (const auto& [readback, read] : reads_) readback->submitted(read);
  if (profiler_) profiler_->submitted();
  device_->check();
  return ticket;
}

Recording::Recording(Device& device) : device_(&device) {}

size_t Recording::dispatch(Dispatch dispatch) {
  ensure(!prepared_, "dispatches are added before prepare()");
  ensure(dispatch.kernel != nullptr, "a dispatch has a kernel");
  Step step;
  step.kernel = dispatch.kernel;
  step.name = std::move(dispatch.name);
  if (step.name.empty()) step.name = step.kernel->label();
  with_context(fmt::format("kernel '{}'", step.kernel->label()),
               [&] { make_group(step, dispatch.bindings); });
  const uint32_t bytes = step.kernel->params_bytes();
  step.params_words = bytes / 4;
  if (step.kernel->params_layout()) {
    if (bytes > kUniformParamsBytes) {
      fail("kernel '{}': {} bytes of params exceed {}", step.kernel->label(), bytes,
           kUniformParamsBytes);
    }
    const uint64_t stride =
        std::max<uint64_t>(kUniformParamsBytes, device_->capabilities().uniform_alignment);
    params_.resize(round_up(params_.size() * 4, stride) / 4);
    params_layout_ = step.kernel->params_layout();
  }
  step.params_at = params_.size();
  params_.resize(params_.size() + step.params_words);
  steps_.push_back(std::move(step));
  const size_t number = steps_.size() - 1;
  set_workgroups(number, dispatch.workgroups[0], dispatch.workgroups[1], dispatch.workgroups[2]);
  if (!dispatch.params.empty()) set_params(number, dispatch.params);
  return number;
}

void Recording::make_group(Step& step, const std::vector<Slice>& bindings) {
  const Capabilities& capabilities = device_->capabilities();
  const std::vector<Binding>& wanted = step.kernel->bindings();
  if (bindings.size() != wanted.size()) {
    fail("expected {} bindings, found {}", wanted.size(), bindings.size());
  }
  std::vector<WGPUBindGroupEntry> entries;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Slice& slice = bindings[i];
    const std::string what = fmt::format("binding {} '{}'", i, wanted[i].name);
    if (!slice.buffer) fail("{}: no buffer", what);
    slice.buffer->check_range(*device_, slice.offset, slice.size, what);
    const uint64_t size = round_up(slice_size(slice), 4);
    const bool uniform = wanted[i].access == Access::uniform;
    const uint64_t alignment =
        uniform ? capabilities.uniform_alignment : capabilities.storage_alignment;
    if (slice.offset % alignment != 0) {
      fail("{}: offset {} is no multiple of {}", what, slice.offset, alignment);
    }
    if (size == 0) fail("{}: nothing is bound (0 bytes)", what);
    if (!uniform && size > capabilities.max_binding_size) {
      fail("{}: {} bytes of '{}' exceed the binding limit of {} bytes", what, size,
           slice.buffer->label(), capabilities.max_binding_size);
    }
    for (size_t j = 0; j < i; ++j) {
      const bool written =
          wanted[i].access == Access::read_write || wanted[j].access == Access::read_write;
      if (written && bindings[j].buffer->handle() == slice.buffer->handle()) {
        fail("{} and binding {} '{}' are of one buffer '{}', which is written", what, j,
             wanted[j].name, slice.buffer->label());
      }
    }
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = wanted[i].index;
    entry.buffer = slice.buffer->handle();
    entry.offset = slice.offset;
    entry.size = size;
    entries.push_back(entry);
  }
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.layout = step.kernel->layout();
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  const ErrorScope scope;
  step.group = BindGroupHandle(wgpuDeviceCreateBindGroup(device_->handle(), &descriptor));
  if (scope.failed()) fail("{}", scope.message());
  device_->count_bind_group();
}

size_t Recording::copy(Slice source, Slice destination) {
  ensure(!prepared_, "copies are added before prepare()");
  ensure(source.buffer != nullptr, "a copy has a source");
  ensure(destination.buffer != nullptr, "a copy has a destination");
  source.buffer->check_range(*device_, source.offset, source.size, "copy");
  source.size = slice_size(source);
  check_copy(*device_, *source.buffer, source.offset, *destination.buffer, destination.offset,
             source.size);
  Step step;
  step.source = source;
  step.destination = destination;
  steps_.push_back(std::move(step));
  return steps_.size() - 1;
}

void Recording::prepare() {
  ensure(!prepared_, "prepare() is called once");
  prepared_ = true;
  if (!params_layout_) return;
  const uint64_t size = params_.size() * 4 + kUniformParamsBytes;
  params_buffer_ = Buffer(*device_, size, BufferUse::uniform, "params");
  params_changed_ = true;
  WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
  entry.buffer = params_buffer_.handle();
  entry.size = kUniformParamsBytes;
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.layout = params_layout_;
  descriptor.entryCount = 1;
  descriptor.entries = &entry;
  const ErrorScope scope;
  params_group_ = BindGroupHandle(wgpuDeviceCreateBindGroup(device_->handle(), &descriptor));
  if (scope.failed()) fail("params: {}", scope.message());
  device_->count_bind_group();
}

Recording::Step& Recording::at(size_t step) {
  ensure(step < steps_.size() && steps_[step].kernel, "a dispatch of this recording");
  return steps_[step];
}

void Recording::set_workgroups(size_t step, uint32_t x, uint32_t y, uint32_t z) {
  Step& target = at(step);
  const uint32_t limit = device_->capabilities().max_workgroups;
  if (std::max({x, y, z}) > limit) {
    fail("kernel '{}': {} x {} x {} workgroups exceed the limit of {} per dimension",
         target.kernel->label(), x, y, z, limit);
  }
  target.workgroups = {x, y, z};
}

void Recording::set_params(size_t step, std::span<const uint32_t> params) {
  Step& target = at(step);
  if (params.size() != target.params_words) {
    fail("kernel '{}': expected {} params, found {}", target.kernel->label(), target.params_words,
         params.size());
  }
  for (size_t i = 0; i < params.size(); ++i) set_param(step, i, params[i]);
}

void Recording::set_param(size_t step, size_t index, uint32_t value) {
  Step& target = at(step);
  ensure(index < target.params_words, "a params index");
  uint32_t& slot = params_[target.params_at + index];
  if (slot == value) return;
  slot = value;
  params_changed_ = true;
}

void Recording::encode(Commands& commands) {
  ensure(prepared_, "a recording is prepared before it is encoded");
  if (params_changed_) {
    if (last_submitted_ && !*last_submitted_) {
      fail("recording: params changed while commands that use them are not submitted");
    }
    if (params_buffer_) device_->write(params_buffer_, 0, std::as_bytes(std::span(params_)));
    params_changed_ = false;
  }
  last_submitted_ = commands.submitted_;
  for (const Step& step : steps_) {
    if (!step.kernel) {
      commands.copy(*step.source.buffer, step.source.offset, *step.destination.buffer,
                    step.destination.offset, step.source.size);
      continue;
    }
    if (std::min({step.workgroups[0], step.workgroups[1], step.workgroups[2]}) == 0) continue;
    const WGPUComputePassEncoder pass = commands.pass(step.name);
    if (commands.pipeline_ != step.kernel->pipeline()) {
      commands.pipeline_ = step.kernel->pipeline();
      wgpuComputePassEncoderSetPipeline(pass, commands.pipeline_);
    }
    if (commands.group_ != step.group.get()) {
      commands.group_ = step.group.get();
      wgpuComputePassEncoderSetBindGroup(pass, 0, commands.group_, 0, nullptr);
    }
    if (step.params_words > 0 && step.kernel->params_layout()) {
      const auto offset = static_cast<uint32_t>(step.params_at * 4);
      wgpuComputePassEncoderSetBindGroup(pass, 1, params_group_.get(), 1, &offset);
    } else if (step.params_words > 0) {
      wgpuComputePassEncoderSetImmediates(pass, 0, params_.data() + step.params_at,
                                          step.params_words * 4);
    }
    wgpuComputePassEncoderDispatchWorkgroups(pass, step.workgroups[0], step.workgroups[1],
                                             step.workgroups[2]);
  }
}

}  // namespace wisp::gpu
