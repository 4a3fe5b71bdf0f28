// A backend without a device for tests of the engine. Its "model" hashes the whole history of a
// column, which it reads back through block table and pages: a wrong page, slot, position, token or
// kernel class changes every later result. It also checks the promises of backend.h and throws
// std::logic_error where one is broken.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "backend/backend.h"

namespace wisp::engine {

struct FakeOptions {
  uint32_t vocab_size = 32;
  uint32_t num_pages = 0;
  uint32_t max_slots = 1;
  uint32_t max_pages_per_slot = 0;
  uint32_t prefill_columns = 512;
  uint32_t decode_columns = 1;
  std::optional<int32_t> poison = {};  // the logits of a column with this token are not finite
  std::optional<uint64_t> fail_submit = {};  // the submit with this number throws
  std::optional<uint64_t> fail_wait = {};    // so does the wait
};

// The model as a function: folds one more token into a history, and makes logits of a history.
uint64_t fake_history(uint64_t history, int32_t token, uint32_t position, bool prefill);
std::vector<float> fake_logits(uint64_t history, uint32_t vocab_size);
int32_t fake_argmax(const std::vector<float>& logits);

class FakeBackend : public backend::Backend {
 public:
  static constexpr backend::PlanHandle kPrefill{0};
  static constexpr backend::PlanHandle kDecode{1};

  explicit FakeBackend(const FakeOptions& options);

  void load(backend::LoadOptions options) override;
  backend::PlanHandle prepare(const plan::Plan& plan, std::span<const plan::ValueId> kept) override;
  backend::Ticket submit(backend::PlanHandle plan, const backend::Step& step) override;
  backend::StepResult wait(backend::Ticket ticket) override;
  void write_value(backend::PlanHandle plan, plan::ValueId value,
                   std::span<const std::byte> rows) override;
  std::vector<std::byte> read_value(backend::PlanHandle plan, plan::ValueId value,
                                    uint32_t num_rows) override;
  std::vector<float> read_state(plan::StateId state, uint32_t row) override;
  void write_state(plan::StateId state, uint32_t row, std::span<const float> values) override;
  backend::BackendInfo info() const override;
  void set_profiling(bool on, backend::Timed timed) override;
  backend::Profile take_profile() override;

  size_t num_in_flight() const { return in_flight_.size(); }
  size_t max_in_flight() const { return max_in_flight_; }
  uint64_t num_steps() const { return num_submitted_; }
  uint64_t num_chained() const { return num_chained_; }  // columns that took the device's token
  // Of every step: how many columns and rows of logits, in which class.
  struct StepShape {
    bool prefill = false;
    size_t columns = 0;
    size_t logit_rows = 0;
    bool read_logits = false;
  };
  const std::vector<StepShape>& shapes() const { return shapes_; }

 private:
  struct Cell {
    int32_t token = 0;
    uint32_t position = 0;
    bool prefill = false;
    bool written = false;
  };
  struct Page {
    std::vector<Cell> cells;
    std::optional<uint32_t> slot;  // that owns it
  };
  struct Slot {
    std::vector<std::optional<uint32_t>> table;
    uint32_t next_position = 0;
    bool prompt_ended = false;  // no more columns of the prefill class
    std::optional<int32_t> last_token;
    uint32_t last_position = 0;
  };
  struct InFlight {
    backend::StepResult result;
    std::set<uint32_t> slots;
    std::set<uint32_t> pages;
  };

  void update_table(const backend::TableUpdate& update);
  void check_order(const backend::Step& step, bool prefill) const;
  void write_column(const backend::Column& column, bool prefill, InFlight& touched);
  Cell& cell(uint32_t slot, uint32_t position, uint32_t* page_out = nullptr);
  void read_row(const backend::Step& step, uint32_t column, backend::StepResult& result);

  FakeOptions options_;
  std::vector<Page> pages_;
  std::vector<Slot> slots_;
  std::map<backend::Ticket, InFlight> in_flight_;
  std::vector<StepShape> shapes_;
  size_t max_in_flight_ = 0;
  uint64_t num_submitted_ = 0;
  uint64_t num_waited_ = 0;
  uint64_t num_chained_ = 0;
};

}  // namespace wisp::engine
