// Time per op, summed over layers.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "plan/op.h"

namespace wisp::backend::cpu {

class Profile {
 public:
  using Duration = std::chrono::steady_clock::duration;

  void add(const plan::Op& op, Duration time);
  void clear() { entries_.clear(); }
  // One line for each class, kind and name (layer numbers become '*'), the longest first.
  std::string table() const;

 private:
  struct Entry {
    Duration time{};
    uint64_t runs = 0;
  };
  std::map<std::string, Entry> entries_;  // by "class kind name"
};

}  // namespace wisp::backend::cpu
