#include "gpu/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "gpu/buffer.h"

namespace wisp::gpu {
namespace {

std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

TEST(Device, ListsAdapters) {
  const std::vector<AdapterInfo> list = list_adapters();
  ASSERT_FALSE(list.empty());
  for (const AdapterInfo& info : list) EXPECT_FALSE(info.name.empty());
}

TEST(Device, RoundTrip) {
  const auto device = Device::create();
  for (size_t size : {size_t{1}, size_t{3}, size_t{4}, size_t{1001}, size_t{20} << 20}) {
    const Buffer buffer(*device, size, BufferUse::storage, "data");
    const std::vector<std::byte> bytes = pattern(size);
    device->write(buffer, 0, bytes);
    EXPECT_EQ(device->read(buffer, 0, size), bytes);
  }
}

}  // namespace
}  // namespace wisp::gpu
