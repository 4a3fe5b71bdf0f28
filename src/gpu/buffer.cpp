#include "gpu/buffer.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "gpu/provider.h"
#include "gpu/recording.h"

namespace wisp::gpu {
namespace {

constexpr WGPUBufferUsage usage_of(BufferUse use) {
  constexpr WGPUBufferUsage kCopies = WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
  if (use == BufferUse::uniform) return kCopies | WGPUBufferUsage_Uniform;
  if (use == BufferUse::query) return kCopies | WGPUBufferUsage_QueryResolve;
  return kCopies | WGPUBufferUsage_Storage | WGPUBufferUsage_Indirect;
}

BufferHandle make_buffer(Device& device, uint64_t size, WGPUBufferUsage usage,
                         std::string_view label) {
  device.check();
  const uint64_t limit = device.capabilities().max_buffer_size;
  if (size > limit) {
    fail("GPU buffer '{}' of {} bytes exceeds the limit of {} bytes of '{}'", label, size, limit,
         device.adapter().name);
  }
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.label = view(label);
  descriptor.size = size;
  descriptor.usage = usage;
  const ErrorScope scope;
  BufferHandle handle(wgpuDeviceCreateBuffer(device.handle(), &descriptor));
  if (scope.failed() || !handle) {
    fail("GPU buffer '{}' of {} bytes ({} bytes already allocated): {}", label, size,
         device.allocated_bytes(), scope.message());
  }
  return handle;
}

}  // namespace

Buffer::Buffer(Device& device, uint64_t size, BufferUse use, std::string_view label)
    : device_(&device),
      size_(size),
      padded_(std::max<uint64_t>(4, round_up(size, 4))),
      label_(label) {
  handle_ = make_buffer(device, padded_, usage_of(use), label);
  device.count_buffer(padded_);
}

Buffer::~Buffer() {
  if (handle_) device_->release_bytes(padded_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_),
      handle_(std::move(other.handle_)),
      size_(other.size_),
      padded_(other.padded_),
      label_(std::move(other.label_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (handle_) device_->release_bytes(padded_);
    device_ = other.device_;
    handle_ = std::move(other.handle_);
    size_ = other.size_;
    padded_ = other.padded_;
    label_ = std::move(other.label_);
  }
  return *this;
}

void Buffer::check_range(const Device& device, uint64_t offset, uint64_t size,
                         std::string_view what) const {
  if (!handle_) fail("{}: the GPU buffer is empty", what);
  if (device_ != &device) fail("{}: GPU buffer '{}' is of another device", what, label_);
  if (offset > padded_ || size > padded_ - offset) {
    fail("{}: bytes {} to {}+{} are outside GPU buffer '{}' of {} bytes", what, offset, offset,
         size, label_, size_);
  }
}

// Free -> recorded (copy in unsubmitted commands) -> mapping -> mapped or failed -> free.
struct Readback::Slot {
  enum class State { free, recorded, mapping, mapped, failed };
  BufferHandle buffer;
  State state = State::free;
  uint64_t number = 0;
  uint64_t size = 0;
  std::string error;
};

Readback::Readback(Device& device, size_t slots, uint64_t slot_bytes)
    : device_(&device), slot_bytes_(round_up(std::max<uint64_t>(slot_bytes, 4), 8)) {
  ensure(slots > 0, "a readback ring has slots");
  for (size_t i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->buffer = make_buffer(
        device, slot_bytes_, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "readback");
    device.count_buffer(slot_bytes_);
  }
}

Readback::~Readback() {
  for (std::unique_ptr<Slot>& slot : slots_) {
    device_->release_bytes(slot_bytes_);
    if (slot->state != Slot::State::mapping) continue;
    try {
      device_->wait_until([&] { return slot->state != Slot::State::mapping; }, "a readback");
    } catch (const Error&) {
      (void)slot.release();  // its callback may still come
    }
  }
}

Readback::Slot& Readback::slot_of(Read read) {
  if (read.number == 0) fail("readback: no read was asked for");
  Slot& slot = *slots_[read.number % slots_.size()];
  if (slot.number != read.number) {
    fail("readback: read {} was overwritten by read {}", read.number, slot.number);
  }
  return slot;
}

Readback::Read Readback::add(WGPUCommandEncoder encoder, const Buffer& source, uint64_t offset,
                             uint64_t size) {
  source.check_range(*device_, offset, size, "readback");
  if (offset % 4 != 0 || size % 4 != 0 || size == 0) {
    fail("readback of '{}': offset {} and size {} must be multiples of 4 and not zero",
         source.label(), offset, size);
  }
  if (size > slot_bytes_) {
    fail("readback of '{}': {} bytes exceed the slot's {}", source.label(), size, slot_bytes_);
  }
  Slot& slot = *slots_[next_ % slots_.size()];
  if (slot.state == Slot::State::recorded) {
    fail("readback: all {} slots belong to commands that were not submitted", slots_.size());
  }
  if (slot.state == Slot::State::mapping) {
    device_->wait_until([&] { return slot.state != Slot::State::mapping; }, "a readback");
  }
  if (slot.state == Slot::State::mapped) wgpuBufferUnmap(slot.buffer.get());
  slot.state = Slot::State::recorded;
  slot.number = next_++;
  slot.size = size;
  wgpuCommandEncoderCopyBufferToBuffer(encoder, source.handle(), offset, slot.buffer.get(), 0,
                                       size);
  return {slot.number};
}

void Readback::submitted(Read read) {
  Slot& slot = slot_of(read);
  slot.state = Slot::State::mapping;
  WGPUBufferMapCallbackInfo info = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  info.mode = WGPUCallbackMode_AllowSpontaneous;
  info.userdata1 = &slot;
  info.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* user, void*) {
    auto& target = *static_cast<Slot*>(user);
    target.state = status == WGPUMapAsyncStatus_Success ? Slot::State::mapped : Slot::State::failed;
    if (target.state == Slot::State::failed) target.error = text(message);
  };
  wgpuBufferMapAsync(slot.buffer.get(), WGPUMapMode_Read, 0, slot_bytes_, info);
}

void Readback::cancelled(Read read) { slot_of(read).state = Slot::State::free; }

bool Readback::ready(Read read) {
  Slot& slot = slot_of(read);
  if (slot.state == Slot::State::mapping) {
    device_->check();
    provider::poll(device_->handle());
  }
  return slot.state == Slot::State::mapped;
}

std::span<const std::byte> Readback::wait(Read read) {
  Slot& slot = slot_of(read);
  if (slot.state == Slot::State::recorded) fail("readback: its commands were not submitted");
  if (slot.state == Slot::State::free) fail("readback: its commands were dropped");
  if (slot.state == Slot::State::mapping) {
    device_->wait_until([&] { return slot.state != Slot::State::mapping; }, "a readback");
  }
  if (slot.state == Slot::State::failed) fail("readback failed: {}", slot.error);
  const void* data = wgpuBufferGetConstMappedRange(slot.buffer.get(), 0, slot_bytes_);
  ensure(data != nullptr, "a mapped buffer has a range");
  return {static_cast<const std::byte*>(data), slot.size};
}

std::span<const std::byte> Readback::read_now(const Buffer& source, uint64_t offset,
                                              uint64_t size) {
  Commands commands(*device_);
  const Read read = commands.read(*this, source, offset, size);
  commands.submit();
  return wait(read);
}

}  // namespace wisp::gpu
