// The rules of op.h, checked before a backend sees a plan.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "plan/plan.h"

namespace wisp::plan {
namespace {

// State while walking the ops in order.
class Verifier {
 public:
  Verifier(const Plan& plan, const Resources& resources) : plan_(plan), resources_(resources) {
    defined_.resize(plan.values.size(), false);
    writers_end_.resize(plan.values.size(), 0);
  }

  void run() {
    if (plan_.max_columns == 0) fail("max_columns is 0");
    for (const ValueId id : plan_.inputs) {
      check_id(id);
      defined_[index(id)] = true;
      writers_end_[index(id)] = (*this)[id].width;
    }
    for (const Op& op : plan_.ops) {
      with_context(fmt::format("{} {}", op_kind(op.body), op.name), [&] {
        check_uses(op.body);
        std::visit([&](const auto& body) { check_op(body); }, op.body);
        define_outputs(op.body);
      });
    }
  }

 private:
  const Value& operator[](ValueId id) const { return plan_.values[index(id)]; }

  const Weight& weight(WeightId id) const {
    if (index(id) >= resources_.weights.size()) fail("weight {} does not exist", index(id));
    return resources_.weights[index(id)];
  }

  const KvLayer& kv_layer(KvLayerId id) const {
    if (index(id) >= resources_.kv_layers.size()) fail("KV layer {} does not exist", index(id));
    return resources_.kv_layers[index(id)];
  }

  // Of an op before select_logits, the only one of the plan that has it.
  void expect_state(StateId id, uint64_t width) {
    if (index(id) >= resources_.states.size()) fail("state {} does not exist", index(id));
    const uint32_t found = resources_.states[index(id)].width;
    if (found != width) fail("state {} has width {}, expected {}", index(id), found, width);
    if (head_) fail("a state after select_logits");
    if (!states_.insert(id).second) fail("state {} belongs to another op", index(id));
  }

  void check_id(ValueId id) const {
    if (index(id) >= plan_.values.size()) fail("value {} does not exist", index(id));
    const Value& value = (*this)[id];
    if (value.width == 0) fail("value {} has width 0", index(id));
    if (value.type == ValueType::q8 && value.width % 32 != 0) {
      fail("q8 value {}: width {} is not a multiple of 32", index(id), value.width);
    }
  }

  void check_uses(const OpBody& body) {
    const std::vector<ValueId> ins = inputs(body);
    for (const ValueId id : ins) {
      check_id(id);
      if (!defined_[index(id)]) fail("value {} is used before it is defined", index(id));
      if (writers_end_[index(id)] != (*this)[id].width) {
        fail("value {} is used while only {} of {} elements are written", index(id),
             writers_end_[index(id)], (*this)[id].width);
      }
      if (head_ && (*this)[id].rows != Rows::logits) fail("value {} has no logit rows", index(id));
    }
    for (const ValueId id : outputs(body)) {
      check_id(id);
      for (const ValueId in : ins) {
        if (in == id) fail("value {} is both input and output", index(id));
      }
      const bool wants_logits = head_ || std::holds_alternative<SelectLogits>(body);
      if ((*this)[id].rows != (wants_logits ? Rows::logits : Rows::columns)) {
        fail("value {} has the wrong kind of rows", index(id));
      }
    }
    for (const WeightId id : weights(body)) weight(id);
  }

  void define_outputs(const OpBody& body) {
    for (const ValueId id : outputs(body)) {
      const auto* linear = std::get_if<Linear>(&body);
      const uint32_t begin = linear != nullptr ? linear->out_offset : 0;
      const uint32_t end =
          linear != nullptr ? begin + weight(linear->weight).rows : (*this)[id].width;
      if (writers_end_[index(id)] != begin) {
        fail("value {} is written from {} on, expected from {}", index(id), begin,
             writers_end_[index(id)]);
      }
      defined_[index(id)] = true;
      writers_end_[index(id)] = end;
    }
    if (std::holds_alternative<SelectLogits>(body)) {
      if (plan_.max_logits == 0) fail("max_logits is 0");
      if (head_) fail("only one select_logits is allowed");
      head_ = true;
    }
  }

