// Three updates against the formulas as loops in double.
#include "optimizers/optimizer.h"

#include <ATen/Parallel.h>

#include <bit>
#include <cmath>
#include <memory>

#include "core/config/config.h"
#include "core/tensor/ops.h"
#include "optimizers/adam_direction.h"
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
  std::vector<NamedParam> params;
  for (const auto& sample : samples) {
    params.push_back({sample.name, Param(numbers(sample.sizes, 0.3) + (sample.name == "narrow" ? 2.0 : 0.0),
                                         Init::weight, sample.role)});
    if (sample.name == "zeros") params.back().param.value().detach().zero_();  // weights and gradients
    if (sample.name == "small")
      params.back().param.value().detach().mul_(1e-5);  // their root mean square is below epsilon_2
    params.back().param.set_stacked(sample.parts);
  }
  params.push_back({"frozen", Param(at::ones({4, 3}), Init::weight)});
  params.back().param.set_frozen(true);
  params.push_back({"table", Param(at::ones({4, 3}), Init::fixed_sinusoid)});
  return params;
}

/// One update of one tensor in plain operators: p and g [rows, columns], moments as in Moments.
void plain_update(const UpdateOptions& config, int64_t update, double learning_rate, double grad_scale, bool decays,
                  const Tensor& p, const Tensor& g, const Moments& m) {
  const optimizers::Step step{update, learning_rate, grad_scale, config.weight_decay};
  const auto gradient = g * grad_scale;
  std::visit([&](const auto& rule) { rule.update(step, {decays, p, gradient, m}); }, config.rule);
}

template <class... Kinds>
std::vector<UpdateRule> each_of(const std::variant<Kinds...>*) {
  return {Kinds{}...};
}
const auto rules = each_of(static_cast<const UpdateRule*>(nullptr));

OptimizerConfig of(const UpdateRule& rule, double weight_decay = 0.01) {
  OptimizerConfig config;
  config.rule = rule;
  config.weight_decay = weight_decay;
  return config;
}

/// AdamW, and Muon at twice its rate for matrices.
OptimizerConfig with_muon(MuonScale scale, double weight_decay) {
  auto config = of(AdamW{}, weight_decay);
  auto& group = config.groups.emplace_back();
  static_cast<UpdateOptions&>(group) = config;
  group.rule = Muon{.momentum = 0.9, .scale = scale};
  group.learning_rate = 2 * config.learning_rate;
  group.role = Role::weight;
  return config;
}

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
  /// What an update is made of, besides the rule.
  struct Now {
    const std::vector<double>& g;
    int t;
    double lr, decay;
    bool decays;
  };
  void step(const OptimizerConfig& c, const std::vector<double>& g, int t, double lr, bool decays) {
    const Now now{g, t, lr, decays ? c.weight_decay : 0, decays};
    std::visit([&](const auto& rule) { update(rule, now); }, c.rule);
  }

  void update(const Adafactor&, const Now& now) {
    const auto& [g, t, lr, decay, decays] = now;
    std::vector<double> u(p.size());
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
  }

  std::vector<double> adam(const AdamMoments& o, const Now& now) {
    const auto& g = now.g;
    const double c1 = o.bias_correction ? 1 - std::pow(o.beta1, now.t) : 1,
                 c2 = o.bias_correction ? 1 - std::pow(o.beta2, now.t) : 1;
    std::vector<double> u(p.size());
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
      u[i] = o.epsilon_hat ? m[i] / c1 * std::sqrt(c2) / (std::sqrt(v[i]) + o.epsilon)
                           : m[i] / c1 / (std::sqrt(v[i] / c2) + o.epsilon);  // fairseq, optim/adam.py
    }
    return u;
  }
  void update(const AdamW& rule, const Now& now) {
    const auto u = adam(rule, now);
    for (size_t i = 0; i < p.size(); ++i) p[i] -= now.lr * now.decay * p[i] + now.lr * u[i];
  }
  void update(const Lamb& rule, const Now& now) {
    auto u = adam(rule, now);
    for (size_t i = 0; i < p.size(); ++i) u[i] += now.decay * p[i];
    const double ratio = now.decays && size(p) > 0 && size(u) > 0 ? size(p) / size(u) : 1;
    for (size_t i = 0; i < p.size(); ++i) p[i] -= now.lr * ratio * u[i];
  }
  void update(const Lion& rule, const Now& now) {
    for (size_t i = 0; i < p.size(); ++i) {
      const double c = rule.beta1 * m[i] + (1 - rule.beta1) * now.g[i], sign = c > 0 ? 1 : c < 0 ? -1 : 0;
      p[i] -= now.lr * (sign + now.decay * p[i]);
      m[i] = rule.beta2 * m[i] + (1 - rule.beta2) * now.g[i];
    }
  }
  void update(const Muon&, const Now&) { FAIL("Muon is not elementwise: check_muon has its formula"); }
};

