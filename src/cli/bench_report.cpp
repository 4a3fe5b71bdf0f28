#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/bench.h"
#include "cli/format.h"

namespace wisp::cli {

namespace {

struct Spread {
  double mean = 0;
  double deviation = 0;  // of the sample
};

Spread spread(const std::vector<double>& values) {
  Spread result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / (n - 1));
  return result;
}

std::vector<double> rates(const BenchResult& result) {
  std::vector<double> values;
  for (const BenchSample& sample : result.samples) {
    values.push_back(static_cast<double>(sample.tokens) / sample.seconds);
  }
  return values;
}

std::vector<double> first_token_milliseconds(const BenchResult& result) {
  std::vector<double> values;
  for (const BenchSample& sample : result.samples) {
    if (sample.first_token_seconds) values.push_back(*sample.first_token_seconds * 1000);
  }
  return values;
}

std::string test_name(const BenchTest& test) {
  const std::string name =
      test.prompt != 0 ? fmt::format("pp{}", test.prompt) : fmt::format("tg{}", test.generate);
  return test.depth == 0 ? name : fmt::format("{} @ d{}", name, test.depth);
}

std::string plus_minus(const std::vector<double>& values) {
  if (values.empty()) return "";
  const Spread s = spread(values);
  return fmt::format("{:.2f} ± {:.2f}", s.mean, s.deviation);
}

struct Column {
  std::string_view name;
  size_t width;
  bool right;
  std::string value;
};

std::vector<Column> columns(const BenchSubject& subject, const BenchResult& result,
                            bool with_sequences) {
  std::vector<Column> list = {{"model", 24, false, subject.model},
                              {"size", 10, true, bytes_text(subject.bytes)},
                              {"params", 10, true, count_text(subject.params)},
                              {"backend", 7, false, subject.backend}};
  if (subject.backend == "cpu") {
    list.push_back({"threads", 7, true, fmt::format("{}", subject.threads)});
  }
  list.push_back({"math", 5, false, subject.math});
  if (with_sequences) list.push_back({"n_seq", 5, true, fmt::format("{}", result.test.sequences)});
  list.push_back({"test", 15, true, test_name(result.test)});
  list.push_back({"t/s", 20, true, plus_minus(rates(result))});
  list.push_back({"first token ms", 20, true, plus_minus(first_token_milliseconds(result))});
  return list;
}

template <typename Text>
std::string line(const std::vector<Column>& list, const Text& text) {
  std::string result = "|";
  for (const Column& column : list) {
    const std::string cell(text(column));
    result += column.right ? fmt::format(" {:>{}} |", cell, column.width)
                           : fmt::format(" {:<{}} |", cell, column.width);
  }
  return result + "\n";
}

}  // namespace

std::string bench_header(const BenchSubject& subject, bool with_sequences) {
  const std::vector<Column> list = columns(subject, {}, with_sequences);
  return line(list, [](const Column& column) { return column.name; }) +
         line(list, [](const Column& column) {
           return std::string(column.width - 1, '-') + (column.right ? ':' : '-');
         });
}

std::string bench_row(const BenchSubject& subject, const BenchResult& result, bool with_sequences) {
  return line(columns(subject, result, with_sequences),
              [](const Column& column) { return column.value; });
}

std::string bench_json(const BenchSubject& subject, const std::vector<BenchResult>& results) {
  using json = nlohmann::ordered_json;  // fields in the order written here
  const auto nanoseconds = [](double seconds) { return std::llround(seconds * 1e9); };
  json list = json::array();
  for (const BenchResult& result : results) {
    std::vector<double> times;
    json samples = json::array();
    json first_tokens = json::array();
    for (const BenchSample& sample : result.samples) {
      times.push_back(sample.seconds);
      samples.push_back(nanoseconds(sample.seconds));
      if (sample.first_token_seconds)
        first_tokens.push_back(nanoseconds(*sample.first_token_seconds));
    }
    const Spread time = spread(times);
    const Spread rate = spread(rates(result));
    list.push_back({{"model_filename", subject.path},
                    {"model_type", subject.model},
                    {"model_size", subject.bytes},
                    {"model_n_params", subject.params},
                    {"backends", subject.backend},
                    {"device", subject.device},
                    {"n_threads", subject.threads},
                    {"math", subject.math},
                    {"type_k", subject.kv},
                    {"type_v", subject.kv},
                    {"n_prompt", result.test.prompt},
                    {"n_gen", result.test.generate},
                    {"n_depth", result.test.depth},
                    {"n_seq", result.test.sequences},
                    {"avg_ns", nanoseconds(time.mean)},
                    {"stddev_ns", nanoseconds(time.deviation)},
                    {"avg_ts", rate.mean},
                    {"stddev_ts", rate.deviation},
                    {"samples_ns", std::move(samples)},
                    {"samples_ts", rates(result)},
                    {"first_token_ns", std::move(first_tokens)}});
  }
  return list.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace wisp::cli
