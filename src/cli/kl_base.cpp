#include "cli/kl_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"

namespace wisp::cli {
namespace {

constexpr std::string_view kMagic = "_logits_";
constexpr float kRange = 16.0F;     // of log-probabilities that are kept
constexpr size_t kHeaderWords = 4;  // of a row: scale and smallest, f32

size_t row_words(uint32_t vocab_size) { return round_up(vocab_size, 2) + kHeaderWords; }

uint64_t scored(const KlBaseRun& run) {
  return run.tokens.size() / run.context * (run.context - 1 - run.context / 2);
}

struct Mean {
  double value = 0;
  double error = 0;  // standard error of the mean
};

Mean mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() < 2 ? 0.0 : std::sqrt(squares / n / (n - 1))};
}

// Between the two values next to that share of all.
double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

size_t top_of(std::span<const float> values) {
  return static_cast<size_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const auto top = static_cast<double>(*std::ranges::max_element(logits));
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - top);
  return top + std::log(total);
}

KlBaseWriter::KlBaseWriter(const std::filesystem::path& path, const KlBaseRun& run)
    : remove_on_signal_(formats::OutputFile::temporary_of(path).string()),
      file_(path),
      row_(row_words(run.vocab_size)) {
  const uint32_t head[] = {run.context, run.vocab_size,
                           static_cast<uint32_t>(run.tokens.size() / run.context)};
  file_.write(kMagic);
  file_.write(std::as_bytes(std::span(head)));
  file_.write(std::as_bytes(std::span(run.tokens)));
}

void KlBaseWriter::add(std::span<const float> logits, double log_sum) {
  const auto [least, most] = std::ranges::minmax(logits);
  const float low = std::max(least, most - kRange);
  const float scale = (most - low) / 65535.0F;
  const auto smallest = static_cast<float>(static_cast<double>(low) - log_sum);
  std::memcpy(row_.data(), &scale, sizeof scale);
  std::memcpy(row_.data() + 2, &smallest, sizeof smallest);
  for (size_t i = 0; i < logits.size(); ++i) {
    const float steps = scale > 0.0F ? std::max(0.0F, logits[i] - low) / scale : 0.0F;
    row_[kHeaderWords + i] = static_cast<uint16_t>(std::min(65535.0F, std::nearbyint(steps)));
  }
  file_.write(std::as_bytes(std::span(row_)));
}

KlBaseReader::KlBaseReader(std::filesystem::path path, const KlBaseRun& run)
    : path_(std::move(path)),
      in_(path_, std::ios::binary),
      row_(row_words(run.vocab_size)),
      log_probs_(run.vocab_size) {
  if (!in_) fail("{}: cannot be read", path_.string());
  char magic[8];
  uint32_t head[3];
  in_.read(magic, sizeof magic);
  in_.read(reinterpret_cast<char*>(head), sizeof head);
  if (!in_ || std::string_view(magic, sizeof magic) != kMagic) {
    fail("{}: not a file of log-probabilities, expected {} at its start", path_.string(), kMagic);
  }
  const auto windows = run.tokens.size() / run.context;
  if (head[0] != run.context || head[1] != run.vocab_size || head[2] != windows) {
    fail("{}: made of {} windows of {} tokens with a vocabulary of {}, expected {} of {} with {}",
         path_.string(), head[2], head[0], head[1], windows, run.context, run.vocab_size);
  }
  const uint64_t expected = sizeof magic + sizeof head + run.tokens.size() * sizeof(int32_t) +
                            scored(run) * row_.size() * sizeof(uint16_t);
  const uint64_t size = std::filesystem::file_size(path_);
  if (size != expected) fail("{}: has {} bytes, expected {}", path_.string(), size, expected);
  std::vector<int32_t> tokens(run.tokens.size());
  in_.read(reinterpret_cast<char*>(tokens.data()),
           static_cast<std::streamsize>(tokens.size() * sizeof(int32_t)));
  if (!in_ || tokens != run.tokens) fail("{}: made of another text", path_.string());
}

