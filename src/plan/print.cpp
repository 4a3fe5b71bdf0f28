#include <array>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"

namespace wisp::plan {
namespace {

constexpr std::array<std::string_view, 6> kActivations = {"silu", "gelu_tanh",    "gelu_erf",
                                                          "relu", "relu_squared", "sigmoid"};

constexpr std::array<std::string_view, 2> kNormKinds = {"rms", "layer"};

// Writes the arguments of one op.
struct Printer {
  const Plan& plan;
  const Resources& resources;
  std::string text;

  void value(ValueId id) { text += fmt::format(" %{}", index(id)); }

  void weight(std::string_view label, WeightId id) {
    const Weight& w = resources.weights[index(id)];
    text += fmt::format(" {}{}:{}[{}, {}]", label, w.name, formats::dtype_name(w.dtype), w.rows,
                        w.cols);
  }
  void weight(std::string_view label, const std::optional<WeightId>& id) {
    if (id) weight(label, *id);
  }

  // Prints a number only where it says something.
  template <typename T>
  void number(std::string_view label, T number, T usual) {
    if (number != usual) text += fmt::format(" {}={}", label, number);
  }

  void operator()(const Embed& op) {
    weight("", op.table);
    number("scale", op.scale, 1.0F);
    weight("positions=", op.positions);
  }
  void operator()(const Norm& op) {
    value(op.x);
    text += fmt::format(" {}", kNormKinds[static_cast<size_t>(op.kind)]);
    weight("", op.weight);
    weight("bias=", op.bias);
    number("eps", op.eps, 0.0F);
    number("weight_offset", op.weight_offset, 0.0F);
    number("group", op.group, plan[op.x].width);
  }
  void operator()(const Add& op) {
    value(op.a);
    value(op.b);
    number("scale", op.scale, 1.0F);
    number("out_scale", op.out_scale, 1.0F);
  }
  void operator()(const Quantize& op) { value(op.x); }
  void operator()(const Linear& op) {
    value(op.x);
    weight("", op.weight);
    weight("bias=", op.bias);
    if (op.residual) text += fmt::format(" residual=%{}", index(*op.residual));
    number("scale", op.scale, 1.0F);
    number("out_offset", op.out_offset, 0U);
    if (op.f16_inputs) text += " f16_inputs";
  }
  void operator()(const RopeKv& op) {
    value(op.qkv);
    kv(op.kv_layer, op.num_heads);
    weight("q_norm=", op.q_norm);
    weight("k_norm=", op.k_norm);
    weight("rope=", op.rope);
    weight("query_scale=", op.query_scale);
    if (op.q_norm || op.k_norm || op.norm.values) {
      text += fmt::format(" {}", kNormKinds[static_cast<size_t>(op.norm.kind)]);
      number("eps", op.norm.eps, 0.0F);
      number("weight_offset", op.norm.weight_offset, 0.0F);
      if (op.norm.all_heads) text += " all_heads";
      if (op.norm.after_rope) text += " after_rope";
      if (op.norm.values) text += " values";
    }
    number("clip", op.clip, 0.0F);
    if (op.rope && op.style == RopeStyle::interleaved) text += " interleaved";
    if (op.shared_kv) text += " shared_kv";
  }
  void operator()(const LatentKv& op) {
    value(op.q_latent);
    value(op.q_rope);
    value(op.latent);
    value(op.k_rope);
    kv(op.kv_layer, op.num_heads);
    weight("rope=", op.rope);
    if (op.style == RopeStyle::interleaved) text += " interleaved";
  }
  void operator()(const Attention& op) {
    value(op.q);
    kv(op.kv_layer, op.num_heads);
    weight("sinks=", op.sinks);
    text += fmt::format(" scale={}", op.scale);
    number("softcap", op.softcap, 0.0F);
    number("window", op.window, 0U);
    if (op.f16_inputs) text += " f16_inputs";
  }
  void operator()(const Glu& op) {
    value(op.x);
    text += fmt::format(" {}", kActivations[static_cast<size_t>(op.activation)]);
    number("groups", op.groups, 1U);
    number("alpha", op.alpha, 1.0F);
    number("limit", op.limit, 0.0F);
    number("up_offset", op.up_offset, 0.0F);
    if (op.cutoff) text += fmt::format(" cutoff={}", *op.cutoff);
  }
  void operator()(const StreamMatch& op) {
    value(op.first);
    value(op.rest);
    number("floor", op.floor, 0.0F);
    if (op.mean) text += " mean";
  }
  void operator()(const StreamPredict& op) {
    value(op.first);
    value(op.rest);
    value(op.coefs);
    text += fmt::format(" rest=%{}", index(op.out_rest));
  }
  void operator()(const StreamCorrect& op) {
    value(op.first);
    value(op.rest);
    value(op.y);
    value(op.coefs);
    weight("scale=", op.scale);
    text += fmt::format(" rest=%{} scaled=%{}", index(op.out_rest), index(op.scaled));
  }
  void operator()(const Gate& op) {
    value(op.x);
    value(op.gate);
    if (op.activation != Activation::sigmoid) {
      text += fmt::format(" {}", kActivations[static_cast<size_t>(op.activation)]);
    }
    number("x_offset", op.x_offset, 0U);
    number("gate_offset", op.gate_offset, 0U);
  }
  void operator()(const Conv& op) {
    value(op.x);
    state(op.state);
    weight("", op.weight);
    weight("bias=", op.bias);
    if (op.activation)
      text += fmt::format(" {}", kActivations[static_cast<size_t>(*op.activation)]);
    number("x_offset", op.x_offset, 0U);
    if (op.in_gate) text += fmt::format(" in_gate={}", *op.in_gate);
    if (op.out_gate) text += fmt::format(" out_gate={}", *op.out_gate);
  }
  void operator()(const DeltaNet& op) {
    value(op.x);
    value(op.gates);
    state(op.state);
    weight("rate=", op.rate);
    weight("dt_bias=", op.dt_bias);
    text += fmt::format(" heads={} of {}x{}", op.num_heads, op.key_dim, op.value_dim);
    number("key_heads", op.num_key_heads, op.num_heads);
    number("gates_offset", op.gates_offset, 0U);
    if (op.tiled) text += " tiled";
  }
  void operator()(const Scan& op) {
    value(op.x);
    value(op.dt);
    value(op.bc);
    state(op.state);
    weight("rate=", op.rate);
    weight("dt_bias=", op.dt_bias);
    weight("skip=", op.skip);
    text += fmt::format(" heads={} state_size={}", op.num_heads, op.state_size);
    number("groups", op.num_groups, 1U);
    number("dt_offset", op.dt_offset, 0U);
    text += fmt::format(" b_offset={} c_offset={}", op.b_offset, op.c_offset);
    number("dt_min", op.dt_min, 0.0F);
    number("dt_max", op.dt_max, std::numeric_limits<float>::infinity());
  }
  void operator()(const Wkv& op) {
    value(op.k);
    value(op.v);
    state(op.state);
    weight("rate=", op.rate);
    weight("first=", op.first);
  }
  void operator()(const Route& op) {
    value(op.logits);
    text += fmt::format(" {} top_k={}", op.score == RouterScore::softmax ? "softmax" : "sigmoid",
                        op.top_k);
    weight("bias=", op.bias);
    if (op.num_groups > 1) {
      text += fmt::format(" groups={} top_groups={}{}", op.num_groups, op.top_groups,
                          op.group_score == GroupScore::best_two ? " best_two" : "");
    }
    if (op.normalise) text += " normalise";
    number("scale", op.scale, 1.0F);
    weight("expert_scales=", op.expert_scales);
  }
  void operator()(const ExpertLinear& op) {
    value(op.x);
    if (op.routes) value(*op.routes);
    weight("", op.weight);
    weight("bias=", op.bias);
    text += fmt::format(" experts={}", op.num_experts);
    if (op.f16_inputs) text += " f16_inputs";
  }
  void operator()(const Combine& op) {
    value(op.x);
    value(op.routes);
    if (op.residual) text += fmt::format(" residual=%{}", index(*op.residual));
    number("scale", op.scale, 1.0F);
  }
  void operator()(const Activate& op) {
    value(op.x);
    text += fmt::format(" {}", kActivations[static_cast<size_t>(op.activation)]);
  }
  void operator()(const Softcap& op) {
    value(op.x);
    text += fmt::format(" cap={}", op.cap);
  }
  void operator()(const SelectLogits& op) { value(op.x); }
  void operator()(const Sample& op) { value(op.logits); }

