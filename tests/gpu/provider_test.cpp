// Misuse that ended the process with another library: with webgpu_rs each is an ordinary error.
#include "gpu/provider.h"

#include <webgpu/wgpu.h>

#include "gpu_fixture.h"

#ifdef WISP_WEBGPU_RS

namespace wisp::gpu {
namespace {

class ProviderTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    device_ = Device::create();
    cache_ = std::make_unique<PipelineCache>(*device_);
  }

  // The message of the error that `body`'s calls report.
  template <typename Body>
  static std::string reported(Body&& body) {
    const ErrorScope scope;
    body();
    EXPECT_TRUE(scope.failed());
    return scope.message();
  }

  WGPUDevice device() { return device_->handle(); }
  WGPUQueue queue() { return device_->queue(); }
  EncoderHandle encoder() {
    return EncoderHandle(wgpuDeviceCreateCommandEncoder(device(), nullptr));
  }
  CommandBufferHandle finish(const EncoderHandle& encoder) {
    return CommandBufferHandle(wgpuCommandEncoderFinish(encoder.get(), nullptr));
  }
  BufferHandle buffer(WGPUBufferUsage usage) {
    WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
    descriptor.usage = usage;
    descriptor.size = 256;
    return BufferHandle(wgpuDeviceCreateBuffer(device(), &descriptor));
  }
  BufferHandle storage() {
    return buffer(WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  }
  BufferHandle mappable() { return buffer(WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst); }
  // The callback's status, 0 when it did not come.
  int map(WGPUBuffer buffer, size_t size, WGPUMapMode mode = WGPUMapMode_Read) {
    int status = 0;
    WGPUBufferMapCallbackInfo info = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
    info.mode = WGPUCallbackMode_AllowSpontaneous;
    info.userdata1 = &status;
    info.callback = [](WGPUMapAsyncStatus s, WGPUStringView, void* user, void*) {
      *static_cast<int*>(user) = s;
    };
    wgpuBufferMapAsync(buffer, mode, 0, size, info);
    for (int i = 0; i < 1000 && !status; ++i) provider::poll(device());
    return status;
  }
  BindGroupHandle group(const Kernel& kernel, WGPUBuffer buffer) {
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.buffer = buffer;
    entry.size = 256;
    WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
    descriptor.layout = kernel.layout();
    descriptor.entryCount = 1;
    descriptor.entries = &entry;
    return BindGroupHandle(wgpuDeviceCreateBindGroup(device(), &descriptor));
  }
  KernelPtr increment() {
    return cache_->get(
        {.label = "increment", .file = "increment.wgsl", .constants = {{"VARIANT", 1u}}});
  }
  // Records one dispatch and submits it.
  void dispatch(const Kernel& kernel, WGPUBindGroup group, uint32_t workgroups) {
    const EncoderHandle encoder = this->encoder();
    {
      const PassHandle pass(wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
      wgpuComputePassEncoderSetPipeline(pass.get(), kernel.pipeline());
      if (group) wgpuComputePassEncoderSetBindGroup(pass.get(), 0, group, 0, nullptr);
      wgpuComputePassEncoderDispatchWorkgroups(pass.get(), workgroups, 1, 1);
      wgpuComputePassEncoderEnd(pass.get());
    }
    submit(finish(encoder));
  }
  void submit(const CommandBufferHandle& commands) {
    const WGPUCommandBuffer raw = commands.get();
    wgpuQueueSubmit(queue(), 1, &raw);
  }
  // That the device still works.
  void TearDown() override {
    device_->check();
    const Buffer words = buffer_of(*device_, {1, 2, 3});
    EXPECT_EQ(read_words(*device_, words), (std::vector<uint32_t>{1, 2, 3}));
    GpuTest::TearDown();
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<PipelineCache> cache_;
};

TEST_F(ProviderTest, InvalidCommandsAreErrorsOfFinishAndSubmit) {
  const BufferHandle one = storage(), two = storage();
  for (const WGPUBuffer target : {two.get(), one.get()}) {
    CommandBufferHandle commands;
    EXPECT_NE(reported([&] {
                const EncoderHandle encoder = this->encoder();
                wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), one.get(), 0, target, 128,
                                                     target == two.get() ? 256 : 64);
                commands = finish(encoder);
              }),
              "");
    EXPECT_NE(reported([&] { submit(commands); }), "");
  }
}

TEST_F(ProviderTest, DispatchesThatCannotRunAreErrors) {
  const KernelPtr kernel = increment();
  const BufferHandle data = storage();
  const BindGroupHandle group = this->group(*kernel, data.get());
  EXPECT_TRUE(has(reported([&] { dispatch(*kernel, group.get(), 1u << 20); }), "65535"));
  EXPECT_NE(reported([&] { dispatch(*kernel, nullptr, 1); }), "");
  const EncoderHandle encoder = this->encoder();
  EXPECT_NE(reported([&] {
              const PassHandle pass(wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
              wgpuComputePassEncoderSetPipeline(pass.get(), kernel->pipeline());
              static const char bytes[4096] = {};
              wgpuComputePassEncoderSetImmediates(pass.get(), 0, bytes, sizeof bytes);
              wgpuComputePassEncoderEnd(pass.get());
              submit(finish(encoder));
            }),
            "");
}

TEST_F(ProviderTest, CommandsAreSubmittedOnce) {
  const CommandBufferHandle commands = finish(encoder());
  submit(commands);
  EXPECT_TRUE(has(reported([&] { submit(commands); }), "submitted before"));
  const EncoderHandle encoder = this->encoder();
  const CommandBufferHandle first = finish(encoder);
  EXPECT_TRUE(has(reported([&] { EXPECT_FALSE(finish(encoder)); }), "finished"));
}

TEST_F(ProviderTest, MisusedMappingsAreErrors) {
  const BufferHandle target = mappable();
  const auto range = [&](size_t offset, size_t size) {
    return wgpuBufferGetConstMappedRange(target.get(), offset, size);
  };
  EXPECT_TRUE(has(reported([&] { EXPECT_EQ(range(0, 256), nullptr); }), "not mapped"));
  EXPECT_TRUE(has(reported([&] { EXPECT_EQ(map(storage().get(), 256), WGPUMapAsyncStatus_Error); }),
                  "usage"));
  EXPECT_NE(reported([&] { EXPECT_EQ(map(target.get(), 260), WGPUMapAsyncStatus_Error); }), "");
  EXPECT_NE(reported([&] { EXPECT_EQ(map(target.get(), 0), WGPUMapAsyncStatus_Error); }), "");
  EXPECT_NE(reported([&] {
              EXPECT_EQ(map(target.get(), 256, WGPUMapMode_Write), WGPUMapAsyncStatus_Error);
            }),
            "");
  EXPECT_EQ(map(target.get(), 256), WGPUMapAsyncStatus_Success);
  EXPECT_TRUE(has(reported([&] { map(target.get(), 256); }), "already mapped"));
  EXPECT_NE(reported([&] { EXPECT_EQ(range(0, 1024), nullptr); }), "");
  EXPECT_NE(range(0, 256), nullptr);
  EXPECT_EQ(static_cast<const char*>(range(16, 8)), static_cast<const char*>(range(0, 8)) + 16);
  const BufferHandle source = storage();
  EXPECT_NE(reported([&] {
              const EncoderHandle encoder = this->encoder();
              wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), source.get(), 0, target.get(), 0,
                                                   256);
              submit(finish(encoder));
            }),
            "");
  wgpuBufferUnmap(target.get());
  wgpuBufferUnmap(target.get());
  EXPECT_EQ(map(target.get(), 256), WGPUMapAsyncStatus_Success);
}

