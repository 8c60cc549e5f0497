// LoRA: the factors of every family beside whole matrices.
#include "core/error.h"
#include "core/tensor/low_rank.h"
#include "models/families/backbone.h"
#include "models/adaptation/low_rank_factors.h"
#include "tests/models/padded_inputs.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/numbers.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// A backbone with factors of all of its linear layers, none of them zero.
struct Factored {
  std::shared_ptr<Backbone> backbone;
  std::shared_ptr<LowRankFactors> factors{};
  std::vector<NamedParam> params{};  ///< of the factors
};

std::vector<std::string> all_targets(const Backbone& backbone) {
  try {
    LowRankFactors({.targets = {"?"}}, backbone);
  } catch (const ConfigError& e) {
    const std::string text = e.what();
    std::vector<std::string> names;
    auto list = text.substr(text.find("layers have ") + 12);
    for (size_t end; (end = list.find(", ")) != std::string::npos; list = list.substr(end + 2))
      names.push_back(list.substr(0, end));
    names.push_back(list);
    return names;
  }
  return {};
}

Factored factored(ModelConfig model, double dropout) {
  backbone_of(model).vocab_size = 23;
  Factored made{.backbone = make_backbone(model, {.pooler = false})};
  initialize(collect_params(*made.backbone), 0.1, false, Rng(1));
  for (auto [name, param] : collect_params(*made.backbone)) param.set_base();
  const LoraAdaptation config{.rank = 3, .alpha = 2, .dropout = dropout, .targets = all_targets(*made.backbone)};
  made.factors = std::make_shared<LowRankFactors>(config, *made.backbone);
  made.params = collect_params(*made.factors);
  at::NoGradGuard no_grad;
  double phase = 0;
  for (const auto& [name, param] : made.params) param.value().copy_(numbers(param.value().sizes(), phase += 0.7, 0.3));
  made.backbone->eval();
  made.factors->eval();
  return made;
}

/// The states of padded rows; where something is trained, with gradients of a sum of them.
Tensor states_of(Backbone& backbone, const ModelConfig& model, bool backward) {
  auto in = padded::inputs(model);
  in.padding_is_unread = true;
  auto states = backbone.hidden(in);
  if (!in.decoder_input_ids.defined()) states = states * in.attention_mask.unsqueeze(-1);
  if (backward) (states * numbers(states.sizes(), 0.3)).sum().backward();
  return states.detach();
}

/// The gradients of whole matrices, by the path of their layers, in a network that has the products of factors.
std::map<std::string, Tensor> whole_gradients(const FamilyCase& family) {
  auto merged = factored(family.model, 0);
  merged.factors->merge();
  for (auto [name, param] : collect_params(*merged.backbone)) param.set_base(false);
  states_of(*merged.backbone, family.model, true);
  std::map<std::string, Tensor> gradients;
  for (const auto& [name, param] : collect_params(*merged.backbone))
    if (name.ends_with(".weight")) gradients[name.substr(0, name.size() - 7)] = param.value().grad();
  return gradients;
}

void check_gradients(const Factored& made, const std::map<std::string, Tensor>& whole) {
  for (const auto& [path, matrix] : made.factors->matrices())
    for (const auto& part : matrix.low_rank()->parts) {
      INFO(path << " from row " << part.first);
      const auto rows = whole.at(path).narrow(0, part.first, part.rows());
      CHECK(error_of(part.b.value().grad(), at::mm(rows, part.a.value().t()) * part.scale) < 1e-4);
      CHECK(error_of(part.a.value().grad(), at::mm(part.b.value().t(), rows) * part.scale) < 1e-4);
    }
}

}  // namespace

TEST_CASE("factors compute what matrices with their product do, and have its gradients by the chain rule",
          "[models][adaptation]") {
  for (const auto& family : every_family()) {
    INFO(family.name);
    const auto whole = whole_gradients(family);
    auto merged = factored(family.model, 0);
    merged.factors->merge();
    const auto wanted = states_of(*merged.backbone, family.model, false);
    for (const bool plain : {false, true})
      for (const bool recomputes : {false, true}) {
        INFO("plain " << plain << ", recomputes " << recomputes);
        std::optional<PlainScope> scope;
        if (plain) scope.emplace();
        const auto made = factored(family.model, 0);
        made.backbone->set_gradient_checkpointing(recomputes);
        CHECK(error_of(states_of(*made.backbone, family.model, true), wanted) < 1e-5);
        check_gradients(made, whole);
        for (const auto& [name, param] : collect_params(*made.backbone)) CHECK_FALSE(param.value().grad().defined());
      }
  }
}