  void state(StateId id) {
    text += fmt::format(" state{}[{}]", index(id), resources.states[index(id)].width);
  }
  void kv(KvLayerId id, uint32_t num_heads) {
    const KvLayer& layer = resources.kv_layers[index(id)];
    text += fmt::format(" kv{}[{} heads of {}", index(id), layer.num_kv_heads, layer.head_dim);
    if (layer.values_in_keys) {
      text += fmt::format(", values their first {}", layer.value_dim);
    } else if (layer.value_dim != layer.head_dim) {
      text += fmt::format("/{}", layer.value_dim);
    }
    text += fmt::format("] heads={}", num_heads);
  }
};

std::string shape(const Plan& plan, ValueId id) {
  const Value& v = plan[id];
  static constexpr std::array<std::string_view, 4> kTypes = {"f32", "f16", "q8", "q8_rms"};
  return fmt::format("%{} {}[{}, {}]", index(id), kTypes[static_cast<size_t>(v.type)],
                     v.rows == Rows::columns ? "k" : "n", v.width);
}

}  // namespace

uint64_t row_bytes(const Value& value) {
  const uint64_t width = value.width;
  switch (value.type) {
    case ValueType::f32:
      return width * 4;
    case ValueType::f16:
      return width * 2;
    case ValueType::q8:
      return width + width / 32 * 8;
    case ValueType::q8_rms:
      return width + width / 32 * 12;
  }
  return 0;
}

std::string to_string(const Plan& plan, const Resources& resources) {
  std::string text = fmt::format("plan {}: {} ops, up to {} columns (k), {} rows of logits (n)\n",
                                 plan.name, plan.ops.size(), plan.max_columns, plan.max_logits);
  for (const Op& op : plan.ops) {
    Printer printer{plan, resources, {}};
    std::visit(printer, op.body);
    const std::vector<ValueId> outs = outputs(op.body);
    const std::string line =
        fmt::format("  {:>20}{} {}{}", outs.empty() ? "" : shape(plan, outs[0]),
                    outs.empty() ? "  " : " =", op_kind(op.body), printer.text);
    text += fmt::format("{:<110} ; {} {}\n", line,
                        op.kernel_class == KernelClass::prefill ? "prefill" : "decode", op.name);
  }
  return text;
}

}  // namespace wisp::plan
