// Ops that move rows: Embed and SelectLogits.
#include <cstring>

#include "backend/cpu/ops.h"

namespace wisp::backend::cpu {

void run_embed(const OpContext& context, const plan::Embed& op) {
  const WeightView& table = context[op.table];
  float* out = context.floats(op.out);
  const formats::DequantizeFn dequantize = formats::dtype_info(table.dtype).dequantize;
  const uint32_t width = table.cols;
  for_rows(context, context.columns.size(), width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      float* to = out + row * width;
      dequantize(table.row(static_cast<uint32_t>(context.columns[row].token)), to, width);
      for (uint32_t i = 0; i < width; ++i) to[i] *= op.scale;
      if (!op.positions) continue;
      const float* position = context[*op.positions].floats(context.columns[row].position);
      for (uint32_t i = 0; i < width; ++i) to[i] += position[i];
    }
  });
}

void run_select_logits(const OpContext& context, const plan::SelectLogits& op) {
  const uint32_t width = context.width(op.x);
  const float* x = context.floats(op.x);
  float* out = context.floats(op.out);
  for (size_t row = 0; row < context.logit_columns.size(); ++row) {
    std::memcpy(out + row * width, x + size_t{context.logit_columns[row]} * width,
                width * sizeof(float));
  }
}

}  // namespace wisp::backend::cpu
