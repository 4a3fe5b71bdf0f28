// Ops that work on each row by itself: Norm, Add, Quantize, Glu, Gate, Activate,
// Softcap.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "backend/cpu/norm-inl.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

void AddScaled(const plan::Add& op, const float* a, const float* b, float* out, size_t n) {
  ForEach(n, [&](auto tag, size_t i) HWY_ATTR {
    const auto product = hn::Mul(hn::Set(tag, op.scale), hn::LoadU(tag, b + i));
    const auto sum = hn::Add(hn::LoadU(tag, a + i), product);
    hn::StoreU(hn::Mul(hn::Set(tag, op.out_scale), sum), tag, out + i);
  });
}

// One block of 32; returns the sum of its quants.
HWY_INLINE int32_t QuantizeBlock(const float* x, int8_t* quants, float* scale) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<int8_t, decltype(d)> d8;
  auto largest = hn::Zero(d);
  for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const auto v = hn::Abs(hn::LoadU(d, x + i));
    // A NaN must reach the scale: an ordinary maximum may drop it.
    largest = hn::IfThenElse(hn::Lt(v, largest), largest, v);
  }
  auto finite = hn::Zero(d);  // a NaN once any value is NaN or infinite
  for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    finite = hn::Add(finite, hn::Sub(v, v));
  }
  const float d_value =
      hn::GetLane(hn::MaxOfLanes(d, largest)) / 127.0F + hn::GetLane(hn::SumOfLanes(d, finite));
  *scale = d_value;
  auto sum = hn::Zero(di);
  if (!(d_value > 0.0F)) {
    std::memset(quants, 0, 32);
    return 0;
  }
  const auto divisor = hn::Set(d, d_value);
  const auto limit = hn::Set(d, 127.0F);
  for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
    auto q = hn::Div(hn::LoadU(d, x + i), divisor);
    q = hn::Min(hn::Max(q, hn::Neg(limit)), limit);  // subnormal d: the quotient may exceed 127
    const auto integer = hn::NearestInt(q);
    sum = hn::Add(sum, integer);
    hn::StoreU(hn::DemoteTo(d8, integer), d8, quants + i);
  }
  return hn::GetLane(hn::SumOfLanes(di, sum));
}

void QuantizeRow(const float* x, std::byte* out, size_t width) {
  auto* quants = reinterpret_cast<int8_t*>(out);
  std::byte* pairs = out + width;
  for (size_t block = 0; block < width / 32; ++block) {
    float scale = 0.0F;
    const int32_t sum = QuantizeBlock(x + 32 * block, quants + 32 * block, &scale);
    std::memcpy(pairs + 8 * block, &scale, sizeof scale);
    std::memcpy(pairs + 8 * block + 4, &sum, sizeof sum);
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Activate(D d, plan::Activation activation, V x) {
  const V one = hn::Set(d, 1.0F);
  const V zero = hn::Zero(d);
  switch (activation) {
    case plan::Activation::silu: {
      // Beyond 100 exp is infinite in f32; Exp's range ends at 104.
      const V exponent = hn::Min(hn::Neg(x), hn::Set(d, 100.0F));
      return hn::Div(x, hn::Add(one, hn::Exp(d, exponent)));
    }
    case plan::Activation::gelu_tanh: {
      const V cube = hn::Mul(hn::Mul(x, x), x);
      const V inner =
          hn::Mul(hn::Set(d, 0.7978845608028654F), hn::MulAdd(hn::Set(d, 0.044715F), cube, x));
      return hn::Mul(hn::Mul(hn::Set(d, 0.5F), x), hn::Add(one, hn::Tanh(d, inner)));
    }
    case plan::Activation::gelu_erf: {
      HWY_ALIGN float lanes[hn::MaxLanes(hn::ScalableTag<float>())];
      hn::Store(x, d, lanes);
      for (size_t i = 0; i < hn::Lanes(d); ++i) {
        lanes[i] = 0.5F * lanes[i] * (1.0F + std::erf(lanes[i] * 0.70710678118654752F));
      }
      return hn::Load(d, lanes);
    }
    case plan::Activation::relu:
      return hn::IfThenElse(hn::Lt(x, zero), zero, x);
    case plan::Activation::relu_squared: {
      const V positive = hn::IfThenElse(hn::Lt(x, zero), zero, x);
      return hn::Mul(positive, positive);
    }
    case plan::Activation::sigmoid: {
      const V exponent = hn::Min(hn::Neg(x), hn::Set(d, 100.0F));
      const V result = hn::Div(one, hn::Add(one, hn::Exp(d, exponent)));
      return hn::IfThenElse(hn::IsNaN(x), x, result);
    }
  }
  return x;
}

// The gates that a cutoff leaves, in `out`.
void CutRow(float cutoff, const float* gates, float* out, size_t width) {
  const float n = static_cast<float>(width);
  const float mean = Sum(gates, width) / n;
  const float least = mean + cutoff * std::sqrt(SumSquares(gates, width, mean) / n);
  ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
    const auto over = hn::Sub(hn::LoadU(tag, gates + i), hn::Set(tag, least));
    hn::StoreU(hn::IfThenElse(hn::Lt(over, hn::Zero(tag)), hn::Zero(tag), over), tag, out + i);
  });
}

