// What the engine must tell about a request, computed without an engine, and ways to run one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "fake_backend.h"

namespace wisp::engine {

using EventLog = std::map<RequestId, std::vector<Event>>;

struct RigOptions {
  uint32_t vocab_size = 32;
  uint32_t context = 400;
  uint32_t max_slots = 4;
  uint32_t num_pages = 0;  // 0: enough for all slots
  uint32_t prefill_columns = 256;
  uint32_t prefill_chunk = 128;
  uint32_t decode_columns = 4;
  std::optional<uint64_t> shuffle_seed;
  std::optional<int32_t> poison;
  std::optional<uint64_t> fail_submit;
  std::optional<uint64_t> fail_wait;
};

// A fake backend with an engine on it.
struct Rig {
  explicit Rig(RigOptions options);
  FakeBackend backend;
  Engine engine;

  // Steps until nothing is left; throws when that takes for ever.
  void finish(EventLog& log);
  EventLog finish();
  void step(EventLog& log);
};

// The events of a request, from the definitions in engine.h alone.
std::vector<Event> expected_events(const Request& request, const RigOptions& options);

// One line that names everything in an event, exact to the bit.
std::string describe(const Event& event);
// Of events without their request ids.
std::vector<std::string> describe(const std::vector<Event>& events);

// Tokens from a seed.
std::vector<int32_t> random_tokens(uint64_t seed, size_t count, uint32_t vocab_size);

}  // namespace wisp::engine
