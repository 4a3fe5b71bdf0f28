// GPU time of named dispatches or of whole submissions, summed by name.
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

// Give it to Commands to time them. A timed dispatch has a compute pass of its own, which makes the
// whole slower; a timed submission runs as it would untimed. Thread rule as Device; outlives the
// commands.
class Profiler {
 public:
  // Times up to `max_dispatches` of a submission. Without timestamps in the capabilities nothing
  // is timed.
  explicit Profiler(Device& device, size_t max_dispatches = 4096);
  ~Profiler();

  struct Row {
    std::string name;
    uint64_t count = 0;
    double total_us = 0;
  };
  struct Times {
    std::vector<Row> dispatches;   // by falling total
    std::vector<Row> submissions;  // from the begin of the first pass to the end of the last
    uint64_t untimed = 0;          // dispatches beyond max_dispatches
  };
  bool has_timestamps() const { return !sets_.empty(); }
  // Waits for what was submitted; what was timed since the last call.
  Times take();

 private:
  friend class Commands;
  struct Submission {
    Readback::Read read;
    std::vector<std::string> names;  // by pass
    bool whole = false;              // the passes count as one row
  };
  // For the next pass; null when it is not timed. Valid until the next call.
  const WGPUPassTimestampWrites* next(const std::string& name, bool whole);
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
  std::map<std::string, Row> dispatches_, submissions_;  // by name
  uint64_t untimed_ = 0;
};

}  // namespace wisp::gpu
