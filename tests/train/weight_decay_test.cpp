// Parameters that are excluded from weight decay and LAMB's trust ratio, against the rules of published code.
#include <regex>

#include "objectives/network.h"
#include "core/config/config.h"
#include "tests/support/catch.h"
#include "tests/support/families.h"
#include "optimizers/optimizer.h"

using namespace cloze;

TEST_CASE(
    "biases and norms of every family are excluded from weight decay by role, as google-research's code excludes them "
    "by name",
    "[train][optimizer]") {
  const std::regex excluded_names("bias|norm"), score_bias_names("r_[wrs]_bias|relative_attention_bias");
  const OptimizerConfig plain{}, published = preset<OptimizerConfig>("xlnet");
  OptimizerConfig all_decay;
  all_decay.decay_norm_and_bias = true;
  int score_biases = 0;
  for (const auto& family : every_family()) {
    auto model = family.model;
    backbone_of(model).vocab_size = 50;
    const Network network(model, family.objectives);
    for (const auto& [name, param] : collect_params(network)) {
      INFO(family.name << ": " << name);
      const bool excluded = std::regex_search(name, excluded_names), exempt = std::regex_search(name, score_bias_names);
      CHECK(decays(plain, param) == !excluded);
      CHECK(decays(published, param) ==
            (!excluded || exempt));  // zihangdai/xlnet, model_utils.py: include_in_weight_decay
      CHECK(decays(all_decay, param));
      score_biases += exempt;
    }
  }
  CHECK(score_biases == 2 * 3 + 2 * 2);  // two layers of XLNet, two stacks of two T5s
}
