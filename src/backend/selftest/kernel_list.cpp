#include "backend/selftest/kernel_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "backend/gpu/choose.h"
#include "backend/gpu/fuse.h"

namespace wisp::backend::selftest {
namespace {

struct Before {
  static auto fields(const KernelLine& k) {
    return std::tie(k.op, k.kernel_class, k.weights, k.rows, k.file, k.variant);
  }
  bool operator()(const KernelLine& a, const KernelLine& b) const { return fields(a) < fields(b); }
};

std::string rows_text(const webgpu::Condition& when) {
  std::string text;
  if (when.max_rows == std::numeric_limits<uint32_t>::max()) {
    text = fmt::format("{}+", when.min_rows);
  } else if (when.min_rows == when.max_rows) {
    text = fmt::format("{}", when.min_rows);
  } else {
    text = fmt::format("{}-{}", when.min_rows, when.max_rows);
  }
  if (when.min_ranges > 1) text += ", split keys";
  constexpr std::array<std::string_view, 4> kSampling = {"", ", sampled", ", cut", ", cut twice"};
  text += kSampling.at(when.min_sampling);
  return text;
}

KernelLine line(const plan::Op& op, const webgpu::KernelUse& use) {
  constexpr std::string_view kCodec = "codec/";
  constexpr std::string_view kEnd = ".wgsl";
  KernelLine result;
  result.op = plan::op_kind(op.body);
  result.kernel_class = op.kernel_class == plan::KernelClass::prefill ? "prefill" : "decode";
  for (const std::string& file : use.spec.includes) {
    if (!file.starts_with(kCodec)) continue;
    result.weights = file.substr(kCodec.size(), file.size() - kCodec.size() - kEnd.size());
  }
  result.rows = rows_text(use.when);
  result.file = use.spec.file;
  result.variant = variant_text(use.spec);
  return result;
}

// Weights as the choice of kernels sees them, each in one part.
std::vector<webgpu::DeviceWeight> whole_weights(const OpCase& op_case) {
  std::vector<webgpu::DeviceWeight> weights;
  for (const plan::Weight& weight : op_case.resources.weights) {
    weights.emplace_back();
    weights.back().emplace_back().rows = weight.rows;
  }
  return weights;
}

// A case's plan as the backend runs it, and what the choice of its kernels depends on.
struct FusedCase {
  FusedCase(const OpCase& op_case, const gpu::Capabilities& capabilities)
      : weights(whole_weights(op_case)),
        plan(webgpu::fuse(op_case.plan, op_case.resources, capabilities, weights, op_case.outputs)),
        context{.capabilities = capabilities,
                .plan = plan,
                .resources = op_case.resources,
                .weights = weights,
                .page_stride = op_case.max_pages_per_slot} {}
  FusedCase(const FusedCase&) = delete;
  FusedCase& operator=(const FusedCase&) = delete;

  std::vector<webgpu::DeviceWeight> weights;
  plan::Plan plan;
  webgpu::ChooseContext context;
};

bool takes(const webgpu::Condition& when, uint32_t rows, uint32_t ranges) {
  return rows >= when.min_rows && rows <= when.max_rows && ranges >= when.min_ranges &&
         ranges <= when.max_ranges;
}

}  // namespace

std::string variant_text(const gpu::KernelSpec& spec) {
  std::string text = fmt::format("{} invocations", spec.workgroup_size[0]);
  for (const std::string_view name :
       {"TEAM", "TEAM_ROWS", "COL_TILE", "UNROLL", "TILE_COLS", "HEAD_TILE"}) {
    for (const auto& [constant, value] : spec.constants) {
      if (constant == name) text += fmt::format(", {} {}", name, std::get<uint32_t>(value));
    }
  }
  return text;
}

std::vector<gpu::KernelSpec> step_kernels(const OpCase& op_case, const Step& step,
                                          const gpu::Capabilities& capabilities) {
  const FusedCase fused(op_case, capabilities);
  uint32_t last = 0;
  for (const Column& column : step.columns) last = std::max(last, column.position);
  const uint32_t ranges = last / webgpu::kKeysPerRange + 1;
  std::vector<gpu::KernelSpec> kernels;
  std::set<std::pair<std::string, std::string>> seen;
  auto rows = static_cast<uint32_t>(step.columns.size());
  for (const plan::Op& op : fused.plan.ops) {
    if (std::holds_alternative<plan::SelectLogits>(op.body)) {
      rows = static_cast<uint32_t>(step.logit_columns.size());
    }
    for (webgpu::KernelUse& use : webgpu::choose(op, fused.context)) {
      if (!takes(use.when, rows, ranges)) continue;
      if (!seen.emplace(use.spec.file, variant_text(use.spec)).second) continue;
      kernels.push_back(std::move(use.spec));
    }
  }
  return kernels;
}

std::vector<KernelLine> kernel_lines(const gpu::Capabilities& capabilities) {
  std::set<KernelLine, Before> lines;
  for (const OpCase& op_case : op_cases()) {
    const FusedCase fused(op_case, capabilities);
    for (const plan::Op& op : fused.plan.ops) {
      for (const webgpu::KernelUse& use : webgpu::choose(op, fused.context))
        lines.insert(line(op, use));
    }
  }
  return {lines.begin(), lines.end()};
}

}  // namespace wisp::backend::selftest
