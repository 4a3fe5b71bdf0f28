#include <cstdlib>
#include <limits>

#include "backend/cpu/context.h"
#include "base/error.h"

namespace wisp::backend::cpu {

namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

Buffer::Buffer(uint64_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() - kAlignment) {
    fail("{} bytes of memory are more than can be addressed", bytes);
  }
  // calloc leaves large blocks untouched, which aligned_alloc with memset would not.
  memory_.reset(static_cast<std::byte*>(std::calloc(bytes + kAlignment, 1)));
  if (memory_ == nullptr) fail("no memory: {} bytes are needed", bytes);
  const auto address = reinterpret_cast<uintptr_t>(memory_.get());
  data_ = memory_.get() + (kAlignment - address % kAlignment) % kAlignment;
  size_ = bytes;
}

}  // namespace wisp::backend::cpu
