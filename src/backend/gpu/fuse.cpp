#include "backend/gpu/fuse.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backend/gpu/choose.h"

namespace wisp::backend::webgpu {
namespace {

using plan::ValueId;
using plan::ValueType;

constexpr uint32_t kMaxTileHead = 128;  // larger heads leave too few workgroups
constexpr uint32_t kRopeBindings = 9;   // of a Linear with a RopeKv, without bias and norms

// Whether the op's kernel can write q8 rows.
struct CanQuantize {
  const plan::Plan& plan;
  const plan::Resources& resources;
  plan::KernelClass kernel_class;

  bool operator()(const plan::Norm& op) const { return op.group == plan[op.x].width; }
  bool operator()(const plan::Glu&) const { return true; }
  bool operator()(const plan::Activate&) const { return true; }
  bool operator()(const plan::Gate&) const { return true; }
  bool operator()(const plan::Conv&) const { return true; }
  bool operator()(const plan::Attention& op) const {
    return kernel_class == plan::KernelClass::decode &&
           resources.kv_layers[plan::index(op.kv_layer)].value_dim % 32 == 0;
  }
  template <typename Other>
  bool operator()(const Other&) const {
    return false;
  }
};

void set_out(plan::OpBody& body, ValueId out) {
  std::visit(
      [&](auto& op) {
        if constexpr (requires { op.out; }) op.out = out;
      },
      body);
}

// Whether the op's kernel can write f16 rows.
struct CanNarrow {
  const plan::Resources& resources;
  const gpu::Capabilities& capabilities;

  bool operator()(const plan::Norm& op) const { return op.group % 4 == 0; }
  bool operator()(const plan::Glu&) const { return true; }
  bool operator()(const plan::Activate&) const { return true; }
  bool operator()(const plan::Gate&) const { return true; }
  bool operator()(const plan::Conv&) const { return true; }
  bool operator()(const plan::Attention& op) const {
    return takes_matrices(op, resources, capabilities);
  }
  template <typename Other>
  bool operator()(const Other&) const {
    return false;
  }
};

// What the op reads for matrices alone.
std::optional<ValueId> matrix_input(const plan::Op& op, const plan::Resources& resources,
                                    const gpu::Capabilities& capabilities) {
  if (op.kernel_class != plan::KernelClass::prefill) return {};
  if (const auto* linear = std::get_if<plan::Linear>(&op.body)) {
    if (linear->f16_inputs && linear->x != linear->residual) return linear->x;
  }
  if (const auto* experts = std::get_if<plan::ExpertLinear>(&op.body)) {
    if (takes_matrices(*experts, resources, capabilities)) return experts->x;
  }
  return {};
}

// Makes f16 of the f32 values that CanNarrow ops of the prefill class write and only matrices read.
void narrow(plan::Plan& plan, const plan::Resources& resources,
            const gpu::Capabilities& capabilities, std::span<const ValueId> kept) {
  std::vector<bool> narrow(plan.values.size(), false);
  for (const plan::Op& op : plan.ops) {
    for (const ValueId id : plan::outputs(op.body)) {
      narrow[plan::index(id)] = plan[id].type == ValueType::f32 && plan[id].width % 32 == 0 &&
                                op.kernel_class == plan::KernelClass::prefill &&
                                std::visit(CanNarrow{resources, capabilities}, op.body);
    }
  }
  for (const ValueId id : kept) narrow[plan::index(id)] = false;
  for (const plan::Op& op : plan.ops) {
    const std::optional<ValueId> x = matrix_input(op, resources, capabilities);
    for (const ValueId id : plan::inputs(op.body)) {
      if (id != x) narrow[plan::index(id)] = false;
    }
  }
  for (size_t v = 0; v < narrow.size(); ++v) {
    if (narrow[v]) plan.values[v].type = ValueType::f16;
  }
}

class Fuser {
 public:
  Fuser(const plan::Plan& plan, const plan::Resources& resources,
        const gpu::Capabilities& capabilities, std::span<const DeviceWeight> weights,
        std::span<const ValueId> kept)
      : result_(plan),
        resources_(resources),
        capabilities_(capabilities),
        weights_(weights),
        kept_(kept),
        readers_(plan.values.size(), 0),
        linear_readers_(plan.values.size(), 0),
        eps_(plan.values.size(), 0.0F) {
    for (const plan::Op& op : plan.ops) {
      for (const ValueId id : plan::inputs(op.body)) {
        ++readers_[plan::index(id)];
        if (std::holds_alternative<plan::Linear>(op.body)) ++linear_readers_[plan::index(id)];
      }
    }
  }

