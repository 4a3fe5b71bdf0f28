#include "backend/gpu/fuse.h"

#include <optional>

namespace wisp::backend::webgpu {
namespace {

// Whether the op's kernel can write q8 rows.
struct CanQuantize {
  const plan::Plan& plan;
  const plan::Resources& resources;
  plan::KernelClass kernel_class;

  bool operator()(const plan::RmsNorm& op) const { return op.group == plan[op.x].width; }
  bool operator()(const plan::Glu&) const { return true; }
  bool operator()(const plan::Attention& op) const {
    return kernel_class == plan::KernelClass::decode &&
           resources.kv_layers[plan::index(op.kv_layer)].value_dim % 32 == 0;
  }
  template <typename Other>
  bool operator()(const Other&) const {
    return false;
  }
};

std::vector<uint32_t> count_readers(const plan::Plan& plan) {
  std::vector<uint32_t> readers(plan.values.size(), 0);
  for (const plan::Op& op : plan.ops) {
    for (const plan::ValueId id : plan::inputs(op.body)) ++readers[plan::index(id)];
  }
  return readers;
}

void set_out(plan::OpBody& body, plan::ValueId out) {
  std::visit(
      [&](auto& op) {
        if constexpr (requires { op.out; }) op.out = out;
      },
      body);
}

}  // namespace

plan::Plan fuse(const plan::Plan& plan, const plan::Resources& resources) {
  plan::Plan result = plan;
  result.ops.clear();
  const std::vector<uint32_t> readers = count_readers(plan);
  for (const plan::Op& op : plan.ops) {
    const auto* quantize = std::get_if<plan::Quantize>(&op.body);
    if (quantize != nullptr && !result.ops.empty() && readers[plan::index(quantize->x)] == 1) {
      plan::Op& before = result.ops.back();
      const std::vector<plan::ValueId> out = plan::outputs(before.body);
      if (out.size() == 1 && out[0] == quantize->x &&
          std::visit(CanQuantize{plan, resources, before.kernel_class}, before.body)) {
        set_out(before.body, quantize->out);
        continue;
      }
    }
    result.ops.push_back(op);
  }
  return result;
}

}  // namespace wisp::backend::webgpu
