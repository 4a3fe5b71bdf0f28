// Conv, DeltaNet and the gated norm behind them against a layer written in numpy, which starts from
// states that are not empty (tests/data/delta_net).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "backend/cpu/backend.h"
#include "backend/selftest/op_case.h"
#include "formats/safetensors.h"
#include "formats/tensor.h"
#include "gpu_context.h"

namespace wisp::backend::selftest {
namespace {

using Floats = std::vector<float>;

constexpr double kBound = 1e-4;  // of the expected values' root mean square
constexpr uint32_t kTaps = 4;
constexpr uint32_t kFirst = 6;  // position of the columns that go on from the stored states

struct Fixture {
  const char* name;
  uint32_t heads;
  uint32_t key_heads;
  uint32_t key_dim;
  uint32_t value_dim;
  uint32_t slots;

  uint32_t values() const { return heads * value_dim; }
  uint32_t channels() const { return 2 * key_heads * key_dim + values(); }
  uint32_t width() const { return channels() + values() + 2 * heads; }
  uint32_t state() const { return values() * key_dim; }
};

constexpr Fixture kFixtures[] = {
    {"tiny", 4, 2, 16, 16, 1}, {"128", 2, 1, 128, 128, 1}, {"slots", 4, 2, 16, 16, 4}};

class Reference {
 public:
  explicit Reference(const Fixture& fixture)
      : file_(formats::open_safetensors(std::filesystem::path(WISP_SOURCE_DIR) /
                                        "tests/data/delta_net" /
                                        (std::string(fixture.name) + ".safetensors"))),
        channels_(fixture.channels()) {}

  Floats operator[](std::string_view name) const { return formats::tensor_to_f32(find(name)); }

