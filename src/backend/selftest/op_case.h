// Op tests as data: a case is a small plan with its weights, inputs and steps. Any backend runs it;
// results are compared with the plain reference (reference.h), with another backend, or bit by bit
// with the same columns run one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"

namespace wisp::backend::selftest {

// Rows of one of the plan's inputs, set before a step.
struct Input {
  plan::ValueId value{};
  std::vector<std::byte> rows;
};

struct CaseStep {
  Step step;
  std::vector<Input> inputs;
};

using Bytes = std::shared_ptr<const std::vector<std::byte>>;

struct OpCase {
  std::string name;  // letters, digits and '_' only: a GoogleTest parameter name
  plan::Plan plan;
  plan::Resources resources;
  std::vector<Bytes> weights;  // by weight index; several may share theirs
  uint32_t num_pages = 0;
  uint32_t max_slots = 0;
  uint32_t max_pages_per_slot = 0;
  uint32_t num_states = 0;  // 0: max_slots
  // Columns of a slot stay together up to positions that are multiples of this (columns_alone).
  uint32_t block = 1;
  std::vector<CaseStep> steps;
  std::vector<plan::ValueId> outputs;  // read after every step
  // Largest |actual - expected| of an output over the root mean square of the expected output's
  // finite values. The values of a q8 output may differ by one quantum instead, in at most 1 of 50
  // places.
  double bound = 0.0;
};

struct StepRun {
  std::vector<std::vector<std::byte>> outputs;  // rows of each of OpCase::outputs
  StepResult result;
};
using CaseRun = std::vector<StepRun>;  // by step

// Loads the case into a fresh backend and runs its steps.
CaseRun run_case(Backend& backend, const OpCase& op_case);

// The same case with every column, or block of a slot's columns, in a step of its own; join_columns
// puts the results of such a run into the form of the whole case, to be compared by same_bits.
OpCase columns_alone(const OpCase& op_case);
CaseRun join_columns(const OpCase& whole, const CaseRun& alone);

// Both return an empty string, or a line that tells the first (largest) difference. `bound_scale`
// widens the bound of the case, for a backend that rounds more.
std::string differing_bits(const OpCase& op_case, const CaseRun& a, const CaseRun& b);
std::string difference(const OpCase& op_case, const CaseRun& actual, const CaseRun& expected,
                       double bound_scale = 1.0);

// A value's rows as numbers: f32 as they are, q8 as q * d.
std::vector<double> numbers(const plan::Value& value, const std::vector<std::byte>& rows);

using Random = std::mt19937;
std::vector<float> random_floats(Random& random, size_t count, float magnitude = 1.0F);
// Random blocks of any weight type, the same on every machine; decoded values lie about within
// +-magnitude.
std::vector<std::byte> random_weight(Random& random, formats::DType dtype, uint32_t rows,
                                     uint32_t cols, float magnitude = 1.0F);
// Cosines and sines of a usual RoPE, [positions, rotary_dim].
std::vector<float> rope_table(uint32_t positions, uint32_t rotary_dim);
std::vector<std::byte> to_bytes(const std::vector<float>& values);
// Rows of a q8 value made from f32 rows by the Quantize op's rule.
std::vector<std::byte> quantized_rows(const std::vector<float>& values, uint32_t width);

// Builds a case op by op. Slots get scattered pages by themselves as their positions grow.
class CaseBuilder {
 public:
  struct Shape {
    uint32_t max_columns = 65;
    uint32_t max_logits = 65;
    uint32_t max_slots = 3;
    uint32_t max_positions = 144;  // per slot
    uint32_t num_pages = 0;        // 0: enough for all positions of all slots
  };
  CaseBuilder(std::string name, plan::KernelClass kernel_class, Shape shape, uint32_t seed = 1);

  plan::ValueId value(std::string name, uint32_t width, plan::Rows rows = plan::Rows::columns,
                      plan::ValueType type = plan::ValueType::f32);
  // An input: every step fills it with random numbers within +-magnitude.
  plan::ValueId input(std::string name, uint32_t width, plan::ValueType type = plan::ValueType::f32,
                      float magnitude = 1.0F);
  plan::WeightId weight(std::string name, formats::DType dtype, uint32_t rows, uint32_t cols,
                        float magnitude = 1.0F);
  plan::WeightId weight(std::string name, uint32_t rows, uint32_t cols,
                        const std::vector<float>& values);
  plan::WeightId weight(std::string name, formats::DType dtype, uint32_t rows, uint32_t cols,
                        Bytes bytes);
  plan::KvLayerId kv_layer(const plan::KvLayer& layer);
  plan::StateId state(uint32_t width);
  void op(const plan::OpBody& body);
  void output(plan::ValueId value, double bound);
  // Columns that all carry tokens drawn from the vocabulary.
  void step(std::vector<Column> columns, std::vector<uint32_t> logit_columns = {},
            bool read_logits = false);
  // `count` columns of a slot from its next position on.
  std::vector<Column> next_columns(uint32_t slot, uint32_t count);
  // Replaces an input of the last step.
  void set_input(plan::ValueId value, const std::vector<float>& values);
  // What the last step does with states before its columns.
  void set_state_copies(std::vector<StateCopy> copies);
  // The position of a slot's next column, for one that goes on from another's state.
  void set_position(uint32_t slot, uint32_t position);
  // How the last step's logit columns choose.
  void set_sampling(std::vector<RowSampling> sampling);

  Random& random() { return random_; }
  OpCase& result() { return case_; }

 private:
  struct InputKind {
    plan::ValueId value{};
    float magnitude = 1.0F;
  };

  OpCase case_;
  plan::KernelClass kernel_class_;
  Random random_;
  std::vector<InputKind> inputs_;
  std::vector<uint32_t> free_pages_;
  std::vector<uint32_t> next_position_;  // by slot
  std::vector<uint32_t> pages_;          // of each slot
};

// All the cases: every op over shapes that do and do not fit tiles.
std::vector<OpCase> op_cases();

// Its parts, one file each.
void add_linear_cases(std::vector<OpCase>& cases);
void add_attention_cases(std::vector<OpCase>& cases);
void add_fused_cases(std::vector<OpCase>& cases);
void add_pointwise_cases(std::vector<OpCase>& cases);
void add_head_cases(std::vector<OpCase>& cases);
void add_expert_cases(std::vector<OpCase>& cases);
void add_latent_cases(std::vector<OpCase>& cases);
void add_stream_cases(std::vector<OpCase>& cases);
void add_recurrent_cases(std::vector<OpCase>& cases);
void add_sample_cases(std::vector<OpCase>& cases);

}  // namespace wisp::backend::selftest