void GluRow(const plan::Glu& op, const float* x, float* out, size_t width) {
  if (op.cutoff) {
    CutRow(*op.cutoff, x, out, width);
    ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
      const auto gate = Activate(tag, op.activation, hn::LoadU(tag, out + i));
      hn::StoreU(hn::Mul(gate, hn::LoadU(tag, x + width + i)), tag, out + i);
    });
    return;
  }
  if (op.limit == 0.0F && op.alpha == 1.0F && op.up_offset == 0.0F) {
    ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
      const auto gate = Activate(tag, op.activation, hn::LoadU(tag, x + i));
      hn::StoreU(hn::Mul(gate, hn::LoadU(tag, x + width + i)), tag, out + i);
    });
    return;
  }
  ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
    auto gate = hn::LoadU(tag, x + i);
    auto up = hn::LoadU(tag, x + width + i);
    if (op.limit > 0.0F) {  // a NaN stays one
      const auto limit = hn::Set(tag, op.limit);
      gate = hn::IfThenElse(hn::Gt(gate, limit), limit, gate);
      up = hn::IfThenElse(hn::Gt(hn::Abs(up), limit), hn::CopySign(limit, up), up);
    }
    if (op.activation == plan::Activation::silu) {
      const auto exponent = hn::Min(hn::Mul(hn::Set(tag, -op.alpha), gate), hn::Set(tag, 100.0F));
      gate = hn::Div(gate, hn::Add(hn::Set(tag, 1.0F), hn::Exp(tag, exponent)));
    } else {
      gate = Activate(tag, op.activation, gate);
    }
    hn::StoreU(hn::Mul(gate, hn::Add(up, hn::Set(tag, op.up_offset))), tag, out + i);
  });
}

// gates: one for all elements, or one for each.
void GateRow(plan::Activation activation, const float* x, const float* gates, bool one, float* out,
             size_t width) {
  ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
    const auto gate = one ? hn::Set(tag, gates[0]) : hn::LoadU(tag, gates + i);
    hn::StoreU(hn::Mul(hn::LoadU(tag, x + i), Activate(tag, activation, gate)), tag, out + i);
  });
}

void ActivateRow(plan::Activation activation, const float* x, float* out, size_t width) {
  ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(Activate(tag, activation, hn::LoadU(tag, x + i)), tag, out + i);
  });
}

void SoftcapRow(float cap, const float* x, float* out, size_t width) {
  ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
    const auto inner = hn::Div(hn::LoadU(tag, x + i), hn::Set(tag, cap));
    hn::StoreU(hn::Mul(hn::Set(tag, cap), hn::Tanh(tag, inner)), tag, out + i);
  });
}

Best ArgmaxRow(const float* logits, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  float largest = logits[0];
  float spoilt = 0.0F;  // NaN once a logit is NaN or infinite
  if (n >= lanes) {
    auto top = hn::LoadU(d, logits);
    auto difference = hn::Zero(d);
    for (; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, logits + i);
      top = hn::Max(top, v);
      difference = hn::Add(difference, hn::Sub(v, v));
    }
    largest = hn::GetLane(hn::MaxOfLanes(d, top));
    spoilt = hn::GetLane(hn::SumOfLanes(d, difference));
  }
  for (; i < n; ++i) {
    largest = std::max(largest, logits[i]);
    spoilt += logits[i] - logits[i];
  }
  Best best;
  best.finite = spoilt == 0.0F;
  const auto target = hn::Set(d, largest);
  for (i = 0; i + lanes <= n; i += lanes) {
    const intptr_t lane = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, logits + i), target));
    if (lane >= 0) {
      best.index = static_cast<uint32_t>(i + static_cast<size_t>(lane));
      return best;
    }
  }
  for (; i < n; ++i) {
    if (logits[i] == largest) {
      best.index = static_cast<uint32_t>(i);
      return best;
    }
  }
  return best;  // nothing equals a NaN
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(NormRow);
HWY_EXPORT(AddScaled);
HWY_EXPORT(QuantizeRow);
HWY_EXPORT(GluRow);
HWY_EXPORT(GateRow);
HWY_EXPORT(ActivateRow);
HWY_EXPORT(SoftcapRow);
HWY_EXPORT(ArgmaxRow);
HWY_EXPORT(TargetName);

