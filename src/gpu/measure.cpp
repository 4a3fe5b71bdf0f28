#include "gpu/measure.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "gpu/buffer.h"
#include "gpu/kernel.h"
#include "gpu/recording.h"

namespace wisp::gpu {
namespace {

// Runs one workgroup of the kernel over `data`, in place.
template <size_t N>
void run(Device& device, const KernelSpec& spec, std::array<uint32_t, N>& data) {
  PipelineCache cache(device);
  const KernelPtr kernel = cache.get(spec);
  const Buffer buffer(device, sizeof data, BufferUse::storage, "measure");
  device.write(buffer, 0, std::as_bytes(std::span(data)));
  Recording recording(device);
  recording.dispatch({.kernel = kernel, .bindings = {{.buffer = &buffer}}});
  recording.prepare();
  Commands commands(device);
  recording.encode(commands);
  commands.submit();
  const std::vector<std::byte> bytes = device.read(buffer, 0, sizeof data);
  std::memcpy(data.data(), bytes.data(), sizeof data);
}

// Runs `body`; an Error switches `feature` off.
template <typename Body>
void attempt(bool& feature, std::string_view name, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    log(LogLevel::info, "no {}: {}", name, error.what());
    feature = false;
  }
}

void measure_packed_dot(Device& device, Capabilities& capabilities) {
  capabilities.packed_dot = true;
  attempt(capabilities.packed_dot, "packed dot products", [&] {
    std::array<uint32_t, 3> data{0x7f'80'ff'01u, 0x80'80'01'ffu, 0};
    run(device,
        {.label = "packed_dot", .file = "device/packed_dot.wgsl", .workgroup_size = {1, 1, 1}},
        data);
    const int32_t expected = 127 * -128 + -128 * -128 + -1 * 1 + 1 * -1;
    if (static_cast<int32_t>(data[2]) != expected) {
      fail("dot4I8Packed gave {} for {}", static_cast<int32_t>(data[2]), expected);
    }
  });
}

// Widens the sizes that the adapter tells: other kernels may get any of those.
void measure_subgroups(Device& device, Capabilities& capabilities) {
  uint32_t least = capabilities.subgroup_min_size > 0 ? capabilities.subgroup_min_size : UINT32_MAX;
  uint32_t greatest = capabilities.subgroup_max_size;
  capabilities.subgroup_min_size = capabilities.subgroup_max_size = 0;
  if (!capabilities.subgroups) return;
  attempt(capabilities.subgroups, "subgroups", [&] {
    for (uint32_t size : {32u, 64u, 128u, 256u}) {
      std::array<uint32_t, 2> sizes{UINT32_MAX, 0};
      run(device,
          {.label = "subgroup_size",
           .file = "device/subgroup_size.wgsl",
           .workgroup_size = {size, 1, 1},
           .uses_subgroups = true},
          sizes);
      least = std::min(least, sizes[0]);
      greatest = std::max(greatest, sizes[1]);
    }
    if (least == 0 || greatest > 128) fail("sizes {} to {}", least, greatest);
    capabilities.subgroup_min_size = least;
    capabilities.subgroup_max_size = greatest;
  });
}

// Keeps those of the shapes the library names that a kernel gave right results for.
void measure_matrices(Device& device, Capabilities& capabilities) {
  constexpr MatrixConfig kConfig{16, 16, 16, MatrixType::f16, MatrixType::f32};
  bool there = capabilities.has_matrix(kConfig);
  if (there) capabilities.matrices = {kConfig};
  attempt(there, "16 x 16 x 16 matrices", [&] {
    if (!there) return;
    constexpr size_t kSize = 16;
    // What the kernel computes: A by rows, B and C by columns.
    const auto value = [](size_t i, int step, int period) {
      return static_cast<int>(i) * step % period - period / 2;
    };
    std::array<uint32_t, kSize * kSize> data{};
    // All of a subgroup must take part.
    const uint32_t threads = std::max(32u, capabilities.subgroup_max_size);
    run(device,
        {.label = "matrix",
         .file = "device/matrix_f16_f32.wgsl",
         .workgroup_size = {threads, 1, 1},
         .uses_f16 = true,
         .uses_matrix = true},
        data);
    for (size_t column = 0; column < kSize; ++column) {
      for (size_t row = 0; row < kSize; ++row) {
        int expected = value(column * kSize + row, 3, 17);
        for (size_t k = 0; k < kSize; ++k) {
          expected += value(row * kSize + k, 7, 13) * value(column * kSize + k, 5, 11);
        }
        const auto found = std::bit_cast<float>(data[column * kSize + row]);
        if (found != static_cast<float>(expected)) {
          fail("element {}, {} is {}, not {}", row, column, found, expected);
        }
      }
    }
  });
  if (!there) capabilities.matrices.clear();
}

}  // namespace

void measure_capabilities(Device& device, Capabilities& capabilities) {
  measure_packed_dot(device, capabilities);
  measure_subgroups(device, capabilities);
  measure_matrices(device, capabilities);
}

}  // namespace wisp::gpu
