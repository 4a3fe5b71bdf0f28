// Sample with rows that are not greedy: every combination of cuts over vocabularies that do and do
// not fit chunks, with ties, among greedy rows and in several passes. The random numbers are such
// that no token hangs on rounding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/selftest/op_case.h"
#include "backend/selftest/reference_sample.h"
#include "base/error.h"

namespace wisp::backend::selftest {
namespace {

using plan::KernelClass;
using plan::Rows;

// A row's logits: spread out, peaked, in coarse steps (many ties), or all the same.
std::vector<float> random_row(Random& random, uint32_t vocab, uint32_t kind) {
  std::vector<float> row = random_floats(random, vocab, kind == 1 ? 2.0F : 9.0F);
  for (float& logit : row) {
    if (kind == 2) logit = std::round(logit);
    if (kind == 3) logit = -3.25F;
  }
  if (kind == 1) row[random() % vocab] = 11.0F;
  return row;
}

RowSampling random_sampling(Random& random, uint32_t vocab, uint32_t cuts) {
  RowSampling sampling{.temperature = 0.25F * static_cast<float>(1 + random() % 8)};
  if ((cuts & 1) != 0) sampling.top_k = 1 + random() % std::min(vocab + 2, 60U);
  if ((cuts & 2) != 0) sampling.top_p = 0.05F + 0.9F * static_cast<float>(random() % 64) / 64.0F;
  if ((cuts & 4) != 0) sampling.min_p = 0.002F + 0.3F * static_cast<float>(random() % 64) / 64.0F;
  return sampling;
}

// The same way to choose with a random number for which the token is certain.
RowSampling with_margin(Random& random, const std::vector<float>& logits,
                        const std::function<RowSampling()>& make) {
  const std::vector<double> row(logits.begin(), logits.end());
  for (int tries = 0; tries < 1000; ++tries) {
    RowSampling sampling = make();
    sampling.random = static_cast<uint32_t>(random());
    if (sample_reference(row, sampling)) return sampling;
  }
  fail("no random number leaves the token of a case certain");
}

OpCase sample_case(uint32_t vocab, uint32_t max_logits) {
  CaseBuilder b(fmt::format("sample_{}_in_passes_of_{}", vocab, max_logits), KernelClass::decode,
                {.max_logits = max_logits});
  b.result().resources.vocab_size = vocab;
  const plan::ValueId x = b.input("x", vocab);
  const plan::ValueId logits = b.value("logits", vocab, Rows::logits);
  b.op(plan::SelectLogits{.x = x, .out = logits});
  b.op(plan::Sample{.logits = logits});

  Random& random = b.random();
  const auto step = [&](uint32_t slot, const std::vector<uint32_t>& cuts) {
    const auto rows = static_cast<uint32_t>(cuts.size());
    std::vector<uint32_t> columns(rows);
    std::iota(columns.begin(), columns.end(), 0U);
    b.step(b.next_columns(slot, rows), columns);
    std::vector<float> values;
    std::vector<RowSampling> sampling;
    for (uint32_t r = 0; r < rows; ++r) {
      const std::vector<float> row = random_row(random, vocab, (r / 8 + r) % 4);
      values.insert(values.end(), row.begin(), row.end());
      sampling.push_back(with_margin(random, row, [&] {
        return cuts[r] < 8 ? random_sampling(random, vocab, cuts[r]) : RowSampling{};
      }));
    }
    b.set_input(x, values);
    b.set_sampling(std::move(sampling));
  };
  constexpr uint32_t kGreedy = 8;
  std::vector<uint32_t> all;
  for (uint32_t r = 0; r < 32; ++r) all.push_back(r % 8);
  step(0, all);
  step(0, {0});                             // drawn from all tokens
  step(0, {1, kGreedy, 4});                 // one cut at most
  step(1, {kGreedy, 3, kGreedy, kGreedy});  // both
  step(1, {2});
  return std::move(b.result());
}

// Rows with a NaN or an infinity among good ones, and temperatures at the ends of their range.
OpCase extremes_case() {
  constexpr uint32_t kVocab = 1300;
  CaseBuilder b("sample_extremes", KernelClass::decode, {});
  b.result().resources.vocab_size = kVocab;
  const plan::ValueId x = b.input("x", kVocab);
  const plan::ValueId logits = b.value("logits", kVocab, Rows::logits);
  b.op(plan::SelectLogits{.x = x, .out = logits});
  b.op(plan::Sample{.logits = logits});
  b.step(b.next_columns(0, 8), {0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<float> values = random_floats(b.random(), size_t{8} * kVocab);
  const auto row = [&](size_t r) { return values.data() + r * kVocab; };
  row(0)[1200] = std::numeric_limits<float>::quiet_NaN();
  row(1)[3] = std::numeric_limits<float>::infinity();
  row(2)[1299] = -std::numeric_limits<float>::infinity();
  row(3)[7] = 3e38F;
  row(3)[8] = -3e38F;
  row(4)[1100] = 1.5F;
  std::fill(row(5), row(6), 0.0F);
  std::fill(row(6), row(7), -0.0F);
  for (uint32_t i = 0; i < kVocab; i += 2) row(6)[i] = 0.0F;
  b.set_input(x, values);
  std::vector<RowSampling> sampling(8, {.temperature = 1.0F, .top_k = 50, .top_p = 0.9F});
  sampling[3] = {.temperature = 1e30F, .top_p = 0.5F, .random = 0xffffffffU};
  sampling[4] = {.temperature = 1e-30F, .random = 0x80000000U};
  sampling[5] = {.temperature = 2.0F, .top_p = 0.2502F, .random = 0xc0000000U};  // 326 of 1300 ties
  sampling[6] = {.temperature = 0.5F, .top_k = 100, .min_p = 1.0F, .random = 0x81000000U};
  sampling[7] = {.temperature = 1.0F, .top_p = 0.0F, .random = 0xffffffffU};
  b.set_sampling(sampling);
  return std::move(b.result());
}

}  // namespace

void add_sample_cases(std::vector<OpCase>& cases) {
  for (const uint32_t vocab : {1U, 2U, 17U, 256U, 1023U, 1024U, 1025U, 5003U}) {
    cases.push_back(sample_case(vocab, 65));
  }
  cases.push_back(sample_case(300, 5));
  cases.push_back(extremes_case());
}

}  // namespace wisp::backend::selftest
