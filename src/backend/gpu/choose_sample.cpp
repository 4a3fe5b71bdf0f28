// The kernels of Sample: the best logit of each row, then, for rows that are not greedy, the
// histograms that find the cuts, and the draw.
#include "backend/gpu/choose_common.h"
#include "backend/gpu/sampling.h"

namespace wisp::backend::webgpu {

SamplingWords sampling_words(const RowSampling& sampling, uint32_t vocab_size) {
  SamplingWords words;
  if (sampling.greedy()) return words;
  words.level = kLevelDraw;
  if (sampling.cuts_top_k(vocab_size)) {
    ++words.level;
    words.top_k = sampling.top_k;
  }
  if (sampling.cuts_top_p()) {
    ++words.level;
    words.top_p = top_p_share(sampling.top_p);
  }
  words.min_p = min_p_offset(sampling.min_p).value_or(words.min_p);
  const MassScale scale = mass_scale(sampling.temperature);
  words.scale = scale.scale;
  words.limit = scale.limit;
  words.random = sampling.random;
  return words;
}

namespace {

struct Maker {
  const plan::Value& logits;
  plan::ValueId id;

  // A kernel over chunks of rows. Bindings are added by name; those that a kernel does not declare
  // are ignored.
  KernelUse make(std::string label, std::string file, uint32_t chunk, uint32_t level) const {
    const uint32_t chunks = div_up(logits.width, chunk);
    const MassScale at_1 = mass_scale(1.0F);
    KernelUse use;
    use.spec = {.label = std::move(label), .file = "sample/" + std::move(file)};
    use.spec.workgroup_size = {256, 1, 1};
    use.spec.constants = {{"LOGIT_ROWS", true},
                          {"CHUNK", chunk},
                          {"SCALE_AT_1", at_1.scale},
                          {"LIMIT_AT_1", at_1.limit}};
    use.params = {logits.width, value_stride(logits), chunks, 0};
    use.grid.x = chunks;
    use.when.min_sampling = level;
    use.bindings = {{"step_info", Bound::step},
                    value_binding("logits", id),
                    {"sampling", Bound::sampling},
                    {"selections", Bound::selections},
                    {"histograms", Bound::histograms},
                    {"chunk_bests", Bound::chunk_bests},
                    {"chunk_masses", Bound::chunk_masses},
                    {"results", Bound::results},
                    {"last_tokens", Bound::last_tokens},
                    {"logit_columns", Bound::logit_columns},
                    {"columns", Bound::columns}};
    return use;
  }
};

}  // namespace

std::vector<KernelUse> choose_op(const plan::Sample& op, plan::KernelClass,
                                 const ChooseContext& c) {
  const Maker maker{c.plan[op.logits], op.logits};
  std::vector<KernelUse> uses;
  uses.push_back(maker.make("sample best chunks", "best_chunk.wgsl", kBestChunk, 0));
  uses.push_back(maker.make("sample best rows", "best_row.wgsl", kBestChunk, 0));
  uses.back().spec.workgroup_size = {64, 1, 1};
  uses.back().grid.x = 1;
  for (uint32_t stage = 0; stage < kSampleStages; ++stage) {
    const uint32_t level = stage < kFirstCutStages ? kLevelCut : kLevelBothCuts;
    uses.push_back(maker.make("sample histogram", "histogram.wgsl", kSampleChunk, level));
    uses.back().params.back() = stage;
  }
  uses.push_back(maker.make("sample masses", "chunk_mass.wgsl", kSampleChunk, kLevelDraw));
  uses.push_back(maker.make("sample draw", "draw.wgsl", kSampleChunk, kLevelDraw));
  uses.back().grid.x = 1;
  return uses;
}

}  // namespace wisp::backend::webgpu
