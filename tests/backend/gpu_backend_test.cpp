// The WebGPU backend around the ops: steps in flight, fused ops, weights in parts, pages and slots,
// limits and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "backend/cpu/backend.h"
#include "backend/selftest/op_case.h"
#include "base/error.h"
#include "gpu_context.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;
using plan::Rows;
using plan::ValueType;

std::unique_ptr<Backend> shared_backend() {
  return make_gpu_backend({.context = shared_context()});
}

std::unique_ptr<Backend> masked_backend(std::function<void(gpu::Capabilities&)> mask) {
  GpuBackendOptions options;
  options.device.mask = std::move(mask);
  return make_gpu_backend(options);
}

backend::LoadOptions load_options(const OpCase& op_case) {
  backend::LoadOptions options;
  options.resources = op_case.resources;
  for (const auto& bytes : op_case.weights) options.weights.push_back({*bytes});
  options.num_pages = op_case.num_pages;
  options.max_slots = op_case.max_slots;
  options.max_pages_per_slot = op_case.max_pages_per_slot;
  options.num_states = op_case.num_states;
  return options;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A whole small layer and head in the decode class, as models build it.
OpCase small_model(uint32_t max_logits) {
  CaseBuilder b("small_model", KernelClass::decode,
                {.max_columns = 8, .max_logits = max_logits, .max_positions = 320});
  b.result().resources.vocab_size = 97;
  const auto value = [&](const char* name, uint32_t width, ValueType type = ValueType::f32,
                         Rows rows = Rows::columns) { return b.value(name, width, rows, type); };
  const auto linear = [&](plan::ValueId x, plan::WeightId w, plan::ValueId out,
                          std::optional<plan::ValueId> residual = {}) {
    b.op(plan::Linear{.x = x, .weight = w, .out = out, .bias = {}, .residual = residual});
  };
  const auto norm = [&](plan::ValueId x, plan::ValueId out) {
    b.op(plan::Norm{.x = x,
                    .out = out,
                    .weight = b.weight("norm", DType::F32, 1, 64),
                    .eps = 1e-5F,
                    .group = 64});
  };
  const auto quantised = [&](plan::ValueId x) {
    const plan::ValueId out = value("q8", b.result().plan[x].width, ValueType::q8);
    b.op(plan::Quantize{.x = x, .out = out});
    return out;
  };
  const plan::ValueId x = value("x", 64);
  b.op(plan::Embed{.table = b.weight("table", DType::Q8_0, 97, 64), .out = x});
  const plan::ValueId normed = value("normed", 64);
  norm(x, normed);
  const plan::ValueId qkv = value("qkv", 128);
  linear(quantised(normed), b.weight("qkv", DType::Q4_0, 128, 64), qkv);
  const plan::KvLayerId layer = b.kv_layer({1, 32, 32});
  const plan::ValueId q = value("q", 64);
  b.op(plan::RopeKv{.qkv = qkv,
                    .out = q,
                    .kv_layer = layer,
                    .num_heads = 2,
                    .q_norm = {},
                    .k_norm = {},
                    .rope = {},
                    .query_scale = {}});
  const plan::ValueId attended = value("attended", 64);
  b.op(plan::Attention{.q = q, .out = attended, .kv_layer = layer, .num_heads = 2, .scale = 0.17F});
  const plan::ValueId y = value("y", 64);
  linear(quantised(attended), b.weight("o", DType::Q4_1, 64, 64), y, x);
  const plan::ValueId gate_up = value("gate_up", 192);
  linear(y, b.weight("gate_up", DType::F16, 192, 64), gate_up);
  const plan::ValueId gated = value("gated", 96);
  b.op(plan::Glu{.x = gate_up, .out = gated});
  const plan::ValueId z = value("z", 64);
  linear(quantised(gated), b.weight("down", DType::Q8_0, 64, 96), z, y);
  const plan::ValueId selected = value("selected", 64, ValueType::f32, Rows::logits);
  b.op(plan::SelectLogits{.x = z, .out = selected});
  const plan::ValueId last = value("last", 64, ValueType::f32, Rows::logits);
  norm(selected, last);
  const plan::ValueId logits = value("logits", 97, ValueType::f32, Rows::logits);
  linear(last, b.weight("head", DType::Q8_0, 97, 64), logits);
  b.op(plan::Sample{.logits = logits});
  return std::move(b.result());
}

// Steps of one column a slot, chained through the tokens on the device, `in_flight` at a time.
std::vector<int32_t> chain(Backend& backend, PlanHandle plan, int32_t first, uint32_t steps,
                           size_t in_flight, uint32_t pages) {
  std::vector<uint32_t> page_list(pages);
  std::iota(page_list.begin(), page_list.end(), 0U);
  std::vector<backend::Ticket> tickets;
  std::vector<int32_t> tokens;
  const auto take = [&] {
    const backend::StepResult result = backend.wait(tickets.front());
    tickets.erase(tickets.begin());
    tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
  };
  for (uint32_t i = 0; i < steps; ++i) {
    backend::Step step;
    if (i == 0) {
      step.table_updates = {{.slot = 1, .first = 0, .pages = page_list}};
    }
    step.columns = {
        {.token = i == 0 ? std::optional<int32_t>(first) : std::nullopt, .position = i, .slot = 1}};
    step.logit_columns = {0};
    if (tickets.size() == in_flight) take();
    tickets.push_back(backend.submit(plan, step));
  }
  while (!tickets.empty()) take();
  return tokens;
}

TEST(GpuBackend, StoresLatentsOnce) {
  const std::vector<OpCase> cases = op_cases();
  const auto c = std::ranges::find(cases, "latent_tiny_decode_F16", &OpCase::name);
  ASSERT_NE(c, cases.end());
  const auto backend = shared_backend();
  backend->load(load_options(*c));
  // Halves of a latent of 32 and a rotated part of 8.
  EXPECT_EQ(backend->info().kv_bytes, uint64_t{c->num_pages} * plan::kPageTokens * 40 * 2);
}

TEST(GpuBackend, StepsInFlightGiveTheTokensOfStepsOneByOne) {
  const OpCase model = small_model(8);
  std::vector<std::vector<int32_t>> runs;
  for (const size_t in_flight : {size_t{1}, size_t{backend::kMaxStepsInFlight}}) {
    const auto backend = shared_backend();
    backend->load(load_options(model));
    const PlanHandle plan = backend->prepare(model.plan);
    std::vector<int32_t>& run = runs.emplace_back();
    for (const int32_t first : {5, 17, 40, 41, 96}) {
      const auto tokens = chain(*backend, plan, first, 12, in_flight, model.max_pages_per_slot);
      run.insert(run.end(), tokens.begin(), tokens.end());
    }
  }
  EXPECT_EQ(runs[0].size(), 60U);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_GT(std::set<int32_t>(runs[0].begin(), runs[0].end()).size(), 3U);
}

TEST(GpuBackend, StepsMakeNoObjects) {
  const OpCase model = small_model(8);
  const auto backend = shared_backend();
  backend->load(load_options(model));
  const PlanHandle plan = backend->prepare(model.plan);
  const gpu::ObjectCounts before = shared_context()->device->counts();
  chain(*backend, plan, 5, 10, 2, model.max_pages_per_slot);
  EXPECT_EQ(before, shared_context()->device->counts());
}

// Runs `columns` steps of all the slots at once; logits of all rows.
std::vector<float> logits_of(Backend& backend, PlanHandle plan, const OpCase& model,
                             const std::vector<uint32_t>& slots) {
  std::vector<float> all;
  for (uint32_t position = 0; position < 6; ++position) {
    backend::Step step;
    for (uint32_t i = 0; i < slots.size(); ++i) {
      if (position == 0) {
        std::vector<uint32_t> pages(3);
        for (uint32_t p = 0; p < 3; ++p) pages[p] = (slots[i] * 7 + p * 5) % model.num_pages;
        step.table_updates.push_back({slots[i], 0, pages});
      }
      step.columns.push_back({static_cast<int32_t>(i * 11 + position), position, slots[i]});
      step.logit_columns.push_back(i);
    }
    step.read_logits = true;
    const backend::StepResult result = backend.wait(backend.submit(plan, step));
    all.insert(all.end(), result.logits.begin(), result.logits.end());
  }
  return all;
}

TEST(GpuBackend, PassesAndSlotsChangeNoBits) {
  const OpCase model = small_model(8);
  const OpCase passes = small_model(1);
  const auto backend = shared_backend();
  backend->load(load_options(model));
  const PlanHandle whole = backend->prepare(model.plan);
  const PlanHandle in_passes = backend->prepare(passes.plan);
  const std::vector<float> expected = logits_of(*backend, whole, model, {0, 1, 2});
  EXPECT_EQ(to_bytes(logits_of(*backend, in_passes, model, {0, 1, 2})), to_bytes(expected));
  EXPECT_EQ(to_bytes(logits_of(*backend, whole, model, {2, 0, 1})), to_bytes(expected));
}

TEST(GpuBackend, PermutedPagesGiveTheSameBits) {
  for (OpCase op_case : op_cases()) {
    if (op_case.name != "attention_long_decode_F16" &&
        op_case.name != "attention_window_prefill_F32") {
      continue;
    }
    const CaseRun expected = run_case(*shared_backend(), op_case);
    for (CaseStep& step : op_case.steps) {
      for (backend::Column& column : step.step.columns) {
        column.slot = (column.slot + 1) % op_case.max_slots;
      }
      for (backend::TableUpdate& update : step.step.table_updates) {
        update.slot = (update.slot + 1) % op_case.max_slots;
        for (uint32_t& page : update.pages) page = op_case.num_pages - 1 - page;
      }
    }
    EXPECT_EQ(differing_bits(op_case, run_case(*shared_backend(), op_case), expected), "");
  }
}

// Embed and Linear over a matrix of a few hundred rows.
OpCase tall_matrix(DType dtype) {
  CaseBuilder b("tall_matrix", KernelClass::decode, {.max_columns = 3, .max_positions = 16});
  b.result().resources.vocab_size = 301;
  const plan::WeightId w = b.weight("tall", dtype, 301, 256);
  const plan::ValueId x = b.value("x", 256);
  const plan::ValueId out = b.value("out", 301);
  b.op(plan::Embed{.table = w, .out = x});
  b.op(plan::Linear{.x = x, .weight = w, .out = out, .bias = {}, .residual = {}});
  b.output(x, 1e-6);
  b.output(out, 1e-5);
  b.step(b.next_columns(0, 3));
  b.step(b.next_columns(0, 1));
  return std::move(b.result());
}

TEST(GpuBackend, WeightsBeyondABindingAreSplitByRows) {
  for (const DType dtype : {DType::F32, DType::Q4_0}) {
    const OpCase op_case = tall_matrix(dtype);
    const CaseRun whole = run_case(*shared_backend(), op_case);
    const uint64_t limit = dtype == DType::F32 ? 102400 : 20480;
    const auto split =
        masked_backend([limit](gpu::Capabilities& c) { c.max_binding_size = limit; });
    EXPECT_EQ(differing_bits(op_case, run_case(*split, op_case), whole), "");
  }
}

// The matrices of 5 experts, of which parts of the weight hold pieces.
OpCase tall_experts(DType dtype) {
  CaseBuilder b("tall_experts", KernelClass::decode, {.max_columns = 17, .max_positions = 32});
  const plan::Route route{.logits = b.input("logits", 5), .out = b.value("routes", 4), .top_k = 2};
  b.op(route);
  const plan::ValueId x = b.input("x", 256);
  plan::ExpertLinear op{.x = x,
                        .routes = route.out,
                        .weight = b.weight("tall", dtype, 5 * 61, 256),
                        .out = b.value("out", 2 * 61),
                        .num_experts = 5,
                        .top_k = 2,
                        .bias = {}};
  b.op(op);
  b.output(op.out, 1e-5);
  if (dtype != DType::F32) {
    op.x = b.value("q8", 256, Rows::columns, ValueType::q8);
    op.out = b.value("q8_out", 2 * 61);
    b.op(plan::Quantize{.x = x, .out = op.x});
    b.op(op);
    b.output(op.out, 1e-2);
  }
  b.step(b.next_columns(0, 17));
  b.step(b.next_columns(0, 3));
  return std::move(b.result());
}

TEST(GpuBackend, ExpertsBeyondABindingAreSplitByRows) {
  for (const DType dtype : {DType::F32, DType::Q4_0}) {
    const OpCase op_case = tall_experts(dtype);
    const CaseRun whole = run_case(*shared_backend(), op_case);
    const uint64_t limit = dtype == DType::F32 ? 102400 : 20480;
    const auto split =
        masked_backend([limit](gpu::Capabilities& c) { c.max_binding_size = limit; });
    EXPECT_EQ(differing_bits(op_case, run_case(*split, op_case), whole), "");
  }
}

// Numbers of experts must stay valid whatever the logits are: they choose what memory is read.
TEST(Backends, ChooseValidExpertsOfAnyLogits) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto score : {plan::RouterScore::softmax, plan::RouterScore::sigmoid}) {
    for (const uint32_t groups : {1U, 4U}) {
      constexpr uint32_t kExperts = 12;
      CaseBuilder b("not_finite", KernelClass::decode, {.max_columns = 6, .max_positions = 16});
      const plan::Route op{.logits = b.input("logits", kExperts),
                           .out = b.value("routes", 10),
                           .top_k = 5,
                           .score = score,
                           .num_groups = groups,
                           .top_groups = groups == 1 ? 1U : 2U,
                           .group_score = plan::GroupScore::best_two,
                           .normalise = true};
      b.op(op);
      b.output(op.out, 0.0);
      b.step(b.next_columns(0, 6));
      std::vector<float> logits(size_t{6} * kExperts, 0.25F);
      for (size_t e = 0; e < kExperts; ++e) {
        logits[e] = kNan;
        logits[kExperts + e] = -kInfinity;
        logits[2 * kExperts + e] = e % 3 == 0 ? kNan : 1.0F;
        logits[3 * kExperts + e] = e % 2 == 0 ? kInfinity : 1.0F;
        logits[4 * kExperts + e] = e == 7 ? kInfinity : -kInfinity;
        logits[5 * kExperts + e] = e < 10 ? kNan : -kInfinity;
      }
      b.set_input(op.logits, logits);
      for (const bool cpu : {false, true}) {
        const auto backend = cpu ? make_cpu_backend(1) : shared_backend();
        const auto rows = run_case(*backend, b.result())[0].outputs[0];
        const std::vector<double> out = numbers(b.result().plan[op.out], rows);
        for (size_t row = 0; row < 6; ++row) {
          std::set<double> chosen;
          for (size_t s = 0; s < 5; ++s) chosen.insert(out[row * 10 + s]);
          EXPECT_EQ(chosen.size(), 5U) << "row " << row;
          for (const double number : chosen) {
            EXPECT_TRUE(number >= 0 && number < kExperts && number == std::floor(number))
                << "row " << row << ": " << number;
          }
        }
      }
    }
  }
}

