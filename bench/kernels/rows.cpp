// Ops on rows: norms, gates, quantising, sums, lookups and the choice of tokens.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lab_case.h"

namespace wisp::lab {
namespace {

using backend::selftest::CaseBuilder;
using formats::DType;
using plan::KernelClass;

struct RowsCase {
  std::string op;
  std::string type;
  std::string shape;
  uint32_t vocab_size = 0;  // of tokens or logits
  bool logits = false;      // all columns want them
  bool prefill = true;      // prompts run it too
  double column_bytes = 0;  // that one op reads and writes for a column
  double op_bytes = 0;      // and whatever the columns
  std::function<void(CaseBuilder&, uint32_t ops)> add_ops;
};

LabCase make(const RowsCase& c, KernelClass kernel_class, const std::vector<uint32_t>& counts,
             uint32_t ops) {
  const uint32_t most = *std::ranges::max_element(counts);
  CaseBuilder b(c.op, kernel_class,
                {.max_columns = most, .max_logits = most, .max_slots = 1, .max_positions = most});
  b.result().resources.vocab_size = c.vocab_size;
  c.add_ops(b, ops);
  LabCase lab;
  for (const uint32_t k : counts) {
    std::vector<backend::Column> columns;
    std::vector<uint32_t> logit_columns;
    for (uint32_t i = 0; i < k; ++i) {
      const auto token = static_cast<int32_t>(b.random()() % std::max(1U, c.vocab_size));
      columns.push_back({.token = token, .position = i, .slot = 0});
      if (c.logits) logit_columns.push_back(i);
    }
    b.step(std::move(columns), std::move(logit_columns));
    lab.points.push_back({.columns = k, .depth = {}, .bytes = c.op_bytes + k * c.column_bytes});
  }
  lab.op_case = std::move(b.result());
  return lab;
}

void add(const RowsCase& c, const Sweep& sweep, std::vector<CaseSpec>& specs) {
  const auto add_class = [&](KernelClass kernel_class, const std::vector<uint32_t>& counts) {
    specs.push_back({.op = c.op,
                     .type = c.type,
                     .shape = c.shape,
                     .kernel_class = kernel_class,
                     .ops = kernel_class == KernelClass::decode ? 64U : 8U,
                     .make = [c, kernel_class, counts](const Copies& copies) {
                       return make(c, kernel_class, counts, copies.ops);
                     }});
  };
  if (sweep.decode) add_class(KernelClass::decode, asked(sweep.columns, {1, 16, 64}));
  if (sweep.prefill && c.prefill) {
    add_class(KernelClass::prefill, asked(sweep.columns, {512, 2048}));
  }
}

double value_bytes(uint32_t width, bool q8) { return q8 ? 1.25 * width : 4.0 * width; }

// Ends an op with f32 or, by an op that becomes a part of it, q8 results.
void end_op(CaseBuilder& b, plan::ValueId out, bool q8) {
  if (q8) {
    const plan::ValueId blocks =
        b.value("q8", b.result().plan[out].width, plan::Rows::columns, plan::ValueType::q8);
    b.op(plan::Quantize{.x = out, .out = blocks});
    out = blocks;
  }
  b.output(out, 1e-5);
}

// Calls `add` for each kind of results that models take: f32, and q8 unless the sweep is exact.
void for_results(const Sweep& sweep, uint32_t width, const std::function<void(bool q8)>& add) {
  add(false);
  if (!sweep.exact && width % 32 == 0) add(true);
}

void add_norms(plan::NormKind kind, const Sweep& sweep, std::vector<CaseSpec>& specs) {
  const bool layer = kind == plan::NormKind::layer;
  for (const uint32_t width : asked(sweep.widths, {2048, 4096})) {
    for_results(sweep, width, [&](bool q8) {
      RowsCase c{.op = layer ? "layer_norm" : "norm",
                 .type = q8 ? "q8" : "f32",
                 .shape = fmt::format("{}", width)};
      c.prefill = !q8;
      c.column_bytes = 4.0 * width + value_bytes(width, q8);
      c.op_bytes = (layer ? 8.0 : 4.0) * width;
      c.add_ops = [kind, layer, width, q8](CaseBuilder& b, uint32_t ops) {
        const plan::ValueId x = b.input("x", width);
        const auto bytes = weight_bytes(DType::F32, 1, width);
        for (uint32_t i = 0; i < ops; ++i) {
          plan::Norm op{.x = x,
                        .out = b.value("out", width),
                        .kind = kind,
                        .weight = b.weight("norm", DType::F32, 1, width, bytes),
                        .eps = 1e-5F,
                        .group = width};
          if (layer) op.bias = b.weight("bias", DType::F32, 1, width, bytes);
          b.op(op);
          end_op(b, op.out, q8);
        }
      };
      add(c, sweep, specs);
    });
  }
}

}  // namespace

void add_norm(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  add_norms(plan::NormKind::rms, sweep, specs);
}

void add_layer_norm(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  add_norms(plan::NormKind::layer, sweep, specs);
}

void add_glu(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const uint32_t width : asked(sweep.widths, {8192, 14336})) {
    for_results(sweep, width, [&](bool q8) {
      RowsCase c{.op = "glu", .type = q8 ? "q8" : "f32", .shape = fmt::format("{}", width)};
      c.prefill = !q8;
      c.column_bytes = 8.0 * width + value_bytes(width, q8);
      c.add_ops = [width, q8](CaseBuilder& b, uint32_t ops) {
        const plan::ValueId x = b.input("x", 2 * width);
        for (uint32_t i = 0; i < ops; ++i) {
          const plan::ValueId out = b.value("out", width);
          b.op(plan::Glu{.x = x, .out = out});
          end_op(b, out, q8);
        }
      };
      add(c, sweep, specs);
    });
  }
}

