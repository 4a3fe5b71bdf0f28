// Writing a model's GGUF file anew with its weights in other types.
#pragma once

#include <cstdint>
#include <functional>

#include "base/threads.h"
#include "formats/checkpoint.h"
#include "formats/imatrix.h"
#include "formats/output_file.h"
#include "model/quantize_mix.h"

namespace wisp::model {

struct QuantizeOptions {
  const QuantizeMix& mix;
  const formats::Imatrix* imatrix = nullptr;  // nullptr: every column weighs the same
  std::function<void(uint64_t done, uint64_t total)> progress;  // of values; may be empty
};

// Counts of tensors, and sizes of their data.
struct QuantizeReport {
  uint64_t weights = 0;  // values of all tensors
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;
  uint32_t changed = 0;             // tensors that got another type
  uint32_t twice = 0;               // of these, those that were quantised before
  uint32_t without_importance = 0;  // of these, those that the imatrix has nothing for
};

// Writes the GGUF file `from` to `to`, which is open and empty; the caller commits it. One tensor
// at a time is held in memory. Metadata is kept, less the marks of a split file, with the file's
// type and quantisation version. Throws Error naming the tensor: for a value that is not finite or
// does not fit, and for importances of another model.
QuantizeReport quantize(const formats::Checkpoint& from, formats::OutputFile& to,
                        const QuantizeOptions& options, ThreadPool& pool);

}  // namespace wisp::model
