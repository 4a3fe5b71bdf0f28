// Linear: int8 and f32 activations in the decode class, halves or f32 in the prefill class.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lab_case.h"

namespace wisp::lab {
namespace {

using backend::selftest::CaseBuilder;
using formats::DType;
using plan::KernelClass;

struct LinearCase {
  DType dtype = DType::F32;
  Sweep::Matrix shape;
  KernelClass kernel_class = KernelClass::decode;
  bool int8 = false;
  bool f16_inputs = false;
  std::vector<uint32_t> columns;
};

LabCase make(const LinearCase& c, const backend::selftest::Bytes& bytes, const Copies& copies) {
  const uint32_t most = *std::ranges::max_element(c.columns);
  CaseBuilder b("linear", c.kernel_class,
                {.max_columns = most, .max_slots = 1, .max_positions = most});
  const auto type = c.int8 ? plan::ValueType::q8 : plan::ValueType::f32;
  const plan::ValueId x = b.input("x", c.shape.cols, type, 2.0F);
  for (uint32_t i = 0; i < copies.weights; ++i) {
    b.weight("w", c.dtype, c.shape.rows, c.shape.cols, bytes);
  }
  // The self-test's, which is for up to 544 terms; longer sums round more often.
  const double bound = 1e-5 * std::max(1.0, c.shape.cols / 512.0);
  for (uint32_t i = 0; i < copies.ops; ++i) {
    const plan::ValueId out = b.value("out", c.shape.rows);
    plan::Linear op{.x = x, .weight = plan::WeightId{i % copies.weights}, .out = out};
    op.f16_inputs = c.f16_inputs;
    b.op(op);
    b.output(out, bound);
  }
  LabCase lab;
  const double x_bytes = static_cast<double>(plan::row_bytes(b.result().plan[x]));
  for (const uint32_t k : c.columns) {
    std::vector<backend::Column> columns;
    for (uint32_t i = 0; i < k; ++i) columns.push_back({.token = 0, .position = i, .slot = 0});
    b.step(std::move(columns));
    const double rows = c.shape.rows;
    lab.points.push_back({.columns = k,
                          .depth = {},
                          .bytes = static_cast<double>(bytes->size()) + k * (x_bytes + 4.0 * rows),
                          .operations = 2.0 * rows * c.shape.cols * k});
  }
  lab.op_case = std::move(b.result());
  return lab;
}

void add(const LinearCase& c, std::vector<CaseSpec>& specs) {
  const formats::DTypeInfo& info = formats::dtype_info(c.dtype);
  if (c.shape.cols % info.block_elements != 0) return;
  // Made when first needed: a sweep lists far more cases than fit in memory together.
  const auto bytes = std::make_shared<std::weak_ptr<const std::vector<std::byte>>>();
  CaseSpec spec{.op = "linear",
                .type = std::string(info.name),
                .shape = fmt::format("{}x{}", c.shape.rows, c.shape.cols),
                .kernel_class = c.kernel_class,
                .arithmetic = c.int8 ? Arithmetic::int8 : Arithmetic::f32,
                .ops = c.kernel_class == KernelClass::decode ? 64U : 6U,
                .weight_bytes = formats::row_bytes(c.dtype, c.shape.cols) * c.shape.rows,
                .make = {}};
  spec.make = [c, bytes](const Copies& copies) {
    backend::selftest::Bytes weight = bytes->lock();
    if (!weight) weight = weight_bytes(c.dtype, c.shape.rows, c.shape.cols);
    *bytes = weight;
    return make(c, weight, copies);
  };
  specs.push_back(std::move(spec));
}

// Blocks of int8 are for block-quantised weights only.

}  // namespace

void add_linear(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  const std::vector<DType> types = {DType::Q4_0, DType::Q8_0, DType::Q4_1, DType::Q4_K,
                                    DType::Q6_K, DType::F16,  DType::BF16, DType::F32};
  const std::vector<Sweep::Matrix> shapes = {{4096, 4096}, {28672, 4096}, {4096, 14336}};
  if (sweep.decode) {
    for (const DType dtype : asked(sweep.types, types)) {
      LinearCase c{.dtype = dtype, .int8 = formats::is_block_type(dtype) && !sweep.exact};
      c.columns = asked(sweep.columns, {1, 2, 4, 8, 16, 32, 64});
      for (const Sweep::Matrix& shape : asked(sweep.shapes, shapes)) {
        c.shape = shape;
        add(c, specs);
      }
    }
  }
  if (sweep.prefill) {
    for (const DType dtype : asked(sweep.types, types)) {
      LinearCase c{.dtype = dtype, .kernel_class = KernelClass::prefill};
      c.f16_inputs = !sweep.exact;
      c.columns = asked(sweep.columns, {64, 512, 2048});
      // One shape tells enough of the other types.
      const size_t count = dtype == DType::Q4_0 ? shapes.size() : 1;
      for (const Sweep::Matrix& shape :
           asked(sweep.shapes, {shapes.begin(), shapes.begin() + static_cast<ptrdiff_t>(count)})) {
        c.shape = shape;
        add(c, specs);
      }
    }
  }
}

}  // namespace wisp::lab
