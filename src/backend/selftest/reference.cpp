#include "backend/selftest/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

#include "backend/selftest/reference_recurrent.h"
#include "backend/selftest/reference_route.h"
#include "backend/selftest/reference_sample.h"
#include "backend/selftest/reference_streams.h"
#include "base/error.h"
#include "formats/half.h"

namespace wisp::backend::selftest {
namespace {

// f16 of a value, saturating; a NaN stays.
double to_half(double value) {
  if (value > 65504.0) value = 65504.0;
  if (value < -65504.0) value = -65504.0;
  return formats::f16_to_f32(formats::f32_to_f16(static_cast<float>(value)));
}

class Reference {
 public:
  explicit Reference(const OpCase& op_case)
      : case_(op_case),
        values_(op_case.plan.values.size()),
        last_token_(op_case.max_slots),
        keys_(op_case.resources.kv_layers.size()),
        cached_values_(op_case.resources.kv_layers.size()) {
    for (const plan::StateLayer& layer : op_case.resources.states) {
      states_.emplace_back(std::max(op_case.num_states, op_case.max_slots),
                           std::vector<double>(layer.width));
    }
    for (size_t i = 0; i < op_case.weights.size(); ++i) {
      const plan::Weight& weight = op_case.resources.weights[i];
      std::vector<float> flat(size_t{weight.rows} * weight.cols);
      formats::dtype_info(weight.dtype)
          .dequantize(op_case.weights[i]->data(), flat.data(), flat.size());
      Matrix& rows = weights_.emplace_back(weight.rows);
      for (size_t r = 0; r < weight.rows; ++r) {
        const auto begin = flat.begin() + static_cast<ptrdiff_t>(r * weight.cols);
        rows[r].assign(begin, begin + weight.cols);
      }
    }
  }

  StepRun run(const CaseStep& step) {
    step_ = &step.step;
    result_ = {};
    for (const Input& input : step.inputs) {
      const plan::Value& value = case_.plan[input.value];
      const std::vector<double> flat = numbers(value, input.rows);
      Matrix& rows = at(input.value);
      rows.assign(flat.size() / value.width, {});
      for (size_t r = 0; r < rows.size(); ++r) {
        const auto begin = flat.begin() + static_cast<ptrdiff_t>(r * value.width);
        rows[r].assign(begin, begin + value.width);
      }
    }
    for (Matrix& rows : states_) {
      for (const StateCopy& copy : step_->state_copies) rows[copy.to] = rows[copy.from];
    }
    for (const plan::Op& op : case_.plan.ops) {
      std::visit([&](const auto& body) { apply(body); }, op.body);
    }
    StepRun out;
    out.result = result_;
    for (const plan::ValueId id : case_.outputs) {
      const plan::Value& value = case_.plan[id];
      std::vector<float> flat;
      for (const auto& row : at(id)) flat.insert(flat.end(), row.begin(), row.end());
      out.outputs.push_back(value.type == plan::ValueType::q8 ? quantized_rows(flat, value.width)
                                                              : to_bytes(flat));
    }
    return out;
  }

 private:
  Matrix& at(plan::ValueId id) { return values_[plan::index(id)]; }
  Matrix& at(plan::StateId id) { return states_[plan::index(id)]; }
  const Matrix& at(plan::WeightId id) const { return weights_[plan::index(id)]; }

  void apply(const plan::Embed& op) {
    Matrix& out = at(op.out);
    out.clear();
    for (const Column& column : step_->columns) {
      const int32_t token = column.token.value_or(last_token_[column.slot]);
      out.push_back(at(op.table)[static_cast<size_t>(token)]);
      for (double& v : out.back()) v *= op.scale;
      if (!op.positions) continue;
      for (size_t i = 0; i < out.back().size(); ++i) {
        out.back()[i] += at(*op.positions)[column.position][i];
      }
    }
  }

  void apply(const plan::Norm& op) {
    Matrix& out = at(op.out);
    out = at(op.x);
    for (auto& row : out) {
      for (size_t from = 0; from < row.size(); from += op.group) {
        normalise(row.data() + from, op.group, op.kind, op.eps);
        for (size_t i = from; i < from + op.group; ++i) {
          if (op.weight) row[i] *= element(*op.weight, i, op.group) + op.weight_offset;
          if (op.bias) row[i] += element(*op.bias, i, op.group);
        }
      }
    }
  }

