#include "gpu/recording.h"

#include "gpu/profile.h"
#include "gpu_fixture.h"

namespace wisp::gpu {
namespace {

using RecordingTest = GpuTest;

KernelSpec increment(uint32_t variant) {
  return {.label = fmt::format("increment {}", variant),
          .file = "increment.wgsl",
          .constants = {{"VARIANT", variant}}};
}
const KernelSpec kFill{.label = "fill", .file = "fill.wgsl"};

TEST_F(RecordingTest, DependentDispatchesRunInOrder) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const Buffer value = buffer_of(*device, {0});
  Recording recording(*device);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    recording.dispatch({.kernel = cache.get(increment(1 + i % 5)), .bindings = {{&value}}});
    expected = expected * 3 + 1 + i % 5;
  }
  recording.prepare();
  Commands commands(*device);
  recording.encode(commands);
  commands.submit();
  EXPECT_EQ(read_words(*device, value)[0], expected);
}

TEST_F(RecordingTest, StepsMakeNoObjectsAndTakeNewParamsAndCounts) {
  for (bool immediates : {true, false}) {
    const auto device = Device::create(
        {.mask = [&](Capabilities& c) { c.immediates = c.immediates && immediates; }});
    PipelineCache cache(*device);
    const Buffer a(*device, 256 * 4, BufferUse::storage, "a");
    const Buffer b(*device, 256 * 4, BufferUse::storage, "b");
    const Buffer copied(*device, 256 * 4, BufferUse::storage, "copied");
    Readback readback(*device, 2, 256 * 4);
    Recording recording(*device);
    const size_t first = recording.dispatch(
        {.kernel = cache.get(kFill), .bindings = {{&a}}, .workgroups = {4, 1, 1}, .params = {1}});
    const size_t second = recording.dispatch(
        {.kernel = cache.get(kFill), .bindings = {{&b}}, .workgroups = {4, 1, 1}, .params = {1}});
    recording.copy({&b, 0, 512}, {&copied, 512, 0});
    recording.prepare();
    const ObjectCounts before = device->counts();
    for (uint32_t step = 0; step < 20; ++step) {
      recording.set_param(first, 0, 1000 * step);
      recording.set_params(second, std::vector<uint32_t>{7 + step});
      Commands commands(*device);
      recording.encode(commands);
      const Readback::Read read = commands.read(readback, copied, 512, 512);
      const Readback::Read read_a = commands.read(readback, a, 0, 1024);
      commands.submit();
      std::vector<uint32_t> got(128), got_a(256);
      std::memcpy(got.data(), readback.wait(read).data(), 512);
      std::memcpy(got_a.data(), readback.wait(read_a).data(), 1024);
      for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(got[i], 7 + step + i) << immediates;
      for (uint32_t i = 0; i < 256; ++i) ASSERT_EQ(got_a[i], 1000 * step + i) << immediates;
    }
    EXPECT_EQ(device->counts(), before);
    // Fewer workgroups, and none.
    recording.set_workgroups(first, 0);
    recording.set_workgroups(second, 1);
    recording.set_param(first, 0, 5);
    recording.set_param(second, 0, 500);
    Commands commands(*device);
    recording.encode(commands);
    commands.submit();
    EXPECT_EQ(read_words(*device, a)[0], 19000u);
    EXPECT_EQ(read_words(*device, b)[63], 563u);
    EXPECT_EQ(read_words(*device, b)[64], 26u + 64u);
  }
}

TEST_F(RecordingTest, ParamsMayNotChangeUnderUnsubmittedCommands) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const Buffer a(*device, 256, BufferUse::storage, "a");
  Recording recording(*device);
  recording.dispatch({.kernel = cache.get(kFill), .bindings = {{&a}}, .params = {1}});
  recording.prepare();
  Commands one(*device), two(*device);
  recording.encode(one);
  recording.encode(two);  // unchanged: fine
  recording.set_param(0, 0, 2);
  EXPECT_TRUE(has(error_of([&] { recording.encode(two); }), "not submitted"));
  one.submit();
  two.submit();
  EXPECT_EQ(read_words(*device, a)[0], 1u);
  {
    Commands dropped(*device);
    recording.encode(dropped);
  }
  recording.set_param(0, 0, 3);
  Commands three(*device);
  recording.encode(three);
  three.submit();
  EXPECT_EQ(read_words(*device, a)[0], 3u);
}

