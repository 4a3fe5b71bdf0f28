#include "backend/selftest/op_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "formats/half.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;

uint32_t rows_of(const plan::Value& value, const Step& step) {
  const bool columns = value.rows == plan::Rows::columns;
  return static_cast<uint32_t>(columns ? step.columns.size() : step.logit_columns.size());
}

template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string difference_of(const plan::Value& value, const std::vector<std::byte>& actual,
                          const std::vector<std::byte>& expected, double bound) {
  if (actual.size() != expected.size()) {
    return fmt::format("{} bytes, expected {}", actual.size(), expected.size());
  }
  const std::vector<double> a = numbers(value, actual);
  const std::vector<double> e = numbers(value, expected);
  double square = 0.0;
  for (const double x : e) square += std::isfinite(x) ? x * x : 0.0;
  const double rms = std::sqrt(square / static_cast<double>(std::max<size_t>(1, e.size())));
  const bool q8 = value.type == plan::ValueType::q8;
  size_t flips = 0;
  size_t worst = 0;
  double worst_error = -1.0;
  for (size_t i = 0; i < e.size(); ++i) {
    double error = std::fabs(a[i] - e[i]);
    if (q8 && error > bound * rms) {
      const size_t row = i / value.width;
      const size_t block = i % value.width / 32;
      const std::byte* d = expected.data() + row * plan::row_bytes(value) + value.width + 8 * block;
      if (error <= 1.001 * read<float>(d)) {
        ++flips;
        error = 0.0;
      }
    }
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) error = 0.0;
    if (std::isnan(error)) error = HUGE_VAL;
    if (error > worst_error) {
      worst_error = error;
      worst = i;
    }
  }
  if (worst_error > bound * rms) {
    return fmt::format("[{}, {}] is {}, expected {}: error {:.3g} of rms {:.3g}, bound {:.3g}",
                       worst / value.width, worst % value.width, a[worst], e[worst], worst_error,
                       rms, bound);
  }
  if (flips * 50 > e.size() + 49) return fmt::format("{} of {} quanta differ", flips, e.size());
  return "";
}

// The sums stored in a q8 value must be those of its quants.
std::string wrong_sums(const plan::Value& value, const std::vector<std::byte>& rows) {
  if (value.type != plan::ValueType::q8) return "";
  const size_t stride = plan::row_bytes(value);
  for (size_t row = 0; row * stride < rows.size(); ++row) {
    const std::byte* quants = rows.data() + row * stride;
    for (size_t block = 0; block < value.width / 32; ++block) {
      int32_t sum = 0;
      for (size_t i = 0; i < 32; ++i) sum += read<int8_t>(quants + 32 * block + i);
      const auto stored = read<int32_t>(quants + value.width + 8 * block + 4);
      if (sum != stored) {
        return fmt::format("row {} block {}: sum {}, expected {}", row, block, stored, sum);
      }
    }
  }
  return "";
}

// Columns [begin, end) of a step that columns_alone leaves together.
struct Together {
  uint32_t begin = 0;
  uint32_t end = 0;
};

std::vector<Together> parts_of(const OpCase& op_case, const Step& step) {
  std::vector<Together> parts;
  for (uint32_t i = 0; i < step.columns.size(); ++i) {
    const bool same = i > 0 && step.columns[i].slot == step.columns[i - 1].slot;
    if (!same || step.columns[i].position % op_case.block == 0) parts.push_back({i, i});
    parts.back().end = i + 1;
  }
  return parts;
}

// What of `whole` the columns of a part have.
CaseStep part_of(const OpCase& op_case, const CaseStep& whole, const Together& part) {
  CaseStep result;
  const auto begin = whole.step.columns.begin();
  result.step.columns.assign(begin + part.begin, begin + part.end);
  result.step.read_logits = whole.step.read_logits;
  if (part.begin == 0) {
    result.step.table_updates = whole.step.table_updates;
    result.step.state_copies = whole.step.state_copies;
  }
  for (size_t row = 0; row < whole.step.logit_columns.size(); ++row) {
    const uint32_t column = whole.step.logit_columns[row];
    if (column < part.begin || column >= part.end) continue;
    result.step.logit_columns.push_back(column - part.begin);
    if (!whole.step.sampling.empty()) result.step.sampling.push_back(whole.step.sampling[row]);
  }
  for (const Input& input : whole.inputs) {
    const auto bytes = static_cast<ptrdiff_t>(plan::row_bytes(op_case.plan[input.value]));
    const auto first = input.rows.begin();
    result.inputs.push_back({input.value, {first + part.begin * bytes, first + part.end * bytes}});
  }
  return result;
}

}  // namespace

