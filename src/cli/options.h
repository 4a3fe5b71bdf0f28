// Flags that several commands share.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "backend/create.h"
#include "formats/dtype.h"
#include "model/model.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace wisp::cli {

// Most CPU threads that can be asked for.
inline constexpr uint32_t kMaxThreads = 1024;

// The command line is wrong: exit status 2 instead of 1. what() is one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// --math, --kv and -c: what a plan depends on.
struct PlanFlags {
  std::string math = "fast";
  std::string kv = "f16";
  uint32_t context = 0;  // 0: chosen by the command

  model::Math math_mode() const;
  formats::DType kv_dtype() const;
};

// Where to compute.
struct DeviceFlags {
  std::string backend = "auto";
  std::string adapter;
  uint32_t threads = 0;  // 0: one a processor

  backend::CreateOptions create_options() const;
};

// How and where to compute.
struct ComputeFlags : DeviceFlags {
  PlanFlags plan;
  bool profile = false;
  bool check_tensors = false;
};

void add_device_flags(CLI::App& command, DeviceFlags& flags);
void add_plan_flags(CLI::App& command, PlanFlags& flags);
void add_compute_flags(CLI::App& command, ComputeFlags& flags);
void add_verbose_flag(CLI::App& command);

// A check for options with a path: what is wrong with it, or nothing.
std::string check_path(const std::string& path);

// Makes all options of the command that take numbers refuse what the parser lets pass: empty texts
// (as 0), and whole numbers that are negative or too large for 64 bits.
void check_numbers(CLI::App& command);

// -m, required; the caller may loosen that.
CLI::Option* add_model_option(CLI::App& command, std::string& model);

}  // namespace wisp::cli