  void expect_f32(ValueId id) const {
    if ((*this)[id].type != ValueType::f32) fail("value {} is q8, expected f32", index(id));
  }

  void expect_width(ValueId id, uint64_t width) const {
    if ((*this)[id].width != width) {
      fail("value {} has width {}, expected {}", index(id), (*this)[id].width, width);
    }
  }

  void expect_vector(const std::optional<WeightId>& id, uint32_t size,
                     std::string_view what) const {
    if (!id) return;
    const Weight& w = weight(*id);
    if (w.dtype != formats::DType::F32 || w.rows != 1 || w.cols != size) {
      fail("{}: {} is {}[{}, {}], expected F32[1, {}]", what, w.name, formats::dtype_name(w.dtype),
           w.rows, w.cols, size);
    }
  }

  // A vector for each group, or one for all.
  void expect_groups(const std::optional<WeightId>& id, uint32_t group, uint32_t width,
                     std::string_view what) const {
    if (id) expect_vector(id, weight(*id).cols == width ? width : group, what);
  }

  static void expect_eps(float eps) {
    if (!(eps >= 0.0F)) fail("eps is {}", eps);
  }

  static void expect_finite(float number, std::string_view what) {
    if (!std::isfinite(number)) fail("{} is {}", what, number);
  }

  void check_op(const Embed& op) const {
    const Weight& table = weight(op.table);
    expect_f32(op.out);
    expect_width(op.out, table.cols);
    expect_finite(op.scale, "scale");
    if (table.rows != resources_.vocab_size) {
      fail("{} has {} rows, expected the vocabulary's {}", table.name, table.rows,
           resources_.vocab_size);
    }
    if (op.positions) {
      const Weight& positions = weight(*op.positions);
      if (positions.dtype != formats::DType::F32 || positions.cols != table.cols) {
        fail("{} is {}[{}, {}], expected F32 rows of {}", positions.name,
             formats::dtype_name(positions.dtype), positions.rows, positions.cols, table.cols);
      }
    }
  }

  void check_op(const Norm& op) const {
    expect_f32(op.x);
    expect_f32(op.out);
    expect_width(op.out, (*this)[op.x].width);
    if (op.group == 0 || (*this)[op.x].width % op.group != 0) {
      fail("group {} does not divide the width {}", op.group, (*this)[op.x].width);
    }
    expect_groups(op.weight, op.group, (*this)[op.x].width, "weight");
    expect_groups(op.bias, op.group, (*this)[op.x].width, "bias");
    if (op.bias && op.kind != NormKind::layer) fail("a bias with a root mean square norm");
    if (op.bias && op.weight && weight(*op.bias).cols != weight(*op.weight).cols) {
      fail("{} weights and {} biases", weight(*op.weight).cols, weight(*op.bias).cols);
    }
    expect_eps(op.eps);
    if (op.quantized) fail("ops are drawn into it");
  }

  void check_op(const Add& op) const {
    for (const ValueId id : {op.a, op.b, op.out}) expect_f32(id);
    if ((*this)[op.a].width % (*this)[op.b].width != 0) expect_width(op.b, (*this)[op.a].width);
    expect_width(op.out, (*this)[op.a].width);
    expect_finite(op.scale, "scale");
    expect_finite(op.out_scale, "out_scale");
  }

  void check_op(const Quantize& op) const {
    expect_f32(op.x);
    expect_width(op.out, (*this)[op.x].width);
    if ((*this)[op.out].type != ValueType::q8) fail("value {} is not q8", index(op.out));
  }

  void check_op(const Linear& op) const {
    const Weight& w = weight(op.weight);
    check_matrix(op.x, w, op.f16_inputs);
    expect_width(op.x, w.cols);
    expect_f32(op.out);
    if (uint64_t{op.out_offset} + w.rows > (*this)[op.out].width) {
      fail("rows {}..{} do not fit in value {} of width {}", op.out_offset,
           uint64_t{op.out_offset} + w.rows, index(op.out), (*this)[op.out].width);
    }
    expect_vector(op.bias, w.rows, "bias");
    if (op.residual) {
      expect_f32(*op.residual);
      expect_width(*op.residual, w.rows);
    }
    expect_finite(op.scale, "scale");
    if (op.x_norm_eps || op.norm || op.glu || op.rope_kv) fail("ops are drawn into it");
  }