/// What a rule keeps of one tensor, before the first update.
Moments first_moments(const UpdateRule& rule, const Sample& s) {
  Moments moments;
  for (const auto& [name, extent] : moments_of(rule, {s.rows, s.columns})) {
    const std::vector<int64_t> whole{s.rows, s.columns}, rows{s.rows}, columns{s.columns};
    moments[name] = at::zeros(extent == Extent::rows ? rows : extent == Extent::columns ? columns : whole);
  }
  return moments;
}

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
      references[k].emplace_back(s, doubles(part));
      plain[k].emplace_back(part.clone(), first_moments(config.rule, s));
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

TEST_CASE("every rule updates weights by its formula, tensor by tensor, and clears gradients", "[optimizer]") {
  auto corrected = of(with<AdamW>({.beta2 = 0.99, .epsilon = 1e-2, .epsilon_hat = true}), 0.1);
  corrected.decay_score_biases = true;
  const auto check_rules = [&](bool changed) {
    for (auto rule : rules) {
      if (updates_matrices_alone(rule)) continue;
      if (auto* adam = part_in<AdamMoments>(rule)) adam->beta2 = 0.99, adam->bias_correction = changed;
      auto config = of(rule, 0.1);
      config.decay_norm_and_bias = changed;
      check_updates(config);
    }
    check_updates(corrected);
  };
  for (const auto& isa : tested_isas()) {
    const UseIsa use(isa);
    check_rules(false);
    check_rules(true);
  }
  set_fused(false);  // as on other devices
  check_rules(true);
  set_fused(true);
}

TEST_CASE("moments of Adam take 1 - beta of a gradient, not of a beta that was rounded", "[optimizer]") {
  const AdamMoments options{.beta1 = 0.9, .beta2 = 0.999, .epsilon = 0};
  const auto adam =
      optimizers::adam_at(options, {.update = 1, .learning_rate = 0.1, .grad_scale = 1, .weight_decay = 0});
  for (const auto& isa : tested_isas()) {
    const UseIsa use(isa);
    float value = 0, gradient = 0.7F, first = 0, second = 0;
    kernels::table().updates.adamw(adam, 0.1F, 0,
                                   {.n = 1, .p = &value, .g = &gradient, .m = &first, .v = &second, .shadow = nullptr});
    CHECK(first / (0.1 * 0.7) == Approx(1).epsilon(2e-7));
    CHECK(second / (0.001 * 0.49) == Approx(1).epsilon(4e-7));
    CHECK(value == Approx(-0.1).epsilon(1e-6));
  }
}

