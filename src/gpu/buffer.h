// Device memory, and reading it back without stopping the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "gpu/handle.h"

namespace wisp::gpu {

enum class BufferUse {
  storage,  // kernels read and write it; copies from and to it; also indirect dispatch counts
  uniform,  // small constants for kernels
  query,    // receives timestamps
};

// Device memory. Its true size is the wanted one rounded up to 4 bytes, at least 4; new memory is
// zero. Movable; freed when the last command that uses it is done.
class Buffer {
 public:
  Buffer() = default;
  // Throws Error when `size` exceeds the device's limit or memory is short.
  Buffer(Device& device, uint64_t size, BufferUse use, std::string_view label);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  explicit operator bool() const { return static_cast<bool>(handle_); }
  uint64_t size() const { return size_; }           // as asked for, bytes
  uint64_t padded_size() const { return padded_; }  // as allocated, bytes
  const std::string& label() const { return label_; }
  WGPUBuffer handle() const { return handle_.get(); }

  // Throws Error when [offset, offset + size) leaves the (padded) buffer, or when the buffer is
  // empty or of another device. `what` names the operation.
  void check_range(const Device& device, uint64_t offset, uint64_t size,
                   std::string_view what) const;

 private:
  Device* device_ = nullptr;
  BufferHandle handle_;
  uint64_t size_ = 0;
  uint64_t padded_ = 0;
  std::string label_;
};

// A part of a buffer, as kernels bind it. The buffer must outlive what it is bound to.
struct Slice {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;  // bytes; a multiple of capabilities().storage_alignment when bound
  uint64_t size = 0;    // bytes; 0: to the end of the buffer
};

class Commands;

// A ring of `slots` host-visible buffers of `slot_bytes` each, made once. A read is added to
// Commands (recording.h), becomes ready some time after they are submitted, and holds its slot
// until the (slots)-th next read is added. Thread rule as Device.
class Readback {
 public:
  struct Read {
    uint64_t number = 0;  // 0: none
  };

  Readback(Device& device, size_t slots, uint64_t slot_bytes);
  ~Readback();
  Readback(const Readback&) = delete;
  Readback& operator=(const Readback&) = delete;

  // Whether the bytes are there; polls once. Throws Error when the device is lost.
  bool ready(Read read);
  // The bytes, waiting for them. Valid until the slot is used again. Throws Error when the read was
  // never submitted, its slot was reused, or on timeout.
  std::span<const std::byte> wait(Read read);
  // Copies, submits and waits.
  std::span<const std::byte> read_now(const Buffer& source, uint64_t offset, uint64_t size);

 private:
  friend class Commands;
  struct Slot;
  // Adds the copy to `encoder`; offset and size are multiples of 4. Waits when the slot's last read
  // is still under way.
  Read add(WGPUCommandEncoder encoder, const Buffer& source, uint64_t offset, uint64_t size);
  void submitted(Read read);  // starts mapping, after the submission
  void cancelled(Read read);  // the commands were dropped
  Slot& slot_of(Read read);

  Device* device_;
  uint64_t slot_bytes_;
  uint64_t next_ = 1;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace wisp::gpu
