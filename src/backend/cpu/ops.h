// The ops of plan/op.h on the CPU. Each output element's order of operations depends on its row
// (and the kernel class) alone, never on the other columns or on the threads.
#pragma once

#include <span>

#include "backend/cpu/context.h"
#include "plan/op.h"

namespace wisp::backend::cpu {

void run_embed(const OpContext& context, const plan::Embed& op);
void run_norm(const OpContext& context, const plan::Norm& op);
void run_add(const OpContext& context, const plan::Add& op);
void run_quantize(const OpContext& context, const plan::Quantize& op);
void run_linear(const OpContext& context, const plan::Linear& op);
void run_linear_q8(const OpContext& context, const plan::Linear& op);  // for a q8 input
void run_rope_kv(const OpContext& context, const plan::RopeKv& op);
void run_latent_kv(const OpContext& context, const plan::LatentKv& op);
void run_attention(const OpContext& context, const plan::Attention& op);
void run_glu(const OpContext& context, const plan::Glu& op);
void run_activate(const OpContext& context, const plan::Activate& op);
void run_gate(const OpContext& context, const plan::Gate& op);
void run_conv(const OpContext& context, const plan::Conv& op);
void run_delta_net(const OpContext& context, const plan::DeltaNet& op);
void run_scan(const OpContext& context, const plan::Scan& op);
void run_wkv(const OpContext& context, const plan::Wkv& op);
void run_route(const OpContext& context, const plan::Route& op);
void run_expert_linear(const OpContext& context, const plan::ExpertLinear& op);
void run_combine(const OpContext& context, const plan::Combine& op);
void run_stream_match(const OpContext& context, const plan::StreamMatch& op);
void run_stream_predict(const OpContext& context, const plan::StreamPredict& op);
void run_stream_correct(const OpContext& context, const plan::StreamCorrect& op);
void run_softcap(const OpContext& context, const plan::Softcap& op);
void run_select_logits(const OpContext& context, const plan::SelectLogits& op);

// log(1 + exp(v)).
float softplus(float v);

// out[i] = act(x[i]) of n elements; x may be out.
void activate_row(plan::Activation activation, const float* x, float* out, size_t n);

// The lowest index of the largest of `logits`; finite: no NaN or infinity among them.
struct Best {
  uint32_t index = 0;
  bool finite = true;
};
Best argmax(std::span<const float> logits);

const char* simd_target();  // "AVX2"
bool simd_supported();      // this processor runs one of the compiled targets

}  // namespace wisp::backend::cpu