TEST(GpuBackend, SaysWhatIsNeededAndWhatThereIs) {
  const OpCase op_case = tall_matrix(DType::F32);
  const auto narrow = masked_backend([](gpu::Capabilities& c) { c.max_binding_size = 512; });
  EXPECT_EQ(error_of([&] { narrow->load(load_options(op_case)); }),
            "weight 'tall': a row needs 1024 bytes; the adapter binds 512");

  OpCase model = small_model(1);
  model.num_pages = 100000;
  const auto budget = make_gpu_backend({.context = shared_context(), .memory_budget = 1 << 20});
  EXPECT_EQ(error_of([&] { budget->load(load_options(model)); }),
            "weights of 0 MiB and a KV cache of 195 MiB need 195 MiB; there are 1 MiB");

  const auto pages = masked_backend([](gpu::Capabilities& c) { c.max_binding_size = 1 << 20; });
  EXPECT_EQ(error_of([&] { pages->load(load_options(model)); }),
            "keys of KV layer 0: 100000 pages need 102400000 bytes; the adapter binds 1048576 "
            "(1024 pages, 16384 positions over all sequences)");

  backend::LoadOptions truncated = load_options(op_case);
  truncated.weights[0] = {truncated.weights[0][0].first(100)};
  EXPECT_EQ(error_of([&] { shared_backend()->load(std::move(truncated)); }),
            "weight 'tall': expected 308224 bytes for F32[301, 256], found 100");
}

