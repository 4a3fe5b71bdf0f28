#include "gpu/kernel.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <thread>

#include "base/error.h"
#include "gpu/provider.h"

namespace wisp::gpu {
namespace {

// Line `number` (from 1) of a text.
std::string_view line_of(std::string_view text, size_t number) {
  size_t at = 0;
  for (size_t i = 1; i < number && at != std::string_view::npos; ++i) {
    at = text.find('\n', at);
    if (at != std::string_view::npos) ++at;
  }
  if (at == std::string_view::npos) return {};
  std::string_view line = text.substr(at, text.find('\n', at) - at);
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

// The library's message with the place in our files: it tells the place as "wgsl:LINE:COLUMN".
std::string explain(const KernelText& text, const std::string& message) {
  // Drawings of the source follow the place; what comes before says what is wrong.
  std::string what = message.substr(0, message.find(": ┌─"));
  const size_t mark = message.find("wgsl:");
  size_t number = 0;
  if (mark != std::string::npos) {
    std::from_chars(message.data() + mark + 5, message.data() + message.size(), number);
  }
  if (number == 0 || number > text.origins.size()) return message;
  const KernelText::Origin& origin = text.origins[number - 1];
  return fmt::format("{}:{}: {}: `{}`", origin.file, origin.line, what, line_of(text.wgsl, number));
}

WGPUBindGroupLayoutEntry entry(const Binding& binding) {
  WGPUBindGroupLayoutEntry out = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
  out.binding = binding.index;
  out.visibility = WGPUShaderStage_Compute;
  switch (binding.access) {
    case Access::read:
      out.buffer.type = WGPUBufferBindingType_ReadOnlyStorage;
      break;
    case Access::read_write:
      out.buffer.type = WGPUBufferBindingType_Storage;
      break;
    case Access::uniform:
      out.buffer.type = WGPUBufferBindingType_Uniform;
      break;
  }
  return out;
}

BindGroupLayoutHandle make_layout(Device& device,
                                  const std::vector<WGPUBindGroupLayoutEntry>& entries) {
  WGPUBindGroupLayoutDescriptor descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  device.count_layout();
  return BindGroupLayoutHandle(wgpuDeviceCreateBindGroupLayout(device.handle(), &descriptor));
}

}  // namespace

PipelineCache::PipelineCache(Device& device) : device_(&device) {}

size_t PipelineCache::size() const {
  const std::scoped_lock lock(mutex_);
  return compiled_.size();
}

KernelPtr PipelineCache::get(const KernelSpec& spec) {
  const KernelText text = kernel_text(spec, device_->capabilities());
  std::promise<KernelPtr> promise;
  {
    std::unique_lock lock(mutex_);
    const auto found = compiled_.find(text.wgsl);
    if (found != compiled_.end()) {
      const std::shared_future<KernelPtr> future = found->second;
      lock.unlock();
      return future.get();
    }
    compiled_.emplace(text.wgsl, promise.get_future().share());
  }
  try {
    KernelPtr kernel = compile_text(spec.label, text);
    promise.set_value(kernel);
    return kernel;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::scoped_lock lock(mutex_);
    compiled_.erase(text.wgsl);
    throw;
  }
}

std::vector<KernelPtr> PipelineCache::compile(std::span<const KernelSpec> specs, size_t threads) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  threads = std::min(threads, specs.size());
  std::vector<KernelPtr> kernels(specs.size());
  std::vector<std::exception_ptr> errors(specs.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < specs.size(); i = next++) {
      try {
        kernels[i] = get(specs[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (size_t i = 1; i < threads; ++i) pool.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return kernels;
}

KernelPtr PipelineCache::compile_text(const std::string& label, const KernelText& text) {
  const Capabilities& capabilities = device_->capabilities();
  const std::string context = fmt::format("kernel '{}'", label);
  const auto storage = std::count_if(text.bindings.begin(), text.bindings.end(),
                                     [](const Binding& b) { return b.access != Access::uniform; });
  if (static_cast<uint64_t>(storage) > capabilities.max_storage_buffers) {
    fail("{}: {} storage bindings; the adapter allows {}", context, storage,
         capabilities.max_storage_buffers);
  }
  auto kernel = std::make_shared<Kernel>();
  kernel->label_ = label;
  kernel->bindings_ = text.bindings;
  kernel->params_bytes_ = text.params_bytes;

  const ErrorScope scope;
  WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
  source.code = view(text.wgsl);
  WGPUShaderModuleDescriptor module_descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  module_descriptor.nextInChain = &source.chain;
  module_descriptor.label = view(label);
  const ShaderModuleHandle module(
      provider::make_module(device_->handle(), module_descriptor, !capabilities.unchecked_shaders));
  if (scope.failed()) fail("{}: {}", context, explain(text, scope.message()));

  std::vector<WGPUBindGroupLayoutEntry> entries;
  for (const Binding& binding : text.bindings) entries.push_back(entry(binding));
  kernel->layout_ = make_layout(*device_, entries);
  std::vector<WGPUBindGroupLayout> layouts{kernel->layout_.get()};
  WGPUPipelineLayoutDescriptor layout = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  if (text.params_bytes > 0 && capabilities.immediates) {
    layout.immediateSize = text.params_bytes;
  } else if (text.params_bytes > 0) {
    WGPUBindGroupLayoutEntry params = entry({0, Access::uniform, "params"});
    params.buffer.hasDynamicOffset = true;
    kernel->params_layout_ = make_layout(*device_, {params});
    layouts.push_back(kernel->params_layout_.get());
  }
  layout.bindGroupLayoutCount = layouts.size();
  layout.bindGroupLayouts = layouts.data();
  const PipelineLayoutHandle pipeline_layout(
      wgpuDeviceCreatePipelineLayout(device_->handle(), &layout));
  device_->count_layout();
  WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  descriptor.label = view(label);
  descriptor.layout = pipeline_layout.get();
  descriptor.compute.module = module.get();
  descriptor.compute.entryPoint = view("main");
  kernel->pipeline_ =
      PipelineHandle(wgpuDeviceCreateComputePipeline(device_->handle(), &descriptor));
  if (scope.failed()) fail("{}: {}", context, explain(text, scope.message()));
  device_->count_pipeline();
  return kernel;
}

}  // namespace wisp::gpu
