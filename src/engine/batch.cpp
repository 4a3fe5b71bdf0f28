#include "engine/batch.h"

#include <algorithm>

namespace wisp::engine {

namespace {

void send_pages(Sequence& sequence, backend::Step& step) {
  const auto pages = sequence.pages.ids();
  if (sequence.num_pages_sent == pages.size()) return;
  const auto news = pages.subspan(sequence.num_pages_sent);
  step.table_updates.push_back(
      {*sequence.slot, sequence.num_pages_sent, {news.begin(), news.end()}});
  sequence.num_pages_sent = sequence.pages.size();
}

// Rows whose choice is the host's, or nobody's, are greedy ones to the backend.
backend::RowSampling sampling_of(const Sequence& sequence, uint32_t position) {
  const SamplingOptions& options = sequence.request.sampling;
  if (!sequence.chooses(position) || options.needs_history()) return {};
  return row_sampling(options, position);
}

}  // namespace

backend::Step make_step(const std::vector<Piece>& pieces) {
  backend::Step step;
  for (const Piece& piece : pieces) {
    Sequence& sequence = *piece.sequence;
    send_pages(sequence, step);
    for (uint32_t position = piece.first; position < piece.first + piece.count; ++position) {
      if (sequence.wants_logits(position)) {
        step.logit_columns.push_back(static_cast<uint32_t>(step.columns.size()));
        step.sampling.push_back(sampling_of(sequence, position));
        step.read_logits = step.read_logits || sequence.reads_logits(position);
      }
      backend::Column column{.token = {}, .position = position, .slot = *sequence.slot};
      if (position < sequence.tokens.size()) column.token = sequence.tokens[position];
      step.columns.push_back(column);
    }
  }
  if (std::ranges::all_of(step.sampling, &backend::RowSampling::greedy)) step.sampling.clear();
  return step;
}

}  // namespace wisp::engine
