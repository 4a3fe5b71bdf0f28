// From config and weights to a plan: embed, layers, head.
#include "base/error.h"
#include "formats/dtype.h"
#include "model/model.h"

namespace wisp::model {
namespace {

using plan::KernelClass;
using plan::Rows;
using plan::ValueId;
using plan::ValueType;

class Builder {
 public:
  Builder(const Model& model, const PlanOptions& options) : model_(model), options_(options) {
    plan_.name = options.kernel_class == KernelClass::prefill ? "prefill" : "decode";
    plan_.max_columns = options.max_columns;
    plan_.max_logits = options.max_logits;
    kernel_class_ = options.kernel_class;
  }

  plan::Plan build() && {
    const ModelConfig& c = model_.config;
    ValueId x = value("x", c.hidden_size);
    add(plan::Embed{.table = model_.token_embedding, .out = x}, "embed");
    for (uint32_t i = 0; i < c.num_layers; ++i) x = layer(x, i);
    head(x);
    return std::move(plan_);
  }

 private:
  ValueId value(std::string name, uint32_t width, ValueType type = ValueType::f32) {
    plan_.values.push_back({std::move(name), type, rows_, width});
    return ValueId{static_cast<uint32_t>(plan_.values.size() - 1)};
  }

  void add(const plan::OpBody& body, std::string name) {
    plan_.ops.push_back({body, kernel_class_, std::move(name)});
  }

  ValueId norm(ValueId x, plan::WeightId weight, const std::string& name) {
    const uint32_t width = plan_[x].width;
    const ValueId out = value(name, width);
    add(plan::Norm{.x = x,
                   .out = out,
                   .weight = weight,
                   .eps = model_.config.rms_norm_eps,
                   .group = width},
        name);
    return out;
  }

  bool takes_int8(plan::WeightId id) const {
    return options_.math == Math::fast && kernel_class_ == KernelClass::decode &&
           formats::dtype_info(model_.weights.list[plan::index(id)].dtype).block_elements > 1;
  }

  // W x, with the activations quantised first where the mode and the weight's type ask for it.
  bool f16_inputs() const {
    return options_.math == Math::fast && kernel_class_ == KernelClass::prefill;
  }

  ValueId linear(ValueId x, const Projection& projection, std::optional<ValueId> residual,
                 const std::string& name) {
    const ValueId out = value(name, projection.rows);
    std::optional<ValueId> quantised;
    uint32_t offset = 0;
    for (const Projection::Part& part : projection.parts) {
      const bool int8 = takes_int8(part.weight);
      if (int8 && !quantised) {
        quantised = value(name + ".q8", plan_[x].width, ValueType::q8);
        add(plan::Quantize{.x = x, .out = *quantised}, name + ".quantize");
      }
      add(plan::Linear{.x = int8 ? *quantised : x,
                       .weight = part.weight,
                       .out = out,
                       .bias = part.bias,
                       .residual = residual,
                       .out_offset = offset,
                       .f16_inputs = f16_inputs()},
          name);
      offset += part.rows;
    }
    return out;
  }

  ValueId layer(ValueId x, uint32_t index) {
    const LayerWeights& w = model_.layers[index];
    const std::string prefix = fmt::format("layer.{}.", index);
    const ValueId attended =
        attention(norm(x, w.attention_norm, prefix + "attn.norm"), index, prefix);
    x = linear(attended, w.o_proj, x, prefix + "attn.o");
    const ValueId gate_up =
        linear(norm(x, w.ffn_norm, prefix + "ffn.norm"), w.gate_up, {}, prefix + "ffn.gate_up");
    const ValueId gated = value(prefix + "ffn.glu", model_.config.intermediate_size);
    add(plan::Glu{.x = gate_up, .out = gated, .activation = model_.config.activation},
        prefix + "ffn.glu");
    return linear(gated, w.down_proj, x, prefix + "ffn.down");
  }

  ValueId attention(ValueId x, uint32_t index, const std::string& prefix) {
    const ModelConfig& c = model_.config;
    const LayerWeights& w = model_.layers[index];
    const ValueId qkv = linear(x, w.qkv, {}, prefix + "attn.qkv");
    const ValueId q = value(prefix + "attn.q", c.num_heads * c.head_dim);
    add(plan::RopeKv{.qkv = qkv,
                     .out = q,
                     .kv_layer = plan::KvLayerId{index},
                     .num_heads = c.num_heads,
                     .q_norm = w.q_norm,
                     .k_norm = w.k_norm,
                     .rope = c.layers[index].rope ? model_.rope : std::nullopt,
                     .query_scale = model_.query_scale,
                     .norm = {.eps = c.rms_norm_eps},
                     .style = c.rope.style},
        prefix + "attn.rope_kv");
    const ValueId out = value(prefix + "attn.out", c.num_heads * c.head_dim);
    add(plan::Attention{.q = q,
                        .out = out,
                        .kv_layer = plan::KvLayerId{index},
                        .num_heads = c.num_heads,
                        .scale = c.attention_scale,
                        .window = c.layers[index].window,
                        .f16_inputs = f16_inputs()},
        prefix + "attn");
    return out;
  }

  // The head works on the columns that want logits, always in the decode class.
  void head(ValueId x) {
    kernel_class_ = KernelClass::decode;
    rows_ = Rows::logits;
    const ValueId selected = value("head.x", model_.config.hidden_size);
    add(plan::SelectLogits{.x = x, .out = selected}, "head.select");
    const ValueId logits =
        linear(norm(selected, model_.output_norm, "head.norm"), model_.lm_head, {}, "head.logits");
    add(plan::Sample{.logits = logits}, "head.sample");
  }

  const Model& model_;
  const PlanOptions& options_;
  plan::Plan plan_;
  KernelClass kernel_class_ = KernelClass::decode;
  Rows rows_ = Rows::columns;
};

}  // namespace

plan::Plan build_plan(const Model& model, const PlanOptions& options) {
  plan::Plan result = Builder(model, options).build();
  plan::verify(result, model.resources);
  return result;
}

}  // namespace wisp::model