TEST_CASE("parameters that never had a gradient are updated as all others are", "[optimizer]") {
  constexpr int64_t n = 75;  // whole vectors and a rest
  const auto rests = [](int64_t i) { return (i / 16) % 2 == 0; };
  for (const auto& isa : tested_isas())
    for (const double epsilon : {1e-8, 0.0})
      for (const double decay : {0.0, 0.01}) {
        const UseIsa use(isa);
        INFO(isa << ", epsilon " << epsilon << ", decay " << decay);
        std::vector<float> p(n), g(n), m(n), v(n);
        std::vector<uint16_t> shadow(n);
        for (int64_t i = 0; i < n; ++i) {
          p[i] = 0.01F * static_cast<float>(i - 30);
          g[i] = rests(i) ? 0.0F : 0.1F;
        }
        const auto before = p;
        const AdamMoments options{.epsilon = epsilon};
        for (int64_t update = 1; update <= 3; ++update) {
          const auto adam = optimizers::adam_at(
              options, {.update = update, .learning_rate = 0.1, .grad_scale = 1, .weight_decay = decay});
          kernels::table().updates.adamw(
              adam, 0.1F, static_cast<float>(0.1 * decay),
              {.n = n, .p = p.data(), .g = g.data(), .m = m.data(), .v = v.data(), .shadow = shadow.data()});
        }
        for (int64_t i = 0; i < n; ++i) {
          INFO(i);
          CHECK(g[i] == 0);
          if (!rests(i)) {
            CHECK(m[i] > 0);
            CHECK(p[i] < before[i]);
          } else if (epsilon == 0) {
            CHECK(std::isnan(p[i]));  // 0 / 0
          } else {
            CHECK(m[i] == 0);
            CHECK(p[i] == Approx(before[i] * std::pow(1 - 0.1 * decay, 3)).epsilon(1e-6));
            if (decay > 0)
              CHECK(static_cast<uint32_t>(shadow[i]) << 16 == Approx(std::bit_cast<uint32_t>(p[i])).margin(1 << 16));
          }
        }
      }
}

namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix matrix(a.size(), std::vector<double>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t j = 0; j < b[0].size(); ++j) matrix[i][j] += a[i][k] * b[k][j];
  return matrix;
}

Matrix transposed(const Matrix& a) {
  Matrix matrix(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) matrix[j][i] = a[i][j];
  return matrix;
}

/// zeropower_via_newtonschulz5 of KellerJordan/Muon.
Matrix newton_schulz(Matrix x) {
  double sum = 0;
  for (const auto& row : x)
    for (const double value : row) sum += value * value;
  for (auto& row : x)
    for (double& value : row) value /= std::sqrt(sum) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    const auto square = product(x, transposed(x)), fourth = product(square, square);
    auto factor = square;
    for (size_t i = 0; i < factor.size(); ++i)
      for (size_t j = 0; j < factor.size(); ++j) factor[i][j] = -4.7750 * square[i][j] + 2.0315 * fourth[i][j];
    const auto change = product(factor, x);
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < x[0].size(); ++j) x[i][j] = 3.4445 * x[i][j] + change[i][j];
  }
  return x;
}

Matrix rows_of(const Tensor& t) {
  const auto values = doubles(t);
  Matrix matrix;
  const auto columns = static_cast<size_t>(t.size(1));
  for (size_t at = 0; at < values.size(); at += columns)
    matrix.emplace_back(values.begin() + static_cast<int64_t>(at), values.begin() + static_cast<int64_t>(at + columns));
  return matrix;
}

