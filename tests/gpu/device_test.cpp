#include "gpu/device.h"

#include <sys/resource.h>

#include <chrono>
#include <fstream>

#include "gpu_fixture.h"

namespace wisp::gpu {
namespace {

using DeviceTest = GpuTest;

std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// Resident memory of this process, in bytes.
uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

TEST_F(DeviceTest, ListsAdapters) {
  const std::vector<AdapterInfo> list = list_adapters();
  ASSERT_FALSE(list.empty());
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].index, i);
    EXPECT_FALSE(list[i].name.empty());
    EXPECT_FALSE(list[i].driver.empty());
    EXPECT_NE(list[i].backend, "unknown");
  }
}

TEST_F(DeviceTest, ChoosesByIndexAndByName) {
  const std::vector<AdapterInfo> list = list_adapters();
  EXPECT_EQ(Device::create({.adapter = "0"})->adapter().name, list[0].name);
  std::string part = list[0].name.substr(1, 5);
  for (char& c : part) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(Device::create({.adapter = part})->adapter().name, list[0].name);
}

TEST_F(DeviceTest, WrongChoicesNameTheAdapters) {
  const std::string name = list_adapters()[0].name;
  for (const char* wish : {"999", "no such gpu", "12x"}) {
    const std::string message = error_of([&] { Device::create({.adapter = wish}); });
    EXPECT_TRUE(has(message, wish));
    EXPECT_TRUE(has(message, name));
  }
  // The tests' only adapter is a CPU driver.
  ASSERT_EQ(list_adapters()[0].kind, AdapterKind::cpu);
  EXPECT_TRUE(has(error_of([] { Device::create({.allow_cpu_adapter = false}); }), name));
}

TEST_F(DeviceTest, CapabilitiesMeetTheFloor) {
  const auto device = Device::create();
  const Capabilities& c = device->capabilities();
  EXPECT_GE(c.max_storage_buffers, 10u);
  EXPECT_GE(c.workgroup_memory, 32u << 10);
  EXPECT_GE(c.max_invocations, 256u);
  EXPECT_GE(c.max_binding_size, uint64_t{128} << 20);
  EXPECT_GE(c.max_workgroups, 65535u);
  EXPECT_TRUE(c.packed_dot);
  EXPECT_TRUE(c.is_cpu_adapter);
  EXPECT_EQ(c.subgroup_min_size, 8u);
  EXPECT_EQ(c.subgroup_max_size, 8u);
}

TEST_F(DeviceTest, RoundTripOfAnySize) {
  const auto device = Device::create();
  for (size_t size : {size_t{1}, size_t{3}, size_t{4}, size_t{1001}, size_t{20'000'003}}) {
    const Buffer buffer(*device, size, BufferUse::storage, "data");
    const std::vector<std::byte> bytes = pattern(size);
    device->write(buffer, 0, bytes);
    EXPECT_EQ(device->read(buffer, 0, size), bytes);
    if (size < 1000) continue;
    const std::vector<std::byte> part(bytes.begin() + 7, bytes.begin() + 7 + 555);
    EXPECT_EQ(device->read(buffer, 7, 555), part);
  }
}

TEST_F(DeviceTest, NewBuffersAreZeroAndEmptyOnesHarmless) {
  const auto device = Device::create();
  const Buffer buffer(*device, 1000, BufferUse::storage, "new");
  EXPECT_EQ(device->read(buffer, 0, 1000), std::vector<std::byte>(1000));
  const Buffer empty(*device, 0, BufferUse::storage, "empty");
  EXPECT_EQ(empty.size(), 0u);
  device->write(empty, 0, {});
  EXPECT_TRUE(device->read(empty, 0, 0).empty());
  const Buffer none;
  EXPECT_TRUE(has(error_of([&] { device->write(none, 0, {}); }), "empty"));
}

TEST_F(DeviceTest, WritesPadTheLastWordWithZeros) {
  const auto device = Device::create();
  const Buffer buffer = buffer_of(*device, {0xffffffffu, 0xffffffffu});
  device->write(buffer, 0, pattern(5));
  const std::vector<std::byte> got = device->read(buffer, 4, 4);
  EXPECT_EQ(got[1], std::byte{0});
  EXPECT_EQ(got[3], std::byte{0});
}

TEST_F(DeviceTest, RangesOutsideAreErrorsAndTheDeviceGoesOn) {
  const auto device = Device::create();
  const Buffer buffer(*device, 100, BufferUse::storage, "hundred");
  const std::vector<std::byte> bytes = pattern(104);
  EXPECT_TRUE(has(error_of([&] { device->write(buffer, 0, bytes); }), "'hundred' of 100 bytes"));
  EXPECT_TRUE(
      has(error_of([&] { device->write(buffer, 2, std::span(bytes).first(4)); }), "multiple of 4"));
  EXPECT_TRUE(has(error_of([&] { device->write(buffer, UINT64_MAX - 3, bytes); }), "outside"));
  EXPECT_TRUE(has(error_of([&] { device->read(buffer, 96, 8); }), "outside"));
  const uint64_t limit = device->capabilities().max_buffer_size;
  EXPECT_TRUE(
      has(error_of([&] { Buffer(*device, limit + 4, BufferUse::storage, "giant"); }), "'giant'"));
  device->write(buffer, 0, std::span(bytes).first(100));
  EXPECT_EQ(device->read(buffer, 0, 100),
            std::vector<std::byte>(bytes.begin(), bytes.begin() + 100));
}

