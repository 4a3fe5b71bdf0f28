#include "plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace wisp::plan {
namespace {

// A chain of norms over values of the given widths.
Plan chain(const std::vector<uint32_t>& widths) {
  Plan plan{.name = "chain", .max_columns = 3};
  for (const uint32_t width : widths)
    plan.values.push_back({"v", ValueType::f32, Rows::columns, width});
  plan.inputs = {ValueId{0}};
  for (uint32_t i = 1; i < widths.size(); ++i) {
    plan.ops.push_back({Norm{.x = ValueId{i - 1}, .out = ValueId{i}, .group = 1}});
  }
  return plan;
}

TEST(Memory, AnOpNeverSharesABufferBetweenInputAndOutput) {
  const Plan plan = chain({8, 8, 16, 8, 8, 4, 8});
  const MemoryPlan memory = plan_memory(plan);
  for (const Op& op : plan.ops) {
    for (const ValueId in : inputs(op.body)) {
      for (const ValueId out : outputs(op.body)) {
        EXPECT_NE(memory.buffer_of_value[index(in)], memory.buffer_of_value[index(out)]);
      }
    }
  }
  EXPECT_LT(memory.buffer_bytes.size(), plan.values.size());
}

TEST(Memory, BuffersAreLargeEnoughAndInputsStay) {
  const Plan plan = chain({8, 8, 16, 8, 8, 4, 8});
  const MemoryPlan memory = plan_memory(plan);
  for (uint32_t v = 0; v < plan.values.size(); ++v) {
    EXPECT_GE(memory.buffer_bytes[memory.buffer_of_value[v]], plan.values[v].width * 4U * 3U);
    if (v > 0) {
      EXPECT_NE(memory.buffer_of_value[v], memory.buffer_of_value[0]);
    }
  }
}

TEST(Memory, AValueLivesUntilItsLastReader) {
  Plan plan = chain({8, 8, 8, 8});
  plan.values.push_back({"sum", ValueType::f32, Rows::columns, 8});
  plan.ops.push_back({Add{.a = ValueId{1}, .b = ValueId{3}, .out = ValueId{4}}});
  const MemoryPlan memory = plan_memory(plan);
  EXPECT_NE(memory.buffer_of_value[1], memory.buffer_of_value[2]);
  EXPECT_NE(memory.buffer_of_value[1], memory.buffer_of_value[3]);
  EXPECT_NE(memory.buffer_of_value[1], memory.buffer_of_value[4]);
}

TEST(Memory, KeptValuesHaveMemoryOfTheirOwn) {
  const Plan plan = chain({8, 8, 8, 8, 8});
  const MemoryPlan one = plan_memory(plan, std::vector{ValueId{1}});
  for (uint32_t i = 2; i < 5; ++i) EXPECT_NE(one.buffer_of_value[1], one.buffer_of_value[i]);
  EXPECT_EQ(one.buffer_of_value[2], one.buffer_of_value[4]);
  const std::vector<ValueId> ids = {ValueId{0}, ValueId{1}, ValueId{2}, ValueId{3}, ValueId{4}};
  std::vector<uint32_t> used = plan_memory(plan, ids).buffer_of_value;
  std::ranges::sort(used);
  EXPECT_EQ(std::ranges::adjacent_find(used), used.end());
}

}  // namespace
}  // namespace wisp::plan