/// Three updates of a wide, a tall and a stacked matrix by Muon, and of a bias by AdamW.
void check_muon(MuonScale scale) {
  const auto config = with_muon(scale, 0.1);
  std::vector<NamedParam> params{{"wide", Param(numbers({6, 40}, 0.3), Init::weight, Role::weight)},
                                 {"tall", Param(numbers({50, 12}, 0.3), Init::weight, Role::weight)},
                                 {"qkv", Param(numbers({24, 10}, 0.3), Init::weight, Role::weight)},
                                 {"bias", Param(numbers({45}, 0.3), Init::zero, Role::bias)}};
  params[2].param.set_stacked(3);
  FlatParameters flat(params, at::kCPU);
  flat.use_bf16(true);
  Optimizer optimizer(config, flat);
  std::vector<Matrix> weights, momenta;
  const auto parts_of = [&](size_t k, const Tensor& of) {
    const int64_t parts = k == 2 ? 3 : 1;
    return of.reshape({parts, of.size(0) / parts, of.size(1)}).unbind();
  };
  const auto value = [&](size_t k) { return flat.ranges()[k].param.param.value(); };
  for (size_t k = 0; k < 3; ++k)
    for (const auto& part : parts_of(k, value(k).detach())) {
      weights.push_back(rows_of(part));
      momenta.emplace_back(weights.back().size(), std::vector<double>(weights.back()[0].size()));
    }
  for (int t = 1; t <= 3; ++t) {
    for (size_t k = 0; k < 4; ++k) value(k).mutable_grad().copy_(numbers(value(k).sizes(), 0.2 / t) + 0.01 * t);
    size_t next = 0;
    std::vector<Matrix> gradients;
    for (size_t k = 0; k < 3; ++k)
      for (const auto& part : parts_of(k, value(k).grad() * 0.5)) gradients.push_back(rows_of(part));
    optimizer.step(0.01 * t, 0.5);
    for (size_t k = 0; k < 3; ++k)
      for (const auto& part : parts_of(k, value(k).detach())) {
        auto &w = weights[next], &m = momenta[next];
        const auto& g = gradients[next++];
        auto nesterov = g;
        for (size_t i = 0; i < w.size(); ++i)
          for (size_t j = 0; j < w[0].size(); ++j) {
            m[i][j] = 0.9 * m[i][j] + 0.1 * g[i][j];
            nesterov[i][j] = 0.1 * g[i][j] + 0.9 * m[i][j];
          }
        const bool is_tall = w.size() > w[0].size();
        const auto step = is_tall ? transposed(newton_schulz(transposed(nesterov))) : newton_schulz(nesterov);
        const auto rows = static_cast<double>(w.size()), columns = static_cast<double>(w[0].size());
        const double factor = scale == MuonScale::rows ? std::sqrt(std::max(1.0, rows / columns))
                                                       : 0.2 * std::sqrt(std::max(rows, columns));
        const double rate = 0.02 * t;
        const auto found = rows_of(part);
        for (size_t i = 0; i < w.size(); ++i)
          for (size_t j = 0; j < w[0].size(); ++j) {
            w[i][j] -= rate * 0.1 * w[i][j] + rate * factor * step[i][j];
            CHECK(found[i][j] == Approx(w[i][j]).margin(2e-6));
          }
      }
  }
  CHECK(flat.grads.abs().max().item<float>() == 0);
  CHECK(at::equal(flat.shadow, flat.values.to(at::kBFloat16)));
  std::vector<NamedParam> alone{{"bias", Param(numbers({45}, 0.3), Init::zero, Role::bias)}};
  FlatParameters flat_bias(alone, at::kCPU);
  Optimizer adamw(of(AdamW{}, 0.1), flat_bias);
  for (int t = 1; t <= 3; ++t) {
    flat_bias.grads.narrow(0, 0, 45).copy_(numbers({45}, 0.2 / t) + 0.01 * t);
    adamw.step(0.01 * t, 0.5);
  }
  CHECK(at::equal(value(3).detach(), flat_bias.ranges()[0].param.param.value().detach()));
}

}  // namespace

TEST_CASE("Muon makes the momentum of a matrix orthogonal as published, and AdamW updates the rest", "[optimizer]") {
  for (const auto scale : {MuonScale::rows, MuonScale::adamw}) {
    check_muon(scale);
    set_fused(false);  // as on other devices
    check_muon(scale);
    set_fused(true);
  }
}

