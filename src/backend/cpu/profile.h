// Times summed by name.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "plan/op.h"

namespace wisp::backend::cpu {

class Times {
 public:
  void add(const std::string& name, std::chrono::steady_clock::duration time);
  // The rows by falling total; starts anew.
  std::vector<ProfileRow> take();

 private:
  std::map<std::string, ProfileRow> rows_;  // by name
};

// "prefill linear blk.*.attn.qkv": class, kind and name, with layer numbers as '*'.
std::string profile_name(const plan::Op& op);

}  // namespace wisp::backend::cpu