CaseRun run_case(Backend& backend, const OpCase& op_case) {
  LoadOptions options;
  options.resources = op_case.resources;
  for (size_t i = 0; i < op_case.weights.size(); ++i) {
    // Several rows come in two parts, as fused projections do.
    const std::span<const std::byte> bytes = *op_case.weights[i];
    const uint32_t rows = op_case.resources.weights[i].rows;
    if (rows < 2) {
      options.weights.push_back({bytes});
    } else {
      const size_t split = bytes.size() / rows * (rows / 2);
      options.weights.push_back({bytes.first(split), bytes.subspan(split)});
    }
  }
  options.num_pages = op_case.num_pages;
  options.max_slots = op_case.max_slots;
  options.max_pages_per_slot = op_case.max_pages_per_slot;
  options.num_states = op_case.num_states;
  backend.load(std::move(options));
  const PlanHandle plan = backend.prepare(op_case.plan, op_case.outputs);
  CaseRun run;
  for (const CaseStep& step : op_case.steps) {
    for (const Input& input : step.inputs) backend.write_value(plan, input.value, input.rows);
    StepRun& out = run.emplace_back();
    out.result = backend.wait(backend.submit(plan, step.step));
    for (const plan::ValueId id : op_case.outputs) {
      out.outputs.push_back(backend.read_value(plan, id, rows_of(op_case.plan[id], step.step)));
    }
  }
  return run;
}

OpCase columns_alone(const OpCase& op_case) {
  OpCase alone = op_case;
  alone.steps.clear();
  for (const CaseStep& whole : op_case.steps) {
    for (const Together& part : parts_of(op_case, whole.step)) {
      alone.steps.push_back(part_of(op_case, whole, part));
    }
  }
  return alone;
}

CaseRun join_columns(const OpCase& whole, const CaseRun& alone) {
  CaseRun joined;
  size_t next = 0;
  for (const CaseStep& step : whole.steps) {
    StepRun& out = joined.emplace_back();
    out.outputs.resize(whole.outputs.size());
    for (size_t i = 0; i < parts_of(whole, step.step).size(); ++i) {
      const StepRun& single = alone.at(next++);
      for (size_t o = 0; o < out.outputs.size(); ++o) append(out.outputs[o], single.outputs[o]);
      append(out.result.tokens, single.result.tokens);
      append(out.result.finite, single.result.finite);
      append(out.result.logits, single.result.logits);
    }
  }
  return joined;
}

std::string differing_bits(const OpCase& op_case, const CaseRun& a, const CaseRun& b) {
  for (size_t s = 0; s < op_case.steps.size(); ++s) {
    for (size_t o = 0; o < op_case.outputs.size(); ++o) {
      const plan::Value& value = op_case.plan[op_case.outputs[o]];
      if (a[s].outputs[o] == b[s].outputs[o]) continue;
      const auto x = numbers(value, a[s].outputs[o]);
      const auto y = numbers(value, b[s].outputs[o]);
      for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
        if (std::bit_cast<uint64_t>(x[i]) != std::bit_cast<uint64_t>(y[i])) {
          return fmt::format("{} step {} ({} columns): {} [{}, {}] is {} and {}", op_case.name, s,
                             op_case.steps[s].step.columns.size(), value.name, i / value.width,
                             i % value.width, x[i], y[i]);
        }
      }
      return fmt::format("{} step {}: {} differs", op_case.name, s, value.name);
    }
    if (a[s].result.tokens != b[s].result.tokens) {
      return fmt::format("{} step {}: tokens differ", op_case.name, s);
    }
    if (a[s].result.finite != b[s].result.finite) {
      return fmt::format("{} step {}: finite flags differ", op_case.name, s);
    }
    if (to_bytes(a[s].result.logits) != to_bytes(b[s].result.logits)) {
      return fmt::format("{} step {}: logits differ", op_case.name, s);
    }
  }
  return "";
}

