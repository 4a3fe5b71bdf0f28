#include "gpu/kernel.h"

#include <algorithm>

#include "gpu_fixture.h"

namespace wisp::gpu {
namespace {

using KernelTest = GpuTest;

KernelSpec affine(uint32_t offset) {
  return {.label = "affine", .file = "affine.wgsl", .constants = {{"OFFSET", offset}}};
}

// Runs affine.wgsl over `count` elements; what it gives.
std::vector<uint32_t> run_affine(Device& device, uint32_t count) {
  PipelineCache cache(device);
  std::vector<uint32_t> input(count);
  for (uint32_t i = 0; i < count; ++i) input[i] = i * i;
  const Buffer source = buffer_of(device, input);
  const Buffer result(device, count * 4, BufferUse::storage, "result");
  const Buffer scale(device, 16, BufferUse::uniform, "scale");
  const std::vector<uint32_t> factor{5, 0, 0, 0};
  device.write(scale, 0, std::as_bytes(std::span(factor)));
  Recording recording(device);
  recording.dispatch({.kernel = cache.get(affine(7)),
                      .bindings = {{&source}, {&result}, {&scale}},
                      .workgroups = {(count + 63) / 64, 1, 1},
                      .params = {11, count}});
  recording.prepare();
  Commands commands(device);
  recording.encode(commands);
  commands.submit();
  return read_words(device, result);
}

TEST_F(KernelTest, IncludesConstantsUniformsAndParams) {
  for (bool immediates : {true, false}) {
    const auto device = Device::create(
        {.mask = [&](Capabilities& c) { c.immediates = c.immediates && immediates; }});
    for (uint32_t count : {1u, 64u, 1000u}) {
      const std::vector<uint32_t> result = run_affine(*device, count);
      for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(result[i], 5 * 2 * i * i + 11 + 7) << i;
    }
  }
}

TEST_F(KernelTest, ConstantsKeepTheirValues) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const Buffer result(*device, 24, BufferUse::storage, "result");
  Recording recording(*device);
  recording.dispatch({.kernel = cache.get({.label = "constants",
                                           .file = "constants.wgsl",
                                           .constants = {{"MINUS", -5},
                                                         {"BIG", 4294967295u},
                                                         {"TENTH", 0.1f},
                                                         {"YES", true},
                                                         {"NO", false},
                                                         {"WHOLE", 1e6f},
                                                         {"LEAST", INT32_MIN}}}),
                      .bindings = {{&result}}});
  recording.prepare();
  Commands commands(*device);
  recording.encode(commands);
  commands.submit();
  const std::vector<uint32_t> expected{word(-5), 4294967295u, word(0.1f),
                                       1u,       word(1e6f),  0x80000000u};
  EXPECT_EQ(read_words(*device, result), expected);
}

TEST_F(KernelTest, TextIncludesEachFileOnceAndKnowsItsOrigins) {
  const KernelText text = kernel_text(affine(1), {.max_invocations = 256});
  const size_t first = text.wgsl.find("fn twice");
  EXPECT_EQ(text.wgsl.find("fn twice", first + 1), std::string::npos);
  ASSERT_EQ(text.bindings.size(), 3u);
  EXPECT_EQ(text.bindings[0].access, Access::read);
  EXPECT_EQ(text.bindings[1].access, Access::read_write);
  EXPECT_EQ(text.bindings[2].access, Access::uniform);
  EXPECT_EQ(text.bindings[1].name, "result");
  EXPECT_EQ(text.params_bytes, 8u);
  EXPECT_EQ(static_cast<size_t>(std::count(text.wgsl.begin(), text.wgsl.end(), '\n')),
            text.origins.size());
}

TEST_F(KernelTest, UnrolledLinesRunInOrder) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const KernelSpec spec{.label = "unroll", .file = "unroll.wgsl", .constants = {{"ROWS", 3U}}};
  const Buffer result(*device, 12, BufferUse::storage, "result");
  Recording recording(*device);
  recording.dispatch({.kernel = cache.get(spec), .bindings = {{&result}}});
  recording.prepare();
  Commands commands(*device);
  recording.encode(commands);
  commands.submit();
  EXPECT_EQ(read_words(*device, result), (std::vector<uint32_t>{30, 130, 230}));
}