  plan::Plan run() && {
    for (plan::Op& op : std::exchange(result_.ops, {})) {
      mark_x(op);
      if (draw_quantize(op) || draw_rope_kv(op)) continue;
      result_.ops.push_back(std::move(op));
    }
    return std::move(result_);
  }

 private:
  bool is_kept(ValueId id) const { return std::ranges::find(kept_, id) != kept_.end(); }
  // Only Linears apply the RMS factor of a norm that was drawn into another.
  bool only_linears(ValueId id) const {
    return linear_readers_[plan::index(id)] == readers_[plan::index(id)];
  }
  bool only_reader(ValueId id) const { return readers_[plan::index(id)] == 1 && !is_kept(id); }

  // A Linear that reads a q8_rms value needs the norm's eps.
  void mark_x(plan::Op& op) const {
    auto* linear = std::get_if<plan::Linear>(&op.body);
    if (linear != nullptr && result_[linear->x].type == ValueType::q8_rms) {
      linear->x_norm_eps = eps_[plan::index(linear->x)];
    }
  }

  // Draws a Quantize into the op before it, and then that one into the op before that.
  bool draw_quantize(const plan::Op& op) {
    const auto* quantize = std::get_if<plan::Quantize>(&op.body);
    if (quantize == nullptr || result_.ops.empty()) return false;
    if (!only_reader(quantize->x)) return draw_beside(op.kernel_class, *quantize);
    plan::Op& before = result_.ops.back();
    const std::vector<ValueId> out = plan::outputs(before.body);
    if (out.size() != 1 || out[0] != quantize->x ||
        !std::visit(CanQuantize{result_, resources_, before.kernel_class}, before.body)) {
      return false;
    }
    set_out(before.body, quantize->out);
    const bool drawn = std::visit([&](const auto& body) { return draw_before(body); }, before.body);
    if (drawn) result_.ops.pop_back();
    return true;
  }

  // Draws a Quantize into a norm that others read too.
  bool draw_beside(plan::KernelClass kernel_class, const plan::Quantize& quantize) {
    for (plan::Op& before : result_.ops) {
      auto* norm = std::get_if<plan::Norm>(&before.body);
      if (norm == nullptr || norm->out != quantize.x || norm->quantized ||
          norm->group != result_[norm->x].width || before.kernel_class != kernel_class) {
        continue;
      }
      norm->quantized = quantize.out;
      return true;
    }
    return false;
  }

  // Draws a RopeKv of rotations and norms of single heads into the Linear before it.
  bool draw_rope_kv(const plan::Op& op) {
    const auto* rope_kv = std::get_if<plan::RopeKv>(&op.body);
    if (rope_kv == nullptr || !only_reader(rope_kv->qkv)) return false;
    const plan::KvLayer& kv = resources_.kv_layers[plan::index(rope_kv->kv_layer)];
    const bool plain = (!rope_kv->q_norm && !rope_kv->k_norm) || norms_of_tiles(*rope_kv);
    const auto fours = [](uint32_t dim) { return dim % 4 == 0; };
    if (!plain || rope_kv->norm.values || rope_kv->clip != 0.0F || rope_kv->query_scale ||
        rope_kv->shared_kv || !rope_kv->rope || !fours(kv.head_dim) || !fours(kv.value_dim) ||
        !fours(resources_.weights[plan::index(*rope_kv->rope)].cols)) {
      return false;
    }
    plan::Linear* linear = linear_of(rope_kv->qkv, 1);
    if (linear == nullptr || linear->residual) return false;
    const uint32_t more = uint32_t{linear->bias.has_value()} + rope_kv->q_norm.has_value() +
                          rope_kv->k_norm.has_value();
    if (kRopeBindings + more > capabilities_.max_storage_buffers) return false;
    linear->rope_kv = *rope_kv;
    linear->out = rope_kv->out;
    return true;
  }

