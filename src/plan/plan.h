// A plan: the flat list of ops of one kernel class of one model, the same for every backend.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/dtype.h"
#include "plan/op.h"

namespace wisp::plan {

// q8 rows hold, for a width w (a multiple of 32): int8 q [w], then for each block of 32 f32 d and
// int32 sum of its q. Backends may make two more: q8_rms rows (op.h, NormOut) go on with f32
// [w / 32], f16 rows are what cooperative matrices read.
enum class ValueType : uint8_t { f32, f16, q8, q8_rms };

constexpr bool is_q8(ValueType type) { return type == ValueType::q8 || type == ValueType::q8_rms; }

// How many rows a value has in a step: one a column, or one for each column that wants logits.
enum class Rows : uint8_t { columns, logits };

struct Value {
  std::string name;
  ValueType type = ValueType::f32;
  Rows rows = Rows::columns;
  uint32_t width = 0;
};

uint64_t row_bytes(const Value& value);

// A tensor that lives as long as the model. Vectors have rows = 1 and are f32.
struct Weight {
  std::string name;
  formats::DType dtype = formats::DType::F32;
  uint32_t rows = 0;
  uint32_t cols = 0;
};

// The KV cache of one layer. Pages hold kPageTokens tokens: keys [page, kv head, token, head_dim],
// values the same with value_dim; or the values are the first value_dim elements of the keys, and
// there are no pages of values.
struct KvLayer {
  uint32_t num_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t value_dim = 0;
  bool values_in_keys = false;
};

// Elements that a layer stores of a token.
inline uint64_t kv_elements(const KvLayer& layer) {
  const uint64_t of_head = layer.values_in_keys ? layer.head_dim : layer.head_dim + layer.value_dim;
  return layer.num_kv_heads * of_head;
}

inline constexpr uint32_t kPageTokens = 16;

// What an op keeps of a sequence beside KV pages: one f32 row for each slot. A column at position 0
// finds the op's initial state there, zeros unless it says otherwise, whatever the row held.
struct StateLayer {
  uint32_t width = 0;
};

// What persists between steps and is shared by the plans of a model.
struct Resources {
  std::vector<Weight> weights;
  std::vector<KvLayer> kv_layers;
  std::vector<StateLayer> states;
  formats::DType kv_dtype = formats::DType::F16;  // F16 or F32
  uint32_t vocab_size = 0;
};

struct Plan {
  std::string name;  // "prefill", "decode"
  std::vector<Value> values;
  std::vector<ValueId>
      inputs;  // values set from outside (tests); a model's plan starts from tokens and has none
  std::vector<Op> ops;
  uint32_t max_columns = 0;  // rows of a Rows::columns value
  uint32_t max_logits = 0;   // rows of a Rows::logits value held at once

  const Value& operator[](ValueId id) const { return values[index(id)]; }
};

// Throws Error naming the op when a shape does not fit, a value is used before it is defined,
// defined twice or by an op that also reads it, a row kind is mixed, or a number is out of its
// range. See op.h for the rules.
void verify(const Plan& plan, const Resources& resources);

// Positions that the columns of a step may have: the rows of the plan's shortest table by position
// (Embed::positions, the rope tables, RopeKv::query_scale), or UINT32_MAX if it has none.
uint32_t num_positions(const Plan& plan, const Resources& resources);

// One line an op: "%7 f32[k, 960] = linear %6, attn_qkv q4_1[960, 576] residual=%2   ; decode
// blk.0.attn.qkv".
std::string to_string(const Plan& plan, const Resources& resources);

}  // namespace wisp::plan