void add_activate(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const uint32_t width : asked(sweep.widths, {8192, 16384})) {
    for_results(sweep, width, [&](bool q8) {
      RowsCase c{.op = "activate", .type = q8 ? "q8" : "f32", .shape = fmt::format("{}", width)};
      c.prefill = !q8;
      c.column_bytes = 4.0 * width + value_bytes(width, q8);
      c.add_ops = [width, q8](CaseBuilder& b, uint32_t ops) {
        const plan::ValueId x = b.input("x", width);
        for (uint32_t i = 0; i < ops; ++i) {
          const plan::ValueId out = b.value("out", width);
          b.op(plan::Activate{.x = x, .out = out, .activation = plan::Activation::gelu_tanh});
          end_op(b, out, q8);
        }
      };
      add(c, sweep, specs);
    });
  }
}

void add_softcap(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const uint32_t width : asked(sweep.widths, {16384})) {
    RowsCase c{.op = "softcap", .type = "f32", .shape = fmt::format("{}", width)};
    c.prefill = false;
    c.column_bytes = 8.0 * width;
    c.add_ops = [width](CaseBuilder& b, uint32_t ops) {
      const plan::ValueId x = b.input("x", width);
      for (uint32_t i = 0; i < ops; ++i) {
        const plan::ValueId out = b.value("out", width);
        b.op(plan::Softcap{.x = x, .out = out, .cap = 0.5F});
        end_op(b, out, false);
      }
    };
    add(c, sweep, specs);
  }
}

void add_quantize(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const uint32_t width : asked(sweep.widths, {4096, 14336})) {
    if (width % 32 != 0) continue;
    RowsCase c{.op = "quantize", .type = "q8", .shape = fmt::format("{}", width)};
    c.prefill = false;
    c.column_bytes = 4.0 * width + value_bytes(width, true);
    c.add_ops = [width](CaseBuilder& b, uint32_t ops) {
      const plan::ValueId x = b.input("x", width);
      for (uint32_t i = 0; i < ops; ++i) end_op(b, x, true);
    };
    add(c, sweep, specs);
  }
}

void add_add(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const uint32_t width : asked(sweep.widths, {4096})) {
    RowsCase c{.op = "add", .type = "f32", .shape = fmt::format("{}", width)};
    c.column_bytes = 12.0 * width;
    c.add_ops = [width](CaseBuilder& b, uint32_t ops) {
      const plan::ValueId x = b.input("x", width);
      const plan::ValueId y = b.input("y", width);
      for (uint32_t i = 0; i < ops; ++i) {
        const plan::ValueId out = b.value("out", width);
        b.op(plan::Add{.a = x, .b = y, .out = out, .scale = 0.5F});
        end_op(b, out, false);
      }
    };
    add(c, sweep, specs);
  }
}

void add_embed(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const DType dtype : asked(sweep.types, {DType::Q4_0, DType::Q6_K})) {
    const formats::DTypeInfo& info = formats::dtype_info(dtype);
    for (const Sweep::Matrix& table : asked(sweep.shapes, {{128256, 4096}})) {
      if (table.cols % info.block_elements != 0) continue;
      RowsCase c{.op = "embed",
                 .type = std::string(info.name),
                 .shape = fmt::format("{}x{}", table.rows, table.cols),
                 .vocab_size = table.rows};
      c.column_bytes =
          static_cast<double>(formats::row_bytes(dtype, table.cols)) + 4.0 * table.cols;
      c.add_ops = [dtype, table](CaseBuilder& b, uint32_t ops) {
        const plan::WeightId weight = b.weight("table", dtype, table.rows, table.cols,
                                               weight_bytes(dtype, table.rows, table.cols));
        for (uint32_t i = 0; i < ops; ++i) {
          const plan::ValueId out = b.value("out", table.cols);
          b.op(plan::Embed{.table = weight, .out = out});
          end_op(b, out, false);
        }
      };
      add(c, sweep, specs);
    }
  }
}

// The plan copies the rows of logits once before.
void add_sample(const Sweep& sweep, std::vector<CaseSpec>& specs) {
  for (const uint32_t width : asked(sweep.widths, {128256})) {
    RowsCase c{.op = "sample",
               .type = "f32",
               .shape = fmt::format("{}", width),
               .vocab_size = width,
               .logits = true,
               .prefill = false};
    c.column_bytes = 4.0 * width;
    c.add_ops = [width](CaseBuilder& b, uint32_t ops) {
      const plan::ValueId x = b.input("x", width);
      const plan::ValueId logits = b.value("logits", width, plan::Rows::logits);
      b.op(plan::SelectLogits{.x = x, .out = logits});
      for (uint32_t i = 0; i < ops; ++i) b.op(plan::Sample{.logits = logits});
    };
    add(c, sweep, specs);
  }
}

}  // namespace wisp::lab
