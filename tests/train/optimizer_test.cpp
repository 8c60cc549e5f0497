// Three updates against the formulas as loops in double.
#include "train/optimizer.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <memory>

#include "core/tensor/ops.h"
#include "tests/support/isa.h"
#include "tests/support/numbers.h"

namespace cloze {

namespace {

/// A parameter, which published code stores as `parts` tensors of rows x columns.
struct Sample {
  std::string name;
  std::vector<int64_t> sizes;
  int64_t parts, rows, columns;
  Role role = Role::weight;
};
const std::vector<Sample> samples = {{"qkv", {280, 130}, 2, 140, 130},
                                     {"narrow", {300, 20}, 1, 300, 20},
                                     {"cube", {2, 70, 128}, 1, 140, 128},
                                     {"bias", {280}, 2, 1, 140, Role::bias},
                                     {"norm", {33}, 1, 1, 33, Role::norm},
                                     {"scores", {9, 8}, 1, 9, 8, Role::score_bias},
                                     {"line", {45}, 1, 1, 45},
                                     {"zeros", {140, 130}, 1, 140, 130},
                                     {"small", {5, 7}, 1, 5, 7}};

std::vector<NamedParam> parameters() {
  std::vector<NamedParam> found;
  for (const auto& sample : samples) {
    found.push_back({sample.name, Param(numbers(sample.sizes, 0.3) + (sample.name == "narrow" ? 2.0 : 0.0),
                                        Init::weight, sample.role)});
    if (sample.name == "zeros") found.back().param.value().detach().zero_();  // weights and gradients
    if (sample.name == "small")
      found.back().param.value().detach().mul_(1e-5);  // their root mean square is below epsilon_2
    found.back().param.set_stacked(sample.parts);
  }
  found.push_back({"frozen", Param(at::ones({4, 3}), Init::weight)});
  found.back().param.set_frozen(true);
  found.push_back({"table", Param(at::ones({4, 3}), Init::fixed_sinusoid)});
  return found;
}

OptimizerConfig of(OptimizerKind kind) {
  OptimizerConfig config;
  config.kind = kind;
  return config;
}

Tensor gradient(const Sample& sample, int t) {
  return sample.name == "zeros" ? at::zeros(sample.sizes) : numbers(sample.sizes, 0.2 / t) + 0.01 * t;
}

/// The optimizer of one published tensor, elementwise.
struct Reference {
  std::vector<double> p, m, v, row, column;
  int64_t rows, columns;
  Reference(const Sample& s, std::vector<double> values)
      : p(std::move(values)),
        m(p.size()),
        v(p.size()),
        row(static_cast<size_t>(s.rows)),
        column(static_cast<size_t>(s.columns)),
        rows(s.rows),
        columns(s.columns) {}
  static double size(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum / static_cast<double>(x.size()));
  }
  void step(const OptimizerConfig& c, const std::vector<double>& g, int t, double lr, bool decays) {
    const double decay = decays ? c.weight_decay : 0,
                 scale = c.kind == OptimizerKind::adafactor ? std::max(1e-3, size(p)) : 1;
    const double c1 = c.bias_correction ? 1 - std::pow(c.beta1, t) : 1,
                 c2 = c.bias_correction ? 1 - std::pow(c.beta2, t) : 1;
    std::vector<double> u(p.size());
    if (c.kind == OptimizerKind::adafactor) {
      const double keep = 1 - std::pow(t, -0.8);
      if (rows >= 128 && columns >= 128) {
        std::vector<double> of_row(row.size()), of_column(column.size());
        for (size_t i = 0; i < p.size(); ++i) {
          const size_t r = i / column.size(), k = i % column.size();
          of_row[r] += (g[i] * g[i] + 1e-30) / static_cast<double>(columns);
          of_column[k] += (g[i] * g[i] + 1e-30) / static_cast<double>(rows);
        }
        double mean = 0;
        for (size_t r = 0; r < row.size(); ++r)
          row[r] = keep * row[r] + (1 - keep) * of_row[r], mean += row[r] / static_cast<double>(rows);
        for (size_t k = 0; k < column.size(); ++k) column[k] = keep * column[k] + (1 - keep) * of_column[k];
        for (size_t i = 0; i < p.size(); ++i)
          u[i] = g[i] / std::sqrt(row[i / column.size()] * column[i % column.size()] / mean);
      } else {
        for (size_t i = 0; i < p.size(); ++i)
          v[i] = keep * v[i] + (1 - keep) * (g[i] * g[i] + 1e-30), u[i] = g[i] / std::sqrt(v[i]);
      }
      const double clip = std::max(1.0, size(u));
      for (size_t i = 0; i < p.size(); ++i) p[i] -= lr * decay * p[i] + lr * scale * u[i] / clip;
      return;
    }
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = c.beta1 * m[i] + (1 - c.beta1) * g[i];
      v[i] = c.beta2 * v[i] + (1 - c.beta2) * g[i] * g[i];
      u[i] = c.epsilon_hat ? m[i] / c1 * std::sqrt(c2) / (std::sqrt(v[i]) + c.epsilon)
                           : m[i] / c1 / (std::sqrt(v[i] / c2) + c.epsilon);  // fairseq, optim/adam.py
      if (c.kind == OptimizerKind::lamb) u[i] += decay * p[i];
    }
    const double ratio = c.kind == OptimizerKind::lamb && decays && size(p) > 0 && size(u) > 0 ? size(p) / size(u) : 1;
    for (size_t i = 0; i < p.size(); ++i)
      p[i] -= c.kind == OptimizerKind::lamb ? lr * ratio * u[i] : lr * decay * p[i] + lr * u[i];
  }
};

