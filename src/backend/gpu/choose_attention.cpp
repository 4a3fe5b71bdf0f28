// Kernels of RopeKv and Attention.
#include "backend/gpu/choose_common.h"

namespace wisp::backend::webgpu {
namespace {

constexpr uint32_t kMergeInvocations = 256;
constexpr uint32_t kMaxHeadTile = 4;
// Up to so many columns of one range each head has a workgroup: few run, and one head's code is
// short.
constexpr uint32_t kFewColumns = 4;
constexpr uint32_t kMaxWideHeadTile = 8;  // of groups of more than kManyHeads, where memory allows
constexpr uint32_t kManyHeads = 16;
constexpr uint32_t kMaxKeyDim = 576;
constexpr uint32_t kMaxValueDim = 512;
constexpr uint32_t kRegisterHeadDim = 256;  // up to which registers hold all that a lane loads
constexpr uint32_t kMaxRanges = 4096;       // the merge holds a factor of each in workgroup memory

const plan::KvLayer& kv_layer(const ChooseContext& c, plan::KvLayerId id) {
  const plan::KvLayer& kv = c.resources.kv_layers[plan::index(id)];
  const auto expect = [](const char* what, uint32_t dim, uint32_t most) {
    if (dim % 4 == 0 && dim <= most) return;
    fail(
        "{} of {} elements are not supported by the webgpu backend: expected a multiple of 4 up "
        "to {}",
        what, dim, most);
  };
  expect("keys", kv.head_dim, kMaxKeyDim);
  expect("values", kv.value_dim, kMaxValueDim);
  return kv;
}

}  // namespace

void add_kv(KernelUse& use, const ChooseContext& c, plan::KvLayerId id, bool write) {
  const plan::KvLayer& kv = kv_layer(c, id);
  const bool f16 = c.resources.kv_dtype == formats::DType::F16;
  const std::string_view type = f16 ? "f16" : "f32";
  use.spec.includes.push_back(fmt::format("kv/{}_{}.wgsl", write ? "write" : "read", type));
  if (write && !kv.values_in_keys) {
    use.spec.includes.push_back(fmt::format("kv/write_values_{}.wgsl", type));
  }
  auto& constants = use.spec.constants;
  constants.emplace_back("PAGE_STRIDE", c.page_stride);
  constants.emplace_back("KV_HEADS", kv.num_kv_heads);
  constants.emplace_back("HEAD_DIM", kv.head_dim);
  constants.emplace_back("VALUE_DIM", kv.value_dim);
  constants.emplace_back("KEY_STRIDE", kv_stride(kv.head_dim));
  constants.emplace_back("VALUE_STRIDE", kv_stride(kv.values_in_keys ? kv.head_dim : kv.value_dim));
  use.bindings.push_back({"columns", Bound::columns});
  use.bindings.push_back({"block_table", Bound::block_table});
  use.bindings.push_back({"keys", Bound::keys, plan::index(id)});
  use.bindings.push_back(
      {"values", kv.values_in_keys ? Bound::keys : Bound::values, plan::index(id)});
}

void add_rope(KernelUse& use, const ChooseContext& c, const std::optional<plan::WeightId>& rope,
              plan::RopeStyle style) {
  auto& constants = use.spec.constants;
  const uint32_t dim = rope ? weight(c, *rope).cols : 0;
  constants.emplace_back("ROTARY_DIM", dim);
  constants.emplace_back("ROPE_STRIDE", static_cast<uint32_t>(round_up(dim, 4)));
  constants.emplace_back("INTERLEAVED", style == plan::RopeStyle::interleaved);
  use.bindings.push_back(table_binding(c, "rope", rope));
}

void add_head_norms(KernelUse& use, const ChooseContext& c, const plan::RopeKv& op) {
  // From the weights of a head to the next one's.
  const auto stride = [&](const std::optional<plan::WeightId>& id) {
    const uint32_t head_dim = kv_layer(c, op.kv_layer).head_dim;
    return id && weight(c, *id).cols > head_dim ? head_dim : 0U;
  };
  auto& constants = use.spec.constants;
  constants.emplace_back("Q_NORM", op.q_norm.has_value());
  constants.emplace_back("K_NORM", op.k_norm.has_value());
  constants.emplace_back("NORM_EPS", op.norm.eps);
  constants.emplace_back("WEIGHT_OFFSET", op.norm.weight_offset);
  constants.emplace_back("Q_NORM_STRIDE", stride(op.q_norm));
  constants.emplace_back("K_NORM_STRIDE", stride(op.k_norm));
  use.bindings.push_back(table_binding(c, "q_norm", op.q_norm));
  use.bindings.push_back(table_binding(c, "k_norm", op.k_norm));
}

namespace {

// The score's constants.
void add_score(KernelUse& use, const plan::Attention& op) {
  use.spec.constants.emplace_back("SCALE", op.scale);
  use.spec.constants.emplace_back("SOFTCAP", op.softcap);
  use.spec.constants.emplace_back("WINDOW", op.window);
}

// The sinks, for kernels that finish a head's softmax.
void add_sinks(KernelUse& use, const ChooseContext& c, const plan::Attention& op) {
  use.spec.constants.emplace_back("SINKS", op.sinks.has_value());
  use.bindings.push_back(table_binding(c, "sinks", op.sinks));
}

KernelUse attention_base(const plan::Attention& op, const ChooseContext& c) {
  KernelUse use;
  use.spec.constants.emplace_back("LOGIT_ROWS", false);
  use.bindings.push_back({"step_info", Bound::step});
  use.bindings.push_back(value_binding("q", op.q));
  add_kv(use, c, op.kv_layer, false);
  add_score(use, op);
  use.spec.constants.emplace_back("Q_STRIDE", value_stride(c.plan[op.q]));
  use.spec.constants.emplace_back("GROUP_HEADS",
                                  op.num_heads / kv_layer(c, op.kv_layer).num_kv_heads);
  return use;
}

bool is_wide(const plan::KvLayer& kv) {
  return std::max(kv.head_dim, kv.value_dim) > kRegisterHeadDim;
}

// With `one_head` a workgroup has one query head, else several that share a KV head: the same bits.
KernelUse decode(const plan::Attention& op, const ChooseContext& c, bool split, bool one_head) {
  const plan::KvLayer& kv = kv_layer(c, op.kv_layer);
  const uint32_t group = op.num_heads / kv.num_kv_heads;
  const bool wide = is_wide(kv);
  const bool many = wide && group > kManyHeads && has_shuffles(c.capabilities);
  const uint32_t most_heads = many ? kMaxWideHeadTile : kMaxHeadTile;
  const uint32_t head_tiles = one_head ? group : div_up(group, most_heads);
  KernelUse use = attention_base(op, c);
  use.spec.label = split ? "attention decode, ranges" : "attention decode";
  use.spec.file = wide ? "attention/decode_wide.wgsl" : "attention/decode.wgsl";
  use.spec.workgroup_size = {kKeysPerRange, 1, 1};
  add_reduce(use.spec, c.capabilities, 8);
  use.spec.includes.emplace_back(has_shuffles(c.capabilities) ? "lib/scatter_subgroup.wgsl"
                                                              : "lib/scatter_shared.wgsl");
  auto& constants = use.spec.constants;
  const uint32_t head_tile = div_up(group, head_tiles);
  constants.emplace_back("HEAD_TILE", head_tile);
  constants.emplace_back("HEAD_STEP", head_tile % 2 == 0 ? 2U : head_tile);
  constants.emplace_back("HEAD_QUADS", div_up(head_tile, 4));
  constants.emplace_back("HEAD_TILES", head_tiles);
  const uint32_t value_slots = std::bit_ceil(div_up(kv.value_dim, 8));
  const uint32_t key_lanes = kKeysPerRange / value_slots;
  const uint32_t lane_keys = value_slots;
  const uint32_t page_keys = std::min(lane_keys, plan::kPageTokens);
  const uint32_t key_parts = div_up(kv.head_dim, 64);
  const uint32_t queries = head_tile * key_parts * 8;
  constants.emplace_back("KEY_PARTS", key_parts);
  // Wide heads: the sums of lanes, of half of the heads at a time, are there afterwards.
  constants.emplace_back("Q_TILE",
                         wide ? std::max(queries, div_up(head_tile, 2) * kKeysPerRange) : queries);
  constants.emplace_back("OCTETS", kKeysPerRange / 8);
  constants.emplace_back("VALUE_SLOTS", value_slots);
  constants.emplace_back("KEY_LANES", key_lanes);
  constants.emplace_back("LANE_KEYS", lane_keys);
  constants.emplace_back("PAGE_KEYS", page_keys);
  constants.emplace_back("LANE_PAGES", lane_keys / page_keys);
  constants.emplace_back("KEYS_AT_ONCE", std::min(lane_keys, 4U));
  use.grid.x = kv.num_kv_heads * head_tiles;
  if (split) {
    use.spec.includes.emplace_back("attention/split.wgsl");
    constants.emplace_back("HEADS", op.num_heads);
    constants.emplace_back("MAX_RANGES", max_ranges(c.page_stride));
    use.bindings.push_back({"partial_values", Bound::range_values});
    use.bindings.push_back({"partial_stats", Bound::range_stats});
    use.grid.z_is_ranges = true;
    use.when.min_ranges = 2;
  } else {
    add_out(use, c, op.out);
    use.spec.includes.emplace_back("attention/direct.wgsl");
    add_sinks(use, c, op);
    use.when.max_ranges = 1;
  }
  return use;
}

KernelUse merge(const plan::Attention& op, const ChooseContext& c) {
  const plan::KvLayer& kv = kv_layer(c, op.kv_layer);
  KernelUse use;
  use.spec = {.label = "attention decode, merge", .file = "attention/merge.wgsl"};
  use.spec.workgroup_size = {kMergeInvocations, 1, 1};
  add_reduce(use.spec, c.capabilities, team_size(c.capabilities, 32));
  const uint32_t value_slots = std::bit_ceil(kv.value_dim / 4);
  auto& constants = use.spec.constants;
  constants.emplace_back("LOGIT_ROWS", false);
  constants.emplace_back("HEADS", op.num_heads);
  constants.emplace_back("VALUE_DIM", kv.value_dim);
  constants.emplace_back("KEYS_PER_RANGE", kKeysPerRange);
  constants.emplace_back("MAX_RANGES", max_ranges(c.page_stride));
  use.bindings = {{"step_info", Bound::step},
                  {"partial_values", Bound::range_values},
                  {"columns", Bound::columns},
                  {"partial_stats", Bound::range_stats}};
  add_out(use, c, op.out);
  add_score(use, op);
  add_sinks(use, c, op);
  constants.emplace_back("OCTETS", kMergeInvocations / 8);
  constants.emplace_back("VALUE_SLOTS", value_slots);
  constants.emplace_back("RANGE_LANES", kMergeInvocations / value_slots);
  use.grid.x = op.num_heads;
  use.when.min_ranges = 2;
  return use;
}

// Whether attention/prefill_matrix serves a layer.
bool fits_matrix(const plan::KvLayer& kv) {
  const auto fits = [](uint32_t dim) { return dim % 16 == 0 && dim <= 128; };
  return fits(kv.head_dim) && fits(kv.value_dim);
}

// Whether attention/prefill_latent does: it keeps 32 keys, their scores and weights.
bool fits_latent(const plan::KvLayer& kv, const gpu::Capabilities& c) {
  return kv.values_in_keys && kv.head_dim % 32 == 0 && kv.value_dim % 128 == 0 &&
         64 * (kv.head_dim + 8) + 9216 + 2560 <= c.workgroup_memory;
}

void use_matrix(KernelUse& use, const plan::Attention& op, const plan::KvLayer& kv) {
  const uint32_t group = op.num_heads / kv.num_kv_heads;
  const uint32_t head_tile = group % 4 == 0 ? 4 : (group % 2 == 0 ? 2 : 1);
  use.spec.file = "attention/prefill_matrix.wgsl";
  use.spec.workgroup_size = {64 * head_tile, 1, 1};
  use.spec.constants.emplace_back("HEAD_TILE", head_tile);
  use.spec.constants.emplace_back("KEY_TILES", kv.head_dim / 16);
  use.spec.constants.emplace_back("VALUE_TILES", kv.value_dim / 16);
  // Vectors of 8 of a tile of 32 positions that an invocation copies.
  use.spec.constants.emplace_back("KEY_COPIES", div_up(4 * kv.head_dim, 64 * head_tile));
  use.spec.constants.emplace_back("VALUE_COPIES", div_up(4 * kv.value_dim, 64 * head_tile));
  use.grid.x = op.num_heads / head_tile;
}

void use_latent(KernelUse& use, const plan::KvLayer& kv) {
  use.spec.file = "attention/prefill_latent.wgsl";
  use.spec.workgroup_size = {256, 1, 1};
  use.spec.constants.emplace_back("HALF_KEY_TILES", kv.head_dim / 32);
  use.spec.constants.emplace_back("VALUE_TILES", kv.value_dim / 128);  // of a subgroup
  use.spec.constants.emplace_back("KEY_COPIES", div_up(4 * kv.head_dim, 256));
}

KernelUse prefill(const plan::Attention& op, const ChooseContext& c) {
  KernelUse use = attention_base(op, c);
  use.spec.label = "attention prefill";
  use.grid.x = op.num_heads;
  if (takes_matrices(op, c.resources, c.capabilities)) {
    const plan::KvLayer& kv = kv_layer(c, op.kv_layer);
    use.spec.uses_f16 = use.spec.uses_matrix = use.spec.uses_subgroups = true;
    if (fits_matrix(kv)) {
      use_matrix(use, op, kv);
    } else {
      use_latent(use, kv);
    }
    add_out(use, c, op.out);
  } else {
    use.spec.file = "attention/prefill.wgsl";
    use.spec.workgroup_size = {128, 1, 1};
    add_reduce(use.spec, c.capabilities, 8);
    use.spec.constants.emplace_back("OUT_STRIDE4", value_stride(c.plan[op.out]) / 4);
    use.bindings.push_back(value_binding("out", op.out));
  }
  use.bindings.push_back({"tiles", Bound::tiles});
  add_sinks(use, c, op);
  use.grid.y = GridY::tiles;
  return use;
}

}  // namespace

bool takes_matrices(const plan::Attention& op, const plan::Resources& resources,
                    const gpu::Capabilities& capabilities) {
  const plan::KvLayer& kv = resources.kv_layers[plan::index(op.kv_layer)];
  return op.f16_inputs && has_matrices(capabilities) && resources.kv_dtype == formats::DType::F16 &&
         (fits_matrix(kv) || fits_latent(kv, capabilities));
}

uint32_t max_ranges(uint32_t page_stride) {
  return static_cast<uint32_t>(ceil_div(uint64_t{page_stride} * plan::kPageTokens, kKeysPerRange));
}

std::vector<KernelUse> choose_op(const plan::RopeKv& op, plan::KernelClass,
                                 const ChooseContext& c) {
  const plan::KvLayer& kv = kv_layer(c, op.kv_layer);
  KernelUse use;
  use.spec = {.label = "rope_kv", .file = "rope_kv.wgsl"};
  use.spec.workgroup_size = {64, 1, 1};
  use.spec.constants.emplace_back("LOGIT_ROWS", false);
  add_reduce(use.spec, c.capabilities, team_size(c.capabilities, 32));
  use.bindings.push_back({"step_info", Bound::step});
  add_kv(use, c, op.kv_layer, true);
  auto& constants = use.spec.constants;
  constants.emplace_back("HEADS", op.num_heads);
  constants.emplace_back("QKV_STRIDE", value_stride(c.plan[op.qkv]));
  constants.emplace_back("OUT_STRIDE", value_stride(c.plan[op.out]));
  add_head_norms(use, c, op);
  constants.emplace_back("LAYER", op.norm.kind == plan::NormKind::layer);
  constants.emplace_back("ALL_HEADS", op.norm.all_heads);
  constants.emplace_back("AFTER_ROPE", op.norm.after_rope && (op.q_norm || op.k_norm));
  constants.emplace_back("V_NORM", op.norm.values);
  constants.emplace_back("CLIP", op.clip);
  constants.emplace_back("QUERY_SCALE", op.query_scale.has_value());
  constants.emplace_back("QUERY_SCALE_STRIDE", 4U);  // rows of one element take a vector
  use.bindings.push_back(value_binding("out", op.out));
  use.bindings.push_back(value_binding("qkv", op.qkv));
  add_rope(use, c, op.rope, op.style);
  use.bindings.push_back(table_binding(c, "query_scale", op.query_scale));
  use.grid.x = op.num_heads + (op.shared_kv ? 0 : 2 * kv.num_kv_heads);
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::LatentKv& op, plan::KernelClass,
                                 const ChooseContext& c) {
  KernelUse use;
  use.spec = {.label = "latent_kv", .file = "latent_kv.wgsl"};
  use.spec.workgroup_size = {64, 1, 1};
  use.spec.constants.emplace_back("LOGIT_ROWS", false);
  use.bindings.push_back({"step_info", Bound::step});
  add_kv(use, c, op.kv_layer, true);
  auto& constants = use.spec.constants;
  constants.emplace_back("HEADS", op.num_heads);
  constants.emplace_back("OUT_STRIDE", value_stride(c.plan[op.out]));
  constants.emplace_back("Q_LATENT_STRIDE", value_stride(c.plan[op.q_latent]));
  constants.emplace_back("Q_ROPE_STRIDE", value_stride(c.plan[op.q_rope]));
  constants.emplace_back("LATENT_STRIDE", value_stride(c.plan[op.latent]));
  constants.emplace_back("K_ROPE_STRIDE", value_stride(c.plan[op.k_rope]));
  use.bindings.push_back(value_binding("out", op.out));
  use.bindings.push_back(value_binding("q_latent", op.q_latent));
  use.bindings.push_back(value_binding("q_rope", op.q_rope));
  use.bindings.push_back(value_binding("latent", op.latent));
  use.bindings.push_back(value_binding("k_rope", op.k_rope));
  add_rope(use, c, op.rope, op.style);
  use.grid.x = op.num_heads + 1;
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Attention& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c) {
  if (kernel_class == plan::KernelClass::prefill) return {prefill(op, c)};
  std::vector<KernelUse> uses;
  const plan::KvLayer& kv = kv_layer(c, op.kv_layer);
  if (op.num_heads > kv.num_kv_heads && !is_wide(kv)) {
    uses.push_back(decode(op, c, false, true));
    uses.back().when.max_rows = kFewColumns;
    uses.push_back(decode(op, c, false, false));
    uses.back().when.min_rows = kFewColumns + 1;
  } else {
    uses.push_back(decode(op, c, false, false));
  }
  if (max_ranges(c.page_stride) > kMaxRanges) {
    fail("contexts of more than {} positions are not supported by the webgpu backend",
         kMaxRanges * kKeysPerRange);
  }
  if (max_ranges(c.page_stride) > 1) {
    uses.push_back(decode(op, c, true, false));
    uses.push_back(merge(op, c));
  }
  return uses;
}

}  // namespace wisp::backend::webgpu
