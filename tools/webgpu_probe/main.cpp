// webgpu_probe [ADAPTER_NAME_PART] [PART ...]: prints what the WebGPU library gives on an adapter.
#include <cstring>
#include <set>

#include "probe.h"

int main(int argc, char** argv) {
  using namespace probe;
  const std::string adapter = argc > 1 ? argv[1] : "";
  if (argc == 4 && std::strcmp(argv[2], "--fault") == 0) return run_fault(argv[3], adapter);
  std::set<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Gpu& gpu = *open(adapter);
  const struct {
    const char* name;
    void (*part)(Gpu&);
  } parts[] = {{"facts", facts},           {"language", language},   {"matrices", matrices},
               {"sizes", sizes},           {"timing", timing},       {"packed_dot", packed_dot},
               {"timestamps", timestamps}, {"stability", stability}, {"waiting", waiting},
               {"errors", errors},         {"threads", threads}};
  for (const auto& [name, part] : parts) {
    if (wanted.empty() || wanted.count(name)) part(gpu);
  }
  if (wanted.empty() || wanted.count("faults")) faults(argv[0], adapter);
}
