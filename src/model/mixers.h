// Layers that mix tokens otherwise than by attention: their weights and states.
#pragma once

#include <vector>

#include "model/model.h"

namespace wisp::model {

// Appends the states of one layer, in the order in which its ops have them.
void add_states(const ModelConfig& config, const LayerConfig& layer,
                std::vector<plan::StateLayer>& states);

// Resolves what the layer's mixer reads; its o_proj too.
void resolve_mixer(WeightResolver& resolver, const ModelConfig& config, uint32_t layer,
                   LayerWeights& weights);

}  // namespace wisp::model
