// StreamMatch, StreamPredict and StreamCorrect. The order of each sum depends on the row alone.
#include <cmath>

#include "backend/cpu/ops.h"

namespace wisp::backend::cpu {
namespace {

// Streams of one column.
struct Streams {
  const float* first;
  const float* rest;
  size_t width;
  size_t count;  // with the first

  const float* operator[](size_t i) const { return i == 0 ? first : rest + (i - 1) * width; }
};

// Calls body(streams, row) for each column.
template <typename Body>
void for_streams(const OpContext& context, plan::ValueId first, plan::ValueId rest,
                 const Body& body) {
  const size_t width = context.width(first);
  const size_t rest_width = context.width(rest);
  for_rows(context, context.rows(first), 4 * rest_width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      body(Streams{context.floats(first) + row * width, context.floats(rest) + row * rest_width,
                   width, 1 + rest_width / width},
           row);
    }
  });
}

float mean_square(const float* x, size_t n) {
  float sum = 0.0F;
  for (size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum / static_cast<float>(n);
}

}  // namespace

void run_stream_match(const OpContext& context, const plan::StreamMatch& op) {
  for_streams(context, op.first, op.rest, [&](const Streams& s, size_t row) {
    const float target = std::sqrt(mean_square(s.first, s.width));
    float* out = context.floats(op.out) + row * context.width(op.out);
    if (op.mean) std::copy(s.first, s.first + s.width, out);
    for (size_t p = 1; p < s.count; ++p) {
      const float square = mean_square(s[p], s.width);
      const float factor = target / std::sqrt(square < op.floor ? op.floor : square);
      for (size_t i = 0; i < s.width; ++i) {
        if (op.mean) {
          out[i] += factor * s[p][i];
        } else {
          out[(p - 1) * s.width + i] = factor * s[p][i];
        }
      }
    }
    for (size_t i = 0; op.mean && i < s.width; ++i) out[i] /= static_cast<float>(s.count);
  });
}

void run_stream_predict(const OpContext& context, const plan::StreamPredict& op) {
  for_streams(context, op.first, op.rest, [&](const Streams& s, size_t row) {
    const float* coefs = context.floats(op.coefs) + row * s.count * s.count;
    for (size_t q = 0; q < s.count; ++q) {
      float* out = q == 0 ? context.floats(op.out) + row * s.width
                          : context.floats(op.out_rest) + (row * (s.count - 1) + q - 1) * s.width;
      for (size_t i = 0; i < s.width; ++i) {
        float sum = s[q][i];
        for (size_t p = 0; p < s.count; ++p) sum += coefs[q * s.count + p] * s[p][i];
        out[i] = sum;
      }
    }
  });
}

void run_stream_correct(const OpContext& context, const plan::StreamCorrect& op) {
  const float* scale = context.vector(op.scale);
  for_streams(context, op.first, op.rest, [&](const Streams& s, size_t row) {
    const float* y = context.floats(op.y) + row * s.width;
    const float* coefs = context.floats(op.coefs) + row * s.count;
    float* first = context.floats(op.out) + row * s.width;
    float* scaled = context.floats(op.scaled) + row * s.width;
    for (size_t q = 0; q < s.count; ++q) {
      float* out =
          q == 0 ? first : context.floats(op.out_rest) + (row * (s.count - 1) + q - 1) * s.width;
      const float factor = 1.0F + coefs[q];
      for (size_t i = 0; i < s.width; ++i) out[i] = s[q][i] + factor * (y[i] - s.first[i]);
    }
    for (size_t i = 0; i < s.width; ++i) scaled[i] = first[i] * scale[i];
  });
}

}  // namespace wisp::backend::cpu
