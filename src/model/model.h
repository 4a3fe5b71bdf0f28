// A model: its config, its weights and the plans that run it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/checkpoint.h"
#include "model/arch.h"
#include "model/config.h"
#include "model/weights.h"
#include "plan/plan.h"

namespace wisp::model {

// Latent attention's weights, in place of qkv.
struct LatentWeights {
  std::optional<Projection> q_a;
  NormWeights q_a_norm;
  Projection q_nope;
  Projection q_rope;
  Projection kv_latent;
  NormWeights kv_norm;
  Projection k_rope;
  WeightResolver::LatentHeads heads;
};

// The experts of a layer, and the network beside them that all tokens take.
struct ExpertWeights {
  Projection router;
  std::optional<plan::WeightId> correction;
  ExpertMatrix up;  // gate and up side by side with config.gated_ffn
  ExpertMatrix down;
  std::optional<Projection> shared_up;
  Projection shared_down;
  std::optional<Projection> shared_gate;
  std::optional<plan::WeightId> scales;
  // With the layer's own network beside: the router's norm, and those around both.
  std::optional<NormWeights> router_norm;
  std::optional<NormWeights> norm;
  std::optional<NormWeights> post_norm;
  std::optional<NormWeights> network_post_norm;
};

// How a layer adds its own embedding of the token.
struct PerLayerWeights {
  Projection gate;
  Projection proj;
  NormWeights norm;
};

// How a layer mixes the streams of the residual before and after its work.
struct StreamWeights {
  NormWeights router_norm;
  Projection router;
  Projection predict;
  Projection correct;
  plan::WeightId scale{};
};

struct LaurelWeights {
  Projection left;
  Projection right;
  NormWeights norm;
};

// A convolution along the sequence.
struct ConvWeights {
  plan::WeightId taps{};
  std::optional<plan::WeightId> bias;
};

struct ShortConvWeights {
  Projection in_proj;  // gates of the inputs, gates of the results, inputs
  ConvWeights conv;
};

struct DeltaNetWeights {
  Projection in_proj;  // q, k, v; z; b; a
  ConvWeights conv;    // of q, k, v
  plan::WeightId rate{};
  plan::WeightId dt_bias{};
  plan::WeightId norm{};  // of each head's result
};

struct ScanWeights {
  Projection in_proj;  // x, z; or z, x, B, C, dt
  ConvWeights conv;
  std::optional<Projection> dt_in;  // of the convolved channels, likewise bc
  std::optional<Projection> bc;
  std::optional<plan::WeightId> dt_proj;
  plan::WeightId rate{};
  plan::WeightId dt_bias{};
  plan::WeightId skip{};
  std::optional<plan::WeightId> norm;
};

// RWKV-4: the shares of a column in its mixtures with the one before, and what takes them.
struct WkvWeights {
  plan::WeightId mix_key{};
  plan::WeightId mix_value{};
  plan::WeightId mix_receptance{};
  Projection key;
  Projection value;
  Projection receptance;
  plan::WeightId rate{};
  plan::WeightId first{};
};

struct ShiftedNetworkWeights {
  plan::WeightId mix_key{};
  plan::WeightId mix_receptance{};
  Projection receptance;
};

// Weights of one decoder layer. Norms that the family does not have are absent.
struct LayerWeights {
  std::optional<NormWeights> attention_norm;
  plan::KvLayerId kv_layer{};
  Projection qkv;  // q alone where another layer makes the keys and values
  std::optional<LatentWeights> latent;
  std::optional<ShortConvWeights> short_conv;
  std::optional<DeltaNetWeights> delta_net;
  std::optional<ScanWeights> scan;
  std::optional<WkvWeights> wkv;
  std::optional<ShiftedNetworkWeights> shifted;  // the network's, beside up and down_proj
  plan::StateId state{};                         // the first of the layer's
  std::optional<Projection> output_gate;
  std::optional<plan::WeightId> q_norm;
  std::optional<plan::WeightId> k_norm;
  std::optional<plan::WeightId> sinks;
  std::optional<NormWeights> attention_sub_norm;
  Projection o_proj;  // of whatever mixes
  std::optional<NormWeights> attention_post_norm;
  std::optional<NormWeights> ffn_norm;
  Projection up;  // gate and up side by side with config.gated_ffn
  std::optional<NormWeights> ffn_sub_norm;
  Projection down_proj;
  std::optional<ExpertWeights> experts;  // in place of up and down_proj, or beside them
  std::optional<NormWeights> ffn_post_norm;
  std::optional<PerLayerWeights> per_layer;
  std::optional<StreamWeights> streams;
  std::optional<LaurelWeights> laurel;
  float scale = 1.0F;  // of what the layer gives
};

// The embeddings that each layer has of its own: all layers' side by side, and what the layers'
// common embedding adds to them.
struct PerLayerEmbedding {
  plan::WeightId table{};
  Projection proj;
  NormWeights norm;
};

// What makes the streams but the first of an embedding, and what joins them: a matrix for each.
struct StreamEmbedding {
  ExpertMatrix proj;
  ExpertMatrix unembed;
};

// What the cache of each layer holds that makes keys and values of its own.
std::vector<plan::KvLayer> kv_layers(const ModelConfig& config);

// What the layers keep of a sequence beside keys and values, layer by layer.
std::vector<plan::StateLayer> state_layers(const ModelConfig& config);

struct ModelOptions {
  uint32_t context = 0;  // positions that the rope tables cover; 0: the model's
  // What no sequence will exceed, by which longrope takes its factors; 0: the model's context.
  uint32_t stated_context = 0;
  formats::DType kv_dtype = formats::DType::F16;  // F16 or F32
};

struct Model {
  ModelConfig config;
  Weights weights;
  plan::Resources resources;
  plan::WeightId token_embedding{};
  std::optional<plan::WeightId> position_embedding;
  std::optional<NormWeights> embedding_norm;
  NormWeights output_norm;
  Projection lm_head;
  std::optional<PerLayerEmbedding> per_layer;
  std::optional<StreamEmbedding> streams;
  std::optional<plan::WeightId> rope;
  std::optional<plan::WeightId> local_rope;
  std::optional<plan::WeightId> query_scale;
  std::vector<LayerWeights> layers;
};

// The config alone, for inspect. Throws Error naming the file and field.
ModelConfig read_config(const formats::Checkpoint& checkpoint);

// Reads the config and resolves every tensor; no weight data is copied but small vectors.
// `checkpoint` must outlive the model. Throws Error naming file, tensor or field, expected and
// found.
Model load_model(const formats::Checkpoint& checkpoint, const ModelOptions& options);

// Resolves every tensor as load_model does, but reads none, so that it is quick for any size.
// Throws the same errors.
void check_tensors(const formats::Checkpoint& checkpoint);

// --math: fast quantises activations to int8 in the decode class (block-quantised weights) and
// rounds matmul inputs to f16 in the prefill class; exact keeps f32 everywhere.
enum class Math : uint8_t { fast, exact };

struct PlanOptions {
  Math math = Math::fast;
  plan::KernelClass kernel_class =
      plan::KernelClass::decode;  // of the layers; the head is always decode
  uint32_t max_columns = 1;
  uint32_t max_logits = 1;
};

plan::Plan build_plan(const Model& model, const PlanOptions& options);

}  // namespace wisp::model
