#include "gpu/profile.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "gpu/provider.h"
#include "gpu/recording.h"

namespace wisp::gpu {
namespace {

constexpr uint32_t kQueriesInSet = 4096;  // WebGPU's limit
constexpr size_t kSubmissionsInFlight = 4;

}  // namespace

Profiler::Profiler(Device& device, size_t max_dispatches) : device_(&device) {
  if (!device.capabilities().timestamps) return;
  const uint64_t queries = round_up(max_dispatches * 2, kQueriesInSet);
  const ErrorScope scope;
  for (uint64_t i = 0; i < queries; i += kQueriesInSet) {
    WGPUQuerySetDescriptor descriptor = WGPU_QUERY_SET_DESCRIPTOR_INIT;
    descriptor.type = WGPUQueryType_Timestamp;
    descriptor.count = kQueriesInSet;
    sets_.emplace_back(wgpuDeviceCreateQuerySet(device.handle(), &descriptor));
  }
  if (scope.failed()) fail("timestamps: {}", scope.message());
  resolved_ = Buffer(device, queries * 8, BufferUse::query, "timestamps");
  readback_ = std::make_unique<Readback>(device, kSubmissionsInFlight, queries * 8);
}

Profiler::~Profiler() = default;

const WGPUPassTimestampWrites* Profiler::next(const std::string& name) {
  const size_t number = recording_.names.size();
  const size_t set = number * 2 / kQueriesInSet;
  if (set >= sets_.size()) {
    ++untimed_;
    return nullptr;
  }
  recording_.names.push_back(name);
  writes_ = WGPU_PASS_TIMESTAMP_WRITES_INIT;
  writes_.querySet = sets_[set].get();
  writes_.beginningOfPassWriteIndex = static_cast<uint32_t>(number * 2 % kQueriesInSet);
  writes_.endOfPassWriteIndex = writes_.beginningOfPassWriteIndex + 1;
  return &writes_;
}

void Profiler::resolve(Commands& commands) {
  if (recording_.names.empty()) return;
  if (pending_.size() >= kSubmissionsInFlight) collect_oldest();
  const uint64_t queries = recording_.names.size() * 2;
  for (uint64_t first = 0; first < queries; first += kQueriesInSet) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kQueriesInSet, queries - first));
    wgpuCommandEncoderResolveQuerySet(commands.encoder_.get(), sets_[first / kQueriesInSet].get(),
                                      0, count, resolved_.handle(), first * 8);
  }
  recording_.read = commands.read(*readback_, resolved_, 0, queries * 8);
}

void Profiler::submitted() {
  if (!recording_.names.empty()) pending_.push_back(std::move(recording_));
  recording_ = {};
}

void Profiler::cancel() { recording_ = {}; }

void Profiler::collect_oldest() {
  const Submission submission = std::move(pending_.front());
  pending_.pop_front();
  const std::span<const std::byte> bytes = readback_->wait(submission.read);
  std::vector<uint64_t> ticks(bytes.size() / 8);
  std::memcpy(ticks.data(), bytes.data(), bytes.size());
  const double period_us = provider::timestamp_period(device_->queue()) / 1000.0;
  // A pass may begin before the one in front of it has ended: a dispatch's time runs from the later
  // of the two.
  uint64_t previous_end = 0;
  for (size_t i = 0; i < submission.names.size(); ++i) {
    const uint64_t begin = std::max(ticks[i * 2], previous_end);
    const uint64_t end = std::max(ticks[i * 2 + 1], begin);
    previous_end = end;
    Row& row = rows_[submission.names[i]];
    row.name = submission.names[i];
    row.count += 1;
    row.total_us += static_cast<double>(end - begin) * period_us;
  }
}

std::vector<Profiler::Row> Profiler::rows() {
  while (!pending_.empty()) collect_oldest();
  std::vector<Row> out;
  for (const auto& [name, row] : rows_) out.push_back(row);
  std::stable_sort(out.begin(), out.end(),
                   [](const Row& a, const Row& b) { return a.total_us > b.total_us; });
  return out;
}

std::string Profiler::table() {
  if (sets_.empty()) return "no GPU profile: the adapter has no timestamps\n";
  const std::vector<Row> all = rows();
  double total = 0;
  size_t width = 8;
  for (const Row& row : all) {
    total += row.total_us;
    width = std::max(width, row.name.size());
  }
  std::string out = fmt::format("{:<{}} {:>9} {:>12} {:>10} {:>6}\n", "dispatch", width, "count",
                                "total us", "mean us", "share");
  for (const Row& row : all) {
    out += fmt::format("{:<{}} {:>9} {:>12.1f} {:>10.2f} {:>5.1f}%\n", row.name, width, row.count,
                       row.total_us, row.total_us / static_cast<double>(row.count),
                       total > 0 ? 100.0 * row.total_us / total : 0.0);
  }
  out += fmt::format("{:<{}} {:>9} {:>12.1f}\n", "total", width, "", total);
  if (untimed_) out += fmt::format("{} dispatches were not timed\n", untimed_);
  return out;
}

void Profiler::reset() {
  while (!pending_.empty()) collect_oldest();
  rows_.clear();
  untimed_ = 0;
}

}  // namespace wisp::gpu
