// Results of `wisp bench` and their tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wisp::cli {

// One row: a prompt of `prompt` tokens or `generate` tokens after `depth` others, in so many
// sequences at once. One of prompt and generate is 0.
struct BenchTest {
  uint32_t prompt = 0;
  uint32_t generate = 0;
  uint32_t depth = 0;
  uint32_t sequences = 1;
};

struct BenchSample {
  uint64_t tokens = 0;  // of all sequences
  double seconds = 0;
  std::optional<double> first_token_seconds;  // from the request on, mean over the sequences
};

struct BenchResult {
  BenchTest test;
  std::vector<BenchSample> samples;
};

// What all rows share.
struct BenchSubject {
  std::string path;
  std::string model;  // "llama 134.52 M Q4_1"
  uint64_t bytes = 0;
  uint64_t params = 0;
  std::string backend;
  std::string device;
  uint32_t threads = 0;
  std::string math;
  std::string kv;
};

// Markdown with llama-bench's columns: test names pp512, tg128, "tg128 @ d4096".
std::string bench_header(const BenchSubject& subject, bool with_sequences);
std::string bench_row(const BenchSubject& subject, const BenchResult& result, bool with_sequences);
// A JSON array with llama-bench's field names and every run.
std::string bench_json(const BenchSubject& subject, const std::vector<BenchResult>& results);

}  // namespace wisp::cli
