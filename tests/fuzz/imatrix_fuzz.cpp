#include "formats/imatrix.h"
#include "fuzz_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wisp::formats::fuzz_parse([&] {
    wisp::formats::parse_imatrix(std::as_bytes(std::span(data, size)));
    return std::vector<wisp::formats::TensorView>();
  });
  return 0;
}
