#include "gpu/profile.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/checked.h"
#include "base/error.h"
#include "gpu/provider.h"
#include "gpu/recording.h"

namespace wisp::gpu {
namespace {

constexpr uint32_t kQueriesInSet = 4096;  // WebGPU's limit
constexpr size_t kSubmissionsInFlight = 4;

void add(std::map<std::string, Profiler::Row>& rows, const std::string& name, double time_us) {
  Profiler::Row& row = rows[name];
  row.name = name;
  row.count += 1;
  row.total_us += time_us;
}

std::vector<Profiler::Row> sorted(const std::map<std::string, Profiler::Row>& rows) {
  std::vector<Profiler::Row> out;
  out.reserve(rows.size());
  for (const auto& [name, row] : rows) out.push_back(row);
  std::ranges::stable_sort(out, std::greater{}, &Profiler::Row::total_us);
  return out;
}

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

const WGPUPassTimestampWrites* Profiler::next(const std::string& name, bool whole) {
  const size_t number = recording_.names.size();
  const size_t set = number * 2 / kQueriesInSet;
  if (set >= sets_.size()) {
    ++untimed_;
    return nullptr;
  }
  recording_.names.push_back(name);
  recording_.whole = whole;
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
  if (submission.whole) {
    const auto [first, last] = std::ranges::minmax(ticks);
    add(submissions_, submission.names[0], static_cast<double>(last - first) * period_us);
    return;
  }
  // A pass may begin before the one in front of it has ended: a dispatch's time runs from the later
  // of the two.
  uint64_t previous_end = 0;
  for (size_t i = 0; i < submission.names.size(); ++i) {
    const uint64_t begin = std::max(ticks[i * 2], previous_end);
    const uint64_t end = std::max(ticks[i * 2 + 1], begin);
    previous_end = end;
    add(dispatches_, submission.names[i], static_cast<double>(end - begin) * period_us);
  }
}

Profiler::Times Profiler::take() {
  while (!pending_.empty()) collect_oldest();
  Times times{sorted(dispatches_), sorted(submissions_), untimed_};
  dispatches_.clear();
  submissions_.clear();
  untimed_ = 0;
  return times;
}

}  // namespace wisp::gpu