std::vector<double> doubles(const Tensor& t) {
  const auto flat = t.to(at::kDouble).contiguous().view(-1);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

void check_updates(const OptimizerConfig& config) {
  INFO(config.kind << ", bias_correction " << config.bias_correction << ", " << kernels::table().isa);
  FlatParameters flat(parameters(), at::kCPU);
  flat.use_bf16(true);
  Optimizer optimizer(config, flat);
  std::vector<std::vector<Reference>> references;
  std::vector<std::vector<std::pair<Tensor, Moments>>> plain;
  for (size_t k = 0; k < samples.size(); ++k) {
    const auto& s = samples[k];
    references.emplace_back();
    plain.emplace_back();
    for (const auto& part :
         flat.ranges()[k].param.param.value().detach().reshape({s.parts, s.rows, s.columns}).unbind()) {
      const bool factored = config.kind == OptimizerKind::adafactor && s.rows >= 128 && s.columns >= 128;
      references[k].emplace_back(s, doubles(part));
      plain[k].emplace_back(part.clone(), factored ? Moments{{}, {}, at::zeros({s.rows}), at::zeros({s.columns})}
                                                   : Moments{at::zeros_like(part), at::zeros_like(part)});
    }
  }
  for (int t = 1; t <= 3; ++t) {
    for (size_t k = 0; k < samples.size(); ++k)
      flat.ranges()[k].param.param.value().mutable_grad().copy_(gradient(samples[k], t));
    flat.ranges()[samples.size()].param.param.value().mutable_grad().fill_(1);
    optimizer.step(0.01 * t, 0.5);
    const auto& frozen = flat.ranges()[samples.size()];
    CHECK(flat.grads.narrow(0, 0, frozen.offset).abs().max().item<float>() == 0);
    CHECK(at::equal(frozen.param.param.value().detach(), at::ones({4, 3})));
    for (size_t k = 0; k < samples.size(); ++k) {
      const auto& s = samples[k];
      const bool is_weight = s.role == Role::weight, is_score_bias = s.role == Role::score_bias;
      const bool decays = is_weight || config.decay_norm_and_bias || (is_score_bias && config.decay_score_biases);
      const auto found = flat.ranges()[k].param.param.value().detach().reshape({s.parts, s.rows, s.columns});
      const auto parts = (gradient(s, t) * 0.5).reshape({s.parts, s.rows, s.columns});
      for (int64_t part = 0; part < s.parts; ++part) {
        auto& loops = references[k][static_cast<size_t>(part)];
        loops.step(config, doubles(parts[part]), t, 0.01 * t, decays);
        auto& [p, moments] = plain[k][static_cast<size_t>(part)];
        plain_update(config, t, 0.01 * t, 0.5, decays, p, parts[part] / 0.5, moments);
        const auto expected = at::tensor(loops.p, at::kDouble).view({s.rows, s.columns});
        INFO(s.name << " part " << part << " update " << t);
        CHECK((found[part].to(at::kDouble) - expected).abs().max().item<double>() < 1e-6);
        CHECK((p.to(at::kDouble) - expected).abs().max().item<double>() < 1e-6);
      }
    }
    CHECK(at::equal(flat.shadow, flat.values.to(at::kBFloat16)));
    CHECK(at::equal(flat.ranges().back().param.param.value().detach(), at::ones({4, 3})));  // untrained tables stay
  }
}

}  // namespace