TEST(GpuBackend, RefusesHeadsThatAreTooWide) {
  const auto error_with = [](const plan::KvLayer& layer) {
    CaseBuilder b("wide", KernelClass::decode, {});
    b.op(plan::Attention{.q = b.input("q", layer.head_dim),
                         .out = b.value("out", layer.value_dim),
                         .kv_layer = b.kv_layer(layer),
                         .num_heads = 1});
    const auto backend = shared_backend();
    backend->load(load_options(b.result()));
    return error_of([&] { backend->prepare(b.result().plan); });
  };
  EXPECT_NE(error_with({1, 640, 512, true})
                .find("keys of 640 elements are not supported by the "
                      "webgpu backend: expected a multiple of 4 up to 576"),
            std::string::npos);
  EXPECT_NE(error_with({1, 576, 576}).find("values of 576 elements are not supported"),
            std::string::npos);
  EXPECT_NE(error_with({1, 6, 4}).find("keys of 6 elements are not supported"), std::string::npos);
}

TEST(GpuBackend, RefusesWrongSteps) {
  const OpCase model = small_model(8);
  const auto backend = shared_backend();
  backend->load(load_options(model));
  const PlanHandle plan = backend->prepare(model.plan);
  const auto error = [&](const backend::Step& step) {
    return error_of([&] { backend->submit(plan, step); });
  };
  EXPECT_EQ(error({}), "plan decode: 0 columns, expected 1 to 8");
  EXPECT_EQ(error({.columns = {{97, 0, 0}}}), "token 97 is not in the vocabulary of 97");
  EXPECT_EQ(error({.columns = {{0, 320, 0}}}), "position 320: a slot has 320");
  EXPECT_EQ(error({.columns = {{0, 0, 3}}}), "slot 3 of 3");
  EXPECT_EQ(error({.columns = {{0, 0, 0}}, .logit_columns = {1}}),
            "logit columns must rise and be below 1");
  EXPECT_EQ(error({.columns = {{0, 0, 0}}, .table_updates = {{0, 19, {1, 2}}}}),
            "table update: slot 0, pages 19..21: there are 3 slots of 20 pages");
  EXPECT_EQ(error({.columns = {{0, 0, 0}}, .table_updates = {{0, 0, {63}}}}),
            "table update: page 63 of 63");
}