  void check_op(const RopeKv& op) const {
    const KvLayer& kv = kv_layer(op.kv_layer);
    expect_f32(op.qkv);
    expect_f32(op.out);
    expect_heads(op.num_heads, kv);
    if (kv.values_in_keys && !op.shared_kv) fail("its KV layer has no values of its own");
    expect_width(op.out, uint64_t{op.num_heads} * kv.head_dim);
    const uint64_t kv_width = uint64_t{kv.num_kv_heads} * (kv.head_dim + kv.value_dim);
    const uint32_t q_width = op.num_heads * kv.head_dim;
    expect_width(op.qkv, q_width + (op.shared_kv ? 0 : kv_width));
    if (op.shared_kv && op.k_norm) fail("k_norm without keys");
    const uint32_t k_width = kv.num_kv_heads * kv.head_dim;
    expect_groups(op.q_norm, op.norm.all_heads ? q_width : kv.head_dim, q_width, "q_norm");
    expect_groups(op.k_norm, op.norm.all_heads ? k_width : kv.head_dim, k_width, "k_norm");
    if (op.q_norm || op.k_norm || op.norm.values) expect_eps(op.norm.eps);
    if (op.norm.values && op.norm.kind != NormKind::rms) fail("values have no layer norm");
    if (!(op.clip >= 0.0F)) fail("clip is {}", op.clip);
    if (op.rope) check_rope(weight(*op.rope), kv.head_dim);
    if (op.query_scale && weight(*op.query_scale).cols != 1)
      fail("query_scale has more than one column");
  }

  static void check_rope(const Weight& rope, uint32_t head_dim) {
    if (rope.dtype != formats::DType::F32 || rope.cols == 0 || rope.cols % 2 != 0 ||
        rope.cols > head_dim) {
      fail("rope table {} has {} columns, expected an even number up to {}", rope.name, rope.cols,
           head_dim);
    }
  }

  void check_op(const LatentKv& op) const {
    const KvLayer& kv = kv_layer(op.kv_layer);
    for (const ValueId id : {op.q_latent, op.q_rope, op.latent, op.k_rope, op.out}) expect_f32(id);
    expect_heads(op.num_heads, kv);
    check_rope(weight(op.rope), kv.head_dim);
    const uint32_t rotary_dim = weight(op.rope).cols;
    if (kv.num_kv_heads != 1 || kv.head_dim != kv.value_dim + rotary_dim) {
      fail("{} KV heads of {} and {}, expected one with keys {} longer than values",
           kv.num_kv_heads, kv.head_dim, kv.value_dim, rotary_dim);
    }
    if (!kv.values_in_keys) fail("its KV layer has values of its own");
    expect_width(op.q_latent, uint64_t{op.num_heads} * kv.value_dim);
    expect_width(op.q_rope, uint64_t{op.num_heads} * rotary_dim);
    expect_width(op.latent, kv.value_dim);
    expect_width(op.k_rope, rotary_dim);
    expect_width(op.out, uint64_t{op.num_heads} * kv.head_dim);
  }

  void check_op(const Attention& op) const {
    const KvLayer& kv = kv_layer(op.kv_layer);
    expect_f32(op.q);
    expect_f32(op.out);
    expect_heads(op.num_heads, kv);
    expect_width(op.q, uint64_t{op.num_heads} * kv.head_dim);
    expect_width(op.out, uint64_t{op.num_heads} * kv.value_dim);
    expect_finite(op.scale, "scale");
    expect_vector(op.sinks, op.num_heads, "sinks");
    if (!(op.softcap >= 0.0F)) fail("softcap is {}", op.softcap);
  }

