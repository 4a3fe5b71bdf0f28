#include "engine/sequence.h"

#include <algorithm>
#include <utility>

namespace wisp::engine {

Sequence::Sequence(RequestId id_in, Request request_in, uint32_t context_in, uint64_t order_in,
                   IdPool& pool)
    : id(id_in),
      request(std::move(request_in)),
      context(context_in),
      order(order_in),
      num_prompt(static_cast<uint32_t>(request.prompt.size())),
      num_given(num_prompt + static_cast<uint32_t>(request.forced.size())),
      tokens(std::move(request.prompt)),
      pages(pool) {
  tokens.insert(tokens.end(), request.forced.begin(), request.forced.end());
  request.prompt.clear();
  request.forced.clear();
  // The last chosen token is not run.
  const uint64_t chosen = std::max<uint64_t>(request.max_new_tokens, 1);
  num_columns = static_cast<uint32_t>(std::min<uint64_t>(num_given + chosen - 1, context));
}

bool Sequence::ready() const {
  // Logits of a whole prompt are large: one step of them at a time.
  if (in_prompt()) return !request.prompt_logits || in_flight == 0;
  if (cursor < tokens.size()) return true;
  // A step with several rows of one slot leaves the choice to the host.
  return !request.sampling.needs_history() && !request.prompt_logits;
}

bool Sequence::chooses(uint32_t position) const {
  return request.max_new_tokens > 0 && position + 1 >= num_given;
}

bool Sequence::reports_logits(uint32_t position) const {
  if (position < num_prompt && request.prompt_logits) return true;
  return request.generated_logits && position + 1 >= num_prompt;
}

bool Sequence::wants_logits(uint32_t position) const {
  return position >= reported && (chooses(position) || reports_logits(position));
}

bool Sequence::reads_logits(uint32_t position) const {
  if (position < reported) return false;
  return reports_logits(position) || (chooses(position) && request.sampling.needs_history());
}

}  // namespace wisp::engine