TEST(Backends, RefusePositionsThatTablesLack) {
  CaseBuilder b("positions", KernelClass::decode, {});
  b.result().resources.vocab_size = 8;
  b.op(plan::Embed{.table = b.weight("table", DType::F32, 8, 32),
                   .out = b.value("out", 32),
                   .positions = b.weight("positions", DType::F32, 20, 32)});
  for (const auto& backend : {shared_backend(), make_cpu_backend(1)}) {
    backend->load(load_options(b.result()));
    const PlanHandle plan = backend->prepare(b.result().plan);
    backend->wait(backend->submit(plan, {.columns = {{0, 19, 0}}}));
    EXPECT_EQ(error_of([&] {
                backend->submit(plan, {.columns = {{0, 20, 0}}});
              }),
              "position 20: the model's tables have 20");
  }
}

// A convolution of 4 channels and 3 taps, with a row of states behind two slots.
OpCase conv_model() {
  CaseBuilder b("conv", KernelClass::decode, {.max_slots = 2});
  b.result().num_states = 3;
  b.op(plan::Conv{.x = b.input("x", 4),
                  .out = b.value("out", 4),
                  .state = b.state(8),
                  .weight = b.weight("taps", DType::F32, 3, 4)});
  return b.result();
}

TEST(Backends, RefuseWrongCopiesOfStates) {
  const OpCase model = conv_model();
  for (const auto& backend : {shared_backend(), make_cpu_backend(1)}) {
    backend->load(load_options(model));
    const PlanHandle plan = backend->prepare(model.plan);
    EXPECT_EQ(backend->info().state_bytes, 3U * 8 * 4);
    const auto error = [&](std::vector<StateCopy> copies) {
      return error_of([&] {
        backend->submit(plan, {.columns = {{0, 0, 0}}, .state_copies = std::move(copies)});
      });
    };
    EXPECT_EQ(error({{0, 3}}), "state copy: row 0 to 3 of 3");
    EXPECT_EQ(error({{7, 1}}), "state copy: row 7 to 1 of 3");
    EXPECT_EQ(error({{0, 2}, {1, 2}}), "state copy: row 2 is written twice");
    EXPECT_EQ(error({{0, 1}, {1, 2}}), "state copy: row 1 is read and written");
  }
}