namespace {

NormRule norm_rule(const OpContext& context, const plan::Norm& op) {
  const auto& vector = op.weight ? op.weight : op.bias;
  const bool own = vector && context[*vector].cols > op.group;
  return {.kind = op.kind,
          .weight = context.vector(op.weight),
          .bias = context.vector(op.bias),
          .group = op.group,
          .weight_stride = own ? op.group : 0,
          .eps = op.eps,
          .weight_offset = op.weight_offset};
}

// Calls body(x, out, row) with the start of each row, for functions that cost some operations an
// element.
template <typename Body>
void for_values(const OpContext& context, plan::ValueId x, plan::ValueId out, const Body& body) {
  const size_t x_width = context.width(x);
  const size_t out_width = context.width(out);
  const float* from = context.floats(x);
  float* to = context.floats(out);
  for_rows(context, context.rows(x), 8 * out_width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row)
      body(from + row * x_width, to + row * out_width, row);
  });
}

}  // namespace

void run_norm(const OpContext& context, const plan::Norm& op) {
  const uint32_t width = context.width(op.x);
  const float* x = context.floats(op.x);
  float* out = context.floats(op.out);
  const NormRule rule = norm_rule(context, op);
  const auto norm = HWY_DYNAMIC_DISPATCH(NormRow);
  for_rows(context, context.rows(op.x), width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row)
      norm(rule, x + row * width, out + row * width, width);
  });
}

void run_add(const OpContext& context, const plan::Add& op) {
  const uint32_t width = context.width(op.a);
  const uint32_t b_width = context.width(op.b);
  const float* a = context.floats(op.a);
  const float* b = context.floats(op.b);
  float* out = context.floats(op.out);
  const auto add = HWY_DYNAMIC_DISPATCH(AddScaled);
  for_rows(context, context.rows(op.a), width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      for (size_t at = row * width; at < (row + 1) * width; at += b_width) {
        add(op, a + at, b + row * b_width, out + at, b_width);
      }
    }
  });
}

void run_quantize(const OpContext& context, const plan::Quantize& op) {
  const uint32_t width = context.width(op.x);
  const size_t stride = plan::row_bytes(context.plan[op.out]);
  const float* x = context.floats(op.x);
  std::byte* out = context.bytes(op.out);
  const auto quantize = HWY_DYNAMIC_DISPATCH(QuantizeRow);
  for_rows(context, context.rows(op.x), size_t{2} * width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) quantize(x + row * width, out + row * stride, width);
  });
}

void run_glu(const OpContext& context, const plan::Glu& op) {
  const size_t width = context.width(op.out);
  const size_t group = width / op.groups;
  const auto glu = HWY_DYNAMIC_DISPATCH(GluRow);
  for_values(context, op.x, op.out, [&](const float* x, float* out, size_t) {
    for (size_t at = 0; at < width; at += group) glu(op, x + 2 * at, out + at, group);
  });
}

void run_activate(const OpContext& context, const plan::Activate& op) {
  const size_t width = context.width(op.out);
  const auto activate = HWY_DYNAMIC_DISPATCH(ActivateRow);
  for_values(context, op.x, op.out,
             [&](const float* x, float* out, size_t) { activate(op.activation, x, out, width); });
}

void activate_row(plan::Activation activation, const float* x, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(ActivateRow)(activation, x, out, n);
}

void run_gate(const OpContext& context, const plan::Gate& op) {
  const size_t width = context.width(op.out);
  const size_t gate_width = context.width(op.gate);
  const float* gates = context.floats(op.gate);
  const auto gate = HWY_DYNAMIC_DISPATCH(GateRow);
  for_values(context, op.x, op.out, [&](const float* x, float* out, size_t row) {
    gate(op.activation, x + op.x_offset, gates + row * gate_width + op.gate_offset, gate_width == 1,
         out, width);
  });
}

void run_softcap(const OpContext& context, const plan::Softcap& op) {
  const size_t width = context.width(op.out);
  const auto softcap = HWY_DYNAMIC_DISPATCH(SoftcapRow);
  for_values(context, op.x, op.out,
             [&](const float* x, float* out, size_t) { softcap(op.cap, x, out, width); });
}

Best argmax(std::span<const float> logits) {
  return HWY_DYNAMIC_DISPATCH(ArgmaxRow)(logits.data(), logits.size());
}

const char* simd_target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

bool simd_supported() { return (hwy::SupportedTargets() & HWY_TARGETS) != 0; }

}  // namespace wisp::backend::cpu
#endif