std::span<const float> KlBaseReader::next() {
  in_.read(reinterpret_cast<char*>(row_.data()),
           static_cast<std::streamsize>(row_.size() * sizeof(uint16_t)));
  if (!in_) fail("{}: cannot be read", path_.string());
  float scale = 0;
  float smallest = 0;
  std::memcpy(&scale, row_.data(), sizeof scale);
  std::memcpy(&smallest, row_.data() + 2, sizeof smallest);
  if (!std::isfinite(scale) || !std::isfinite(smallest)) {
    fail("{}: holds numbers that are not finite", path_.string());
  }
  for (size_t i = 0; i < log_probs_.size(); ++i) {
    log_probs_[i] = scale * static_cast<float>(row_[kHeaderWords + i]) + smallest;
  }
  return log_probs_;
}

void Divergence::add(std::span<const float> base, std::span<const float> logits, double log_sum,
                     int32_t token) {
  double divergence = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    if (base[i] <= -kRange) continue;  // not kept exactly, and without weight
    const auto own = static_cast<double>(base[i]);
    divergence += std::exp(own) * (own - (static_cast<double>(logits[i]) - log_sum));
  }
  const auto right = static_cast<size_t>(token);
  const double log_prob = static_cast<double>(logits[right]) - log_sum;
  divergences_.push_back(divergence);
  losses_.push_back(-log_prob);
  base_losses_.push_back(-static_cast<double>(base[right]));
  changes_.push_back(std::exp(log_prob) - std::exp(static_cast<double>(base[right])));
  same_top_ += top_of(base) == top_of(logits) ? 1 : 0;
}

nlohmann::ordered_json Divergence::summary() const {
  const Mean divergence = mean_of(divergences_);
  const Mean change = mean_of(changes_);
  std::vector<double> squares;
  std::vector<double> differences;
  for (size_t i = 0; i < changes_.size(); ++i) {
    squares.push_back(changes_[i] * changes_[i]);
    differences.push_back(losses_[i] - base_losses_[i]);
  }
  const Mean square = mean_of(squares);
  const double rms = std::sqrt(square.value);
  const Mean base = mean_of(base_losses_);
  const double base_perplexity = std::exp(base.value);
  const Mean difference = mean_of(differences);
  const double ratio = std::exp(difference.value);
  std::vector<double> sorted = divergences_;
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(divergences_.size());
  const double same = static_cast<double>(same_top_) / n;
  return {{"kl_divergence", divergence.value},
          {"kl_divergence_error", divergence.error},
          {"kl_divergence_max", sorted.back()},
          {"kl_divergence_p99_9", percentile(sorted, 0.999)},
          {"kl_divergence_p99", percentile(sorted, 0.99)},
          {"kl_divergence_median", percentile(sorted, 0.5)},
          {"same_top", same},
          {"same_top_error", n < 2 ? 0.0 : std::sqrt(same * (1 - same) / (n - 1))},
          {"probability_change", change.value},
          {"probability_change_error", change.error},
          {"probability_change_rms", rms},
          {"probability_change_rms_error", rms > 0 ? square.error / (2 * rms) : 0.0},
          {"base_perplexity", base_perplexity},
          {"base_perplexity_error", base_perplexity * base.error},
          {"perplexity_ratio", ratio},
          {"perplexity_ratio_error", ratio * difference.error}};
}

std::string Divergence::text() const {
  const nlohmann::ordered_json all = summary();
  const auto number = [&](const char* name) { return all[name].get<double>(); };
  const auto with_error = [&](const std::string& name) {
    return fmt::format("{:.6f} +/- {:.6f}", number(name.c_str()),
                       number((name + "_error").c_str()));
  };
  std::string out;
  const auto line = [&](std::string_view what, const std::string& value) {
    out += fmt::format("{:26}{}\n", what, value);
  };
  const auto plain = [&](const char* name) { return fmt::format("{:.6f}", number(name)); };
  const auto percent = [&](const std::string& name) {
    return fmt::format("{:.3f} +/- {:.3f} %", 100 * number(name.c_str()),
                       100 * number((name + "_error").c_str()));
  };
  line("PPL of the base", fmt::format("{:.4f} +/- {:.5f}", number("base_perplexity"),
                                      number("base_perplexity_error")));
  line("PPL over the base's", with_error("perplexity_ratio"));
  line("KL divergence, mean", with_error("kl_divergence"));
  line("  maximum", plain("kl_divergence_max"));
  line("  99.9%", plain("kl_divergence_p99_9"));
  line("  99%", plain("kl_divergence_p99"));
  line("  median", plain("kl_divergence_median"));
  line("change of p, mean", percent("probability_change"));
  line("  RMS", percent("probability_change_rms"));
  line("same top token", percent("same_top"));
  return out;
}

}  // namespace wisp::cli
