#include "backend/state_copies.h"

#include <vector>

#include "base/error.h"

namespace wisp::backend {

void check_copies(const Step& step, uint32_t num_states) {
  if (step.state_copies.empty()) return;
  std::vector<bool> read(num_states, false);
  std::vector<bool> written(num_states, false);
  for (const StateCopy& copy : step.state_copies) {
    if (copy.from >= num_states || copy.to >= num_states) {
      fail("state copy: row {} to {} of {}", copy.from, copy.to, num_states);
    }
    if (written[copy.to]) fail("state copy: row {} is written twice", copy.to);
    written[copy.to] = true;
    read[copy.from] = true;
  }
  for (uint32_t row = 0; row < num_states; ++row) {
    if (read[row] && written[row]) fail("state copy: row {} is read and written", row);
  }
}

}  // namespace wisp::backend
