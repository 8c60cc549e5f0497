// Three updates against the formulas as loops in double.
#include "train/optimizer.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <memory>

#include "core/config.h"
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

const std::vector<UpdateRule> rules{AdamW{}, Lamb{}, Adafactor{}};

OptimizerConfig of(const UpdateRule& rule) { return {.like = "", .rule = rule}; }

/// Adam's options in one of its kinds.
template <class Kind>
UpdateRule with(const AdamMoments& options) {
  Kind kind;
  static_cast<AdamMoments&>(kind) = options;
  return kind;
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
    const double decay = decays ? c.weight_decay : 0;
    std::vector<double> u(p.size());
    if (part_in<Adafactor>(c.rule)) {
      const double scale = std::max(1e-3, size(p));
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
    const auto& adam = *part_in<AdamMoments>(c.rule);
    const bool is_lamb = part_in<Lamb>(c.rule);
    const double c1 = adam.bias_correction ? 1 - std::pow(adam.beta1, t) : 1,
                 c2 = adam.bias_correction ? 1 - std::pow(adam.beta2, t) : 1;
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = adam.beta1 * m[i] + (1 - adam.beta1) * g[i];
      v[i] = adam.beta2 * v[i] + (1 - adam.beta2) * g[i] * g[i];
      u[i] = adam.epsilon_hat ? m[i] / c1 * std::sqrt(c2) / (std::sqrt(v[i]) + adam.epsilon)
                              : m[i] / c1 / (std::sqrt(v[i] / c2) + adam.epsilon);  // fairseq, optim/adam.py
      if (is_lamb) u[i] += decay * p[i];
    }
    const double ratio = is_lamb && decays && size(p) > 0 && size(u) > 0 ? size(p) / size(u) : 1;
    for (size_t i = 0; i < p.size(); ++i) p[i] -= is_lamb ? lr * ratio * u[i] : lr * decay * p[i] + lr * u[i];
  }
};

std::vector<double> doubles(const Tensor& t) {
  const auto flat = t.to(at::kDouble).contiguous().view(-1);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

void check_updates(const OptimizerConfig& config) {
  INFO(to_yaml(config) << kernels::table().isa);
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
      const bool factored = part_in<Adafactor>(config.rule) && s.rows >= 128 && s.columns >= 128;
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
  const OptimizerConfig corrected{.like = "",
                                  .rule = with<AdamW>({.beta2 = 0.99, .epsilon = 1e-2, .epsilon_hat = true}),
                                  .weight_decay = 0.1,
                                  .decay_score_biases = true};
  for (const auto& isa : tested_isas()) {
    const UseIsa use(isa);
    for (const bool changed : {false, true})
      for (const auto& rule : {with<AdamW>({.beta2 = 0.99, .bias_correction = changed}),
                               with<Lamb>({.beta2 = 0.99, .bias_correction = changed}), UpdateRule(Adafactor{})})
        check_updates({.like = "", .rule = rule, .weight_decay = 0.1, .decay_norm_and_bias = changed});
    check_updates(corrected);
  }
  set_fused(false);  // as on other devices
  for (const auto& rule : rules) check_updates({.like = "", .rule = rule, .weight_decay = 0.1});
  check_updates(corrected);
  set_fused(true);
}

TEST_CASE("an update is the same for any number of threads", "[optimizer]") {
  for (const auto& rule : rules) {
    std::vector<Tensor> found;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      std::vector<NamedParam> wide{{"wide", Param(numbers({1000, 300}, 0.1), Init::weight)}};
      FlatParameters flat(wide, at::kCPU);
      Optimizer optimizer(of(rule), flat);
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
  const auto values = [](const UpdateRule& rule, bool interrupted) {
    FlatParameters flat(parameters(), at::kCPU);
    auto optimizer = std::make_unique<Optimizer>(of(rule), flat);
    for (int t = 1; t <= 2; ++t) {
      if (t == 2 && interrupted) {
        std::vector<std::pair<std::string, Tensor>> saved;
        for (const auto& [name, tensor] : optimizer->state()) saved.emplace_back(name, tensor.clone());
        optimizer = std::make_unique<Optimizer>(of(rule), flat);
        optimizer->load(saved), optimizer->updates = 1;
      }
      for (size_t k = 0; k < samples.size(); ++k)
        flat.ranges()[k].param.param.value().mutable_grad().copy_(gradient(samples[k], t));
      optimizer->step(0.01, 1);
    }
    return flat.values.clone();
  };
  for (const auto& rule : rules) CHECK(at::equal(values(rule, true), values(rule, false)));
  FlatParameters flat(parameters(), at::kCPU);
  Optimizer adamw(of(AdamW{}), flat), adafactor(of(Adafactor{}), flat);
  CHECK_THROWS_WITH(adafactor.load(adamw.state()),
                    Catch::Contains("no tensor 'exp_avg_sq_row.qkv' of the right shape"));
  CHECK(moment_bytes(Adafactor{}, {280, 130}, 2) == 4 * 2 * (140 + 130));
  CHECK(moment_bytes(Adafactor{}, {33}, 1) == 4 * 33);
  CHECK(moment_bytes(AdamW{}, {280, 130}, 2) == 8 * 280 * 130);
}

}  // namespace cloze