  static void expect_heads(uint32_t num_heads, const KvLayer& kv) {
    if (num_heads == 0 || kv.num_kv_heads == 0 || num_heads % kv.num_kv_heads != 0) {
      fail("{} heads over {} KV heads", num_heads, kv.num_kv_heads);
    }
    if (kv.head_dim == 0 || kv.head_dim % 2 != 0 || kv.value_dim == 0 || kv.value_dim % 2 != 0) {
      fail("head sizes {} and {}: expected even numbers", kv.head_dim, kv.value_dim);
    }
    if (kv.values_in_keys && kv.value_dim > kv.head_dim) {
      fail("values of {} in keys of {}", kv.value_dim, kv.head_dim);
    }
  }

  void check_op(const Glu& op) const {
    expect_f32(op.x);
    expect_f32(op.out);
    expect_width(op.x, uint64_t{2} * (*this)[op.out].width);
    if (op.groups == 0 || (*this)[op.out].width % op.groups != 0) {
      fail("{} groups do not divide the width {}", op.groups, (*this)[op.out].width);
    }
    expect_finite(op.alpha, "alpha");
    expect_finite(op.up_offset, "up_offset");
    if (!(op.limit >= 0.0F)) fail("limit is {}", op.limit);
    if (op.cutoff) expect_finite(*op.cutoff, "cutoff");
  }

  // How many streams there are.
  uint64_t check_streams(ValueId first, ValueId rest) const {
    expect_f32(first);
    expect_f32(rest);
    const uint32_t width = (*this)[first].width;
    if ((*this)[rest].width % width != 0) {
      fail("value {} of width {} is not of streams of {}", index(rest), (*this)[rest].width, width);
    }
    return 1 + (*this)[rest].width / width;
  }

  void check_op(const StreamMatch& op) const {
    check_streams(op.first, op.rest);
    expect_f32(op.out);
    expect_width(op.out, (*this)[op.mean ? op.first : op.rest].width);
    if (!(op.floor >= 0.0F)) fail("floor is {}", op.floor);
  }

  void check_op(const StreamPredict& op) const {
    const uint64_t count = check_streams(op.first, op.rest);
    expect_width(op.coefs, count * count);
    for (const ValueId id : {op.coefs, op.out, op.out_rest}) expect_f32(id);
    expect_width(op.out, (*this)[op.first].width);
    expect_width(op.out_rest, (*this)[op.rest].width);
  }

  void check_op(const StreamCorrect& op) const {
    expect_width(op.coefs, check_streams(op.first, op.rest));
    for (const ValueId id : {op.y, op.coefs, op.out, op.out_rest, op.scaled}) expect_f32(id);
    for (const ValueId id : {op.y, op.out, op.scaled}) expect_width(id, (*this)[op.first].width);
    expect_width(op.out_rest, (*this)[op.rest].width);
    expect_vector(op.scale, (*this)[op.first].width, "scale");
  }

  void check_op(const Gate& op) const {
    for (const ValueId id : {op.x, op.gate, op.out}) expect_f32(id);
    const uint32_t width = (*this)[op.out].width;
    if ((*this)[op.gate].width != 1) expect_part(op.gate, op.gate_offset, width);
    expect_part(op.x, op.x_offset, width);
  }

  void check_op(const Route& op) const {
    const uint32_t experts = (*this)[op.logits].width;
    expect_f32(op.logits);
    expect_f32(op.out);
    expect_width(op.out, uint64_t{2} * op.top_k);
    expect_vector(op.bias, experts, "bias");
    expect_vector(op.expert_scales, experts, "expert_scales");
    expect_finite(op.scale, "scale");
    if (op.num_groups == 0 || experts % op.num_groups != 0) {
      fail("{} groups of {} experts", op.num_groups, experts);
    }
    if (op.top_groups == 0 || op.top_groups > op.num_groups) {
      fail("top_groups is {}, of {} groups", op.top_groups, op.num_groups);
    }
    const uint64_t choice = uint64_t{experts / op.num_groups} * op.top_groups;
    if (op.top_k == 0 || op.top_k > choice) fail("top_k is {}, of {} experts", op.top_k, choice);
  }

