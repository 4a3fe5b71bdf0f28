#include "backend/cpu/block_tables.h"

#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::cpu {
namespace {

constexpr uint32_t kNoPage = std::numeric_limits<uint32_t>::max();

}  // namespace

BlockTables::BlockTables(uint32_t num_pages, uint32_t max_slots, uint32_t max_pages_per_slot)
    : num_pages_(num_pages),
      max_slots_(max_slots),
      stride_(max_pages_per_slot),
      table_(checked_mul(max_slots, max_pages_per_slot, "block table"), kNoPage) {}

void BlockTables::update(const TableUpdate& update) {
  if (update.slot >= max_slots_) fail("slot {} of {} does not exist", update.slot, max_slots_);
  if (uint64_t{update.first} + update.pages.size() > stride_) {
    fail("pages {}..{} of slot {} do not fit a block table of {}", update.first,
         update.first + update.pages.size(), update.slot, stride_);
  }
  uint32_t* to = table_.data() + size_t{update.slot} * stride_ + update.first;
  for (const uint32_t page : update.pages) {
    if (page >= num_pages_) fail("page {} of {} does not exist", page, num_pages_);
    *to++ = page;
  }
}

void BlockTables::check(uint32_t slot, uint32_t first, uint32_t last) const {
  for (uint32_t page = first / plan::kPageTokens; page <= last / plan::kPageTokens; ++page) {
    if (page >= stride_) {
      fail("position {} of slot {} is past the block table's {} positions", last, slot,
           uint64_t{stride_} * plan::kPageTokens);
    }
    if (row(slot)[page] == kNoPage) {
      fail("slot {} has no page for position {}", slot, page * plan::kPageTokens);
    }
  }
}

void check_columns(const plan::Plan& plan, const Step& step, uint32_t max_slots) {
  if (step.columns.empty() || step.columns.size() > plan.max_columns) {
    fail("{} columns in a step, expected 1..{}", step.columns.size(), plan.max_columns);
  }
  std::vector<bool> seen(max_slots, false);
  for (size_t i = 0; i < step.columns.size(); ++i) {
    const Column& column = step.columns[i];
    if (column.slot >= max_slots) fail("slot {} of {} does not exist", column.slot, max_slots);
    if (i > 0 && step.columns[i - 1].slot == column.slot) {
      if (column.position != step.columns[i - 1].position + 1) {
        fail("column {}: position {} follows {}", i, column.position, step.columns[i - 1].position);
      }
      continue;
    }
    if (seen[column.slot]) fail("column {}: slot {} comes a second time", i, column.slot);
    seen[column.slot] = true;
  }
  if (!step.sampling.empty() && step.sampling.size() != step.logit_columns.size()) {
    fail("{} rows of sampling for {} logit columns", step.sampling.size(),
         step.logit_columns.size());
  }
  for (size_t i = 0; i < step.logit_columns.size(); ++i) {
    const uint32_t column = step.logit_columns[i];
    if (column >= step.columns.size()) {
      fail("logit column {} of {} does not exist", column, step.columns.size());
    }
    if (i > 0 && column <= step.logit_columns[i - 1]) {
      fail("logit column {} follows {}", column, step.logit_columns[i - 1]);
    }
  }
}

}  // namespace wisp::backend::cpu