TEST_F(ProviderTest, UnmappingBeforeTheMappingIsDoneCallsBack) {
  const BufferHandle target = mappable();
  int status = 0;
  WGPUBufferMapCallbackInfo info = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  info.mode = WGPUCallbackMode_AllowSpontaneous;
  info.userdata1 = &status;
  info.callback = [](WGPUMapAsyncStatus s, WGPUStringView, void* user, void*) {
    *static_cast<int*>(user) = s;
  };
  wgpuBufferMapAsync(target.get(), WGPUMapMode_Read, 0, 256, info);
  wgpuBufferUnmap(target.get());
  provider::poll(device());
  EXPECT_EQ(status, WGPUMapAsyncStatus_Aborted);
  EXPECT_EQ(map(target.get(), 256), WGPUMapAsyncStatus_Success);
}

TEST_F(ProviderTest, DestroyedBuffersAreErrors) {
  const KernelPtr kernel = increment();
  const BufferHandle data = storage();
  const BindGroupHandle group = this->group(*kernel, data.get());
  wgpuBufferDestroy(data.get());
  EXPECT_NE(reported([&] { dispatch(*kernel, group.get(), 1); }), "");
}

TEST_F(ProviderTest, ObjectsOfAnotherDeviceAreErrors) {
  const auto other = Device::create();
  const KernelPtr kernel = increment();
  const Buffer foreign = buffer_of(*other, {1, 2, 3, 4});
  EXPECT_NE(reported([&] { group(*kernel, foreign.handle()); }), "");
  EXPECT_NE(reported([&] {
              const EncoderHandle encoder(wgpuDeviceCreateCommandEncoder(other->handle(), nullptr));
              submit(finish(encoder));
            }),
            "");
}

