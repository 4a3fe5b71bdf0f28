// The families; each is defined in the file of its name.
#pragma once

#include "model/arch.h"

namespace wisp::model {

extern const Arch kLlama;
extern const Arch kMistral;
extern const Arch kMinistral3;
extern const Arch kQwen2;
extern const Arch kQwen3;
extern const Arch kSmolLM3;

// Qwen's older configs: with use_sliding_window all layers from max_window_layers on slide.
void read_qwen_windows(const JsonFields& fields, ModelConfig& c);

}  // namespace wisp::model
