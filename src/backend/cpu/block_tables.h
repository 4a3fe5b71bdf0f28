// The block tables of all slots, and the check of a step against them.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace wisp::backend::cpu {

class BlockTables {
 public:
  BlockTables() = default;
  BlockTables(uint32_t num_pages, uint32_t max_slots, uint32_t max_pages_per_slot);

  // Throws Error naming the slot or page that does not exist.
  void update(const TableUpdate& update);
  const uint32_t* row(uint32_t slot) const { return table_.data() + size_t{slot} * stride_; }
  uint32_t max_slots() const { return max_slots_; }
  // Throws Error unless the slot exists and has a page for each of the positions [first, last].
  void check(uint32_t slot, uint32_t first, uint32_t last) const;

 private:
  uint32_t num_pages_ = 0;
  uint32_t max_slots_ = 0;
  uint32_t stride_ = 0;
  std::vector<uint32_t> table_;  // [slot, stride]; kNoPage where none was written
};

// Throws Error where the step breaks the rules of Step: number and order of columns, contiguous
// slots with consecutive positions, logit columns. Tokens and pages are not looked at.
void check_columns(const plan::Plan& plan, const Step& step, uint32_t max_slots);

}  // namespace wisp::backend::cpu
