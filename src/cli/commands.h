// The commands of the program: each function adds one to the parser, with its flags, its help and
// what it does. The callbacks throw UsageError (options.h) or Error.
#pragma once

namespace CLI {
class App;
}

namespace wisp::cli {

void add_run(CLI::App& app);
void add_generate(CLI::App& app);
void add_logits(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_detokenize(CLI::App& app);
void add_inspect(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_bench(CLI::App& app);
void add_quantize(CLI::App& app);
void add_devices(CLI::App& app);

}  // namespace wisp::cli