TEST_F(DeviceTest, LibraryErrorsBecomeErrorsOfTheNextCall) {
  const auto device = Device::create();
  const Buffer buffer(*device, 16, BufferUse::storage, "small");
  static const char data[64] = {};
  wgpuQueueWriteBuffer(device->queue(), buffer.handle(), 0, data, sizeof data);
  EXPECT_TRUE(has(error_of([&] { device->check(); }), "overrunning the bounds"));
  device->check();
  EXPECT_EQ(device->read(buffer, 0, 16).size(), 16u);
}

TEST_F(DeviceTest, ALostDeviceIsAState) {
  const auto device = Device::create();
  const Buffer buffer(*device, 16, BufferUse::storage, "small");
  Readback readback(*device, 2, 16);
  wgpuDeviceDestroy(device->handle());
  EXPECT_THROW(Buffer(*device, 16, BufferUse::storage, "late"), Error);
  EXPECT_THROW(readback.read_now(buffer, 0, 16), Error);
  EXPECT_TRUE(device->lost());
  EXPECT_THROW(device->check(), Error);
  EXPECT_THROW(device->write(buffer, 0, pattern(4)), Error);
  EXPECT_THROW(device->wait_idle(), Error);
}

TEST_F(DeviceTest, WorkThatTakesTooLongIsAnError) {
  const auto device = Device::create({.timeout_seconds = 0.2});
  PipelineCache cache(*device);
  const Buffer value = buffer_of(*device, {1});
  Recording recording(*device);
  recording.dispatch({.kernel = cache.get({.label = "slow", .file = "slow.wgsl"}),
                      .bindings = {{&value}},
                      .params = {200'000'000}});
  recording.prepare();
  Commands commands(*device);
  recording.encode(commands);
  const Ticket ticket = commands.submit();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(has(error_of([&] { device->wait(ticket); }), "not done within 0.2 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(device->lost());
}

TEST_F(DeviceTest, WaitingDoesNotBurnTheProcessor) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const Buffer value = buffer_of(*device, {1});
  Recording recording(*device);
  recording.dispatch({.kernel = cache.get({.label = "slow", .file = "slow.wgsl"}),
                      .bindings = {{&value}},
                      .params = {20'000'000}});
  recording.prepare();
  Commands commands(*device);
  recording.encode(commands);
  const Ticket ticket = commands.submit();
  rusage before, after;
  getrusage(RUSAGE_THREAD, &before);
  const auto start = std::chrono::steady_clock::now();
  device->wait(ticket);
  const auto waited = std::chrono::steady_clock::now() - start;
  getrusage(RUSAGE_THREAD, &after);
  const double own = double(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                     1e-6 * double(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
  EXPECT_LT(own, 0.5 * std::chrono::duration<double>(waited).count() + 0.01);
}

TEST_F(DeviceTest, LargeUploadsNeedBoundedStagingMemory) {
  const auto device = Device::create();
  const Buffer buffer(*device, 64u << 20, BufferUse::storage, "large");
  const std::vector<std::byte> bytes = pattern(64u << 20);
  device->write(buffer, 0, bytes);  // backs the buffer itself
  device->wait_idle();
  const uint64_t before = resident_bytes();
  uint64_t most = before;
  for (int i = 0; i < 8; ++i) {
    device->write(buffer, 0, bytes);
    most = std::max(most, resident_bytes());
  }
  EXPECT_LT(most - before, uint64_t{112} << 20);
  EXPECT_EQ(device->read(buffer, 0, 1000),
            std::vector<std::byte>(bytes.begin(), bytes.begin() + 1000));
}

TEST_F(DeviceTest, TwoDevicesAtOnceKeepTheirBuffersApart) {
  const auto one = Device::create();
  const auto two = Device::create();
  const Buffer first = buffer_of(*one, {1, 2, 3}, "first");
  const Buffer second = buffer_of(*two, {4, 5, 6}, "second");
  EXPECT_EQ(read_words(*one, first), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(read_words(*two, second), (std::vector<uint32_t>{4, 5, 6}));
  EXPECT_TRUE(has(error_of([&] { one->write(second, 0, pattern(4)); }), "of another device"));
  Commands commands(*one);
  EXPECT_TRUE(has(error_of([&] { commands.copy(first, 0, second, 0, 4); }), "of another device"));
}

TEST_F(DeviceTest, CountsObjectsAndBytes) {
  const auto device = Device::create();
  const ObjectCounts before = device->counts();
  const uint64_t bytes = device->allocated_bytes();
  {
    const Buffer buffer(*device, 1000, BufferUse::storage, "counted");
    EXPECT_EQ(device->counts().buffers, before.buffers + 1);
    EXPECT_EQ(device->allocated_bytes(), bytes + 1000);
  }
  EXPECT_EQ(device->allocated_bytes(), bytes);
}

}  // namespace
}  // namespace wisp::gpu
