// Importance matrices: how much each column of a weight matrix mattered on some text, as
// llama-imatrix writes them, in its GGUF form and in the older binary one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace wisp::formats {

// Mean squares of a matrix' inputs, matrix after matrix where the tensor is a stack of them
// (experts). Finite and not negative.
using Importance = std::vector<float>;
// By the name of the weight tensor.
using Imatrix = std::map<std::string, Importance, std::less<>>;

// Parses a whole file of either form held in memory; nothing in it is trusted. Inputs that were
// never seen (an expert that was not chosen) have importance 1. Throws Error.
Imatrix parse_imatrix(std::span<const std::byte> bytes);
// The same of a file. Throws Error beginning with the path.
Imatrix read_imatrix(const std::filesystem::path& path);

}  // namespace wisp::formats
