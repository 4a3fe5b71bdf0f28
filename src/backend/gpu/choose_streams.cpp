// Kernels of StreamMatch, StreamPredict and StreamCorrect.
#include "backend/gpu/choose_common.h"

namespace wisp::backend::webgpu {
namespace {

constexpr uint32_t kMaxStreams = 8;  // kernels are unrolled over them

KernelUse streams(std::string label, std::string file, plan::ValueId first, plan::ValueId rest,
                  const ChooseContext& c) {
  const uint32_t width = c.plan[first].width;
  const uint32_t count = 1 + c.plan[rest].width / width;
  if (width % 4 != 0 || count > kMaxStreams) {
    fail("{} streams of {} elements: the webgpu backend runs up to {} of a multiple of 4", count,
         width, kMaxStreams);
  }
  KernelUse use;
  use.spec = {.label = std::move(label), .file = std::move(file)};
  use.spec.workgroup_size = {64, 1, 1};
  auto& constants = use.spec.constants;
  constants.emplace_back("LOGIT_ROWS", logit_rows(c, first));
  constants.emplace_back("STREAMS", count);
  constants.emplace_back("OTHERS", count - 1);
  constants.emplace_back("WIDTH4", width / 4);
  use.grid.x = div_up(width / 4, 64);
  use.bindings = {
      {"step_info", Bound::step}, value_binding("first", first), value_binding("rest", rest)};
  return use;
}

}  // namespace

std::vector<KernelUse> choose_op(const plan::StreamMatch& op, plan::KernelClass,
                                 const ChooseContext& c) {
  KernelUse use = streams("stream_match", "streams/match.wgsl", op.first, op.rest, c);
  use.spec.workgroup_size = {256, 1, 1};
  add_reduce(use.spec, c.capabilities, team_size(c.capabilities, 32));
  use.spec.constants.emplace_back("FLOOR", op.floor);
  use.spec.constants.emplace_back("MEAN", op.mean);
  use.bindings.push_back(value_binding("out", op.out));
  use.grid.x = 1;
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::StreamPredict& op, plan::KernelClass,
                                 const ChooseContext& c) {
  KernelUse use = streams("stream_predict", "streams/predict.wgsl", op.first, op.rest, c);
  use.spec.constants.emplace_back("COEFS_STRIDE", value_stride(c.plan[op.coefs]));
  use.bindings.push_back(value_binding("coefs", op.coefs));
  use.bindings.push_back(value_binding("out", op.out));
  use.bindings.push_back(value_binding("out_rest", op.out_rest));
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::StreamCorrect& op, plan::KernelClass,
                                 const ChooseContext& c) {
  KernelUse use = streams("stream_correct", "streams/correct.wgsl", op.first, op.rest, c);
  use.spec.constants.emplace_back("COEFS_STRIDE", value_stride(c.plan[op.coefs]));
  use.bindings.push_back(value_binding("y", op.y));
  use.bindings.push_back(value_binding("coefs", op.coefs));
  use.bindings.push_back(table_binding(c, "scale", op.scale));
  use.bindings.push_back(value_binding("out", op.out));
  use.bindings.push_back(value_binding("out_rest", op.out_rest));
  use.bindings.push_back(value_binding("scaled", op.scaled));
  return {std::move(use)};
}

}  // namespace wisp::backend::webgpu
