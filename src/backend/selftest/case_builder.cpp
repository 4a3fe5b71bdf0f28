#include <algorithm>
#include <utility>

#include "backend/selftest/op_case.h"
#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::selftest {

CaseBuilder::CaseBuilder(std::string name, plan::KernelClass kernel_class, Shape shape,
                         uint32_t seed)
    : kernel_class_(kernel_class), random_(seed) {
  case_.name = std::move(name);
  case_.plan.name = kernel_class == plan::KernelClass::prefill ? "prefill" : "decode";
  case_.plan.max_columns = shape.max_columns;
  case_.plan.max_logits = shape.max_logits;
  case_.max_slots = shape.max_slots;
  case_.max_pages_per_slot =
      static_cast<uint32_t>(ceil_div(shape.max_positions, plan::kPageTokens));
  case_.num_pages =
      shape.num_pages != 0 ? shape.num_pages : case_.max_slots * case_.max_pages_per_slot + 3;
  for (uint32_t i = 0; i < case_.num_pages; ++i) free_pages_.push_back(i);
  for (size_t i = free_pages_.size() - 1; i > 0; --i) {
    std::swap(free_pages_[i], free_pages_[random_() % (i + 1)]);
  }
  next_position_.resize(case_.max_slots);
  pages_.resize(case_.max_slots);
}

plan::ValueId CaseBuilder::value(std::string name, uint32_t width, plan::Rows rows,
                                 plan::ValueType type) {
  case_.plan.values.push_back({std::move(name), type, rows, width});
  return plan::ValueId{static_cast<uint32_t>(case_.plan.values.size() - 1)};
}

plan::ValueId CaseBuilder::input(std::string name, uint32_t width, plan::ValueType type,
                                 float magnitude) {
  const plan::ValueId id = value(std::move(name), width, plan::Rows::columns, type);
  case_.plan.inputs.push_back(id);
  inputs_.push_back({id, magnitude});
  return id;
}

plan::WeightId CaseBuilder::weight(std::string name, formats::DType dtype, uint32_t rows,
                                   uint32_t cols, float magnitude) {
  return weight(std::move(name), dtype, rows, cols,
                std::make_shared<std::vector<std::byte>>(
                    random_weight(random_, dtype, rows, cols, magnitude)));
}

plan::WeightId CaseBuilder::weight(std::string name, uint32_t rows, uint32_t cols,
                                   const std::vector<float>& values) {
  ensure(values.size() == size_t{rows} * cols, "weight values fit the shape");
  return weight(std::move(name), formats::DType::F32, rows, cols,
                std::make_shared<std::vector<std::byte>>(to_bytes(values)));
}

plan::WeightId CaseBuilder::weight(std::string name, formats::DType dtype, uint32_t rows,
                                   uint32_t cols, Bytes bytes) {
  case_.resources.weights.push_back({std::move(name), dtype, rows, cols});
  case_.weights.push_back(std::move(bytes));
  return plan::WeightId{static_cast<uint32_t>(case_.weights.size() - 1)};
}

plan::KvLayerId CaseBuilder::kv_layer(const plan::KvLayer& layer) {
  case_.resources.kv_layers.push_back(layer);
  return plan::KvLayerId{static_cast<uint32_t>(case_.resources.kv_layers.size() - 1)};
}

plan::StateId CaseBuilder::state(uint32_t width) {
  case_.resources.states.push_back({width});
  return plan::StateId{static_cast<uint32_t>(case_.resources.states.size() - 1)};
}

void CaseBuilder::op(const plan::OpBody& body) {
  std::string name = "op." + std::to_string(case_.plan.ops.size());
  case_.plan.ops.push_back({body, kernel_class_, std::move(name)});
}

void CaseBuilder::output(plan::ValueId value, double bound) {
  case_.outputs.push_back(value);
  case_.bound = std::max(case_.bound, bound);
}

std::vector<Column> CaseBuilder::next_columns(uint32_t slot, uint32_t count) {
  std::vector<Column> columns;
  const uint32_t vocab = std::max(1U, case_.resources.vocab_size);
  for (uint32_t i = 0; i < count; ++i) {
    columns.push_back({static_cast<int32_t>(random_() % vocab), next_position_[slot]++, slot});
  }
  return columns;
}

void CaseBuilder::step(std::vector<Column> columns, std::vector<uint32_t> logit_columns,
                       bool read_logits) {
  CaseStep& step = case_.steps.emplace_back();
  step.step.logit_columns = std::move(logit_columns);
  step.step.read_logits = read_logits;
  for (const Column& column : columns) {
    const uint32_t needed = column.position / plan::kPageTokens + 1;
    ensure(needed <= case_.max_pages_per_slot, "the case's positions fit its pages");
    if (needed <= pages_[column.slot]) continue;
    TableUpdate update{column.slot, pages_[column.slot], {}};
    while (pages_[column.slot] < needed) {
      ensure(!free_pages_.empty(), "the case has enough pages");
      update.pages.push_back(free_pages_.back());
      free_pages_.pop_back();
      ++pages_[column.slot];
    }
    step.step.table_updates.push_back(std::move(update));
  }
  for (const InputKind& kind : inputs_) {
    const plan::Value& value = case_.plan[kind.value];
    const std::vector<float> values =
        random_floats(random_, columns.size() * value.width, kind.magnitude);
    const bool q8 = value.type == plan::ValueType::q8;
    step.inputs.push_back(
        {kind.value, q8 ? quantized_rows(values, value.width) : to_bytes(values)});
  }
  step.step.columns = std::move(columns);
}

void CaseBuilder::set_input(plan::ValueId value, const std::vector<float>& values) {
  for (Input& input : case_.steps.back().inputs) {
    if (input.value == value) input.rows = to_bytes(values);
  }
}

void CaseBuilder::set_state_copies(std::vector<StateCopy> copies) {
  case_.steps.back().step.state_copies = std::move(copies);
}

void CaseBuilder::set_position(uint32_t slot, uint32_t position) {
  next_position_[slot] = position;
}

void CaseBuilder::set_sampling(std::vector<RowSampling> sampling) {
  case_.steps.back().step.sampling = std::move(sampling);
}

}  // namespace wisp::backend::selftest
