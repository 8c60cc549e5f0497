// Every rule of an optimizer on the stand-in for a GPU, beside the processor, whose updates are held to their formulas.
#include "optimizers/optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/fake_cuda/counts.h"

using namespace cloze;

namespace {

/// Matrices that Adafactor factors, wide, tall and in three parts; others; vectors; one that stays as it is.
std::vector<NamedParam> parameters() {
  std::vector<NamedParam> params{{"wide", Param(numbers({130, 300}, 0.3), Init::weight, Role::weight)},
                                 {"tall", Param(numbers({600, 129}, 0.4), Init::weight, Role::weight)},
                                 {"norm", Param(numbers({45}, 0.5) + 1, Init::one, Role::norm)},
                                 {"frozen", Param(numbers({9, 3}, 0.6), Init::weight, Role::weight)},
                                 {"parts", Param(numbers({3 * 140, 150}, 0.7), Init::weight, Role::weight)},
                                 {"small", Param(numbers({6, 40}, 0.9, 1e-5), Init::weight, Role::weight)},
                                 {"bias", Param(numbers({300}, 0.8), Init::zero, Role::bias)}};
  params[3].param.set_frozen(true);
  params[4].param.set_stacked(3);
  return params;
}

template <class... Kinds>
std::vector<OptimizerConfig> configs_of(const std::variant<Kinds...>*) {
  std::vector<OptimizerConfig> configs;
  for (const UpdateRule& rule : {UpdateRule(Kinds{})...}) {
    auto& config = configs.emplace_back();
    config.weight_decay = 0.1;
    if (!updates_matrices_alone(rule)) {
      config.rule = rule;
      continue;
    }
    auto& group = config.groups.emplace_back();
    static_cast<UpdateOptions&>(group) = config;
    group.rule = rule;
    group.role = Role::weight;
  }
  return configs;
}

/// The parameters on a device, with their optimizer.
struct Updated {
  Updated(const OptimizerConfig& config, at::Device device) : flat(parameters(), device), optimizer(config, flat) {
    flat.use_bf16(true);
  }
  void step(int number) {
    for (const auto& range : flat.ranges()) {
      const auto& value = range.param.param.value();
      const auto gradient =
          range.param.name == "frozen" ? at::zeros(value.sizes()) : numbers(value.sizes(), 0.2 / number);
      value.mutable_grad().copy_(gradient);
    }
    fake_cuda::reset_counts();
    optimizer.step(0.01 * number, 0.5);
  }
  FlatParameters flat;
  Optimizer optimizer;
};

void check_close(const Tensor& found, const Tensor& expected, double error) {
  const double scale = std::max(1e-3, expected.abs().max().item<double>());
  CHECK((found.cpu() - expected).abs().max().item<double>() <= error * scale);
}

}  // namespace

TEST_CASE("every rule updates the weights on a GPU as on the processor, in a few operators without a wait",
          "[device]") {
  for (const auto& config : configs_of(static_cast<const UpdateRule*>(nullptr))) {
    INFO(to_yaml(config));
    Updated here(config, at::kCPU), there(config, at::Device("cuda:0"));
    for (int number = 1; number <= 3; ++number) {
      here.step(number);
      there.step(number);
      const auto counts = fake_cuda::counts();
      CHECK(fake_cuda::total(counts.operators) <= (config.groups.empty() ? 7 : 150));
      if (number > 1) CHECK(counts.syncs == fake_cuda::CountsByName{});
      check_close(there.flat.values, here.flat.values, 1e-5);
      CHECK(there.flat.grads.abs().max().item<float>() == 0);
      CHECK(at::equal(there.flat.shadow.cpu(), there.flat.values.cpu().to(at::kBFloat16)));
    }
    const auto moments = there.optimizer.state(), expected = here.optimizer.state();
    REQUIRE(moments.size() == expected.size());
    for (size_t k = 0; k < moments.size(); ++k) {
      INFO(moments[k].first);
      check_close(moments[k].second, expected[k].second, 1e-5);
    }
  }
}
