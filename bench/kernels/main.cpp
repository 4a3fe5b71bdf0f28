// kernel_lab: checks and times the kernels of ops, one at a time, over shapes and column counts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <exception>
#include <list>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "cli/output.h"
#include "formats/quoted.h"
#include "gpu/kernel.h"
#include "measure.h"
#include "report.h"

namespace wisp::lab {
namespace {

struct Flags {
  cli::DeviceFlags device{.backend = "webgpu"};
  MeasureOptions measure;
  Sweep sweep;
  std::vector<std::string> types, shapes, heads, classes;
  std::string kernels;  // folder
  std::string math = "fast";
  std::string output = "md";
  bool no_check = false;
  Limits limits;
  double flops = 0;
};

// "4096x14336" as `count` numbers from 1 on.
std::vector<uint32_t> numbers(const std::string& text, size_t count) {
  std::vector<uint32_t> list;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    uint32_t number = 0;
    const auto [next, status] = std::from_chars(at, end, number);
    if (status != std::errc() || number == 0 || (next < end && *next != 'x')) break;
    list.push_back(number);
    at = next < end ? next + 1 : next;
    if (next < end && at == end) break;
  }
  const auto separators = static_cast<size_t>(std::ranges::count(text, 'x'));
  if (at != end || list.size() != count || separators + 1 != count) {
    throw cli::UsageError(
        fmt::format("{} is not {} numbers such as 4096x14336", formats::in_quotes(text), count));
  }
  return list;
}

formats::DType weight_type(const std::string& name) {
  for (const formats::DTypeInfo& info : formats::all_dtypes()) {
    const auto same = [](char a, char b) {
      return CLI::detail::to_lower({a}) == CLI::detail::to_lower({b});
    };
    if (info.is_weight && std::ranges::equal(name, info.name, same)) return info.dtype;
  }
  throw cli::UsageError("there is no weight type " + formats::in_quotes(name));
}

Sweep sweep_of(const Flags& flags) {
  Sweep sweep = flags.sweep;
  for (const std::string& name : flags.types) sweep.types.push_back(weight_type(name));
  for (const std::string& text : flags.shapes) {
    const std::vector<uint32_t> n = numbers(text, 2);
    sweep.shapes.push_back({n[0], n[1]});
  }
  for (const std::string& text : flags.heads) {
    const bool latent = std::ranges::count(text, 'x') == 3;
    const std::vector<uint32_t> n = numbers(text, latent ? 4 : 3);
    if (n[0] % n[1] != 0) throw cli::UsageError("--heads: KV heads must divide heads");
    if (latent && (n[1] != 1 || n[3] >= n[2])) {
      throw cli::UsageError("--heads: latents are of one KV head and shorter than its keys");
    }
    sweep.heads.push_back({n[0], n[1], n[2], latent ? n[3] : 0});
  }
  const auto wants = [&](const char* name) {
    return flags.classes.empty() || std::ranges::find(flags.classes, name) != flags.classes.end();
  };
  sweep.decode = wants("decode");
  sweep.prefill = wants("prefill");
  sweep.exact = flags.math == "exact";
  return sweep;
}

void add_flags(CLI::App& app, Flags& flags) {
  const auto list = [&](const char* name, auto& values, const char* text, const char* what) {
    return app.add_option(name, values, what)->delimiter(',')->option_text(text);
  };
  std::string ops;
  for (const std::string& name : op_names()) ops += (ops.empty() ? "" : ", ") + name;
  list("--op", flags.sweep.ops, "OP,...", ("ops: " + ops).c_str());
  list("--type", flags.types, "TYPE,...", "weight types, such as q4_0");
  list("--shape", flags.shapes, "ROWSxCOLS,...", "matrices, such as 4096x14336");
  list("--heads", flags.heads, "HEADSxKVxDIM,...",
       "heads, KV heads and their size: 32x8x128; 128x1x576x512 attends to latents of 512");
  list("--width", flags.sweep.widths, "N,...", "elements of a row, for ops on rows")
      ->check(CLI::Range(1U, 1048576U));
  list("--k", flags.sweep.columns, "K,...", "columns of a step")->check(CLI::Range(1U, 8192U));
  list("--depth", flags.sweep.depths, "N,...", "positions in front of them")
      ->check(CLI::Range(0U, 131072U));
  list("--class", flags.classes, "CLASS,...", "decode, prefill")
      ->check(CLI::IsMember({"decode", "prefill"}));
  app.add_option("--math", flags.math, "fast (default): int8 and f16 activations; exact: f32")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->option_text("fast|exact");
  app.add_option("-r,--repetitions", flags.measure.repetitions, "of which the median counts (5)")
      ->check(CLI::Range(1U, 1000U))
      ->option_text("N");
  app.add_option("--copies", flags.measure.copies, "how often an op is in the timed plan")
      ->check(CLI::Range(1U, 256U))
      ->option_text("N");
  app.add_flag("--no-check", flags.no_check, "time without comparing with the CPU backend");
  app.add_option("--kernels", flags.kernels, "folder whose WGSL files replace the built-in ones")
      ->check(CLI::ExistingDirectory)
      ->option_text("DIR");
  app.add_option("-o,--output", flags.output, "md (default) or json")
      ->check(CLI::IsMember({"md", "json"}))
      ->option_text("md|json");
  app.add_option("--bandwidth", flags.limits.bandwidth, "the card's limit in GB/s, for the share")
      ->check(CLI::PositiveNumber)
      ->option_text("GB/S");
  app.add_option("--flops", flags.flops, "its limit in TFLOP/s, whatever the arithmetic")
      ->check(CLI::PositiveNumber)
      ->option_text("TFLOP/S");
  app.add_option("--backend", flags.device.backend, "webgpu (default): the best adapter; or cpu")
      ->check(CLI::IsMember({"webgpu", "cpu"}))
      ->option_text("webgpu|cpu");
  app.add_option("--adapter", flags.device.adapter, "index or part of the name (wisp devices)")
      ->option_text("INDEX|NAME");
  app.add_option("-t,--threads", flags.device.threads, "of the CPU backend (one a processor)")
      ->check(CLI::Range(1U, 1024U))
      ->option_text("N");
  cli::check_numbers(app);
}

Limits limits_of(const Flags& flags, const std::string& device) {
  Limits limits = known_limits(device);
  if (flags.limits.bandwidth > 0) limits.bandwidth = flags.limits.bandwidth;
  if (flags.flops > 0) limits.f32 = limits.int8 = limits.f16_matrices = flags.flops;
  return limits;
}

void run(const Flags& flags) {
  const std::vector<CaseSpec> specs = lab_cases(sweep_of(flags));
  if (specs.empty()) throw cli::UsageError("no case fits what is asked for");
  if (!flags.kernels.empty()) gpu::set_kernel_directory(flags.kernels);
  const Laboratory laboratory(flags.device);
  const std::string device = laboratory.device();
  const Limits limits = limits_of(flags, device);
  cli::note(fmt::format("{}{}", device,
                        laboratory.has_timestamps() ? "" : ", without timestamps: wall time"));
  MeasureOptions options = flags.measure;
  options.check = !flags.no_check;
  const bool table = flags.output == "md";
  if (table) cli::print(table_header());
  std::vector<Row> rows;
  size_t failed = 0;
  for (const CaseSpec& spec : specs) {
    const std::string name = fmt::format("{} {} {}", spec.op, spec.type, spec.shape);
    try {
      laboratory.measure(spec, options, [&](const Row& row) {
        rows.push_back(row);
        if (table) cli::print(table_row(row, limits));
        if (table) cli::flush();
        if (row.wrong.empty()) return;
        ++failed;
        cli::note(fmt::format("wrong: {} k={}: {}", name, row.point.columns, row.wrong));
      });
    } catch (const Error& error) {
      ++failed;
      cli::note(fmt::format("{}: {}", name, cli::one_line(error.what())));
    }
  }
  if (!table) cli::print(rows_json(device, rows, limits));
  cli::flush();
  if (failed > 0) fail("{} of the cases failed", failed);
}

int report(std::string_view message, int status) {
  cli::note("kernel_lab: error: " + cli::one_line(message));
  return status;
}

int main_of(int argc, char** argv) {
  CLI::App app("Checks the kernels of ops against the CPU backend and times them.", "kernel_lab");
  app.get_formatter()->column_width(32);
  app.footer(
      "Times are of one op. Streamed: many copies of it with weights of their own that do not "
      "wait\n"
      "for each other. In sequence: each waits for the one before, as in a model.\n\n"
      "Examples:\n"
      "  kernel_lab --op linear --type q4_0 --class decode\n"
      "  kernel_lab --op linear --type q4_0 --shape 4096x14336 --k 1,2 --kernels kernels\n"
      "  kernel_lab --op attention --depth 512,4096 -o json");
  Flags flags;
  add_flags(app, flags);
  try {
    app.parse(argc, argv);
    run(flags);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report(error.what(), 2);
    std::ostringstream text;
    app.exit(error, text, text);
    cli::print(text.str());
    cli::flush();
  } catch (const cli::UsageError& error) {
    return report(error.what(), 2);
  }
  return 0;
}

}  // namespace
}  // namespace wisp::lab

int main(int argc, char** argv) {
  try {
    return wisp::lab::main_of(argc, argv);
  } catch (const std::exception& error) {
    return wisp::lab::report(error.what(), 1);
  }
}
