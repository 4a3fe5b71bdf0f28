#include "cli/answer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "text/detokenizer.h"

namespace wisp::cli {

namespace {

using Clock = std::chrono::steady_clock;
using engine::Event;
using engine::FinishReason;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Takes the events of one request until its answer has ended.
class Listener {
 public:
  Listener(const text::Tokenizer& tokenizer, const AnswerOptions& options, size_t prompt_tokens,
           const std::function<void(std::string_view)>& show)
      : decoder_(tokenizer, {.stop = options.stop}), show_(show), start_(Clock::now()) {
    answer_.prompt_tokens = prompt_tokens;
    progress_.emplace("reading the prompt");
  }

  bool ended() const { return ended_; }

  void take(const Event& event) {
    if (event.finish == FinishReason::error) throw Error(event.error);
    if (ended_) return;
    if (progress_) progress_->update(event.position + 1, answer_.prompt_tokens);
    if (event.token) {
      progress_.reset();
      const auto now = Clock::now();
      if (answer_.tokens.empty()) first_ = now;
      last_ = now;
      answer_.tokens.push_back(*event.token);
      if (event.finish != FinishReason::end_token) release(decoder_.push(*event.token));
      if (decoder_.stopped()) {
        answer_.stop = decoder_.stopped();
        end(AnswerEnd::stop_text);
        return;
      }
    }
    switch (event.finish) {
      case FinishReason::end_token:
        end(AnswerEnd::end_token);
        break;
      case FinishReason::length:
        end(AnswerEnd::length);
        break;
      case FinishReason::context_full:
        end(AnswerEnd::context_full);
        break;
      default:
        break;
    }
  }

  void end(AnswerEnd reason) {
    progress_.reset();
    release(decoder_.finish());
    answer_.end = reason;
    ended_ = true;
  }

  Answer result() {
    if (answer_.tokens.empty()) first_ = last_ = Clock::now();
    answer_.prompt_seconds = seconds_between(start_, first_);
    answer_.generation_seconds = seconds_between(first_, last_);
    return std::move(answer_);
  }

 private:
  void release(const std::string& piece) {
    if (piece.empty()) return;
    answer_.text += piece;
    show_(piece);
  }

  text::StreamDecoder decoder_;
  const std::function<void(std::string_view)>& show_;
  Answer answer_;
  std::optional<Progress> progress_;  // until the first token
  bool ended_ = false;
  Clock::time_point start_;
  Clock::time_point first_;
  Clock::time_point last_;
};

}  // namespace

std::string_view to_string(AnswerEnd end) {
  static constexpr std::array<std::string_view, 5> kNames = {"end_token", "stop_text", "length",
                                                             "context_full", "interrupted"};
  return kNames[static_cast<size_t>(end)];
}

std::optional<double> Answer::prompt_rate() const {
  if (prompt_seconds <= 0) return std::nullopt;
  return static_cast<double>(prompt_tokens) / prompt_seconds;
}

std::optional<double> Answer::generation_rate() const {
  if (tokens.size() < 2 || generation_seconds <= 0) return std::nullopt;
  return static_cast<double>(tokens.size() - 1) / generation_seconds;
}

Answer answer(engine::Engine& engine, const text::Tokenizer& tokenizer, std::vector<int32_t> prompt,
              const AnswerOptions& options, const std::function<void(std::string_view)>& show,
              const std::function<bool()>& interrupted) {
  const auto ends = tokenizer.end_ids();
  Listener listener(tokenizer, options, prompt.size(), show);
  const engine::RequestId id = engine.add({.prompt = std::move(prompt),
                                           .max_new_tokens = options.max_new_tokens,
                                           .end_tokens = {ends.begin(), ends.end()},
                                           .sampling = options.sampling,
                                           .prompt_progress = true});
  bool cancelled = false;
  while (engine.busy()) {
    for (const Event& event : engine.step()) listener.take(event);
    if (!listener.ended() && interrupted()) listener.end(AnswerEnd::interrupted);
    if (listener.ended() && !cancelled) {
      engine.cancel(id);
      cancelled = true;
    }
  }
  return listener.result();
}

std::string summary(const Answer& answer) {
  const auto rate = [](std::optional<double> per_second) {
    return per_second ? fmt::format(", {} tok/s", rate_text(*per_second)) : std::string();
  };
  return fmt::format("prompt {} tokens{}; generated {} tokens{}", answer.prompt_tokens,
                     rate(answer.prompt_rate()), answer.tokens.size(),
                     rate(answer.generation_rate()));
}

}  // namespace wisp::cli
