#pragma once
// `cloze attribute`: which words of a text a network's answer rests on.
#include <array>
#include <cstdint>
#include <string>

#include "core/config/config_rule.h"
#include "run/checkpoints/chosen_checkpoint.h"

namespace cloze {

/// How a score is shared out among words. `a word` is one of those that the tokenizer cuts a text into, of tagging one
/// of the item's; its value is the sum of its tokens'.
enum class AttributionMethod { integrated_gradients, gradient_norm, gradient_input, shap, lime, occlusion, rollout };
constexpr auto choices(AttributionMethod) {
  using enum AttributionMethod;
  return std::array{
      Choice{integrated_gradients, "integrated-gradients",
             "gradients along the way from the baseline to the text (Sundararajan et al. 2017)"},
      Choice{gradient_norm, "gradient-norm", "lengths of the gradients by the embeddings (Li et al. 2016)"},
      Choice{gradient_input, "gradient-input", "gradients times embeddings (Shrikumar et al. 2016)"},
      Choice{shap, "shap", "Shapley values by sampled orders of the words (Castro et al. 2009)"},
      Choice{lime, "lime", "a linear model of texts without some words (Ribeiro et al. 2016)"},
      Choice{occlusion, "occlusion", "the score less that without the word (Zeiler and Fergus 2014)"},
      Choice{rollout, "rollout", "attention through all layers (Abnar and Zuidema 2020)"}};
}

/// What stands in the place of words that are taken away.
enum class BaselineToken { pad, mask };
constexpr auto choices(BaselineToken) {
  return std::array{Choice{BaselineToken::pad, "pad", "the token of padding"},
                    Choice{BaselineToken::mask, "mask", "the token of blanks"}};
}

/// How scores are shared out.
struct AttributionOptions {
  AttributionMethod method = AttributionMethod::integrated_gradients;
  BaselineToken baseline = BaselineToken::pad;
  int64_t points = 50;  ///< of integrated gradients
  int64_t samples = 0;  ///< of shap: orders, each with its reverse; of lime: texts; 0: 16, and 1000
  uint64_t seed = 1;    ///< of these, and of random orders of words
  std::string label{};  ///< that is explained, or the number of a candidate; empty: what is predicted
};

/// What is explained of which fine-tuned run, and where it goes.
struct AttributeRequest : AttributionOptions {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run{};
  std::string file{};  ///< of items; empty: `text` is one
  std::string text{};  ///< with a tab before the second text of a pair
  std::string out{};   ///< a page of HTML; empty: none
  std::string task{};  ///< its file, for a network that came with its head; empty: that of the run
  bool json = false, skip_bad = false;
};

/// Prints the words of each item with their values, and how faithful these are, as text or as lines of JSON, or writes
/// them as a page. Throws ConfigError for a label that the task lacks, a baseline that the tokenizer lacks, a method
/// that the network does not allow, and integrated gradients that are off by more than a hundredth, and as
/// open_task_run; DataError for items that cannot be read, and for an item without words.
void attribute(const AttributeRequest& request);

}  // namespace cloze
