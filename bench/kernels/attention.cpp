// Attention over pages that are filled first, and RopeKv: many sequences in the decode class, one
// prompt in the prefill class.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "lab_case.h"

namespace wisp::lab {
namespace {

using backend::selftest::CaseBuilder;
using formats::DType;
using plan::KernelClass;

constexpr uint32_t kContext = 8192;     // positions of a slot, as the engine has by default
constexpr uint64_t kMostKeys = 131072;  // of all columns of a step, unless asked for
// Columns of a step that fills pages, all of one input: no tile or range divides it.
constexpr uint32_t kFillColumns = 1021;

struct AttentionCase {
  bool rope_kv = false;  // instead of attention
  Sweep::Heads heads;
  KernelClass kernel_class = KernelClass::decode;
  bool exact = false;
  uint32_t columns = 1;  // sequences of the decode class, tokens of one in the prefill class
  uint32_t depth = 0;
  bool mixed = false;  // sequences of rising depth up to `depth`
};

// Positions in front of column i.
uint32_t depth_of(const AttentionCase& c, uint32_t i) {
  if (c.kernel_class == KernelClass::prefill) return c.depth + i;
  if (!c.mixed) return c.depth;
  return static_cast<uint32_t>(uint64_t{c.depth} * (i + 1) / c.columns);
}

uint32_t qkv_width(const Sweep::Heads& h) { return (h.num_heads + 2 * h.num_kv_heads) * h.dim; }

// Writes keys and values of every KV layer.
plan::Plan fill_plan(const AttentionCase& c, uint32_t layers) {
  plan::Plan plan{.name = "fill", .max_columns = kFillColumns};
  plan.values.push_back({"qkv", plan::ValueType::f32, plan::Rows::columns, qkv_width(c.heads)});
  plan.inputs = {plan::ValueId{0}};
  for (uint32_t i = 0; i < layers; ++i) {
    plan.values.push_back(
        {"q", plan::ValueType::f32, plan::Rows::columns, c.heads.num_heads * c.heads.dim});
    const plan::RopeKv rope{.qkv = plan::ValueId{0},
                            .out = plan::ValueId{i + 1},
                            .kv_layer = plan::KvLayerId{i},
                            .num_heads = c.heads.num_heads};
    plan.ops.push_back({rope, KernelClass::prefill, "fill"});
  }
  return plan;
}

void add_attentions(const AttentionCase& c, uint32_t ops, CaseBuilder& b) {
  const auto layers = static_cast<uint32_t>(b.result().resources.kv_layers.size());
  const uint32_t width = c.heads.num_heads * c.heads.dim;
  const plan::ValueId q = b.input("q", width, plan::ValueType::f32, 1.7F);
  for (uint32_t i = 0; i < ops; ++i) {
    plan::Attention op{.q = q,
                       .out = b.value("out", width),
                       .kv_layer = plan::KvLayerId{i % layers},
                       .num_heads = c.heads.num_heads};
    op.scale = 1.0F / std::sqrt(static_cast<float>(c.heads.dim));
    op.f16_inputs = c.kernel_class == KernelClass::prefill && !c.exact;
    b.op(op);
    plan::ValueId out = op.out;
    // As in models: the projection that follows takes int8 blocks.
    if (c.kernel_class == KernelClass::decode && !c.exact && width % 32 == 0) {
      out = b.value("q8", width, plan::Rows::columns, plan::ValueType::q8);
      b.op(plan::Quantize{.x = op.out, .out = out});
    }
    b.output(out, op.f16_inputs ? 3e-3 : 1e-3);
  }
}

void add_ropes(const AttentionCase& c, uint32_t ops, CaseBuilder& b) {
  const auto layers = static_cast<uint32_t>(b.result().resources.kv_layers.size());
  const uint32_t positions = b.result().max_pages_per_slot * plan::kPageTokens;
  const plan::ValueId qkv = b.input("qkv", qkv_width(c.heads));
  const plan::WeightId table = b.weight("rope", DType::F32, positions, c.heads.dim,
                                        weight_bytes(DType::F32, positions, c.heads.dim));
  for (uint32_t i = 0; i < ops; ++i) {
    const plan::RopeKv op{.qkv = qkv,
                          .out = b.value("q", c.heads.num_heads * c.heads.dim),
                          .kv_layer = plan::KvLayerId{i % layers},
                          .num_heads = c.heads.num_heads,
                          .rope = table};
    b.op(op);
    b.output(op.out, 1e-6);
  }
}

LabCase make(const AttentionCase& c, const Copies& copies) {
  const bool prefill = c.kernel_class == KernelClass::prefill;
  const uint32_t slots = prefill ? 1 : c.columns;
  std::vector<uint32_t> filled;  // by slot: tokens, the columns' own included
  uint32_t pages = 1;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    filled.push_back(depth_of(c, prefill ? c.columns - 1 : slot) + 1);
    pages += static_cast<uint32_t>(ceil_div(filled.back(), plan::kPageTokens));
  }
  const uint32_t most = *std::ranges::max_element(filled);
  CaseBuilder b("attention", c.kernel_class,
                {.max_columns = c.columns,
                 .max_slots = slots,
                 .max_positions = static_cast<uint32_t>(round_up(most, kContext)),
                 .num_pages = pages});
  for (uint32_t i = 0; i < copies.weights; ++i) {
    b.kv_layer({c.heads.num_kv_heads, c.heads.dim, c.heads.dim});
  }
  LabCase lab;
  lab.fill = fill_plan(c, copies.weights);
  lab.fill_input = {plan::ValueId{0}, backend::selftest::to_bytes(backend::selftest::random_floats(
                                          b.random(), size_t{kFillColumns} * qkv_width(c.heads)))};
  for (uint32_t slot = 0; slot < slots; ++slot) {
    for (uint32_t done = 0; done < filled[slot]; done += kFillColumns) {
      b.step(b.next_columns(slot, std::min(kFillColumns, filled[slot] - done)));
    }
  }
  for (auto& step : b.result().steps) lab.fill_steps.push_back(std::move(step.step));
  b.result().steps.clear();