  // Whether a tile of a Linear's rows can hold the heads whose norms are wanted.
  bool norms_of_tiles(const plan::RopeKv& op) const {
    const uint32_t head_dim = resources_.kv_layers[plan::index(op.kv_layer)].head_dim;
    return op.norm.kind == plan::NormKind::rms && !op.norm.all_heads && !op.norm.after_rope &&
           head_dim % 32 == 0 && head_dim <= kMaxTileHead;
  }

  // The Linear `back` ops before the end, if it writes all of `out` in one dispatch of the int8
  // kernel.
  plan::Linear* linear_of(ValueId out, size_t back) {
    if (result_.ops.size() < back) return nullptr;
    auto* linear = std::get_if<plan::Linear>(&result_.ops[result_.ops.size() - back].body);
    if (linear == nullptr || linear->out != out || linear->norm || linear->glu) return nullptr;
    const plan::Weight& weight = resources_.weights[plan::index(linear->weight)];
    const bool fits = plan::is_q8(result_[linear->x].type) && weight.rows == result_[out].width &&
                      weights_[plan::index(linear->weight)].size() == 1;
    return fits ? linear : nullptr;
  }

  // The NormOut of the op `back` ops before the end, if that makes `out` and can have one.
  std::optional<plan::NormOut>* norm_of(ValueId out, size_t back) {
    if (plan::Linear* linear = linear_of(out, back)) return &linear->norm;
    if (result_.ops.size() < back) return nullptr;
    auto* combine = std::get_if<plan::Combine>(&result_.ops[result_.ops.size() - back].body);
    return combine != nullptr && combine->out == out && !combine->norm ? &combine->norm : nullptr;
  }

  bool draw_before(const plan::Norm& op) {
    std::optional<plan::NormOut>* norm = norm_of(op.x, 2);
    if (norm == nullptr || is_kept(op.out) || !only_linears(op.out) ||
        op.kind != plan::NormKind::rms) {
      return false;
    }
    *norm = {.out = op.out, .weight = op.weight, .weight_offset = op.weight_offset};
    result_.values[plan::index(op.out)].type = ValueType::q8_rms;
    eps_[plan::index(op.out)] = op.eps;
    return true;
  }

  bool draw_before(const plan::Glu& op) {
    plan::Linear* linear = linear_of(op.x, 2);
    const bool plain = op.groups == 1 && op.alpha == 1.0F && op.limit == 0.0F &&
                       op.up_offset == 0.0F && !op.cutoff;
    if (linear == nullptr || linear->residual || !only_reader(op.x) || !plain) return false;
    linear->glu = op.activation;
    linear->out = op.out;
    return true;
  }

  template <typename Other>
  bool draw_before(const Other&) {
    return false;
  }

  plan::Plan result_;
  const plan::Resources& resources_;
  const gpu::Capabilities& capabilities_;
  std::span<const DeviceWeight> weights_;
  std::span<const ValueId> kept_;
  std::vector<uint32_t> readers_;         // by value
  std::vector<uint32_t> linear_readers_;  // of them Linears
  std::vector<float> eps_;                // of the norm that made a q8_rms value
};

}  // namespace

plan::Plan fuse(const plan::Plan& plan, const plan::Resources& resources,
                const gpu::Capabilities& capabilities, std::span<const DeviceWeight> weights,
                std::span<const ValueId> kept) {
  plan::Plan result = Fuser(plan, resources, capabilities, weights, kept).run();
  if (has_matrices(capabilities)) narrow(result, resources, capabilities, kept);
  return result;
}

}  // namespace wisp::backend::webgpu