TEST(GpuBackend, RefusesStatesThatDoNotFit) {
  const OpCase model = conv_model();
  const auto narrow = masked_backend([](gpu::Capabilities& c) { c.max_binding_size = 80; });
  EXPECT_EQ(error_of([&] { narrow->load(load_options(model)); }),
            "state 0 of 3 sequences needs 96 bytes; the adapter binds 80 (2 sequences)");
  CaseBuilder b("odd", KernelClass::decode, {});
  b.op(plan::Conv{.x = b.input("x", 6),
                  .out = b.value("out", 6),
                  .state = b.state(12),
                  .weight = b.weight("taps", DType::F32, 3, 6)});
  const auto backend = shared_backend();
  backend->load(load_options(b.result()));
  EXPECT_EQ(error_of([&] { backend->prepare(b.result().plan); }),
            "plan decode: conv op.0: channels 6: the webgpu backend expects a multiple of 4");
}

TEST(GpuBackend, ProfileNamesOps) {
  const OpCase model = small_model(8);
  const auto backend = shared_backend();
  backend->load(load_options(model));
  const PlanHandle plan = backend->prepare(model.plan);
  backend->set_profiling(true);
  chain(*backend, plan, 5, 2, 1, model.max_pages_per_slot);
  const backend::Profile profile = backend->take_profile();
  for (const char* name : {"op.0", "op.8", "attention decode"}) {
    const auto row = std::ranges::find(profile.ops, name, &backend::ProfileRow::name);
    ASSERT_NE(row, profile.ops.end()) << name;
    EXPECT_EQ(row->count, 1U);
    EXPECT_GT(row->total_us, 0.0);
  }
}