TEST_CASE("a group has the parameters of its role and names, and keeps moments of its own", "[optimizer]") {
  auto config = with_muon(MuonScale::rows, 0.1);
  config.groups[0].names = {"qkv", "narr*"};
  FlatParameters flat(parameters(), at::kCPU);
  std::string names;
  for (const auto& [name, tensor] : Optimizer(config, flat).state())
    if (name.starts_with("momentum.")) names += name + " ";
  CHECK(names == "momentum.qkv momentum.narrow ");
  config.groups[0].names = {"nothing"};
  CHECK_THROWS_WITH(check_groups(config, parameters()),
                    Catch::Contains("optimizer.groups.0: no parameter that is trained is in it"));
  config.groups[0].names = {};
  config.groups[0].role = Role::bias;
  CHECK_THROWS_WITH(check_groups(config, {{"b", Param(at::ones({4}), Init::zero, Role::bias)}}),
                    "optimizer.groups.0: muon updates matrices, and b is none; give the group role: weight");
}

TEST_CASE("an update is the same for any number of threads", "[optimizer]") {
  for (const auto& rule : rules) {
    std::vector<Tensor> tensors;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      std::vector<NamedParam> wide{{"wide", Param(numbers({1000, 300}, 0.1), Init::weight)}};
      FlatParameters flat(wide, at::kCPU);
      Optimizer optimizer(of(rule), flat);
      flat.grads.copy_(numbers({flat.grads.numel()}, 0.7));
      optimizer.step(0.01, global_norm(flat.grads) / 1000);
      tensors.push_back(flat.values.clone());
    }
    at::set_num_threads(2);
    CHECK(at::equal(tensors[0], tensors[1]));
    CHECK(at::equal(tensors[0], tensors[2]));
  }
}

TEST_CASE("the moments of others are given back to the system, and the own ones stay", "[optimizer]") {
  OptimizerConfig config;
  config.rule = AdamW{};
  FlatParameters flat(
      {{"own", Param(at::ones({300, 1000}), Init::weight)}, {"other", Param(at::ones({300, 1000}), Init::weight)}},
      at::kCPU);
  Optimizer optimizer(config, flat);
  flat.grads.fill_(1);
  optimizer.step(0.01, 1);
  const auto before = optimizer.moments(0).at("exp_avg").clone();
  optimizer.forget_others({0, flat.ranges()[1].offset});
  CHECK(at::equal(optimizer.moments(0).at("exp_avg"), before));
  CHECK(optimizer.moments(1).at("exp_avg").narrow(0, 10, 280).abs().sum().item<float>() == 0);  // all but its edges
}

TEST_CASE("moments are restored by name, and those of another kind are rejected", "[optimizer]") {
  const auto values = [](const OptimizerConfig& config, bool interrupted) {
    FlatParameters flat(parameters(), at::kCPU);
    auto optimizer = std::make_unique<Optimizer>(config, flat);
    for (int t = 1; t <= 2; ++t) {
      if (t == 2 && interrupted) {
        StateDict saved;
        for (const auto& [name, tensor] : optimizer->state()) saved.emplace_back(name, tensor.clone());
        optimizer = std::make_unique<Optimizer>(config, flat);
        optimizer->load(saved), optimizer->updates = 1;
      }
      for (size_t k = 0; k < samples.size(); ++k)
        flat.ranges()[k].param.param.value().mutable_grad().copy_(gradient(samples[k], t));
      optimizer->step(0.01, 1);
    }
    return flat.values.clone();
  };
  for (const auto& rule : rules) CHECK(at::equal(values(of(rule), true), values(of(rule), false)));
  FlatParameters flat(parameters(), at::kCPU);
  Optimizer adamw(of(AdamW{}), flat), adafactor(of(Adafactor{}), flat);
  CHECK_THROWS_WITH(adafactor.load(adamw.state()),
                    Catch::Contains("no tensor 'exp_avg_sq_col.qkv' of the right shape"));
  const auto qkv = flat.ranges()[0].param.param, norm = flat.ranges()[4].param.param;
  CHECK(moment_bytes(Adafactor{}, qkv) == 4 * 2 * (140 + 130));
  CHECK(moment_bytes(Adafactor{}, norm) == 4 * 33);
  CHECK(moment_bytes(AdamW{}, qkv) == 8 * 280 * 130);
}

}  // namespace cloze
