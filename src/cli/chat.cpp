#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/run_flags.h"

namespace wisp::cli {

namespace {

constexpr char kHelp[] =
    "/reset     forget the conversation\n"
    "/help      this list\n"
    "/exit      leave; Ctrl-D does so too\n"
    "Ctrl-C stops an answer. A \\ at the end of a line continues the message on the next.";

// What the answer needs to be of use, when old turns are dropped to make room.
constexpr size_t kRoomShare = 4;  // a quarter of the context

// Lines of a terminal. Reads the file descriptor itself: Ctrl-C has to end the waiting.
class LineReader {
 public:
  enum class Status { line, interrupted, end };

  Status next(const InterruptGuard& guard, std::string& line) {
    line.clear();
    while (true) {
      const size_t end = pending_.find('\n');
      if (end != std::string::npos) {
        line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return Status::line;
      }
      if (!guard.wait_for_input(STDIN_FILENO)) {
        pending_.clear();
        return Status::interrupted;
      }
      char piece[4096];
      const ssize_t count = read(STDIN_FILENO, piece, sizeof(piece));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        line = std::exchange(pending_, {});
        return line.empty() ? Status::end : Status::line;
      }
      pending_.append(piece, static_cast<size_t>(count));
    }
  }

 private:
  std::string pending_;
};

class Conversation {
 public:
  Conversation(const RunFlags& flags, engine::LoadedModel& model, const text::TextModel& text)
      : flags_(flags),
        text_(text),
        context_(model.context()),
        options_(answer_options(flags)),
        engine_(model.make_engine()) {
    reset();
  }

  void reset() {
    messages_.clear();
    if (flags_.system) messages_.push_back({.role = "system", .content = *flags_.system});
    num_fixed_ = messages_.size();
  }

  void say(const std::string& message, InterruptGuard& guard) {
    messages_.push_back({.role = "user", .content = message});
    const std::optional<std::vector<int32_t>> prompt = fit();
    if (!prompt) {
      messages_.pop_back();
      return;
    }
    const Answer result = answer(
        *engine_, text_.tokenizer(), *prompt, options_,
        [](std::string_view piece) {
          print(piece);
          flush();
        },
        [&] { return guard.interrupted(); });
    print("\n");
    flush();
    messages_.push_back({.role = "assistant", .content = result.text});
    std::string line = summary(result);
    if (result.end == AnswerEnd::interrupted) {
      guard.clear();
      line += "; stopped";
    }
    if (result.end == AnswerEnd::context_full) {
      line += fmt::format("; the context of {} tokens is full", context_);
    }
    note(fmt::format("[{}]", line));
  }

 private:
  // The tokens of the conversation, or nullopt, after saying so, when it does not fit.
  std::optional<std::vector<int32_t>> fit() {
    std::vector<int32_t> tokens = text_.encode_chat(messages_);
    if (tokens.size() <= context_) return tokens;
    const size_t before = tokens.size();
    size_t dropped = 0;
    const size_t room = context_ - context_ / kRoomShare;
    while (flags_.drop_oldest && tokens.size() > room && messages_.size() > num_fixed_ + 1) {
      drop_oldest_turn();
      ++dropped;
      tokens = text_.encode_chat(messages_);
    }
    if (tokens.size() > context_) {
      note(fmt::format(
          "[the conversation has {} tokens, the context {}: /reset begins a new one{}]",
          tokens.size(), context_, flags_.drop_oldest ? "" : ", or start with --drop-oldest"));
      return std::nullopt;
    }
    note(fmt::format("[the conversation has {} tokens, the context {}: forgot the {} oldest turns]",
                     before, context_, dropped));
    return tokens;
  }

  // A user's message with its answer.
  void drop_oldest_turn() {
    const auto first = messages_.begin() + static_cast<ptrdiff_t>(num_fixed_);
    auto end = first + 1;
    while (end != messages_.end() && end->role != "user") ++end;
    messages_.erase(first, end);
  }

  const RunFlags& flags_;
  const text::TextModel& text_;
  size_t context_;
  AnswerOptions options_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<text::ChatMessage> messages_;
  size_t num_fixed_ = 0;  // messages that are never dropped
};

void prompt_for(std::string_view sign) {
  print(sign);
  flush();
}

// A message of one or more lines; nullopt at the end of the input.
std::optional<std::string> read_message(LineReader& reader, InterruptGuard& guard) {
  std::string message;
  prompt_for("> ");
  while (true) {
    std::string line;
    const LineReader::Status status = reader.next(guard, line);
    if (status == LineReader::Status::end) {
      print("\n");
      return std::nullopt;
    }
    if (status == LineReader::Status::interrupted) {
      guard.clear();
      print("\n");
      note("[/exit or Ctrl-D leaves]");
      return std::string();
    }
    message += line;
    if (!message.ends_with('\\')) return message;
    message.back() = '\n';
    prompt_for(". ");
  }
}

}  // namespace

void chat(const RunFlags& flags, engine::LoadedModel& model, const text::TextModel& text) {
  Conversation conversation(flags, model, text);
  LineReader reader;
  InterruptGuard guard;
  const model::ModelConfig& config = model.config();
  note(fmt::format("{} ({}), a context of {} tokens. /help lists the commands.",
                   std::filesystem::path(flags.model).filename().string(), config.family,
                   model.context()));
  while (const std::optional<std::string> message = read_message(reader, guard)) {
    if (message->empty()) continue;
    if (*message == "/exit" || *message == "/quit" || *message == "/bye") break;
    if (*message == "/reset") {
      conversation.reset();
      note("[the conversation begins anew]");
    } else if (*message == "/help") {
      note(kHelp);
    } else if (message->starts_with('/')) {
      note(fmt::format("[unknown command {}; /help lists them]", one_line(*message)));
    } else {
      conversation.say(*message, guard);
    }
  }
  flush();
}

}  // namespace wisp::cli
