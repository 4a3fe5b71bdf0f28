// Rows of the laboratory as text.
#pragma once

#include <string>
#include <vector>

#include "measure.h"

namespace wisp::lab {

// What a card can do at most; 0: not known.
struct Limits {
  double bandwidth = 0;     // GB/s
  double f32 = 0;           // TFLOP/s
  double int8 = 0;          // TOP/s of packed dot products
  double f16_matrices = 0;  // TFLOP/s
};

// Of the device whose name holds a known card's.
Limits known_limits(const std::string& device);

std::string table_header();
std::string table_row(const Row& row, const Limits& limits);
std::string rows_json(const std::string& device, const std::vector<Row>& rows,
                      const Limits& limits);

}  // namespace wisp::lab
