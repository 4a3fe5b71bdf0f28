#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/output.h"

namespace wisp::cli {

namespace {

constexpr auto kDelay = std::chrono::milliseconds(300);
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr uint64_t kWidth = 30;

void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

Progress::Progress(std::string label)
    : label_(std::move(label)), terminal_(stderr_is_terminal()), next_(Clock::now() + kDelay) {}

Progress::~Progress() {
  if (drawn_) write("\r\033[K");
}

void Progress::update(uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(share * kWidth);
  write(fmt::format("\r{} [{}{}] {:3.0f} %\033[K", label_, std::string(filled, '#'),
                    std::string(kWidth - filled, '.'), share * 100));
  drawn_ = true;
}

}  // namespace wisp::cli
