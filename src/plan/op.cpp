#include "plan/op.h"

#include <array>

#include "base/overloaded.h"

namespace wisp::plan {
namespace {

template <typename Id>
void append(std::vector<Id>& list, const std::optional<Id>& id) {
  if (id) list.push_back(*id);
}

}  // namespace

std::string_view op_kind(const OpBody& body) {
  static constexpr std::array<std::string_view, std::variant_size_v<OpBody>> kNames = {
      "embed",
      "norm",
      "add",
      "quantize",
      "linear",
      "rope_kv",
      "latent_kv",
      "attention",
      "glu",
      "activate",
      "softcap",
      "gate",
      "conv",
      "delta_net",
      "scan",
      "wkv",
      "route",
      "expert_linear",
      "combine",
      "stream_match",
      "stream_predict",
      "stream_correct",
      "select_logits",
      "sample"};
  return kNames[body.index()];
}

std::vector<ValueId> inputs(const OpBody& body) {
  return std::visit(Overloaded{
                        [](const Embed&) { return std::vector<ValueId>{}; },
                        [](const Add& op) {
                          return std::vector<ValueId>{op.a, op.b};
                        },
                        [](const Linear& op) {
                          std::vector<ValueId> list = {op.x};
                          append(list, op.residual);
                          return list;
                        },
                        [](const RopeKv& op) { return std::vector<ValueId>{op.qkv}; },
                        [](const Attention& op) { return std::vector<ValueId>{op.q}; },
                        [](const Sample& op) { return std::vector<ValueId>{op.logits}; },
                        [](const Gate& op) {
                          return std::vector<ValueId>{op.x, op.gate};
                        },
                        [](const Scan& op) {
                          return std::vector<ValueId>{op.x, op.dt, op.bc};
                        },
                        [](const Wkv& op) {
                          return std::vector<ValueId>{op.k, op.v};
                        },
                        [](const DeltaNet& op) {
                          return std::vector<ValueId>{op.x, op.gates};
                        },
                        [](const Route& op) { return std::vector<ValueId>{op.logits}; },
                        [](const ExpertLinear& op) {
                          std::vector<ValueId> list = {op.x};
                          append(list, op.routes);
                          return list;
                        },
                        [](const StreamMatch& op) {
                          return std::vector<ValueId>{op.first, op.rest};
                        },
                        [](const StreamPredict& op) {
                          return std::vector<ValueId>{op.first, op.rest, op.coefs};
                        },
                        [](const StreamCorrect& op) {
                          return std::vector<ValueId>{op.first, op.rest, op.y, op.coefs};
                        },
                        [](const LatentKv& op) {
                          return std::vector<ValueId>{op.q_latent, op.q_rope, op.latent, op.k_rope};
                        },
                        [](const Combine& op) {
                          std::vector<ValueId> list = {op.x, op.routes};
                          append(list, op.residual);
                          return list;
                        },
                        [](const auto& op) { return std::vector<ValueId>{op.x}; },
                    },
                    body);
}

std::vector<ValueId> outputs(const OpBody& body) {
  return std::visit(Overloaded{
                        [](const Sample&) { return std::vector<ValueId>{}; },
                        [](const StreamPredict& op) {
                          return std::vector<ValueId>{op.out, op.out_rest};
                        },
                        [](const StreamCorrect& op) {
                          return std::vector<ValueId>{op.out, op.out_rest, op.scaled};
                        },
                        [](const Norm& op) {
                          std::vector<ValueId> list = {op.out};
                          append(list, op.quantized);
                          return list;
                        },
                        [](const Linear& op) {
                          std::vector<ValueId> list = {op.out};
                          if (op.norm) list.push_back(op.norm->out);
                          return list;
                        },
                        [](const Combine& op) {
                          std::vector<ValueId> list = {op.out};
                          if (op.norm) list.push_back(op.norm->out);
                          return list;
                        },
                        [](const auto& op) { return std::vector<ValueId>{op.out}; },
                    },
                    body);
}

std::vector<WeightId> weights(const OpBody& body) {
  return std::visit(Overloaded{
                        [](const Embed& op) {
                          std::vector<WeightId> list = {op.table};
                          append(list, op.positions);
                          return list;
                        },
                        [](const Norm& op) {
                          std::vector<WeightId> list;
                          append(list, op.weight);
                          append(list, op.bias);
                          return list;
                        },
                        [](const Linear& op) {
                          std::vector<WeightId> list = {op.weight};
                          append(list, op.bias);
                          if (op.norm) append(list, op.norm->weight);
                          if (op.rope_kv) {
                            append(list, op.rope_kv->q_norm);
                            append(list, op.rope_kv->k_norm);
                            append(list, op.rope_kv->rope);
                          }
                          return list;
                        },
                        [](const RopeKv& op) {
                          std::vector<WeightId> list;
                          append(list, op.q_norm);
                          append(list, op.k_norm);
                          append(list, op.rope);
                          append(list, op.query_scale);
                          return list;
                        },
                        [](const LatentKv& op) { return std::vector<WeightId>{op.rope}; },
                        [](const StreamCorrect& op) { return std::vector<WeightId>{op.scale}; },
                        [](const Attention& op) {
                          std::vector<WeightId> list;
                          append(list, op.sinks);
                          return list;
                        },
                        [](const Route& op) {
                          std::vector<WeightId> list;
                          append(list, op.bias);
                          append(list, op.expert_scales);
                          return list;
                        },
                        [](const ExpertLinear& op) {
                          std::vector<WeightId> list = {op.weight};
                          append(list, op.bias);
                          return list;
                        },
                        [](const Combine& op) {
                          std::vector<WeightId> list;
                          if (op.norm) append(list, op.norm->weight);
                          return list;
                        },
                        [](const Scan& op) {
                          return std::vector<WeightId>{op.rate, op.dt_bias, op.skip};
                        },
                        [](const Wkv& op) {
                          return std::vector<WeightId>{op.rate, op.first};
                        },
                        [](const DeltaNet& op) {
                          return std::vector<WeightId>{op.rate, op.dt_bias};
                        },
                        [](const Conv& op) {
                          std::vector<WeightId> list = {op.weight};
                          append(list, op.bias);
                          return list;
                        },
                        [](const auto&) { return std::vector<WeightId>{}; },
                    },
                    body);
}

std::optional<StateId> state(const OpBody& body) {
  return std::visit(
      []<typename Op>(const Op& op) -> std::optional<StateId> {
        if constexpr (requires { op.state; }) {
          return op.state;
        } else {
          return std::nullopt;
        }
      },
      body);
}

}  // namespace wisp::plan
