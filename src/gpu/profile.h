// GPU time of each named dispatch, summed over submissions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/handle.h"

namespace wisp::gpu {

class Commands;

// Give it to Commands to time their dispatches. Each then has a compute pass of its own, so a
// profiled step is somewhat slower than a plain one. Thread rule as Device; outlives the commands.
class Profiler {
 public:
  // Times up to `max_dispatches` of a submission. Without timestamps in the capabilities nothing
  // is timed, and the table says so.
  explicit Profiler(Device& device, size_t max_dispatches = 4096);
  ~Profiler();

  struct Row {
    std::string name;
    uint64_t count = 0;
    double total_us = 0;
  };
  // Waits for what was submitted; rows by falling total.
  std::vector<Row> rows();
  // Name, count, total, mean and share, one line a row.
  std::string table();
  void reset();

 private:
  friend class Commands;
  struct Submission {
    Readback::Read read;
    std::vector<std::string> names;
  };
  // For the next dispatch's pass; null when it is not timed. Valid until the next call.
  const WGPUPassTimestampWrites* next(const std::string& name);
  void resolve(Commands& commands);
  void submitted();
  void cancel();
  void collect_oldest();

  Device* device_;
  std::vector<QuerySetHandle> sets_;
  Buffer resolved_;
  std::unique_ptr<Readback> readback_;
  WGPUPassTimestampWrites writes_{};
  Submission recording_;  // of the commands being recorded
  std::deque<Submission> pending_;
  std::map<std::string, Row> rows_;
  uint64_t untimed_ = 0;
};

}  // namespace wisp::gpu
