#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend/create.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "gpu/device.h"

namespace wisp::cli {

namespace {

using json = nlohmann::ordered_json;  // fields in the order written here

struct DevicesFlags {
  bool json = false;
};

void run_devices(const DevicesFlags& flags) {
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
  command.add_flag("--json", flags->json, "one JSON object");
  add_verbose_flag(command);
  command.footer("Example:\n  wisp devices --json");
  command.callback([flags] { run_devices(*flags); });
}

}  // namespace wisp::cli
