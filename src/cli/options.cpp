#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/log.h"
#include "formats/quoted.h"

namespace wisp::cli {

namespace {

constexpr char kGroup[] = "Common flags";

}  // namespace

model::Math PlanFlags::math_mode() const {
  return math == "exact" ? model::Math::exact : model::Math::fast;
}

formats::DType PlanFlags::kv_dtype() const {
  return kv == "f32" ? formats::DType::F32 : formats::DType::F16;
}

void add_verbose_flag(CLI::App& command) {
  command
      .add_flag_callback(
          "--verbose", [] { set_log_level(LogLevel::info); },
          "tell on stderr what is loaded and where it runs")
      ->group(kGroup);
}

backend::CreateOptions DeviceFlags::create_options() const {
  backend::CreateOptions options{.adapter = adapter, .threads = threads};
  if (backend == "cpu") options.choice = backend::Choice::cpu;
  if (backend == "webgpu") options.choice = backend::Choice::webgpu;
  return options;
}

void add_plan_flags(CLI::App& command, PlanFlags& flags) {
  command
      .add_option("--math", flags.math,
                  "fast (default) rounds activations to int8 or f16, exact does not")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->option_text("fast|exact")
      ->group(kGroup);
  command.add_option("--kv", flags.kv, "type of the stored keys and values, f16 by default")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->option_text("f16|f32")
      ->group(kGroup);
  command
      .add_option("-c,--context", flags.context,
                  "positions a sequence may have (default: what is needed, or the model's, at most "
                  "8192)")
      ->option_text("N")
      ->group(kGroup);
}

void add_device_flags(CLI::App& command, DeviceFlags& flags) {
  command
      .add_option("--backend", flags.backend,
                  "auto (default) takes a real GPU, else the CPU; webgpu the best adapter there is")
      ->check(CLI::IsMember({"auto", "webgpu", "cpu"}))
      ->option_text("auto|webgpu|cpu")
      ->group(kGroup);
  command.add_option("--adapter", flags.adapter, "index or part of the name (see wisp devices)")
      ->option_text("INDEX|NAME")
      ->group(kGroup);
  command.add_option("-t,--threads", flags.threads, "CPU threads (default: one a processor)")
      ->check(CLI::Range(1U, kMaxThreads))
      ->option_text("N")
      ->group(kGroup);
}

void add_compute_flags(CLI::App& command, ComputeFlags& flags) {
  add_device_flags(command, flags);
  add_plan_flags(command, flags.plan);
  command
      .add_flag("--check-tensors", flags.check_tensors,
                "first look at every weight: NaN or infinite ones are named")
      ->group(kGroup);
  command.add_flag("--profile", flags.profile, "print on stderr where the time went")
      ->group(kGroup);
  add_verbose_flag(command);
}

std::string check_path(const std::string& path) {
  return path.empty() ? "the path is empty" : std::string();
}

void check_numbers(CLI::App& command) {
  const auto check_uint = [](const std::string& text) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    const bool good = result.ec == std::errc{} && result.ptr == end;
    return good ? std::string() : "expected a whole number, found " + formats::in_quotes(text);
  };
  const auto check_float = [](const std::string& text) {
    return text.empty() ? std::string("expected a number, found ''") : std::string();
  };
  for (CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    const std::string type = option->get_type_name();
    if (type.starts_with("UINT")) option->check(check_uint);
    if (type.starts_with("FLOAT")) option->check(check_float);
  }
}

CLI::Option* add_model_option(CLI::App& command, std::string& model) {
  return command
      .add_option("-m,--model", model,
                  "a .gguf file, or a folder with config.json and *.safetensors")
      ->option_text("MODEL")
      ->check(check_path)
      ->required();
}

}  // namespace wisp::cli
