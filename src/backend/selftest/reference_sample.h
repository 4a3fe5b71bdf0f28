// Choosing a token in double precision by sorting the whole row: what Sample is measured against.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/sampling.h"

namespace wisp::backend::selftest {

// The probabilities that RowSampling gives the tokens, by token; logits are finite.
std::vector<double> sample_probabilities(const std::vector<double>& logits,
                                         const RowSampling& sampling);

// The token; nullopt where a change of 4e-6 of the random number, of top-p or of the least logit
// that min-p keeps would change it.
std::optional<uint32_t> sample_reference(const std::vector<double>& logits,
                                         const RowSampling& sampling);

}  // namespace wisp::backend::selftest
