#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend/create.h"
#include "backend/selftest/check.h"
#include "backend/selftest/kernel_list.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "gpu/device.h"

namespace wisp::cli {

namespace {

using json = nlohmann::ordered_json;  // fields in the order written here

struct DevicesFlags {
  DeviceFlags device;
  bool json = false;
  bool self_test = false;
  bool kernels = false;
};

// Every op over many shapes: against plain double precision, and bit by bit alone and in a batch.
void self_test(const DevicesFlags& flags) {
  const backend::Factory make = backend::make_factory(flags.device.create_options());
  note(fmt::format("testing {}", make()->info().device));
  const std::vector<backend::selftest::OpCase> cases = backend::selftest::op_cases();
  size_t failed = 0;
  {
    Progress progress("testing");
    for (size_t i = 0; i < cases.size(); ++i) {
      std::string text;
      try {
        text = check_case(cases[i], make);
      } catch (const Error& error) {
        text = error.what();
      }
      if (!text.empty()) {
        print(fmt::format("FAIL {}: {}\n", cases[i].name, one_line(text)));
        ++failed;
      }
      progress.update(i + 1, cases.size());
    }
  }
  print(fmt::format("{} passed, {} failed\n", cases.size() - failed, failed));
  flush();
  if (failed != 0) fail("{} of {} cases of the self-test failed", failed, cases.size());
}

void list_kernels(const DevicesFlags& flags) {
  if (flags.device.backend == "cpu") fail("the cpu backend has no kernels to list");
  const auto device = gpu::Device::create({.adapter = flags.device.adapter});
  note(fmt::format("kernels for {}", device->adapter().name));
  const auto row = [](const backend::selftest::KernelLine& k) {
    print(fmt::format("{:<14}{:<9}{:<9}{:<16}{:<30}{}\n", k.op, k.kernel_class, k.weights, k.rows,
                      k.file, k.variant));
  };
  row({"op", "class", "weights", "rows", "file", "variant"});
  for (const auto& k : backend::selftest::kernel_lines(device->capabilities())) row(k);
}

void list_devices(const DevicesFlags& flags) {
  const std::vector<gpu::AdapterInfo> adapters = gpu::list_adapters();
  const std::string cpu = backend::create({.choice = backend::Choice::cpu})->info().device;
  if (flags.json) {
    json list = json::array();
    for (const gpu::AdapterInfo& adapter : adapters) {
      list.push_back({{"index", adapter.index},
                      {"name", adapter.name},
                      {"vendor", adapter.vendor},
                      {"driver", adapter.driver},
                      {"api", adapter.backend},
                      {"kind", gpu::to_string(adapter.kind)}});
    }
    const json object = {{"adapters", std::move(list)}, {"cpu", {{"name", cpu}}}};
    print(object.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    return;
  }
  print("--backend webgpu:\n");
  if (adapters.empty()) print("  no adapter: there is no GPU, or no driver for it\n");
  for (const gpu::AdapterInfo& adapter : adapters) {
    print(one_line(fmt::format("  --adapter {}  {} ({}, {}, {})", adapter.index, adapter.name,
                               adapter.backend, gpu::to_string(adapter.kind), adapter.driver)) +
          "\n");
  }
  print(fmt::format("--backend cpu:\n  {}\n", cpu));
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("devices", "list what wisp can compute on");
  const auto flags = std::make_shared<DevicesFlags>();
  CLI::Option* json = command.add_flag("--json", flags->json, "one JSON object");
  command
      .add_flag("--self-test", flags->self_test,
                "check what the device computes: every kernel against plain arithmetic, and that "
                "results do not depend on what else is computed")
      ->excludes(json);
  command
      .add_flag(
          "--kernels", flags->kernels,
          "list which kernel the GPU takes for each op, class, weight type and number of rows")
      ->excludes(json);
  add_device_flags(command, flags->device);
  add_verbose_flag(command);
  command.footer(
      "Examples:\n"
      "  wisp devices --json\n"
      "  wisp devices --self-test --backend webgpu");
  command.callback([flags] {
    if (flags->kernels) list_kernels(*flags);
    if (flags->self_test) self_test(*flags);
    if (!flags->kernels && !flags->self_test) list_devices(*flags);
  });
}

}  // namespace wisp::cli