TEST_F(RecordingTest, WrongBindingsAreErrorsNamingKernelAndBinding) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const KernelPtr affine =
      cache.get({.label = "affine", .file = "affine.wgsl", .constants = {{"OFFSET", 1u}}});
  const Buffer a(*device, 1024, BufferUse::storage, "a");
  const Buffer b(*device, 1024, BufferUse::storage, "b");
  const Buffer uniform(*device, 16, BufferUse::uniform, "u");
  const auto message = [&](std::vector<Slice> bindings) {
    Recording recording(*device);
    return error_of(
        [&] { recording.dispatch({.kernel = affine, .bindings = std::move(bindings)}); });
  };
  EXPECT_TRUE(has(message({{&a}}), "kernel 'affine': expected 3 bindings, found 1"));
  EXPECT_TRUE(has(message({{&a}, {&a}, {&uniform}}), "of one buffer 'a', which is written"));
  EXPECT_TRUE(has(message({{&a}, {&b, 4}, {&uniform}}), "binding 1 'result': offset 4"));
  EXPECT_TRUE(has(message({{&a, 0, 2048}, {&b}, {&uniform}}), "binding 0 'source'"));
  EXPECT_TRUE(has(message({{&a}, {nullptr}, {&uniform}}), "binding 1 'result': no buffer"));
  EXPECT_TRUE(has(message({{&a}, {&b, 1024}, {&uniform}}), "0 bytes"));
  EXPECT_TRUE(has(message({{&uniform}, {&b}, {&a}}), "kernel 'affine'"));  // usages
  Recording recording(*device);
  const size_t step = recording.dispatch({.kernel = affine, .bindings = {{&a}, {&b}, {&uniform}}});
  EXPECT_TRUE(has(error_of([&] { recording.set_workgroups(step, 65536); }), "65536"));
  EXPECT_TRUE(has(error_of([&] { recording.set_params(step, std::vector<uint32_t>{1}); }),
                  "expected 2 params, found 1"));
  recording.prepare();
  Commands commands(*device);
  recording.encode(commands);
  commands.submit();
  device->wait_idle();
}

TEST_F(RecordingTest, BindingsAboveTheLimitAreErrors) {
  const auto device =
      Device::create({.mask = [](Capabilities& c) { c.max_binding_size = 1 << 20; }});
  PipelineCache cache(*device);
  const Buffer large(*device, (1 << 20) + 256, BufferUse::storage, "large");
  Recording recording(*device);
  EXPECT_TRUE(has(
      error_of([&] { recording.dispatch({.kernel = cache.get(kFill), .bindings = {{&large}}}); }),
      "exceed the binding limit of 1048576 bytes"));
  recording.dispatch({.kernel = cache.get(kFill), .bindings = {{&large, 256, 1 << 20}}});
}

