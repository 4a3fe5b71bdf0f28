// Runs lab cases on a backend: checks what they compute, then times them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "cli/options.h"
#include "lab_case.h"

namespace wisp::backend {
struct GpuContext;
}

namespace wisp::lab {

struct MeasureOptions {
  uint32_t repetitions = 5;  // the median counts
  uint32_t copies = 0;       // of the op in a plan; 0: as many as the case likes
  bool check = true;
};

// Microseconds of one op.
struct Row {
  const CaseSpec* spec = nullptr;
  Point point;
  std::string kernel;         // files and variants; empty on the CPU
  bool matrices = false;      // takes cooperative matrices
  double streamed_us = 0;     // ops that do not wait for each other
  double in_sequence_us = 0;  // each waits for the one before
  std::string wrong;          // how the results leave their bounds; empty: they do not
};

class Laboratory {
 public:
  // Throws Error when there is no such device.
  explicit Laboratory(const cli::DeviceFlags& flags);

  std::string device() const;  // "NVIDIA H200 (Vulkan)"
  // Rows of all points of a case, as they are measured. Throws Error when the device cannot run it.
  void measure(const CaseSpec& spec, const MeasureOptions& options,
               const std::function<void(const Row&)>& row) const;
  bool has_timestamps() const;

 private:
  Copies copies_of(const CaseSpec& spec, const MeasureOptions& options) const;

  std::shared_ptr<backend::GpuContext> context_;  // null: the CPU
  size_t threads_ = 0;
};

}  // namespace wisp::lab
