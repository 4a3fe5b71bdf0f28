// Attention, also to latents, over pages that are filled first, and RopeKv: many sequences in the
// decode class, one prompt in the prefill class.
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

plan::KvLayer kv_layer(const Sweep::Heads& h) {
  return {h.num_kv_heads, h.dim, h.latent > 0 ? h.latent : h.dim, h.latent > 0};
}

// Adds the op that writes the pages of a layer, and its result.
void add_fill(const Sweep::Heads& h, plan::KvLayerId layer, plan::WeightId rope, plan::Plan& plan) {
  const plan::ValueId q{static_cast<uint32_t>(plan.values.size())};
  const uint32_t heads = h.latent > 0 ? 1 : h.num_heads;
  plan.values.push_back({"q", plan::ValueType::f32, plan::Rows::columns, heads * h.dim});
  if (h.latent == 0) {
    const plan::RopeKv op{.qkv = plan::ValueId{0}, .out = q, .kv_layer = layer, .num_heads = heads};
    plan.ops.push_back({op, KernelClass::prefill, "fill"});
    return;
  }
  const plan::LatentKv op{.q_latent = plan::ValueId{0},
                          .q_rope = plan::ValueId{1},
                          .latent = plan::ValueId{0},
                          .k_rope = plan::ValueId{1},
                          .out = q,
                          .kv_layer = layer,
                          .num_heads = heads,
                          .rope = rope};
  plan.ops.push_back({op, KernelClass::prefill, "fill"});
}

// Writes keys and values of every KV layer.
void add_fill(const Sweep::Heads& h, CaseBuilder& b, LabCase& lab) {
  lab.fill = {.name = "fill", .max_columns = kFillColumns};
  std::vector<uint32_t> widths = {qkv_width(h)};
  plan::WeightId rope{};
  if (h.latent > 0) {
    const uint32_t positions = b.result().max_pages_per_slot * plan::kPageTokens;
    widths = {h.latent, h.dim - h.latent};
    rope = b.weight("fill_rope", DType::F32, positions, widths[1],
                    weight_bytes(DType::F32, positions, widths[1]));
  }
  for (const uint32_t width : widths) {
    const plan::ValueId id{static_cast<uint32_t>(lab.fill.values.size())};
    lab.fill.values.push_back({"in", plan::ValueType::f32, plan::Rows::columns, width});
    lab.fill.inputs.push_back(id);
    lab.fill_inputs.push_back({id, backend::selftest::to_bytes(backend::selftest::random_floats(
                                       b.random(), size_t{kFillColumns} * width))});
  }
  const auto layers = static_cast<uint32_t>(b.result().resources.kv_layers.size());
  for (uint32_t i = 0; i < layers; ++i) add_fill(h, plan::KvLayerId{i}, rope, lab.fill);
}

void add_attentions(const AttentionCase& c, uint32_t ops, CaseBuilder& b) {
  const auto layers = static_cast<uint32_t>(b.result().resources.kv_layers.size());
  const uint32_t width = c.heads.num_heads * kv_layer(c.heads).value_dim;
  const plan::ValueId q = b.input("q", c.heads.num_heads * c.heads.dim, plan::ValueType::f32, 1.7F);
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
    b.kv_layer(kv_layer(c.heads));
  }
  LabCase lab;
  add_fill(c.heads, b, lab);
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
  const plan::KvLayer layer = kv_layer(c.heads);
  const double q_width = c.heads.num_heads * layer.head_dim;
  const double width = c.heads.num_heads * layer.value_dim;
  const double key = 2.0 * static_cast<double>(kv_elements(layer));  // bytes, with its value
  Point point{.columns = c.columns, .depth = fmt::format("{}{}", c.mixed ? "to " : "", c.depth)};
  if (c.rope_kv) {
    point.bytes = c.columns * (4.0 * qkv_width(c.heads) + 4 * q_width + key + 4.0 * c.heads.dim);
  } else {
    // A prompt's columns share the keys. Results are q8 rows or f32.
    point.bytes = (prefill ? most : keys) * key +
                  c.columns * (4 * q_width + width * (prefill || c.exact ? 4 : 1.25));
    point.operations = 2.0 * keys * (q_width + width);
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
       .shape = fmt::format("{}x{}x{}", c.heads.num_heads, c.heads.num_kv_heads, c.heads.dim) +
                (c.heads.latent > 0 ? fmt::format("x{}", c.heads.latent) : ""),
       .kernel_class = c.kernel_class,
       .ops = prefill ? 8U : 32U,
       .weight_bytes = keys * kv_elements(kv_layer(c.heads)) * 2,
       .make = [c](const Copies& copies) { return make(c, copies); }});
}

}  // namespace

void add_attention(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  const bool all = !sweep.columns.empty() && !sweep.depths.empty();
  const std::vector<Sweep::Heads> usual = {{32, 8, 128}, {16, 1, 576, 512}, {128, 1, 576, 512}};
  for (const Sweep::Heads& heads : asked(sweep.heads, usual)) {
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
    if (heads.latent > 0) continue;  // not its pages
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
