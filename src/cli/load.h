// Models for the commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "cli/options.h"
#include "engine/load.h"
#include "text/text_model.h"

namespace wisp::cli {

engine::LoadOptions load_options(const std::filesystem::path& model, const ComputeFlags& flags);

// Loads with a progress bar and tells on --verbose what runs where. Throws Error.
std::unique_ptr<engine::LoadedModel> load(engine::LoadOptions options);

// Positions of a sequence that is given `prompt` tokens and wants `wanted` positions: -c where it
// was given; else those wanted, up to the model's; beyond these where the prompt is longer already
// and positions are not learned one by one.
uint32_t context_for(const model::ModelConfig& config, const PlanFlags& flags, uint64_t prompt,
                     uint64_t wanted);

// Only the text side: a .gguf file, or a folder, which needs no weights.
text::TextModel open_text(const std::filesystem::path& model);

// With --profile, prints on stderr where the time went.
void print_profile(engine::LoadedModel& model, const ComputeFlags& flags);

}  // namespace wisp::cli