std::string difference(const OpCase& op_case, const CaseRun& actual, const CaseRun& expected,
                       double bound_scale) {
  const double bound = op_case.bound * bound_scale;
  const plan::Value logits{"logits", plan::ValueType::f32, plan::Rows::logits,
                           std::max(1U, op_case.resources.vocab_size)};
  for (size_t s = 0; s < op_case.steps.size(); ++s) {
    const std::string where = fmt::format("{} step {} ({} columns): ", op_case.name, s,
                                          op_case.steps[s].step.columns.size());
    for (size_t o = 0; o < op_case.outputs.size(); ++o) {
      const plan::Value& value = op_case.plan[op_case.outputs[o]];
      std::string text = difference_of(value, actual[s].outputs[o], expected[s].outputs[o], bound);
      if (text.empty()) text = wrong_sums(value, actual[s].outputs[o]);
      if (!text.empty()) return fmt::format("{}{} {}", where, value.name, text);
    }
    const std::string text = difference_of(logits, to_bytes(actual[s].result.logits),
                                           to_bytes(expected[s].result.logits), bound);
    if (!text.empty()) return fmt::format("{}logits {}", where, text);
    if (actual[s].result.finite != expected[s].result.finite) {
      return where + "finite flags differ";
    }
    if (actual[s].result.tokens.size() != expected[s].result.tokens.size()) {
      return where + "the number of tokens differs";
    }
    for (size_t i = 0; i < expected[s].result.tokens.size(); ++i) {
      // A row that is not finite has no token.
      if (expected[s].result.finite[i] == 0) continue;
      if (actual[s].result.tokens[i] != expected[s].result.tokens[i]) {
        return fmt::format("{}logit row {}: token {}, expected {}", where, i,
                           actual[s].result.tokens[i], expected[s].result.tokens[i]);
      }
    }
  }
  return "";
}

std::vector<double> numbers(const plan::Value& value, const std::vector<std::byte>& rows) {
  std::vector<double> out;
  if (value.type == plan::ValueType::f32) {
    for (size_t i = 0; i < rows.size() / 4; ++i) out.push_back(read<float>(rows.data() + 4 * i));
    return out;
  }
  const size_t stride = plan::row_bytes(value);
  for (size_t row = 0; row < rows.size() / stride; ++row) {
    const std::byte* from = rows.data() + row * stride;
    for (size_t i = 0; i < value.width; ++i) {
      const double d = read<float>(from + value.width + i / 32 * 8);
      out.push_back(d * read<int8_t>(from + i));
    }
  }
  return out;
}

std::vector<float> random_floats(Random& random, size_t count, float magnitude) {
  std::vector<float> values(count);
  // Integers of 24 bits: the standard's distributions differ between libraries.
  for (float& v : values) {
    v = magnitude * (static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F);
  }
  return values;
}

