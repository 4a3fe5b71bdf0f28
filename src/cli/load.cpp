#include "cli/load.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "cli/format.h"
#include "cli/output.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "formats/checkpoint.h"

namespace wisp::cli {

engine::LoadOptions load_options(const std::filesystem::path& model, const ComputeFlags& flags) {
  engine::LoadOptions options;
  options.model = model;
  options.device = flags.create_options();
  options.math = flags.plan.math_mode();
  options.kv_dtype = flags.plan.kv_dtype();
  options.context = flags.plan.context;
  options.stated_context = flags.plan.context;
  options.profile = flags.profile;
  options.check_tensors = flags.check_tensors;
  return options;
}

std::unique_ptr<engine::LoadedModel> load(engine::LoadOptions options) {
  Progress progress("loading");
  options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
  auto model = std::make_unique<engine::LoadedModel>(options);
  const backend::BackendInfo info = model->backend().info();
  log(LogLevel::info, "{} on {}: {}", options.model.string(), info.kind, info.device);
  log(LogLevel::info, "weights {}, KV cache {}, {}work space {}; a context of {} tokens",
      bytes_text(info.weight_bytes), bytes_text(info.kv_bytes),
      info.state_bytes > 0 ? fmt::format("states {}, ", bytes_text(info.state_bytes)) : "",
      bytes_text(info.work_bytes), model->context());
  return model;
}

uint32_t context_for(const model::ModelConfig& config, const PlanFlags& flags, uint64_t prompt,
                     uint64_t wanted) {
  if (flags.context != 0) return flags.context;
  const uint64_t known = config.max_position_embeddings;
  const uint64_t most = prompt > known && !config.learned_positions ? UINT32_MAX : known;
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, most));
}

text::TextModel open_text(const std::filesystem::path& model) {
  std::error_code ignored;
  if (std::filesystem::is_directory(model, ignored)) return text::TextModel::open_folder(model);
  return text::TextModel::open(formats::Checkpoint::open(model));
}

void print_profile(engine::LoadedModel& model, const ComputeFlags& flags) {
  if (!flags.profile) return;
  std::string table = profile_text(model.backend().take_profile());
  while (table.ends_with('\n')) table.pop_back();
  note(table);
}

}  // namespace wisp::cli