TEST_F(KernelTest, MaskedCapabilitiesChangeTheText) {
  Capabilities c{.immediates = true, .max_immediate_size = 128, .max_invocations = 256};
  EXPECT_TRUE(has(kernel_text(affine(1), c).wgsl, "var<immediate> params: Params;"));
  c.immediates = false;
  EXPECT_TRUE(has(kernel_text(affine(1), c).wgsl, "@group(1) @binding(0) var<uniform> params"));

  KernelSpec half{.label = "half", .file = "half.wgsl", .uses_f16 = true};
  EXPECT_TRUE(has(error_of([&] { kernel_text(half, c); }), "kernel 'half': needs f16"));
  c.f16 = true;
  EXPECT_TRUE(kernel_text(half, c).wgsl.starts_with("enable f16;"));

  KernelSpec shuffle{.label = "shuffle", .file = "shuffle.wgsl", .uses_subgroups = true};
  EXPECT_TRUE(has(error_of([&] { kernel_text(shuffle, c); }), "needs subgroups"));
  c.subgroups = true;
  c.subgroup_min_size = 16;
  EXPECT_EQ(kernel_text(shuffle, c).wgsl.find("enable subgroups;"), std::string::npos);
  EXPECT_TRUE(has(kernel_text(shuffle, c).wgsl, "const SUBGROUP_MIN_SIZE: u32 = 16u;"));
  c.subgroups_need_enable = true;
  EXPECT_TRUE(kernel_text(shuffle, c).wgsl.starts_with("enable subgroups;"));
}

TEST_F(KernelTest, BindingsAreNumberedInTheOrderOfTheText) {
  const KernelText text =
      kernel_text({.label = "order", .file = "order.wgsl"}, {.max_invocations = 256});
  ASSERT_EQ(text.bindings.size(), 2U);
  EXPECT_EQ(text.bindings[0].name, "b");
  EXPECT_EQ(text.bindings[0].index, 0U);
  EXPECT_EQ(text.bindings[1].name, "a");
  EXPECT_EQ(text.bindings[1].index, 1U);
  EXPECT_TRUE(has(text.wgsl, "@group(0) @binding(0) var<storage, read_write> b: array<u32>;"));
  EXPECT_TRUE(has(text.wgsl, "@group(0) @binding(1) var<storage, read> a: array<u32>;  // why"));
}

TEST_F(KernelTest, MalformedFilesAreErrors) {
  const Capabilities c{.max_invocations = 256};
  const auto message = [&](std::string file) {
    return error_of([&] { kernel_text({.label = "bad", .file = file}, c); });
  };
  EXPECT_TRUE(has(message("bad_group.wgsl"), "bad_group.wgsl:1: bindings are of group 0"));
  EXPECT_TRUE(has(message("bad_split.wgsl"), "@binding(N) must follow"));
  EXPECT_TRUE(has(message("bad_directive.wgsl"), "unknown directive"));
  EXPECT_TRUE(has(message("bad_unroll_end.wgsl"), "bad_unroll_end.wgsl:1: unroll without end"));
  EXPECT_TRUE(has(message("bad_unroll_count.wgsl"), "unroll MANY times: expected a number"));
  EXPECT_TRUE(has(message("bad_params_type.wgsl"), "found 'vec4'"));
  EXPECT_TRUE(has(message("bad_no_struct.wgsl"), "no struct Q"));
  EXPECT_TRUE(has(message("nowhere.wgsl"), "nowhere.wgsl"));
  EXPECT_TRUE(
      has(error_of([&] {
            kernel_text({.label = "wide", .file = "fill.wgsl", .workgroup_size = {512, 1, 1}}, c);
          }),
          "workgroup of 512 invocations"));
}

