// SelectLogits and Sample, alone and as a small head behind them, also in several passes.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;
using plan::Rows;

std::vector<uint32_t> first_numbers(uint32_t count) {
  std::vector<uint32_t> list(count);
  std::iota(list.begin(), list.end(), 0U);
  return list;
}

// Selected input rows are the logits themselves.
CaseBuilder argmax_builder(std::string name, uint32_t vocab, uint32_t max_logits,
                           plan::ValueId* x) {
  CaseBuilder b(std::move(name), KernelClass::decode, {.max_logits = max_logits});
  b.result().resources.vocab_size = vocab;
  *x = b.input("x", vocab);
  const plan::ValueId logits = b.value("logits", vocab, Rows::logits);
  b.op(plan::SelectLogits{.x = *x, .out = logits});
  b.op(plan::Sample{.logits = logits});
  return b;
}

OpCase argmax_case(uint32_t vocab) {
  plan::ValueId x{};
  CaseBuilder b = argmax_builder(fmt::format("argmax_{}", vocab), vocab, 65, &x);
  b.step(b.next_columns(0, 1), {0}, true);
  b.step(b.next_columns(0, 33), {0, 3, 31, 32}, true);
  b.step(b.next_columns(0, 65), first_numbers(65));
  // Ties: all equal; the top twice at many places; zeros of both signs; infinities and NaNs.
  const uint32_t rows = 40;
  b.step(b.next_columns(1, rows), first_numbers(rows));
  std::vector<float> values = random_floats(b.random(), size_t{rows} * vocab);
  for (uint32_t r = 0; r < rows; ++r) {
    float* row = values.data() + size_t{r} * vocab;
    const uint32_t a = b.random()() % vocab;
    const uint32_t c = r % 3 == 0 ? vocab - 1 : b.random()() % vocab;
    if (r == 0) std::fill(row, row + vocab, -2.5F);
    if (r == 1) {
      for (uint32_t i = 0; i < vocab; ++i) row[i] = i % 2 == 0 ? -0.0F : 0.0F;
    }
    if (r >= 2) row[a] = row[c] = 7.0F;
    if (r == 36) row[a] = std::numeric_limits<float>::quiet_NaN();
    if (r == 37) row[c] = std::numeric_limits<float>::infinity();
    if (r == 38) row[a] = -std::numeric_limits<float>::infinity();
    if (r == 39) row[c] = -std::numeric_limits<float>::quiet_NaN();
  }
  b.set_input(x, values);
  return std::move(b.result());
}

// norm, quantised head and arg-max over more rows than the head holds at once.
OpCase passes_case(uint32_t max_logits) {
  CaseBuilder b(fmt::format("head_in_passes_of_{}", max_logits), KernelClass::decode,
                {.max_logits = max_logits});
  b.result().resources.vocab_size = 203;
  const plan::ValueId x = b.input("x", 64);
  const plan::ValueId rows = b.value("rows", 64, Rows::logits);
  const plan::ValueId normed = b.value("normed", 64, Rows::logits);
  const plan::ValueId logits = b.value("logits", 203, Rows::logits);
  b.op(plan::SelectLogits{.x = x, .out = rows});
  plan::Norm norm{.x = rows, .out = normed, .weight = b.weight("norm", DType::F32, 1, 64)};
  norm.group = 64;
  norm.eps = 1e-5F;
  b.op(norm);
  b.op(plan::Linear{.x = normed,
                    .weight = b.weight("head", DType::Q8_0, 203, 64),
                    .out = logits,
                    .bias = {},
                    .residual = {}});
  b.op(plan::Sample{.logits = logits});
  b.result().bound = 1e-5;
  b.step(b.next_columns(0, 1), {}, true);
  b.step(b.next_columns(0, 65), first_numbers(65), true);
  b.step(b.next_columns(0, 33), {1, 2, 5, 8, 13, 21, 32}, true);
  return std::move(b.result());
}

// Columns without a token take what the latest Sample of their slot found.
OpCase last_token_case() {
  CaseBuilder b("last_token", KernelClass::decode, {.max_logits = 4});
  b.result().resources.vocab_size = 67;
  const plan::ValueId embedded = b.value("embedded", 32);
  const plan::ValueId rows = b.value("rows", 32, Rows::logits);
  const plan::ValueId logits = b.value("logits", 67, Rows::logits);
  b.op(plan::Embed{.table = b.weight("table", DType::F16, 67, 32), .out = embedded});
  b.op(plan::SelectLogits{.x = embedded, .out = rows});
  b.op(plan::Linear{.x = rows,
                    .weight = b.weight("head", DType::F32, 67, 32),
                    .out = logits,
                    .bias = {},
                    .residual = {}});
  b.op(plan::Sample{.logits = logits});
  b.output(embedded, 1e-6);
  const auto without_tokens = [](std::vector<Column> columns) {
    for (Column& column : columns) column.token.reset();
    return columns;
  };
  const auto both = [](std::vector<Column> columns, const std::vector<Column>& more) {
    columns.insert(columns.end(), more.begin(), more.end());
    return columns;
  };
  b.step(both(b.next_columns(0, 6), b.next_columns(2, 3)), {5, 8});
  for (int i = 0; i < 3; ++i) {
    b.step(without_tokens(both(b.next_columns(2, 1), b.next_columns(0, 1))), {0, 1});
  }
  b.step(both(b.next_columns(1, 7), without_tokens(b.next_columns(2, 1))), {0, 1, 2, 3, 4, 6, 7},
         true);
  b.step(
      without_tokens(both(both(b.next_columns(1, 1), b.next_columns(2, 1)), b.next_columns(0, 1))),
      {0, 1, 2});
  return std::move(b.result());
}

}  // namespace

void add_head_cases(std::vector<OpCase>& cases) {
  for (const uint32_t vocab : {1U, 2U, 5U, 8U, 15U, 16U, 17U, 33U, 64U, 257U, 1000U, 4099U}) {
    cases.push_back(argmax_case(vocab));
  }
  for (const uint32_t max_logits : {1U, 4U, 7U, 65U}) cases.push_back(passes_case(max_logits));
  cases.push_back(last_token_case());
}

}  // namespace wisp::backend::selftest
