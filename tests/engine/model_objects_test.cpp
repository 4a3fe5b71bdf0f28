// Objects on the device are made while a model loads; steps make none.
#include <gtest/gtest.h>

#include "model_runs.h"

namespace wisp::engine {
namespace {

TEST(ModelObjects, StepsMakeNone) {
  const Golden golden = load_golden("llama");
  LoadedModel model({.model = golden.model,
                     .device = {.choice = backend::Choice::webgpu},
                     .context = 384,
                     .max_slots = 4,
                     .prefill_chunk = 64});
  const auto engine = model.make_engine();
  const auto objects = [&] { return model.backend().info().objects; };
  const uint64_t loaded = objects();
  EXPECT_GT(loaded, 0U);

  const std::vector<int32_t> longer(100, 7);  // two chunks
  std::vector<Request> requests = {{.prompt = golden.tokens, .max_new_tokens = 3},
                                   {.prompt = longer, .max_new_tokens = 9},
                                   {.prompt = {1}, .max_new_tokens = 1},
                                   {.forced = {2, 3}, .max_new_tokens = 5},
                                   {.prompt = longer, .max_new_tokens = 2}};
  const auto run = [&](const std::vector<uint32_t>& delays) {
    for (const Output& out : run_all(*engine, requests, delays)) EXPECT_EQ(out.error, "");
  };
  run({0, 0, 1, 4, 6});  // batches of one to four, prompts beside generation
  EXPECT_EQ(objects(), loaded);

  // What logits come back through is made when they are first asked for.
  for (Request& request : requests) request.generated_logits = request.prompt_logits = true;
  run({});
  const uint64_t with_logits = objects();
  run({0, 2, 3, 3, 5});
  EXPECT_EQ(objects(), with_logits);
}

}  // namespace
}  // namespace wisp::engine