TEST_CASE("dropout of factors is of their input, the same in fused and plain operators", "[models][adaptation]") {
  for (const auto& family : every_family()) {
    if (family.name != "bert" && family.name != "gpt2" && family.name != "t5") continue;
    INFO(family.name);
    const auto pass = [&](bool plain, double p) {
      std::optional<PlainScope> scope;
      if (plain) scope.emplace();
      auto made = factored(family.model, p);
      made.factors->train();
      made.factors->begin_pass(77);
      auto in = padded::inputs(family.model);
      auto states = made.backbone->hidden(in);
      (states * numbers(states.sizes(), 0.3)).sum().backward();
      std::vector<Tensor> found{states.detach()};
      for (const auto& [name, param] : made.params) found.push_back(param.value().grad());
      return found;
    };
    const auto fused = pass(false, 0.3), plain = pass(true, 0.3), without = pass(false, 0);
    for (size_t i = 0; i < fused.size(); ++i) CHECK(error_of(fused[i], plain[i]) < 1e-4);
    CHECK(error_of(fused[0], without[0]) > 1e-3);
  }
}

TEST_CASE("a linear layer with factors equals peft's formula as a loop in double", "[models][adaptation]") {
  const int64_t in = 5, out = 6, rank = 2;
  const double alpha = 3;
  for (const bool stabilized : {false, true}) {
    Linear layer(in, out);
    layer.weight.set_base();
    const auto of = [](const Param& param, double phase) {
      at::NoGradGuard no_grad;
      param.value().copy_(numbers(param.value().sizes(), phase));
      return param;
    };
    const auto w = of(layer.weight, 0.1), b = of(layer.bias, 0.2);
    const double scale = alpha / (stabilized ? std::sqrt(2.0) : 2.0);
    LowRank part{.a = of(Param(at::empty({rank, in}), Init::weight), 0.3),
                 .b = of(Param(at::empty({4, rank}), Init::zero), 0.4),
                 .first = 1,
                 .scale = scale};
    layer.weight.set_low_rank(std::make_shared<LowRanks>(LowRanks{{part}}));
    const auto x = numbers({3, in}, 0.5), y = layer.forward(x);
    const auto at = [](const Param& p, int64_t r, int64_t c) { return p.value()[r][c].item<double>(); };
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t n = 0; n < out; ++n) {
        double sum = b.value()[n].item<double>();
        for (int64_t k = 0; k < in; ++k) {
          double weight = at(w, n, k);
          for (int64_t r = 0; r < rank && n >= 1 && n < 5; ++r)
            weight += scale * at(part.b, n - 1, r) * at(part.a, r, k);
          sum += weight * x[row][k].item<double>();
        }
        CHECK(y[row][n].item<double>() == Approx(sum).margin(1e-6));
      }
  }
}

TEST_CASE("the factors of a layer have names, the scale of their kind and peft's first values",
          "[models][adaptation]") {
  auto model = every_family()[0].model;
  backbone_of(model).vocab_size = 23;
  const auto backbone = make_backbone(model, {.pooler = true});
  const LowRankFactors factors({.rank = 4, .alpha = 8, .rank_stabilized = true, .targets = {"query", "output"}},
                               *backbone);
  const auto params = collect_params(factors);
  REQUIRE(params.size() == 8);
  CHECK(params[0].name == "stack.0.attention.qkv.query.a");
  CHECK(params[1].name == "stack.0.attention.qkv.query.b");
  CHECK(params[2].name == "stack.0.output.a");
  CHECK(params[0].param.depth() == 1);
  CHECK(params[0].param.value().sizes() == at::IntArrayRef({4, 64}));
  CHECK(params[2].param.value().sizes() == at::IntArrayRef({4, 96}));
  CHECK(factors.matrices()[0].param.low_rank()->parts[0].scale == 4);
  initialize(params, 0.02, false, Rng(1));
  const auto limit = 1 / std::sqrt(64.0);  // of kaiming_uniform_(a = sqrt(5))
  CHECK(params[0].param.value().abs().max().item<double>() == Approx(limit).epsilon(0.05));
  CHECK(params[1].param.value().count_nonzero().item<int64_t>() == 0);
}

TEST_CASE("a target that no layer has is refused with those that there are", "[models][adaptation]") {
  auto model = every_family()[0].model;
  backbone_of(model).vocab_size = 23;
  const auto backbone = make_backbone(model, {.pooler = true});
  CHECK_THROWS_WITH(
      LowRankFactors({.targets = {"query", "values"}}, *backbone),
      Contains("adaptation.targets has 'values', which no layer of this network has; did you mean 'value'?") &&
          Contains("query, key, value, qkv, intermediate, output"));
}
