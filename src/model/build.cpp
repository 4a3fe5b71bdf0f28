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
    add(plan::Embed{.table = model_.token_embedding,
                    .out = x,
                    .scale = c.embedding_scale,
                    .positions = model_.position_embedding},
        "embed");
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

  ValueId norm(ValueId x, const std::optional<NormWeights>& weights, const std::string& name) {
    if (!weights) return x;
    const ModelConfig& c = model_.config;
    const uint32_t width = plan_[x].width;
    const ValueId out = value(name, width);
    add(plan::Norm{.x = x,
                   .out = out,
                   .kind = c.norm,
                   .weight = weights->weight,
                   .bias = weights->bias,
                   .eps = c.norm_eps,
                   .weight_offset = c.norm_weight_offset,
                   .group = width},
        name);
    return out;
  }

  bool takes_int8(plan::WeightId id) const {
    return options_.math == Math::fast && kernel_class_ == KernelClass::decode &&
           formats::dtype_info(model_.weights.list[plan::index(id)].dtype).block_elements > 1;
  }

  bool f16_inputs() const {
    return options_.math == Math::fast && kernel_class_ == KernelClass::prefill;
  }

  // residual + scale * (W x + bias), with the activations quantised first where the mode and the
  // weight's type ask for it.
  ValueId linear(ValueId x, const Projection& projection, const std::string& name,
                 std::optional<ValueId> residual = {}, float scale = 1.0F) {
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
                       .scale = scale,
                       .out_offset = offset,
                       .f16_inputs = f16_inputs()},
          name);
      offset += part.rows;
    }
    return out;
  }

  // The residual stream with what a projection of x adds to it.
  ValueId add_projected(ValueId stream, ValueId x, const Projection& projection,
                        const std::optional<NormWeights>& post_norm, const std::string& name) {
    const float scale = model_.config.residual_scale;
    if (!post_norm) return linear(x, projection, name, stream, scale);
    const ValueId b = norm(linear(x, projection, name), post_norm, name + ".post_norm");
    const ValueId out = value(name + ".sum", plan_[stream].width);
    add(plan::Add{.a = stream, .b = b, .out = out, .scale = scale}, name + ".add");
    return out;
  }

  ValueId layer(ValueId x, uint32_t index) {
    const LayerWeights& w = model_.layers[index];
    const Residual residual = model_.config.residual;
    const std::string prefix = fmt::format("layer.{}.", index);
    const ValueId normed = norm(x, w.attention_norm, prefix + "attn.norm");
    const ValueId attended =
        norm(attention(normed, index, prefix), w.attention_sub_norm, prefix + "attn.sub_norm");
    const ValueId sum =
        add_projected(x, attended, w.o_proj, w.attention_post_norm, prefix + "attn.o");
    const ValueId ffn_x =
        residual == Residual::parallel_shared
            ? normed
            : norm(residual == Residual::parallel ? x : sum, w.ffn_norm, prefix + "ffn.norm");
    const ValueId inner = norm(ffn(ffn_x, w, prefix), w.ffn_sub_norm, prefix + "ffn.sub_norm");
    return add_projected(sum, inner, w.down_proj, w.ffn_post_norm, prefix + "ffn.down");
  }

  // What down_proj reads.
  ValueId ffn(ValueId x, const LayerWeights& w, const std::string& prefix) {
    const ModelConfig& c = model_.config;
    const ValueId up = linear(x, w.up, prefix + (c.gated_ffn ? "ffn.gate_up" : "ffn.up"));
    const ValueId out = value(prefix + "ffn.act", c.intermediate_size);
    if (c.gated_ffn) {
      add(plan::Glu{.x = up, .out = out, .activation = c.activation}, prefix + "ffn.glu");
    } else {
      add(plan::Activate{.x = up, .out = out, .activation = c.activation}, prefix + "ffn.act");
    }
    return out;
  }

  std::optional<plan::WeightId> rope(LayerRope choice) const {
    if (choice == LayerRope::none) return {};
    return choice == LayerRope::local ? model_.local_rope : model_.rope;
  }

  ValueId attention(ValueId x, uint32_t index, const std::string& prefix) {
    const ModelConfig& c = model_.config;
    const LayerWeights& w = model_.layers[index];
    const ValueId qkv = linear(x, w.qkv, prefix + "attn.qkv");
    const ValueId q = value(prefix + "attn.q", c.num_heads * c.head_dim);
    add(plan::RopeKv{.qkv = qkv,
                     .out = q,
                     .kv_layer = plan::KvLayerId{index},
                     .num_heads = c.num_heads,
                     .q_norm = w.q_norm,
                     .k_norm = w.k_norm,
                     .rope = rope(c.layers[index].rope),
                     .query_scale = model_.query_scale,
                     .norm = {.kind = c.norm,
                              .eps = c.norm_eps,
                              .weight_offset = c.norm_weight_offset,
                              .all_heads = c.qk_norm == QkNorm::all_heads,
                              .after_rope = c.qk_norm_after_rope},
                     .style = c.rope.style,
                     .clip = c.qkv_clip},
        prefix + "attn.rope_kv");
    const ValueId out = value(prefix + "attn.out", c.num_heads * c.head_dim);
    add(plan::Attention{.q = q,
                        .out = out,
                        .kv_layer = plan::KvLayerId{index},
                        .num_heads = c.num_heads,
                        .scale = c.attention_scale,
                        .softcap = c.attention_softcap,
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
    const ModelConfig& c = model_.config;
    const ValueId normed = norm(selected, model_.output_norm, "head.norm");
    ValueId logits = linear(normed, model_.lm_head, "head.logits", {}, c.logit_scale);
    if (c.logit_softcap != 0.0F) {
      const ValueId capped = value("head.capped", c.vocab_size);
      add(plan::Softcap{.x = logits, .out = capped, .cap = c.logit_softcap}, "head.softcap");
      logits = capped;
    }
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
