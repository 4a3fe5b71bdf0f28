#include "backend/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <vector>

namespace wisp::backend {
namespace {

struct Candidate {
  float logit = 0.0F;
  uint32_t token = 0;
};

// The order of every cut.
bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

uint32_t mul_high(uint32_t a, uint32_t b) { return static_cast<uint32_t>((uint64_t{a} * b) >> 32); }

// floor(total * share / 2^32)
uint64_t scaled(uint64_t total, uint32_t share) {
  return (total >> 32) * share + (((total & 0xffffffffU) * share) >> 32);
}

// The `count` best, sorted. One pass, which keeps up to 2 * count and knows what the worst of them
// must beat.
std::vector<Candidate> take_best(std::span<const float> logits, size_t count) {
  const size_t capacity = std::max<size_t>(2 * count, 64);
  std::vector<Candidate> kept;
  kept.reserve(std::min(capacity, logits.size()));
  float floor = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] < floor) continue;
    kept.push_back({logits[i], static_cast<uint32_t>(i)});
    if (kept.size() < capacity) continue;
    const auto last = kept.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(kept.begin(), last, kept.end(), better);
    floor = last->logit;
    kept.resize(count);
  }
  std::sort(kept.begin(), kept.end(), better);
  if (kept.size() > count) kept.resize(count);
  return kept;
}

// Leaves the first of the sorted candidates whose masses at temperature 1 reach `wanted`.
void cut_masses(std::vector<Candidate>& sorted, float best, uint64_t wanted) {
  const MassScale scale = mass_scale(1.0F);
  uint64_t sum = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    sum += mass(best, sorted[i].logit, scale);
    if (sum >= wanted) return sorted.resize(i + 1);
  }
}

// Top-p over the whole vocabulary: masses are summed by distance from the best logit, so that only
// the few tokens near it have to be sorted.
std::vector<Candidate> take_top_p(std::span<const float> logits, float best, uint32_t share) {
  constexpr size_t kBins = 512;
  const auto bin_of = [best](float logit) {
    return static_cast<size_t>(std::min((best - logit) * 16.0F, static_cast<float>(kBins - 1)));
  };
  const MassScale scale = mass_scale(1.0F);
  std::array<uint64_t, kBins> masses{};
  uint64_t total = 0;
  for (const float logit : logits) {
    const uint32_t one = mass(best, logit, scale);
    masses[bin_of(logit)] += one;
    total += one;
  }
  const uint64_t wanted = share_of(total, share);
  size_t last = 0;
  for (uint64_t sum = masses[0]; sum < wanted; sum += masses[last]) ++last;
  std::vector<Candidate> kept;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (bin_of(logits[i]) <= last) kept.push_back({logits[i], static_cast<uint32_t>(i)});
  }
  std::sort(kept.begin(), kept.end(), better);
  cut_masses(kept, best, wanted);
  return kept;
}

// What top-k and top-p leave, in order of ids.
std::vector<Candidate> truncate(std::span<const float> logits, float best,
                                const RowSampling& sampling) {
  std::vector<Candidate> kept;
  if (sampling.cuts_top_k(logits.size())) {
    kept = take_best(logits, sampling.top_k);
    if (sampling.cuts_top_p()) {
      const MassScale scale = mass_scale(1.0F);
      uint64_t total = 0;
      for (const Candidate& candidate : kept) total += mass(best, candidate.logit, scale);
      cut_masses(kept, best, share_of(total, top_p_share(sampling.top_p)));
    }
  } else if (sampling.cuts_top_p()) {
    kept = take_top_p(logits, best, top_p_share(sampling.top_p));
  } else {
    kept.reserve(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      kept.push_back({logits[i], static_cast<uint32_t>(i)});
    }
    return kept;
  }
  std::sort(kept.begin(), kept.end(),
            [](const auto& a, const auto& b) { return a.token < b.token; });
  return kept;
}

}  // namespace

MassScale mass_scale(float temperature) {
  constexpr double kUnits = 0x1p24 * 2.0 * std::numbers::log2e;
  MassScale result;
  result.scale = static_cast<float>(kUnits / std::max(temperature, 0x1p-64F));
  const double limit = 0x1p29 / static_cast<double>(result.scale);
  const double most = std::numeric_limits<float>::max();
  result.limit = limit < most ? std::nextafter(static_cast<float>(limit), HUGE_VALF) : most;
  return result;
}

uint32_t mass(float best, float logit, const MassScale& scale) {
  const float distance = std::min(0.5F * best - 0.5F * logit, scale.limit);
  const auto exponent = static_cast<uint32_t>(distance * scale.scale);  // 8.24
  // 2^-f = 1 - f (c1 - f (c2 - ...)) with an error of 6e-9, all in units of 2^-32.
  const uint32_t f = exponent << 8;
  uint32_t sum = 0x00078809;
  for (const uint32_t c : {0x0054a612U, 0x0274f388U, 0x0e353290U, 0x3d7f7506U, 0xb17217dfU}) {
    sum = c - mul_high(f, sum);
  }
  const uint32_t fraction = 0x80000000U - ((mul_high(f, sum) + 1) >> 1);
  const uint32_t shift = exponent >> 24;
  return shift < 32 ? (fraction + ((1U << shift) >> 1)) >> shift : 0;
}

uint32_t top_p_share(float top_p) {
  return static_cast<uint32_t>(static_cast<double>(top_p) * 0x1p32);
}

uint64_t share_of(uint64_t total, uint32_t share) {
  const bool exact = static_cast<uint32_t>(total) * share == 0;
  return std::max<uint64_t>(1, scaled(total, share) + (exact ? 0 : 1));
}

std::optional<float> min_p_offset(float min_p) {
  if (!(min_p > 0.0F)) return std::nullopt;
  return std::log(min_p);
}

uint32_t sample(std::span<const float> logits, float best, const RowSampling& sampling) {
  std::vector<Candidate> kept = truncate(logits, best, sampling);
  if (const std::optional<float> offset = min_p_offset(sampling.min_p)) {
    const float floor = best + *offset;
    std::erase_if(kept, [floor](const Candidate& candidate) { return candidate.logit < floor; });
  }
  // In order of ids, so that cuts that cut nothing change nothing.
  const MassScale scale = mass_scale(sampling.temperature);
  std::vector<uint64_t> ends(kept.size());
  uint64_t total = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    ends[i] = total += mass(best, kept[i].logit, scale);
  }
  const uint64_t drawn = scaled(total, sampling.random);  // below total
  const auto end = std::upper_bound(ends.begin(), ends.end(), drawn);
  return kept[static_cast<size_t>(end - ends.begin())].token;
}

}  // namespace wisp::backend