  // Element i of a row's weights, of which there are as many, or only one group.
  double element(plan::WeightId id, size_t i, size_t group) const {
    const auto& vector = at(id)[0];
    return vector[vector.size() == group ? i % group : i];
  }

  static void normalise(double* x, size_t n, plan::NormKind kind, double eps) {
    const auto count = static_cast<double>(n);
    const double mean =
        kind == plan::NormKind::layer ? std::accumulate(x, x + n, 0.0) / count : 0.0;
    double square = 0.0;
    for (size_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
    const double factor = 1.0 / std::sqrt(square / count + eps);
    for (size_t i = 0; i < n; ++i) x[i] = (x[i] - mean) * factor;
  }

  void apply(const plan::Add& op) {
    const Matrix& b = at(op.b);
    Matrix out = at(op.a);
    for (size_t r = 0; r < out.size(); ++r) {
      for (size_t i = 0; i < out[r].size(); ++i) {
        out[r][i] = op.out_scale * (out[r][i] + op.scale * b[r][i % b[r].size()]);
      }
    }
    at(op.out) = std::move(out);
  }

  void apply(const plan::Quantize& op) {
    const Matrix& x = at(op.x);
    const uint32_t width = case_.plan[op.x].width;
    std::vector<float> flat;
    for (const auto& row : x) flat.insert(flat.end(), row.begin(), row.end());
    const std::vector<double> q = numbers(case_.plan[op.out], quantized_rows(flat, width));
    Matrix& out = at(op.out);
    out.assign(x.size(), {});
    for (size_t r = 0; r < x.size(); ++r) {
      const auto begin = q.begin() + static_cast<ptrdiff_t>(r * width);
      out[r].assign(begin, begin + width);
    }
  }

  void apply(const plan::Linear& op) {
    const Matrix& weight = at(op.weight);
    const Matrix& x = at(op.x);
    Matrix& out = at(op.out);
    out.resize(x.size());
    for (size_t c = 0; c < x.size(); ++c) {
      out[c].resize(case_.plan[op.out].width);
      for (size_t r = 0; r < weight.size(); ++r) {
        double sum = 0.0;
        for (size_t i = 0; i < weight[r].size(); ++i) {
          sum += op.f16_inputs ? to_half(weight[r][i]) * to_half(x[c][i]) : weight[r][i] * x[c][i];
        }
        if (op.bias) sum += at(*op.bias)[0][r];
        sum *= op.scale;
        if (op.residual) sum += at(*op.residual)[c][r];
        out[c][op.out_offset + r] = sum;
      }
    }
  }

  void rotate(plan::WeightId rope, plan::RopeStyle style, double* head, uint32_t position) const {
    const auto& table = at(rope)[position];
    const size_t pairs = table.size() / 2;
    for (size_t i = 0; i < pairs; ++i) {
      const bool half = style == plan::RopeStyle::half;
      double& a = head[half ? i : 2 * i];
      double& b = head[half ? i + pairs : 2 * i + 1];
      const double cosine = table[2 * i];
      const double sine = table[2 * i + 1];
      std::tie(a, b) = std::tuple(a * cosine - b * sine, b * cosine + a * sine);
    }
  }

  double stored(double value) const {
    return case_.resources.kv_dtype == formats::DType::F16 ? to_half(value) : value;
  }

  // The q heads, then the k heads.
  void normalise_heads(const plan::RopeKv& op, const plan::KvLayer& kv, double* row) const {
    for (const auto& [weight, heads] :
         {std::pair(op.q_norm, op.num_heads), std::pair(op.k_norm, kv.num_kv_heads)}) {
      const size_t width = size_t{heads} * kv.head_dim;
      const size_t group = op.norm.all_heads ? width : kv.head_dim;
      for (size_t from = 0; weight && from < width; from += group) {
        normalise(row + from, group, op.norm.kind, op.norm.eps);
        for (size_t i = from; i < from + group; ++i) {
          row[i] *= element(*weight, i, group) + op.norm.weight_offset;
        }
      }
      row += width;
    }
  }

  void apply(const plan::RopeKv& op) {
    const plan::KvLayer& kv = case_.resources.kv_layers[plan::index(op.kv_layer)];
    Matrix& out = at(op.out);
    out.assign(step_->columns.size(), {});
    for (size_t c = 0; c < step_->columns.size(); ++c) {
      const Column& column = step_->columns[c];
      std::vector<double> row = at(op.qkv)[c];
      for (double& v : row) {
        if (op.clip > 0.0F) v = std::clamp<double>(v, -op.clip, op.clip);
      }
      if (!op.norm.after_rope) normalise_heads(op, kv, row.data());
      const size_t turned = op.num_heads + (op.shared_kv ? 0 : kv.num_kv_heads);
      for (size_t h = 0; op.rope && h < turned; ++h) {
        rotate(*op.rope, op.style, row.data() + h * kv.head_dim, column.position);
      }
      if (op.norm.after_rope) normalise_heads(op, kv, row.data());
      for (size_t i = 0; op.query_scale && i < size_t{op.num_heads} * kv.head_dim; ++i) {
        row[i] *= at(*op.query_scale)[column.position][0];
      }
      out[c].assign(row.begin(), row.begin() + op.num_heads * kv.head_dim);
      if (op.shared_kv) continue;
      const double* keys = row.data() + op.num_heads * kv.head_dim;
      double* values = row.data() + (op.num_heads + kv.num_kv_heads) * kv.head_dim;
      for (size_t h = 0; op.norm.values && h < kv.num_kv_heads; ++h) {
        normalise(values + h * kv.value_dim, kv.value_dim, plan::NormKind::rms, op.norm.eps);
      }
      auto& k = keys_[plan::index(op.kv_layer)][{column.slot, column.position}];
      auto& v = cached_values_[plan::index(op.kv_layer)][{column.slot, column.position}];
      k.assign(keys, keys + kv.num_kv_heads * kv.head_dim);
      v.assign(values, values + kv.num_kv_heads * kv.value_dim);
      for (double& x : k) x = stored(x);
      for (double& x : v) x = stored(x);
    }
  }

  void apply(const plan::LatentKv& op) {
    const plan::KvLayer& kv = case_.resources.kv_layers[plan::index(op.kv_layer)];
    const uint32_t rotary_dim = kv.head_dim - kv.value_dim;
    Matrix& out = at(op.out);
    out.assign(step_->columns.size(), {});
    for (size_t c = 0; c < step_->columns.size(); ++c) {
      const Column& column = step_->columns[c];
      // A latent with a part of its own that is rotated.
      const auto joined = [&](const double* latent, const double* rotated) {
        std::vector<double> row(latent, latent + kv.value_dim);
        row.insert(row.end(), rotated, rotated + rotary_dim);
        rotate(op.rope, op.style, row.data() + kv.value_dim, column.position);
        return row;
      };
      for (uint32_t h = 0; h < op.num_heads; ++h) {
        const auto head = joined(at(op.q_latent)[c].data() + h * kv.value_dim,
                                 at(op.q_rope)[c].data() + h * rotary_dim);
        out[c].insert(out[c].end(), head.begin(), head.end());
      }
      auto& k = keys_[plan::index(op.kv_layer)][{column.slot, column.position}];
      auto& v = cached_values_[plan::index(op.kv_layer)][{column.slot, column.position}];
      k = joined(at(op.latent)[c].data(), at(op.k_rope)[c].data());
      v = at(op.latent)[c];
      for (double& x : k) x = stored(x);
      for (double& x : v) x = stored(x);
    }
  }

  void apply(const plan::Attention& op) {
    const plan::KvLayer& kv = case_.resources.kv_layers[plan::index(op.kv_layer)];
    const auto& keys = keys_[plan::index(op.kv_layer)];
    const auto& values = cached_values_[plan::index(op.kv_layer)];
    Matrix& out = at(op.out);
    out.assign(step_->columns.size(), {});
    for (size_t c = 0; c < step_->columns.size(); ++c) {
      const Column& column = step_->columns[c];
      out[c].assign(size_t{op.num_heads} * kv.value_dim, 0.0);
      const bool windowed = op.window > 0 && column.position + 1 > op.window;
      const uint32_t first = windowed ? column.position + 1 - op.window : 0;
      for (size_t h = 0; h < op.num_heads; ++h) {
        const size_t kv_head = h / (op.num_heads / kv.num_kv_heads);
        std::vector<double> scores;
        for (uint32_t p = first; p <= column.position; ++p) {
          const double* k = keys.at({column.slot, p}).data() + kv_head * kv.head_dim;
          double dot = 0.0;
          for (size_t i = 0; i < kv.head_dim; ++i) dot += at(op.q)[c][h * kv.head_dim + i] * k[i];
          dot *= op.scale;
          scores.push_back(op.softcap > 0.0F ? op.softcap * std::tanh(dot / op.softcap) : dot);
        }
        const double sink = op.sinks ? at(*op.sinks)[0][h] : -HUGE_VAL;
        const double top = std::max(sink, *std::max_element(scores.begin(), scores.end()));
        double total = std::exp(sink - top);
        for (double& s : scores) total += s = std::exp(s - top);
        for (uint32_t p = first; p <= column.position; ++p) {
          const double* v = values.at({column.slot, p}).data() + kv_head * kv.value_dim;
          for (size_t i = 0; i < kv.value_dim; ++i) {
            out[c][h * kv.value_dim + i] += scores[p - first] / total * v[i];
          }
        }
      }
    }
  }

  void apply(const plan::Glu& op) {
    const Matrix& x = at(op.x);
    const size_t width = case_.plan[op.out].width;
    const size_t group = width / op.groups;
    Matrix& out = at(op.out);
    out.assign(x.size(), std::vector<double>(width));
    for (size_t r = 0; r < x.size(); ++r) {
      for (size_t i = 0; i < width; ++i) {
        const double* gates = &x[r][i / group * 2 * group];
        double gate = gates[i % group];
        double up = gates[group + i % group];
        if (op.cutoff) gate = std::max(gate - cutoff_reference(*op.cutoff, {gates, group}), 0.0);
        if (op.limit > 0.0F) {
          gate = std::min<double>(gate, op.limit);
          up = std::clamp<double>(up, -op.limit, op.limit);
        }
        gate = op.activation == plan::Activation::silu ? gate / (1.0 + std::exp(-op.alpha * gate))
                                                       : activate_reference(op.activation, gate);
        out[r][i] = gate * (up + op.up_offset);
      }
    }
  }

  void apply(const plan::Gate& op) {
    const Matrix& gates = at(op.gate);
    const Matrix& x = at(op.x);
    Matrix& out = at(op.out);
    out.assign(x.size(), std::vector<double>(case_.plan[op.out].width));
    for (size_t r = 0; r < out.size(); ++r) {
      for (size_t i = 0; i < out[r].size(); ++i) {
        const double gate = gates[r][gates[r].size() == 1 ? 0 : op.gate_offset + i];
        out[r][i] = x[r][op.x_offset + i] * activate_reference(op.activation, gate);
      }
    }
  }

  void apply(const plan::Route& op) {
    Matrix& out = at(op.out);
    out.clear();
    for (const std::vector<double>& logits : at(op.logits)) {
      std::vector<double> row =
          route_reference(op, logits, op.bias ? at(*op.bias)[0] : std::vector<double>{});
      for (size_t s = 0; op.expert_scales && s < op.top_k; ++s) {
        row[op.top_k + s] *= at(*op.expert_scales)[0][static_cast<size_t>(row[s])];
      }
      out.push_back(std::move(row));
    }
  }

  void apply(const plan::ExpertLinear& op) {
    const Matrix& weight = at(op.weight);
    const Matrix& x = at(op.x);
    const size_t rows = weight.size() / op.num_experts;
    const size_t cols = weight[0].size();
    Matrix& out = at(op.out);
    out.assign(x.size(), {});
    for (size_t c = 0; c < x.size(); ++c) {
      for (size_t s = 0; s < op.top_k; ++s) {
        const size_t first = (op.routes ? static_cast<size_t>(at(*op.routes)[c][s]) : s) * rows;
        const double* from = x[c].data() + (x[c].size() > cols ? s * cols : 0);
        for (size_t r = first; r < first + rows; ++r) {
          double sum = op.bias ? at(*op.bias)[0][r] : 0.0;
          for (size_t i = 0; i < cols; ++i) {
            sum +=
                op.f16_inputs ? to_half(weight[r][i]) * to_half(from[i]) : weight[r][i] * from[i];
          }
          out[c].push_back(sum);
        }
      }
    }
  }

  void apply(const plan::Combine& op) {
    const size_t width = case_.plan[op.out].width;
    const size_t top_k = case_.plan[op.routes].width / 2;
    const Matrix& x = at(op.x);
    Matrix out(x.size(), std::vector<double>(width, 0.0));
    for (size_t c = 0; c < x.size(); ++c) {
      for (size_t i = 0; i < width; ++i) {
        for (size_t s = 0; s < top_k; ++s)
          out[c][i] += at(op.routes)[c][top_k + s] * x[c][s * width + i];
        out[c][i] *= op.scale;
        if (op.residual) out[c][i] += at(*op.residual)[c][i];
      }
    }
    at(op.out) = std::move(out);
  }

  void apply(const plan::StreamMatch& op) {
    at(op.out) = stream_match_reference(op, at(op.first), at(op.rest));
  }

  void apply(const plan::StreamPredict& op) {
    StreamRows result = stream_predict_reference(at(op.first), at(op.rest), at(op.coefs));
    at(op.out) = std::move(result.first);
    at(op.out_rest) = std::move(result.rest);
  }

  void apply(const plan::StreamCorrect& op) {
    StreamRows result = stream_correct_reference(at(op.first), at(op.rest), at(op.y), at(op.coefs));
    at(op.scaled) = result.first;
    for (auto& row : at(op.scaled)) {
      for (size_t i = 0; i < row.size(); ++i) row[i] *= at(op.scale)[0][i];
    }
    at(op.out) = std::move(result.first);
    at(op.out_rest) = std::move(result.rest);
  }

  void apply(const plan::Activate& op) {
    Matrix& out = at(op.out);
    out = at(op.x);
    for (auto& row : out) {
      for (double& v : row) v = activate_reference(op.activation, v);
    }
  }

  void apply(const plan::Softcap& op) {
    Matrix& out = at(op.out);
    out = at(op.x);
    for (auto& row : out) {
      for (double& v : row) v = op.cap * std::tanh(v / op.cap);
    }
  }

  void apply(const plan::Conv& op) {
    at(op.out) = conv_reference(op, step_->columns, at(op.x), at(op.weight),
                                op.bias ? &at(*op.bias)[0] : nullptr, at(op.state));
  }

  void apply(const plan::DeltaNet& op) {
    at(op.out) = delta_net_reference(op, step_->columns, at(op.x), at(op.gates), at(op.rate)[0],
                                     at(op.dt_bias)[0], at(op.state));
  }

  void apply(const plan::Scan& op) {
    const ScanInputs in{at(op.x),    at(op.dt),         at(op.bc),
                        at(op.rate), at(op.dt_bias)[0], at(op.skip)[0]};
    at(op.out) = scan_reference(op, step_->columns, case_.plan[op.out].width, in, at(op.state));
  }

  void apply(const plan::Wkv& op) {
    at(op.out) = wkv_reference(step_->columns, at(op.k), at(op.v), at(op.rate)[0], at(op.first)[0],
                               at(op.state));
  }

  void apply(const plan::SelectLogits& op) {
    Matrix rows;
    for (const uint32_t column : step_->logit_columns) rows.push_back(at(op.x)[column]);
    at(op.out) = std::move(rows);
  }

  void apply(const plan::Sample& op) {
    const Matrix& logits = at(op.logits);
    for (size_t r = 0; r < logits.size(); ++r) {
      const auto& row = logits[r];
      const auto best = std::max_element(row.begin(), row.end());
      const bool finite =
          std::all_of(row.begin(), row.end(), [](double v) { return std::isfinite(v); });
      auto token = static_cast<int32_t>(best - row.begin());
      if (finite && !step_->sampling.empty()) {
        const std::optional<uint32_t> sampled = sample_reference(row, step_->sampling[r]);
        ensure(sampled.has_value(), "no token of a case hangs on rounding");
        token = static_cast<int32_t>(*sampled);
      }
      last_token_[step_->columns[step_->logit_columns[r]].slot] = token;
      result_.tokens.push_back(token);
      result_.finite.push_back(finite ? 1 : 0);
      if (step_->read_logits) {
        result_.logits.insert(result_.logits.end(), row.begin(), row.end());
      }
    }
  }

  using Cache = std::map<std::pair<uint32_t, uint32_t>, std::vector<double>>;  // (slot, position)

  const OpCase& case_;
  std::vector<Matrix> weights_;
  std::vector<Matrix> values_;
  std::vector<int32_t> last_token_;
  std::vector<Cache> keys_;
  std::vector<Cache> cached_values_;
  std::vector<Matrix> states_;
  const Step* step_ = nullptr;
  StepResult result_;
};

}  // namespace

CaseRun run_reference(const OpCase& op_case) {
  Reference reference(op_case);
  CaseRun run;
  for (const CaseStep& step : op_case.steps) run.push_back(reference.run(step));
  return run;
}

}  // namespace wisp::backend::selftest