  void check_op(const ExpertLinear& op) const {
    const Weight& w = weight(op.weight);
    check_matrix(op.x, w, op.f16_inputs);
    expect_f32(op.out);
    if (op.num_experts == 0 || w.rows % op.num_experts != 0) {
      fail("{} has {} rows for {} experts", w.name, w.rows, op.num_experts);
    }
    if (op.routes) {
      expect_routes(*op.routes, op.top_k);
    } else if (op.top_k != op.num_experts) {
      fail("{} parts for {} matrices", op.top_k, op.num_experts);
    }
    if ((*this)[op.x].width != w.cols) expect_width(op.x, uint64_t{op.top_k} * w.cols);
    expect_width(op.out, uint64_t{op.top_k} * (w.rows / op.num_experts));
    expect_vector(op.bias, w.rows, "bias");
  }

  void check_op(const Combine& op) const {
    const uint32_t top_k = (*this)[op.routes].width / 2;
    expect_f32(op.x);
    expect_f32(op.out);
    expect_routes(op.routes, top_k);
    expect_width(op.x, uint64_t{top_k} * (*this)[op.out].width);
    if (op.residual) {
      expect_f32(*op.residual);
      expect_width(*op.residual, (*this)[op.out].width);
    }
    expect_finite(op.scale, "scale");
    if (op.norm) fail("ops are drawn into it");
  }

  void check_op(const Conv& op) {
    expect_f32(op.x);
    expect_f32(op.out);
    const uint32_t channels = (*this)[op.out].width;
    const Weight& w = weight(op.weight);
    if (w.dtype != formats::DType::F32 || w.cols != channels || w.rows < 2 || w.rows > kMaxTaps) {
      fail("{} is {}[{}, {}], expected F32[2 to {}, {}]", w.name, formats::dtype_name(w.dtype),
           w.rows, w.cols, kMaxTaps, channels);
    }
    expect_vector(op.bias, channels, "bias");
    expect_state(op.state, uint64_t{w.rows - 1} * channels);
    expect_part(op.x, op.x_offset, channels);
    if (op.in_gate) expect_part(op.x, *op.in_gate, channels);
    if (op.out_gate) expect_part(op.x, *op.out_gate, channels);
  }

  void check_op(const DeltaNet& op) {
    expect_f32(op.x);
    expect_f32(op.gates);
    expect_f32(op.out);
    if (op.num_key_heads == 0 || op.num_heads == 0 || op.num_heads % op.num_key_heads != 0) {
      fail("{} heads with {} key heads", op.num_heads, op.num_key_heads);
    }
    for (const uint32_t dim : {op.key_dim, op.value_dim}) {
      if (dim == 0 || dim > kMaxDeltaDim) {
        fail("heads of {} x {}, expected up to {}", op.key_dim, op.value_dim, kMaxDeltaDim);
      }
    }
    const uint64_t values = uint64_t{op.num_heads} * op.value_dim;
    expect_width(op.x, uint64_t{2} * op.num_key_heads * op.key_dim + values);
    expect_width(op.out, values);
    expect_part(op.gates, op.gates_offset, uint64_t{2} * op.num_heads);
    expect_vector(op.rate, op.num_heads, "rate");
    expect_vector(op.dt_bias, op.num_heads, "dt_bias");
    expect_state(op.state, values * op.key_dim);
  }

  void check_op(const Scan& op) {
    for (const ValueId id : {op.x, op.dt, op.bc, op.out}) expect_f32(id);
    const uint32_t channels = (*this)[op.out].width;
    if (op.num_heads == 0 || channels % op.num_heads != 0) {
      fail("{} channels of {} heads", channels, op.num_heads);
    }
    if (op.num_groups == 0 || op.num_heads % op.num_groups != 0) {
      fail("{} heads of {} groups", op.num_heads, op.num_groups);
    }
    if (op.state_size == 0 || op.state_size > kMaxScanState) {
      fail("state_size is {}, expected 1 to {}", op.state_size, kMaxScanState);
    }
    if (!(op.dt_min <= op.dt_max)) fail("dt from {} to {}", op.dt_min, op.dt_max);
    const uint64_t group = uint64_t{op.num_groups} * op.state_size;
    expect_part(op.x, 0, channels);
    expect_part(op.dt, op.dt_offset, op.num_heads);
    expect_part(op.bc, op.b_offset, group);
    expect_part(op.bc, op.c_offset, group);
    const Weight& rate = weight(op.rate);
    if (rate.dtype != formats::DType::F32 || rate.rows != op.num_heads ||
        (rate.cols != 1 && rate.cols != op.state_size)) {
      fail("{} is {}[{}, {}], expected F32[{}, 1 or {}]", rate.name,
           formats::dtype_name(rate.dtype), rate.rows, rate.cols, op.num_heads, op.state_size);
    }
    expect_vector(op.dt_bias, op.num_heads, "dt_bias");
    expect_vector(op.skip, op.num_heads, "skip");
    expect_state(op.state, uint64_t{channels} * op.state_size);
  }

