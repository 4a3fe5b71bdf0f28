// Reading the metadata of a GGUF file ("<arch>.block_count" and so on).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/metadata.h"
#include "model/config.h"

namespace wisp::model {

// Typed access to the keys below an architecture's prefix; errors name the whole key. Which keys
// were asked for is noted, so that those that nobody knows can be refused.
class GgufFields {
 public:
  GgufFields(const formats::Metadata& metadata, std::string arch)
      : metadata_(metadata), arch_(std::move(arch)) {}

  const std::string& arch() const { return arch_; }
  std::optional<uint32_t> get_uint(std::string_view key) const;
  std::optional<double> get_number(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  const std::string* find_string(std::string_view key) const;
  const std::vector<bool>* find_bools(std::string_view key) const;
  const std::vector<double>* find_floats(std::string_view key) const;
  std::vector<uint32_t> get_uints(std::string_view key) const;  // empty: absent
  // A bool for each layer: a list has them, a number means all but every so many-th, 0 all, and
  // none is the number `usual`.
  std::vector<bool> get_pattern(std::string_view key, uint32_t num_layers, uint32_t usual) const;
  uint32_t require_uint(std::string_view key) const;
  // A number for each layer: a list has them, one number holds for all, none is `usual`.
  std::vector<uint32_t> get_per_layer(std::string_view key, uint32_t num_layers,
                                      uint32_t usual) const;

  // Throws Error naming a key below the prefix that nobody asked for and that may change the
  // forward (see known_fields.h).
  void refuse_unread(std::string_view family) const;

 private:
  std::string full(std::string_view key) const;   // with the prefix
  std::string asked(std::string_view key) const;  // the same, noting that it was read

  const formats::Metadata& metadata_;
  std::string arch_;
  mutable std::set<std::string, std::less<>> asked_;  // whole keys
};

// Fills what all decoder families share, but for vocab_size where the file does not give it (0
// then: the embedding table's rows decide). Throws Error naming the key.
ModelConfig read_gguf_config(const GgufFields& fields, bool attention = true);

// How many experts there are, and of what size; the family adds how they are chosen.
void read_gguf_experts(const GgufFields& fields, ModelConfig& config);

}  // namespace wisp::model
