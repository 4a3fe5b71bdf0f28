// A progress bar on stderr, only where stderr is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace wisp::cli {

// Appears after some tenths of a second of work, and is wiped when this ends.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `total` 0: nothing is shown yet.
  void update(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point next_;  // earliest time of the next drawing
};

}  // namespace wisp::cli