  void check_op(const Wkv& op) {
    for (const ValueId id : {op.k, op.v, op.out}) expect_f32(id);
    const uint32_t channels = (*this)[op.out].width;
    expect_width(op.k, channels);
    expect_width(op.v, channels);
    expect_vector(op.rate, channels, "rate");
    expect_vector(op.first, channels, "first");
    expect_state(op.state, uint64_t{3} * channels);
  }

  // Elements of a row from `offset` on.
  void expect_part(ValueId id, uint32_t offset, uint64_t width) const {
    if (uint64_t{offset} + width > (*this)[id].width) {
      fail("value {} has width {}: elements {} to {} are not there", index(id), (*this)[id].width,
           offset, uint64_t{offset} + width);
    }
  }

  void expect_routes(ValueId id, uint32_t top_k) const {
    expect_f32(id);
    if (top_k == 0) fail("top_k is 0");
    expect_width(id, uint64_t{2} * top_k);
  }

  // Inputs of a matrix: f32, or q8 where its type has integer products.
  void check_matrix(ValueId x, const Weight& w, bool f16_inputs) const {
    if (!formats::dtype_info(w.dtype).is_weight) {
      fail("{} has type {}, which is no weight type", w.name, formats::dtype_name(w.dtype));
    }
    if ((*this)[x].type != ValueType::q8) return;
    if (!formats::is_block_type(w.dtype)) {
      fail("{} has type {}: q8 inputs need block-quantised weights", w.name,
           formats::dtype_name(w.dtype));
    }
    if (f16_inputs) fail("f16_inputs with q8 inputs");
  }

  void check_op(const Activate& op) const { check_elements(op.x, op.out); }

  void check_op(const Softcap& op) const {
    check_elements(op.x, op.out);
    if (!(op.cap > 0.0F) || !std::isfinite(op.cap)) fail("cap is {}", op.cap);
  }

  void check_elements(ValueId x, ValueId out) const {
    expect_f32(x);
    expect_f32(out);
    expect_width(out, (*this)[x].width);
  }

  void check_op(const SelectLogits& op) const {
    expect_f32(op.x);
    expect_f32(op.out);
    expect_width(op.out, (*this)[op.x].width);
  }

  void check_op(const Sample& op) const {
    expect_f32(op.logits);
    expect_width(op.logits, resources_.vocab_size);
    if (!head_) fail("sample before select_logits");
  }

  const Plan& plan_;
  const Resources& resources_;
  std::set<StateId> states_;  // of the ops so far
  std::vector<bool> defined_;
  std::vector<uint32_t> writers_end_;  // elements of a row written so far
  bool head_ = false;                  // after select_logits
};

}  // namespace

void verify(const Plan& plan, const Resources& resources) {
  with_context(fmt::format("plan {}", plan.name), [&] { Verifier(plan, resources).run(); });
}

uint32_t num_positions(const Plan& plan, const Resources& resources) {
  uint32_t count = UINT32_MAX;
  const auto limit = [&](const std::optional<WeightId>& table) {
    if (table) count = std::min(count, resources.weights[index(*table)].rows);
  };
  for (const Op& op : plan.ops) {
    if (const auto* embed = std::get_if<Embed>(&op.body)) limit(embed->positions);
    if (const auto* rope = std::get_if<RopeKv>(&op.body)) {
      limit(rope->rope);
      limit(rope->query_scale);
    }
    if (const auto* latent = std::get_if<LatentKv>(&op.body)) limit(latent->rope);
  }
  return count;
}

}  // namespace wisp::plan
