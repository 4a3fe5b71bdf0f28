// What the kernel laboratory measures: one op, many times in a plan, over steps of several sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/selftest/op_case.h"
#include "formats/dtype.h"
#include "plan/plan.h"

namespace wisp::lab {

// What is asked for; an empty list takes each case's own values.
struct Sweep {
  struct Matrix {
    uint32_t rows = 0;
    uint32_t cols = 0;
  };
  struct Heads {
    uint32_t num_heads = 0;
    uint32_t num_kv_heads = 0;
    uint32_t dim = 0;  // of keys and values
    // Values are so many first elements of the keys (latent attention); 0: they are of their own.
    uint32_t latent = 0;
  };
  std::vector<std::string> ops;
  std::vector<formats::DType> types;
  std::vector<Matrix> shapes;
  std::vector<Heads> heads;
  std::vector<uint32_t> widths;  // of ops on rows
  std::vector<uint32_t> columns;
  std::vector<uint32_t> depths;
  bool decode = true;
  bool prefill = true;
  bool exact = false;  // f32 activations instead of int8 blocks and halves
};

// What an op computes with: which of a card's limits holds.
enum class Arithmetic : uint8_t { f32, int8 };

// One step of a case. Bytes and operations are those of one op: what it reads and writes once.
struct Point {
  uint32_t columns = 0;
  std::string depth;  // positions in front of a column; empty: none matter
  double bytes = 0;
  double operations = 0;
};

struct LabCase {
  backend::selftest::OpCase op_case;  // its steps are the points
  // Fills the pages before; no ops: there are none to fill.
  plan::Plan fill;
  std::vector<backend::selftest::Input> fill_inputs;
  std::vector<backend::Step> fill_steps;
  std::vector<Point> points;
};

// How often the op is in the plan, and over how many weights or KV layers those take turns.
struct Copies {
  uint32_t ops = 1;
  uint32_t weights = 1;
};

struct CaseSpec {
  std::string op;
  std::string type;   // of weights, keys or results
  std::string shape;  // "4096x14336": rows and columns, heads, or the width of a row
  plan::KernelClass kernel_class = plan::KernelClass::decode;
  Arithmetic arithmetic = Arithmetic::f32;
  uint32_t ops = 1;           // worth having in a plan
  uint64_t weight_bytes = 0;  // that one op streams; 0: none
  // Calls share the bytes of weights.
  std::function<LabCase(Copies)> make;
};

// The cases that the sweep asks for. Throws cli::UsageError for an op that is not known.
std::vector<CaseSpec> lab_cases(const Sweep& sweep);
std::vector<std::string> op_names();

// Its parts, one file each.
void add_linear(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_attention(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_rope_kv(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_norm(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_layer_norm(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_glu(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_activate(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_softcap(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_quantize(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_add(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_embed(const Sweep& sweep, std::vector<CaseSpec>& specs);
void add_sample(const Sweep& sweep, std::vector<CaseSpec>& specs);

// Random rows of a weight, quick to make: a pattern of a few dozen rows again and again, a number
// that no tile divides.
backend::selftest::Bytes weight_bytes(formats::DType dtype, uint32_t rows, uint32_t cols);

// `wanted`, or `otherwise` when nothing is asked for.
template <typename T>
std::vector<T> asked(const std::vector<T>& wanted, const std::vector<T>& otherwise) {
  return wanted.empty() ? otherwise : wanted;
}

}  // namespace wisp::lab
