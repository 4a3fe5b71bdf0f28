#include "backend/cpu/decode.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/decode.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/highway.h>

#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

void DecodeRow(formats::DType dtype, const std::byte* blocks, float* out, size_t n, bool to_half) {
  formats::dtype_info(dtype).dequantize(blocks, out, n);
  if (!to_half) return;
  ForEach(n, [&](auto tag, size_t i)
                 HWY_ATTR { hn::StoreU(RoundToHalf(tag, hn::LoadU(tag, out + i)), tag, out + i); });
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(DecodeRow);

void decode_row(formats::DType dtype, const std::byte* blocks, float* out, size_t n, bool to_half) {
  HWY_DYNAMIC_DISPATCH(DecodeRow)(dtype, blocks, out, n, to_half);
}

}  // namespace wisp::backend::cpu
#endif
