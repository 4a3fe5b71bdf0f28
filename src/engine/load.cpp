#include "engine/load.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/log.h"
#include "base/threads.h"
#include "model/check_weights.h"
#include "plan/plan.h"

namespace wisp::engine {
namespace {

constexpr uint32_t kDefaultContext = 8192;

model::Model load(const formats::Checkpoint& checkpoint, const LoadOptions& options) {
  const model::ModelConfig config = model::read_config(checkpoint);
  const uint32_t context = choose_context(config, options.context);
  if (context > config.max_position_embeddings) {
    log(LogLevel::warn, "a context of {} is more than the {} positions that the model was made for",
        context, config.max_position_embeddings);
  }
  return model::load_model(
      checkpoint,
      {.context = context, .stated_context = options.stated_context, .kv_dtype = options.kv_dtype});
}

}  // namespace

uint32_t choose_context(const model::ModelConfig& config, uint32_t asked) {
  if (asked == 0) return std::min(config.max_position_embeddings, kDefaultContext);
  if (asked > config.max_position_embeddings && config.learned_positions) {
    fail("context {} is more than the {} positions that the model learned", asked,
         config.max_position_embeddings);
  }
  if (asked > model::kMaxContext) {
    fail("a context of {} is more than {}, the most there is", asked, model::kMaxContext);
  }
  return asked;
}

LoadedModel::LoadedModel(const LoadOptions& options)
    : checkpoint_(formats::Checkpoint::open(options.model)), model_(load(checkpoint_, options)) {
  engine_options_.context = choose_context(model_.config, options.context);
  engine_options_.max_slots = std::max(1U, options.max_slots);
  engine_options_.max_pages_per_slot =
      static_cast<uint32_t>(ceil_div(engine_options_.context, plan::kPageTokens));
  engine_options_.num_pages = options.num_pages;
  if (options.num_pages == 0) {
    engine_options_.num_pages = checked_cast<uint32_t>(
        checked_mul(engine_options_.max_pages_per_slot, engine_options_.max_slots, "KV pages"),
        "KV pages");
  }
  engine_options_.prefill_chunk = static_cast<uint32_t>(
      round_up(std::clamp(options.prefill_chunk, 1U, engine_options_.context), 64));
  engine_options_.shuffle_seed = options.shuffle_seed;

  if (options.check_tensors) {
    ThreadPool pool(options.device.threads);
    with_context(options.model.string(),
                 [&] { model::check_values(model_.weights, pool, options.progress); });
  }
  backend_ = backend::create(options.device);
  backend_->load({.resources = model_.resources,
                  .weights = model_.weights.parts,
                  .num_pages = engine_options_.num_pages,
                  .max_slots = engine_options_.max_slots,
                  .max_pages_per_slot = engine_options_.max_pages_per_slot,
                  .progress = options.progress});
  if (backend_->info().copies_weights) {
    model_.weights.parts.clear();
    model_.weights.owned.clear();
  }
  const auto prepare = [&](plan::KernelClass kernel_class, uint32_t max_columns,
                           uint32_t max_logits) {
    return backend_->prepare(model::build_plan(model_, {.math = options.math,
                                                        .kernel_class = kernel_class,
                                                        .max_columns = max_columns,
                                                        .max_logits = max_logits}));
  };
  plans_.prefill_columns = engine_options_.prefill_chunk;
  plans_.decode_columns = engine_options_.max_slots;
  plans_.vocab_size = model_.config.vocab_size;
  plans_.prefill = prepare(plan::KernelClass::prefill, plans_.prefill_columns, options.max_logits);
  plans_.decode = prepare(plan::KernelClass::decode, plans_.decode_columns, plans_.decode_columns);
  if (options.profile) backend_->set_profiling(true);
}

std::unique_ptr<Engine> LoadedModel::make_engine() {
  return std::make_unique<Engine>(*backend_, plans_, engine_options_);
}

}  // namespace wisp::engine
