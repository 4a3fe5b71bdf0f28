#include "backend/selftest/kernel_list.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "backend/gpu/choose.h"
#include "backend/selftest/op_case.h"

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

std::string variant_text(const gpu::KernelSpec& spec) {
  std::string text = fmt::format("{} invocations", spec.workgroup_size[0]);
  for (const std::string_view name : {"TEAM", "TEAM_ROWS", "COL_TILE", "TILE_COLS", "HEAD_TILE"}) {
    for (const auto& [constant, value] : spec.constants) {
      if (constant == name) text += fmt::format(", {} {}", name, std::get<uint32_t>(value));
    }
  }
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

}  // namespace

std::vector<KernelLine> kernel_lines(const gpu::Capabilities& capabilities) {
  std::set<KernelLine, Before> lines;
  for (const OpCase& op_case : op_cases()) {
    std::vector<webgpu::DeviceWeight> weights;
    weights.reserve(op_case.resources.weights.size());
    for (const plan::Weight& weight : op_case.resources.weights) {
      weights.emplace_back();
      weights.back().emplace_back().rows = weight.rows;
    }
    const webgpu::ChooseContext context{.capabilities = capabilities,
                                        .plan = op_case.plan,
                                        .resources = op_case.resources,
                                        .weights = weights,
                                        .page_stride = op_case.max_pages_per_slot};
    for (const plan::Op& op : op_case.plan.ops) {
      for (const webgpu::KernelUse& use : webgpu::choose(op, context)) lines.insert(line(op, use));
    }
  }
  return {lines.begin(), lines.end()};
}

}  // namespace wisp::backend::selftest