std::vector<float> rope_table(uint32_t positions, uint32_t rotary_dim) {
  std::vector<float> table;
  for (uint32_t p = 0; p < positions; ++p) {
    for (uint32_t i = 0; i < rotary_dim / 2; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / rotary_dim);
      table.push_back(static_cast<float>(std::cos(angle)));
      table.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

std::vector<std::byte> to_bytes(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

namespace {

// An f16 factor of a block: where it lies and the largest number that it multiplies.
struct Factor {
  DType dtype;
  uint32_t offset;
  float largest;
};

constexpr Factor kFactors[] = {
    {DType::Q5_0, 0, 16.0F},
    {DType::Q5_1, 0, 31.0F},
    {DType::Q5_1, 2, 2.0F},
    {DType::Q2_K, 80, 15.0F * 3.0F},
    {DType::Q2_K, 82, 15.0F * 2.0F},
    {DType::Q3_K, 108, 32.0F * 4.0F},
    {DType::Q4_K, 0, 63.0F * 15.0F},
    {DType::Q4_K, 2, 63.0F * 2.0F},
    {DType::Q5_K, 0, 63.0F * 31.0F},
    {DType::Q5_K, 2, 63.0F * 2.0F},
    {DType::Q6_K, 208, 128.0F * 32.0F},
    {DType::IQ4_NL, 0, 127.0F},
    {DType::IQ4_XS, 0, 32.0F * 127.0F},
    {DType::IQ3_S, 0, 31.0F * 15.0F},
    {DType::IQ3_XXS, 0, 8.0F * 62.0F},
    {DType::IQ2_S, 0, 4.0F * 43.0F},
    {DType::IQ2_XS, 0, 4.0F * 43.0F},
    {DType::IQ2_XXS, 0, 4.0F * 43.0F},
    {DType::IQ1_S, 0, 15.0F},
    {DType::TQ1_0, 52, 1.0F},
    {DType::TQ2_0, 64, 2.0F},
};

// The factors of a block of random bytes, for values up to about `magnitude`.
void set_factors(Random& random, DType dtype, float magnitude, std::byte* block) {
  const auto factor = [&](float largest) {
    return formats::f32_to_f16(magnitude / largest *
                               (0.5F + static_cast<float>(random() >> 8) * 0x1p-25F));
  };
  const auto exponent = [&](int zero, float largest) {
    return zero + std::ilogb(magnitude / largest) - static_cast<int>(random() % 3);
  };
  for (const Factor& one : kFactors) {
    if (one.dtype != dtype) continue;
    const uint16_t half = factor(one.largest);
    std::memcpy(block + one.offset, &half, sizeof half);
  }
  if (dtype == DType::MXFP4) block[0] = static_cast<std::byte>(exponent(128, 12.0F));
  if (dtype == DType::NVFP4) {
    for (size_t i = 0; i < 4; ++i) {
      block[i] = static_cast<std::byte>(exponent(8, 6.0F) << 3 | static_cast<int>(random() % 8));
    }
  }
  const formats::DTypeInfo& info = formats::dtype_info(dtype);
  if (dtype == DType::F8_32 || dtype == DType::F8_128) {
    const float d = magnitude / 448.0F * (0.5F + static_cast<float>(random() >> 8) * 0x1p-25F);
    std::memcpy(block, &d, sizeof d);
    for (size_t i = 4; i < info.block_bytes; ++i) {
      if ((block[i] & std::byte{127}) == std::byte{127}) block[i] ^= std::byte{1};  // no NaN
    }
  }
  if (dtype >= DType::I4_32 && dtype <= DType::I8_128) {
    const bool bytes = info.block_bytes - 4 == info.block_elements;
    const uint16_t pair[2] = {
        factor(bytes ? 128.0F : 8.0F),
        formats::f32_to_f16(static_cast<float>(random() % (bytes ? 100 : 16)))};
    std::memcpy(block, pair, sizeof pair);
  }
  if (dtype == DType::IQ1_M) {  // four bits in each of the last four words
    const uint16_t half = factor(15.0F);
    for (size_t i = 0; i < 4; ++i) {
      std::byte& top = block[49 + 2 * i];
      top = (top & std::byte{15}) | static_cast<std::byte>((half >> (4 * i) & 15) << 4);
    }
  }
}

}  // namespace

std::vector<std::byte> random_weight(Random& random, DType dtype, uint32_t rows, uint32_t cols,
                                     float magnitude) {
  const formats::DTypeInfo& info = formats::dtype_info(dtype);
  const size_t count = size_t{rows} * cols;
  std::vector<std::byte> bytes(formats::row_bytes(dtype, cols) * rows);
  if (info.quantize != nullptr) {
    info.quantize(random_floats(random, count, magnitude).data(), bytes.data(), count);
    return bytes;
  }
  // No encoder: random quants and scales, then factors that give about the magnitude.
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() >> 24);
  for (size_t at = 0; at < bytes.size(); at += info.block_bytes) {
    set_factors(random, dtype, magnitude, &bytes[at]);
  }
  return bytes;
}

std::vector<std::byte> quantized_rows(const std::vector<float>& values, uint32_t width) {
  const plan::Value value{"", plan::ValueType::q8, plan::Rows::columns, width};
  const size_t stride = plan::row_bytes(value);
  std::vector<std::byte> rows(values.size() / width * stride);
  for (size_t row = 0; row < values.size() / width; ++row) {
    std::byte* to = rows.data() + row * stride;
    for (size_t block = 0; block < width / 32; ++block) {
      const float* x = values.data() + row * width + block * 32;
      float largest = 0.0F;
      for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
      const float d = largest / 127.0F;
      int32_t sum = 0;
      for (size_t i = 0; i < 32; ++i) {
        const auto q = static_cast<int8_t>(d == 0.0F ? 0.0F : std::nearbyint(x[i] / d));
        to[block * 32 + i] = static_cast<std::byte>(q);
        sum += q;
      }
      std::memcpy(to + width + 8 * block, &d, sizeof d);
      std::memcpy(to + width + 8 * block + 4, &sum, sizeof sum);
    }
  }
  return rows;
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  add_linear_cases(cases);
  add_attention_cases(cases);
  add_fused_cases(cases);
  add_pointwise_cases(cases);
  add_head_cases(cases);
  add_expert_cases(cases);
  add_latent_cases(cases);
  add_stream_cases(cases);
  add_recurrent_cases(cases);
  add_sample_cases(cases);
  return cases;
}

}  // namespace wisp::backend::selftest
