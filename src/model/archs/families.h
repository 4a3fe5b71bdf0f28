// The families; each is defined in the file of its name, relatives in one.
#pragma once

#include "model/arch.h"

namespace wisp::model {

extern const Arch kBitNet;
extern const Arch kCohere;
extern const Arch kCohere2;
extern const Arch kDeepSeekV2;
extern const Arch kDeepSeekV3;
extern const Arch kExaone4;
extern const Arch kFalcon;
extern const Arch kGemma2;
extern const Arch kGemma3;
extern const Arch kGemma3n;
extern const Arch kGemma4;
extern const Arch kGlm4;
extern const Arch kGpt2;
extern const Arch kGptNeoX;
extern const Arch kGptOss;
extern const Arch kGranite;
extern const Arch kHunyuanDense;
extern const Arch kLfm2;
extern const Arch kLfm2Moe;
extern const Arch kLlama;
extern const Arch kMamba;
extern const Arch kMamba2;
extern const Arch kMinistral3;
extern const Arch kMistral;
extern const Arch kMixtral;
extern const Arch kNemotron;
extern const Arch kNemotronH;
extern const Arch kOlmo;
extern const Arch kOlmo2;
extern const Arch kOlmo3;
extern const Arch kOlmoe;
extern const Arch kPhi2;
extern const Arch kPhi3;
extern const Arch kQwen2;
extern const Arch kQwen2Moe;
extern const Arch kQwen3;
extern const Arch kQwen3Moe;
extern const Arch kQwen3Next;
extern const Arch kQwen35;
extern const Arch kQwen35Moe;
extern const Arch kRwkv4;
extern const Arch kSmolLM3;
extern const Arch kStableLm;

// Mamba-2's sizes in a GGUF file.
void read_ssm(const GgufFields& fields, ModelConfig& c);

// What the checkpoints of Mamba and its kin call their tensors.
std::vector<RoleName> backbone_names();
std::vector<RoleName> ssm_names();  // GGUF

// Every n-th layer sees all tokens, the others keep their window: where config.json has no
// layer_types. Its sliding_window_pattern may have n (or a text of that length, as "LLLG"), else it
// is `usual`.
void read_window_pattern(const JsonFields& fields, ModelConfig& c, uint32_t usual);

// The same in a GGUF file, which may have a list.
void read_window_pattern(const GgufFields& fields, ModelConfig& c, uint32_t usual);

// The windows of a GGUF file that has to say of each layer whether it has one.
void set_windows(const GgufFields& fields, ModelConfig& c);

// Layers with a window take the local rope, or those without one none.
void use_local_rope(ModelConfig& c);
void drop_rope_without_window(ModelConfig& c);

// Throws Error where hidden_act is another than silu, for families that use it throughout.
void expect_silu(const ModelConfig& c);

// The size of networks where the config gives none.
void default_ffn_size(ModelConfig& c, uint32_t size);

// Qwen's older configs: with use_sliding_window all layers from max_window_layers on slide.
void read_qwen_windows(const JsonFields& fields, ModelConfig& c);

// Qwen's experts, and which layers have them.
void read_qwen_experts(const JsonFields& fields, ModelConfig& c);

// The last `count` layers take the keys and values of the last layer of their type before them.
void share_kv(ModelConfig& c, uint32_t count);

// What the Gemma families share: norms around attention and network, scaled embeddings, and in
// config.json the scale of the scores and the soft caps.
void read_gemma(ModelConfig& c);
void read_gemma_hf(const JsonFields& fields, ModelConfig& c);
std::vector<RoleName> gemma_names();

}  // namespace wisp::model