TEST_CASE("AdamW, LAMB and Adafactor update weights by their formulas, tensor by tensor, and clear gradients",
          "[optimizer]") {
  for (const auto& isa : tested_isas()) {
    const UseIsa use(isa);
    for (const auto& [kind, name, words] : choices(OptimizerKind{}))
      for (const bool changed : {false, true})
        check_updates({.like = "",
                       .kind = kind,
                       .beta2 = 0.99,
                       .weight_decay = 0.1,
                       .decay_norm_and_bias = changed,
                       .bias_correction = changed});
    check_updates({.like = "",
                   .kind = OptimizerKind::adamw,
                   .beta2 = 0.99,
                   .epsilon = 1e-2,
                   .weight_decay = 0.1,
                   .epsilon_hat = true,
                   .decay_score_biases = true});
  }
  set_fused(false);  // as on other devices
  for (const auto& [kind, name, words] : choices(OptimizerKind{}))
    check_updates({.like = "", .kind = kind, .beta2 = 0.99, .weight_decay = 0.1});
  check_updates({.like = "",
                 .kind = OptimizerKind::adamw,
                 .beta2 = 0.99,
                 .epsilon = 1e-2,
                 .weight_decay = 0.1,
                 .epsilon_hat = true,
                 .decay_score_biases = true});
  set_fused(true);
}

TEST_CASE("an update is the same for any number of threads", "[optimizer]") {
  for (const auto& [kind, name, words] : choices(OptimizerKind{})) {
    std::vector<Tensor> found;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      std::vector<NamedParam> wide{{"wide", Param(numbers({1000, 300}, 0.1), Init::weight)}};
      FlatParameters flat(wide, at::kCPU);
      Optimizer optimizer(of(kind), flat);
      flat.grads.copy_(numbers({flat.grads.numel()}, 0.7));
      optimizer.step(0.01, global_norm(flat.grads) / 1000);
      found.push_back(flat.values.clone());
    }
    at::set_num_threads(2);
    CHECK(at::equal(found[0], found[1]));
    CHECK(at::equal(found[0], found[2]));
  }
}

TEST_CASE("moments are restored by name, and those of another kind are rejected", "[optimizer]") {
  const auto values = [](OptimizerKind kind, bool interrupted) {
    FlatParameters flat(parameters(), at::kCPU);
    auto optimizer = std::make_unique<Optimizer>(of(kind), flat);
    for (int t = 1; t <= 2; ++t) {
      if (t == 2 && interrupted) {
        std::vector<std::pair<std::string, Tensor>> saved;
        for (const auto& [name, tensor] : optimizer->state()) saved.emplace_back(name, tensor.clone());
        optimizer = std::make_unique<Optimizer>(of(kind), flat);
        optimizer->load(saved), optimizer->updates = 1;
      }
      for (size_t k = 0; k < samples.size(); ++k)
        flat.ranges()[k].param.param.value().mutable_grad().copy_(gradient(samples[k], t));
      optimizer->step(0.01, 1);
    }
    return flat.values.clone();
  };
  for (const auto& [kind, name, words] : choices(OptimizerKind{}))
    CHECK(at::equal(values(kind, true), values(kind, false)));
  FlatParameters flat(parameters(), at::kCPU);
  Optimizer adamw(of(OptimizerKind::adamw), flat), adafactor(of(OptimizerKind::adafactor), flat);
  CHECK_THROWS_WITH(adafactor.load(adamw.state()),
                    Catch::Contains("no tensor 'exp_avg_sq_row.qkv' of the right shape"));
  CHECK(moment_bytes(of(OptimizerKind::adafactor), {280, 130}, 2) == 4 * 2 * (140 + 130));
  CHECK(moment_bytes(of(OptimizerKind::adafactor), {33}, 1) == 4 * 33);
  CHECK(moment_bytes(of(OptimizerKind::adamw), {280, 130}, 2) == 8 * 280 * 130);
}

}  // namespace cloze
