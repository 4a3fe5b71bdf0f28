// What a model's log-probabilities are compared with: those of another, kept in a file, in the form
// of llama-perplexity's --save-all-logits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/remove_on_signal.h"
#include "formats/output_file.h"

namespace wisp::cli {

// ln of the sum of exp(logits): less it, logits are log-probabilities.
double log_sum_exp(std::span<const float> logits);

// Of which run a file is: windows of `context` tokens, of which the positions context / 2 to
// context - 2 are scored.
struct KlBaseRun {
  uint32_t context = 0;
  uint32_t vocab_size = 0;
  std::vector<int32_t> tokens;  // [windows * context]
};

// Log-probabilities in steps of (largest - smallest) / 65535, none below the largest less 16
// (docs/formats.md). The file appears at commit(); until then a signal that ends the process leaves
// nothing behind. Throws Error naming it.
class KlBaseWriter {
 public:
  KlBaseWriter(const std::filesystem::path& path, const KlBaseRun& run);
  // Of the next position, with their log_sum_exp.
  void add(std::span<const float> logits, double log_sum);
  void commit() { file_.commit(); }

 private:
  RemoveOnSignal remove_on_signal_;
  formats::OutputFile file_;
  std::vector<uint16_t> row_;
};

class KlBaseReader {
 public:
  // Throws Error where the file is no such file, cut short, or of another run.
  KlBaseReader(std::filesystem::path path, const KlBaseRun& run);
  std::span<const float> next();  // log-probabilities of the next position

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  std::vector<uint16_t> row_;
  std::vector<float> log_probs_;
};

// How far a model is from the base, over all scored positions.
class Divergence {
 public:
  // `base` log-probabilities, `logits` of the model with their log_sum_exp, the token that follows.
  void add(std::span<const float> base, std::span<const float> logits, double log_sum,
           int32_t token);
  // Kullback-Leibler divergence of the base from the model in nats (mean with its standard error,
  // percentiles), how often both have the same likeliest token, the change of the right token's
  // probability, and both perplexities.
  nlohmann::ordered_json summary() const;
  std::string text() const;

 private:
  std::vector<double> divergences_;
  std::vector<double> changes_;  // of the right token's probability
  std::vector<double> losses_;
  std::vector<double> base_losses_;
  uint64_t same_top_ = 0;
};

}  // namespace wisp::cli