TEST_F(ProviderTest, NullHandlesAreErrors) {
  const EncoderHandle encoder = this->encoder();
  const BufferHandle data = storage();
  const WGPUCommandBuffer none = nullptr;
  const auto null = [](auto&& body) { EXPECT_TRUE(has(reported(body), "null")); };
  null([&] { wgpuQueueWriteBuffer(queue(), nullptr, 0, "abcd", 4); });
  null([&] { wgpuQueueWriteBuffer(queue(), data.get(), 0, nullptr, 4); });
  null([&] { wgpuQueueWriteBuffer(nullptr, data.get(), 0, "abcd", 4); });
  null([&] { wgpuQueueSubmit(queue(), 1, &none); });
  null([&] { wgpuQueueSubmit(queue(), 1, nullptr); });
  null([&] { wgpuQueueSubmit(nullptr, 0, nullptr); });
  null([&] { wgpuDevicePoll(nullptr, false, nullptr); });
  null([&] { EXPECT_EQ(wgpuDeviceCreateBuffer(device(), nullptr), nullptr); });
  null([&] { EXPECT_EQ(wgpuDeviceCreateBuffer(nullptr, nullptr), nullptr); });
  null([&] { EXPECT_EQ(wgpuDeviceCreateShaderModule(device(), nullptr), nullptr); });
  null([&] { EXPECT_EQ(wgpuDeviceCreateComputePipeline(device(), nullptr), nullptr); });
  null([&] { EXPECT_EQ(wgpuCommandEncoderFinish(nullptr, nullptr), nullptr); });
  null([&] { wgpuCommandEncoderClearBuffer(encoder.get(), nullptr, 0, 4); });
  null([&] { wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), nullptr, 0, data.get(), 0, 4); });
  null([&] { wgpuCommandEncoderResolveQuerySet(encoder.get(), nullptr, 0, 1, data.get(), 0); });
  null([&] { wgpuComputePassEncoderDispatchWorkgroups(nullptr, 1, 1, 1); });
  null([&] { wgpuBufferUnmap(nullptr); });
  null([&] { wgpuBufferRelease(nullptr); });
  null([&] { wgpuAdapterHasFeature(nullptr, WGPUFeatureName_ShaderF16); });
  null([&] { EXPECT_EQ(map(nullptr, 4), WGPUMapAsyncStatus_Error); });
  const PassHandle pass(wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
  null([&] { wgpuComputePassEncoderSetPipeline(pass.get(), nullptr); });
  wgpuComputePassEncoderEnd(pass.get());
  EXPECT_TRUE(has(reported([&] { wgpuComputePassEncoderEnd(pass.get()); }), "ended"));
}

TEST_F(ProviderTest, AnInvalidPipelineIsAnErrorWhereverItIsUsed) {
  std::string message = reported([&] {
    WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
    source.code = view("this is not WGSL");
    WGPUShaderModuleDescriptor descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
    descriptor.nextInChain = &source.chain;
    const ShaderModuleHandle module(wgpuDeviceCreateShaderModule(device(), &descriptor));
    WGPUComputePipelineDescriptor pipeline = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
    pipeline.compute.module = module.get();
    pipeline.compute.entryPoint = view("main");
    const PipelineHandle bad(wgpuDeviceCreateComputePipeline(device(), &pipeline));
    const EncoderHandle encoder = this->encoder();
    {
      const PassHandle pass(wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
      wgpuComputePassEncoderSetPipeline(pass.get(), bad.get());
      wgpuComputePassEncoderDispatchWorkgroups(pass.get(), 1, 1, 1);
      wgpuComputePassEncoderEnd(pass.get());
    }
    submit(finish(encoder));
  });
  EXPECT_TRUE(has(message, "wgsl:1:1"));
}

TEST_F(ProviderTest, CallsOnALostDeviceAreErrors) {
  const auto lost = Device::create();
  const Buffer data = buffer_of(*lost, {1, 2, 3, 4});
  const EncoderHandle encoder(wgpuDeviceCreateCommandEncoder(lost->handle(), nullptr));
  const CommandBufferHandle finished = finish(encoder);
  const WGPUCommandBuffer commands = finished.get();
  wgpuDeviceDestroy(lost->handle());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(has(reported([&] { wgpuQueueSubmit(lost->queue(), 1, &commands); }), "lost"));
    EXPECT_TRUE(
        has(reported([&] { wgpuQueueWriteBuffer(lost->queue(), data.handle(), 0, "abcd", 4); }),
            "lost"));
    EXPECT_TRUE(
        has(reported([&] { wgpuDeviceCreateCommandEncoder(lost->handle(), nullptr); }), "lost"));
    provider::poll(lost->handle());
    EXPECT_TRUE(lost->lost());
  }
}

TEST_F(ProviderTest, ObjectsMayOutliveTheirDevice) {
  BufferHandle late;
  {
    const auto other = Device::create();
    WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
    descriptor.usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
    descriptor.size = 16;
    late = BufferHandle(wgpuDeviceCreateBuffer(other->handle(), &descriptor));
  }
  // The device's callback is gone: nobody hears of this.
  const ErrorScope scope;
  EXPECT_EQ(wgpuBufferGetConstMappedRange(late.get(), 0, 16), nullptr);
  EXPECT_FALSE(scope.failed());
}

TEST_F(ProviderTest, MatricesComeOnlyWithTheFeature) {
  const bool there = wgpuDeviceHasFeature(
      device(), static_cast<WGPUFeatureName>(WGPUNativeFeature_CooperativeMatrix));
  EXPECT_TRUE(there || device_->capabilities().matrices.empty());
  for (const MatrixConfig& config : device_->capabilities().matrices) {
    EXPECT_EQ(config.m, 16u);
    EXPECT_EQ(config.accumulator, MatrixType::f32);
  }
}

}  // namespace
}  // namespace wisp::gpu

#endif