TEST_F(RecordingTest, WrongCopiesAreErrorsAndTheDeviceGoesOn) {
  const auto device = Device::create();
  const Buffer a = buffer_of(*device, {1, 2, 3, 4}, "a");
  const Buffer b = buffer_of(*device, {0, 0}, "b");
  Commands commands(*device);
  EXPECT_TRUE(has(error_of([&] { commands.copy(a, 0, b, 0, 16); }), "outside GPU buffer 'b'"));
  EXPECT_TRUE(has(error_of([&] { commands.copy(a, 12, b, 0, 8); }), "outside GPU buffer 'a'"));
  EXPECT_TRUE(has(error_of([&] { commands.copy(a, 0, a, 8, 4); }), "within one GPU buffer"));
  EXPECT_TRUE(has(error_of([&] { commands.copy(a, 2, b, 0, 4); }), "multiples of 4"));
  EXPECT_TRUE(has(error_of([&] { commands.clear(b, 4, 8); }), "outside"));
  commands.copy(a, 0, b, 0, 0);
  commands.copy(a, 8, b, 0, 8);
  commands.clear(a, 0, 4);
  commands.submit();
  EXPECT_EQ(read_words(*device, b), (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(read_words(*device, a), (std::vector<uint32_t>{0, 2, 3, 4}));
}

TEST_F(RecordingTest, InvalidCommandsAreAnErrorAndNotSubmitted) {
  // A command that the library alone refuses: more workgroups than the device has, behind our back.
  const auto device =
      Device::create({.mask = [](Capabilities& c) { c.max_workgroups = UINT32_MAX; }});
  PipelineCache cache(*device);
  const Buffer value = buffer_of(*device, {1, 2}, "value");
  Recording wide(*device);
  wide.dispatch(
      {.kernel = cache.get(increment(1)), .bindings = {{&value}}, .workgroups = {1u << 20, 1, 1}});
  wide.prepare();
  Commands refused(*device);
  wide.encode(refused);
  EXPECT_TRUE(has(error_of([&] { refused.submit(); }), "invalid GPU commands"));
  EXPECT_EQ(read_words(*device, value), (std::vector<uint32_t>{1, 2}));
}

TEST_F(RecordingTest, ReadbackRingReusesSlotsAndTellsMisuse) {
  const auto device = Device::create();
  const Buffer a = buffer_of(*device, {10, 20, 30, 40}, "a");
  Readback ring(*device, 2, 8);
  Commands one(*device);
  const Readback::Read first = one.read(ring, a, 0, 8);
  EXPECT_TRUE(has(error_of([&] { ring.wait(first); }), "not submitted"));
  EXPECT_TRUE(has(error_of([&] { one.read(ring, a, 0, 16); }), "exceed the slot"));
  EXPECT_TRUE(has(error_of([&] { one.read(ring, a, 2, 4); }), "multiples of 4"));
  const Readback::Read second = one.read(ring, a, 8, 4);
  EXPECT_TRUE(has(error_of([&] { one.read(ring, a, 0, 4); }), "all 2 slots"));
  one.submit();
  uint32_t word = 0;
  std::memcpy(&word, ring.wait(second).data(), 4);
  EXPECT_EQ(word, 30u);
  EXPECT_TRUE(ring.ready(second));
  EXPECT_EQ(ring.wait(first).size(), 8u);
  for (int i = 0; i < 10; ++i) {
    const std::span<const std::byte> bytes = ring.read_now(a, 12, 4);
    std::memcpy(&word, bytes.data(), 4);
    EXPECT_EQ(word, 40u);
  }
  EXPECT_TRUE(has(error_of([&] { ring.wait(first); }), "overwritten"));
  {
    Commands dropped(*device);
    dropped.read(ring, a, 0, 4);
    dropped.read(ring, a, 0, 4);
  }
  EXPECT_EQ(ring.read_now(a, 0, 4).size(), 4u);  // the slots are free again
}

TEST_F(RecordingTest, ProfileCountsEachNamedDispatch) {
  const auto device = Device::create();
  ASSERT_TRUE(device->capabilities().timestamps);
  PipelineCache cache(*device);
  const Buffer a(*device, 1 << 20, BufferUse::storage, "a");
  const Buffer value = buffer_of(*device, {1});
  Recording recording(*device);
  recording.dispatch({.name = "fill all",
                      .kernel = cache.get(kFill),
                      .bindings = {{&a}},
                      .workgroups = {4096, 1, 1}});
  recording.dispatch({.kernel = cache.get(increment(1)), .bindings = {{&value}}});
  recording.dispatch({.kernel = cache.get(increment(1)), .bindings = {{&value}}});
  recording.prepare();
  Profiler profiler(*device);
  for (int i = 0; i < 7; ++i) {
    Commands commands(*device, &profiler);
    recording.encode(commands);
    commands.submit();
  }
  {
    Commands dropped(*device, &profiler);
    recording.encode(dropped);
  }
  const Profiler::Times times = profiler.take();
  const std::vector<Profiler::Row>& rows = times.dispatches;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_GE(rows[0].total_us, rows[1].total_us);
  EXPECT_GT(rows[1].total_us, 0);
  // Which takes longer depends on what else the machine does.
  const size_t fill = rows[0].name == "fill all" ? 0 : 1;
  EXPECT_EQ(rows[fill].name, "fill all");
  EXPECT_EQ(rows[fill].count, 7u);
  EXPECT_EQ(rows[1 - fill].name, "increment 1");
  EXPECT_EQ(rows[1 - fill].count, 14u);
  EXPECT_TRUE(times.submissions.empty());
  EXPECT_TRUE(profiler.take().dispatches.empty());

  for (const char* name : {"first", "second", "second"}) {
    Commands commands(*device, &profiler, name);
    recording.encode(commands);
    commands.clear(a, 0, 4);  // ends a pass
    recording.encode(commands);
    commands.submit();
  }
  const Profiler::Times whole = profiler.take();
  EXPECT_TRUE(whole.dispatches.empty());
  ASSERT_EQ(whole.submissions.size(), 2u);
  const size_t second = whole.submissions[0].name == "second" ? 0 : 1;
  EXPECT_EQ(whole.submissions[second].name, "second");
  EXPECT_EQ(whole.submissions[second].count, 2u);
  EXPECT_EQ(whole.submissions[1 - second].name, "first");
  EXPECT_GT(whole.submissions[1].total_us, 0);

  Profiler short_one(*device, 1);  // one query set: 2048 dispatches
  Commands commands(*device, &short_one);
  for (int i = 0; i < 700; ++i) recording.encode(commands);
  commands.submit();
  EXPECT_EQ(short_one.take().untimed, 52u);
}

TEST_F(RecordingTest, ProfileWithoutTimestampsSaysSo) {
  const auto device = Device::create({.mask = [](Capabilities& c) { c.timestamps = false; }});
  PipelineCache cache(*device);
  const Buffer value = buffer_of(*device, {1});
  Recording recording(*device);
  recording.dispatch({.kernel = cache.get(increment(2)), .bindings = {{&value}}});
  recording.prepare();
  Profiler profiler(*device);
  Commands commands(*device, &profiler);
  recording.encode(commands);
  commands.submit();
  EXPECT_FALSE(profiler.has_timestamps());
  EXPECT_TRUE(profiler.take().dispatches.empty());
  EXPECT_EQ(read_words(*device, value)[0], 5u);
}

}  // namespace
}  // namespace wisp::gpu