// Of a plan's steps every second one is timed as a whole.
TEST(GpuBackend, ProfileTimesWholeStepsAndTheHost) {
  const OpCase model = small_model(8);
  const auto backend = shared_backend();
  backend->load(load_options(model));
  const PlanHandle plan = backend->prepare(model.plan);
  const auto counts = [&](backend::Timed timed) {
    backend->set_profiling(true, timed);
    chain(*backend, plan, 5, 6, 2, model.max_pages_per_slot);
    const backend::Profile profile = backend->take_profile();
    EXPECT_EQ(profile.note, "");
    EXPECT_EQ(profile.ops.empty(), timed == backend::Timed::steps);
    EXPECT_EQ(profile.steps.size(), 1U);
    EXPECT_EQ(profile.host.size(), 1U);
    EXPECT_EQ(profile.steps[0].name, "decode");
    EXPECT_GT(profile.steps[0].total_us, 0.0);
    EXPECT_GT(profile.host[0].total_us, 0.0);
    EXPECT_EQ(profile.steps[0].count, profile.host[0].count);
    return profile.steps[0].count;
  };
  EXPECT_EQ(counts(backend::Timed::ops), 3U);
  EXPECT_EQ(counts(backend::Timed::steps), 6U);
  backend->set_profiling(false);
  chain(*backend, plan, 5, 2, 1, model.max_pages_per_slot);
  EXPECT_TRUE(backend->take_profile().steps.empty());
}

}  // namespace
}  // namespace wisp::backend::selftest