  // The slot of each column, 0 where there is one.
  std::vector<uint32_t> slots(size_t columns) const {
    std::vector<uint32_t> result(columns, 0);
    if (!has("slots_of_column")) return result;
    const auto bytes = find("slots_of_column").data;
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  // The last of the rows, one after each token, that `name` has.
  Floats last(std::string_view name, size_t size) const {
    const Floats all = (*this)[name];
    return {all.end() - static_cast<ptrdiff_t>(size), all.end()};
  }

  // [.., channels, kTaps] as [.., kTaps - 1, channels]: the oldest input is not needed any more.
  Floats inputs(const Floats& ring) const {
    Floats result;
    for (size_t at = 0; at < ring.size(); at += size_t{channels_} * kTaps) {
      for (size_t t = 1; t < kTaps; ++t) {
        for (size_t c = 0; c < channels_; ++c) result.push_back(ring[at + c * kTaps + t]);
      }
    }
    return result;
  }

 private:
  bool has(std::string_view name) const {
    return std::ranges::find(file_.tensors, name, &formats::TensorView::name) !=
           file_.tensors.end();
  }
  const formats::TensorView& find(std::string_view name) const {
    return *std::ranges::find(file_.tensors, name, &formats::TensorView::name);
  }

  formats::MappedTensors file_;
  uint32_t channels_;
};

Floats transposed(const Floats& values, size_t rows, size_t cols) {
  Floats result(values.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) result[c * rows + r] = values[r * cols + c];
  }
  return result;
}

void expect_near(const Floats& found, const Floats& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double squares = 0.0;
  double worst = 0.0;
  for (size_t i = 0; i < found.size(); ++i) {
    squares += double{expected[i]} * expected[i];
    const double error = std::fabs(double{found[i]} - expected[i]);
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  EXPECT_LE(worst, kBound * std::sqrt(squares / static_cast<double>(found.size()))) << what;
}

// The layer behind its projection.
OpCase layer(const Fixture& f, const Reference& reference, plan::KernelClass kernel_class) {
  CaseBuilder b("delta_net_layer", kernel_class, {.max_slots = f.slots});
  const Floats gpar = reference["gpar"];
  Floats rate(gpar.begin(), gpar.begin() + f.heads);
  for (float& v : rate) v = -std::exp(v);
  const plan::ValueId in = b.input("mixed", f.width());
  const plan::Conv conv{.x = in,
                        .out = b.value("conved", f.channels()),
                        .state = b.state((kTaps - 1) * f.channels()),
                        .weight = b.weight("taps", kTaps, f.channels(),
                                           transposed(reference["conv_w"], f.channels(), kTaps)),
                        .activation = plan::Activation::silu};
  b.op(conv);
  const plan::DeltaNet delta{
      .x = conv.out,
      .gates = in,
      .out = b.value("out", f.values()),
      .state = b.state(f.state()),
      .rate = b.weight("rate", 1, f.heads, rate),
      .dt_bias = b.weight("dt_bias", 1, f.heads,
                          Floats(gpar.begin() + f.heads, gpar.begin() + 2 * f.heads)),
      .num_heads = f.heads,
      .num_key_heads = f.key_heads,
      .key_dim = f.key_dim,
      .value_dim = f.value_dim,
      .gates_offset = f.channels() + f.values()};
  b.op(delta);
  const plan::Norm norm{
      .x = delta.out,
      .out = b.value("normed", f.values()),
      .weight = b.weight("norm", 1, f.value_dim, Floats(gpar.begin() + 2 * f.heads, gpar.end())),
      .eps = 1e-6F,
      .group = f.value_dim};
  b.op(norm);
  const plan::Gate gate{.x = norm.out,
                        .gate = in,
                        .out = b.value("core", f.values()),
                        .activation = plan::Activation::silu,
                        .gate_offset = f.channels()};
  b.op(gate);
  b.output(gate.out, kBound);
  return std::move(b.result());
}

using Param = std::tuple<Fixture, plan::KernelClass, bool>;

class DeltaNetLayer : public testing::TestWithParam<Param> {};

TEST_P(DeltaNetLayer, GivesWhatNumpyGives) {
  const auto& [f, kernel_class, gpu] = GetParam();
  const Reference reference(f);
  const OpCase model = layer(f, reference, kernel_class);
  const auto backend = gpu ? make_gpu_backend({.context = shared_context()}) : make_cpu_backend(2);
  LoadOptions options;
  options.resources = model.resources;
  for (const auto& bytes : model.weights) options.weights.push_back({*bytes});
  options.num_pages = model.num_pages;
  options.max_slots = f.slots;
  options.max_pages_per_slot = model.max_pages_per_slot;
  backend->load(std::move(options));
  const PlanHandle plan = backend->prepare(model.plan, model.outputs);

  const auto part = [](const Floats& all, size_t i, size_t size) {
    return Floats(all.begin() + static_cast<ptrdiff_t>(i * size),
                  all.begin() + static_cast<ptrdiff_t>((i + 1) * size));
  };
  const uint32_t ring = (kTaps - 1) * f.channels();
  const Floats rings = reference.inputs(reference["ring_before"]);
  const Floats states = reference["state_before"];
  for (uint32_t slot = 0; slot < f.slots; ++slot) {
    backend->write_state(plan::StateId{0}, slot, part(rings, slot, ring));
    backend->write_state(plan::StateId{1}, slot, part(states, slot, f.state()));
  }

  // Columns of one slot go together.
  const Floats mixed = reference["mixed"];
  const size_t count = mixed.size() / f.width();
  const std::vector<uint32_t> slots = reference.slots(count);
  const Floats core = reference["core"];
  Floats rows;
  Floats expected;
  Step step;
  for (uint32_t slot = 0; slot < f.slots; ++slot) {
    uint32_t position = kFirst;
    for (size_t i = 0; i < count; ++i) {
      if (slots[i] != slot) continue;
      step.columns.push_back({0, position++, slot});
      const Floats row = part(mixed, i, f.width());
      rows.insert(rows.end(), row.begin(), row.end());
      const Floats result = part(core, i, f.values());
      expected.insert(expected.end(), result.begin(), result.end());
    }
  }
  backend->write_value(plan, model.plan.inputs[0], std::as_bytes(std::span(rows)));
  backend->wait(backend->submit(plan, step));
  const auto bytes =
      backend->read_value(plan, model.outputs[0], static_cast<uint32_t>(step.columns.size()));
  Floats found(bytes.size() / sizeof(float));
  std::memcpy(found.data(), bytes.data(), bytes.size());
  expect_near(found, expected, "results");

  const Floats rings_after =
      reference.inputs(reference.last("ring_after", size_t{f.slots} * f.channels() * kTaps));
  const Floats states_after = reference.last("state_after", size_t{f.slots} * f.state());
  for (uint32_t slot = 0; slot < f.slots; ++slot) {
    expect_near(backend->read_state(plan::StateId{0}, slot), part(rings_after, slot, ring),
                "inputs of slot " + std::to_string(slot));
    expect_near(backend->read_state(plan::StateId{1}, slot), part(states_after, slot, f.state()),
                "state of slot " + std::to_string(slot));
  }
}

std::string test_name(const testing::TestParamInfo<Param>& info) {
  const auto& [fixture, kernel_class, gpu] = info.param;
  return std::string(fixture.name) +
         (kernel_class == plan::KernelClass::prefill ? "_prefill" : "_decode") +
         (gpu ? "_webgpu" : "_cpu");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DeltaNetLayer,
                         testing::Combine(testing::ValuesIn(kFixtures),
                                          testing::Values(plan::KernelClass::prefill,
                                                          plan::KernelClass::decode),
                                          testing::Bool()),
                         test_name);

}  // namespace
}  // namespace wisp::backend::selftest