TEST_F(KernelTest, CompileErrorsNameKernelFileLineAndText) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const std::string missing =
      error_of([&] { cache.get({.label = "my kernel", .file = "broken.wgsl"}); });
  EXPECT_TRUE(has(missing, "kernel 'my kernel': broken.wgsl:6: "));
  EXPECT_TRUE(has(missing, "`result[0] = twice(missing_name);`"));
  EXPECT_EQ(missing.find('\n'), std::string::npos);
  const std::string mistyped =
      error_of([&] { cache.get({.label = "typed", .file = "mistyped.wgsl"}); });
  EXPECT_TRUE(has(mistyped, "kernel 'typed': mistyped.wgsl:4: "));
  EXPECT_EQ(cache.size(), 0u);
  device->check();  // nothing is left behind
  EXPECT_EQ(run_affine(*device, 3).size(), 3u);
}

TEST_F(KernelTest, CacheIsKeyedByTheFinalText) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  const uint64_t before = device->counts().pipelines;
  const KernelPtr one = cache.get(affine(1));
  EXPECT_EQ(cache.get(affine(1)), one);
  KernelSpec renamed = affine(1);
  renamed.label = "another label";
  EXPECT_EQ(cache.get(renamed), one);
  EXPECT_NE(cache.get(affine(2)), one);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(device->counts().pipelines - before, 2u);
}

TEST_F(KernelTest, CompilesInParallel) {
  const auto device = Device::create();
  PipelineCache cache(*device);
  std::vector<KernelSpec> specs;
  for (uint32_t i = 0; i < 24; ++i) {
    specs.push_back({.label = fmt::format("variant {}", i),
                     .file = "increment.wgsl",
                     .constants = {{"VARIANT", i % 12}}});
  }
  const std::vector<KernelPtr> kernels = cache.compile(specs, 4);
  EXPECT_EQ(cache.size(), 12u);
  for (uint32_t i = 0; i < 12; ++i) EXPECT_EQ(kernels[i], kernels[i + 12]);
  // Errors of one thread do not land on another.
  for (uint32_t i = 0; i < 16; i += 2) specs[i] = {.label = "bad", .file = "broken.wgsl"};
  EXPECT_TRUE(has(error_of([&] { cache.compile(specs, 4); }), "kernel 'bad': broken.wgsl:6"));
  for (uint32_t i = 12; i < 24; ++i) specs[i].constants = {{"VARIANT", 100u + i}};
  for (uint32_t round = 0; round < 10; ++round) {
    for (uint32_t i = 1; i < 24; i += 2) specs[i].constants = {{"VARIANT", 1000u * round + i}};
    EXPECT_THROW(cache.compile(specs, 4), Error);
  }
  device->check();
}

TEST_F(KernelTest, SubgroupsAndHalfRun) {
  const auto device = Device::create();
  const Capabilities& c = device->capabilities();
  ASSERT_TRUE(c.subgroups);
  ASSERT_TRUE(c.f16);
  ASSERT_GT(c.subgroup_min_size, 0u);
  PipelineCache cache(*device);
  const Buffer lanes(*device, 32 * 4, BufferUse::storage, "lanes");
  const Buffer six(*device, 4, BufferUse::storage, "six");
  Recording recording(*device);
  recording.dispatch({.kernel = cache.get({.label = "shuffle",
                                           .file = "shuffle.wgsl",
                                           .workgroup_size = {32, 1, 1},
                                           .uses_subgroups = true}),
                      .bindings = {{&lanes}}});
  recording.dispatch({.kernel = cache.get({.label = "half", .file = "half.wgsl", .uses_f16 = true}),
                      .bindings = {{&six}}});
  recording.prepare();
  Commands commands(*device);
  recording.encode(commands);
  commands.submit();
  const std::vector<uint32_t> got = read_words(*device, lanes);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(got[i], ((i % c.subgroup_min_size) ^ 1u) + 100 * c.subgroup_min_size);
  }
  EXPECT_EQ(read_words(*device, six)[0], 6u);
}

TEST(EmbeddedKernels, AreInTheProgram) {
  set_kernel_directory({});
  EXPECT_TRUE(has(kernel_source("device/subgroup_size.wgsl"), "subgroup_size"));
  EXPECT_TRUE(
      has(error_of([] { kernel_source("no/such.wgsl"); }), "no kernel file 'no/such.wgsl'"));
}

}  // namespace
}  // namespace wisp::gpu
