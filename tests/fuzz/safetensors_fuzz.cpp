#include "formats/safetensors.h"
#include "fuzz_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  wisp::formats::fuzz_parse([&] { return wisp::formats::parse_safetensors(bytes); });
  return 0;
}