  if (c.rope_kv) {
    add_ropes(c, copies.ops, b);
  } else {
    add_attentions(c, copies.ops, b);
  }
  std::vector<backend::Column> columns;
  double keys = 0;
  for (uint32_t i = 0; i < c.columns; ++i) {
    columns.push_back({.token = 0, .position = depth_of(c, i), .slot = prefill ? 0 : i});
    keys += depth_of(c, i) + 1;
  }
  b.step(std::move(columns));
  const double width = c.heads.num_heads * c.heads.dim;
  const double key = c.heads.num_kv_heads * c.heads.dim * 4;  // bytes, with its value
  Point point{.columns = c.columns, .depth = fmt::format("{}{}", c.mixed ? "to " : "", c.depth)};
  if (c.rope_kv) {
    point.bytes = c.columns * (4.0 * qkv_width(c.heads) + 4 * width + key + 4.0 * c.heads.dim);
  } else {
    // A prompt's columns share the keys. Results are q8 rows or f32.
    point.bytes =
        (prefill ? most : keys) * key + c.columns * width * (prefill || c.exact ? 8 : 5.25);
    point.operations = 4.0 * keys * width;
  }
  lab.points.push_back(std::move(point));
  lab.op_case = std::move(b.result());
  return lab;
}

// `all`: what is asked for by name, however large.
void add(const AttentionCase& c, bool all, std::vector<CaseSpec>& specs) {
  uint64_t keys = 0;
  for (uint32_t i = 0; i < c.columns; ++i) keys += depth_of(c, i) + 1;
  const bool prefill = c.kernel_class == KernelClass::prefill;
  if (!all && !prefill && keys > kMostKeys + c.columns) return;
  if (prefill) keys = uint64_t{c.depth} + c.columns;
  specs.push_back(
      {.op = c.rope_kv ? "rope_kv" : "attention",
       .type = "F16",
       .shape = fmt::format("{}x{}x{}", c.heads.num_heads, c.heads.num_kv_heads, c.heads.dim),
       .kernel_class = c.kernel_class,
       .ops = prefill ? 8U : 32U,
       .weight_bytes = keys * c.heads.num_kv_heads * c.heads.dim * 4,
       .make = [c](const Copies& copies) { return make(c, copies); }});
}

}  // namespace

void add_attention(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  const bool all = !sweep.columns.empty() && !sweep.depths.empty();
  for (const Sweep::Heads& heads : asked(sweep.heads, {{32, 8, 128}})) {
    for (const uint32_t k : asked(sweep.columns, {1, 4, 16, 64})) {
      if (!sweep.decode) break;
      AttentionCase c{.heads = heads, .exact = sweep.exact, .columns = k};
      for (const uint32_t depth : asked(sweep.depths, {0, 512, 2048, 8191, 16384, 32768})) {
        c.depth = depth;
        add(c, all, specs);
      }
      c.mixed = true;
      c.depth = sweep.depths.empty() ? 4096 : *std::ranges::max_element(sweep.depths);
      if (k > 1) add(c, all, specs);
    }
    for (const uint32_t k : asked(sweep.columns, {64, 512, 2048})) {
      if (!sweep.prefill) break;
      AttentionCase c{.heads = heads, .kernel_class = KernelClass::prefill, .exact = sweep.exact};
      c.columns = k;
      for (const uint32_t depth : asked(sweep.depths, {0, 4096})) {
        c.depth = depth;
        add(c, all, specs);
      }
    }
  }
}

void add_rope_kv(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const Sweep::Heads& heads : asked(sweep.heads, {{32, 8, 128}})) {
    AttentionCase c{.rope_kv = true, .heads = heads, .depth = 100};
    for (const uint32_t k : asked(sweep.columns, {1, 16, 64})) {
      c.columns = k;
      if (sweep.decode) add(c, true, specs);
    }
    c.kernel_class = KernelClass::prefill;
    for (const uint32_t k : asked(sweep.columns, {512, 2048})) {
      c.columns = k;
      if (sweep.prefill) add(c, true, specs);
    }
  }
}

}  // namespace wisp::lab
