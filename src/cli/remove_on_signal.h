// Temporary files and signals that end the process.
#pragma once

#include <string>

namespace wisp::cli {

// Removes a file when SIGINT, SIGTERM or SIGHUP ends the process, so that no half-written one is
// left behind. Signals that are handled or ignored keep what they do. One instance at a time.
class RemoveOnSignal {
 public:
  explicit RemoveOnSignal(std::string path);
  ~RemoveOnSignal();
  RemoveOnSignal(const RemoveOnSignal&) = delete;
  RemoveOnSignal& operator=(const RemoveOnSignal&) = delete;

 private:
  std::string path_;
};

}  // namespace wisp::cli
