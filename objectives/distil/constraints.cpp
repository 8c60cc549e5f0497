#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "objectives/constraints.h"
#include "objectives/distil/config.h"
#include "objectives/kinds.h"

namespace cloze {

std::vector<int64_t> mapped_layers(const std::vector<int64_t>& layers, int64_t shallower, int64_t deeper,
                                   const std::string& key, const std::string& owner) {
  const bool is_word = layers.size() == 1 && layers[0] < 0;
  require<ConfigError>(!is_word || shallower <= deeper, key, ": ", owner, " has ", deeper, " layers, fewer than the ",
                       shallower, " of this network; list a layer of it for each");
  if (is_word) {
    const bool is_even = layers[0] == evenly_spaced;
    require<ConfigError>(!is_even || deeper % shallower == 0, key, ": ", owner, " has ", deeper, " layers, which ",
                         shallower, " do not divide; list a layer of it for each, or choose last");
    std::vector<int64_t> mapped;
    for (int64_t m = 1; m <= shallower; ++m)
      mapped.push_back(is_even ? m * deeper / shallower : deeper - shallower + m);
    return mapped;
  }
  require<ConfigError>(static_cast<int64_t>(layers.size()) == shallower, key, " lists ", layers.size(),
                       " layers, and this network has ", shallower, "; list a layer of ", owner, " for each");
  for (const auto layer : layers)
    require<ConfigError>(layer >= 1 && layer <= deeper, key, ": ", owner, " has the layers 1 to ", deeper, ", and ",
                         layer, " is none of them");
  return layers;
}

void require_teacher(const DistilConfig& c) {
  const DistilConfig usual;
  const bool is_usual = c.like.empty() && c.logits == usual.logits && c.temperature == usual.temperature &&
                        c.tokens == usual.tokens && c.cosine == 0 && !c.reads_layers() && c.layers == usual.layers;
  require<ConfigError>(c.is_on() || is_usual,
                       "distil.teacher is not given, and distil has losses; name the run to learn from with "
                       "--set distil.teacher=RUN");
}

void check_distil(const DistilConfig& c, const ObjectiveSetting& in, Constraints& constraints) {
  if (!c.is_on()) return;
  constraints.forbid(c.logits == 0 && c.cosine == 0 && !c.reads_layers(),
                     "distil.teacher is given, and no loss of distil has a factor above 0; raise distil.logits");
  constraints.forbid(in.backbone().is_two_stream(), "distil.teacher: ", kind_of(in.model),
                     " predicts from its query stream, of which nothing is compared; choose another model");
  constraints.forbid(c.reads_layers() && in.backbone().is_encoder_decoder(),
                     "distil compares the layers of one stack, and ", kind_of(in.model),
                     " has two; compare distil.logits and distil.cosine alone");
  constraints.forbid(c.layers.empty(), "distil.layers is empty; write every, last, or a layer for each");
  const bool of_tokens = std::ranges::any_of(
      in.objectives, [](const auto& one) { return as_kind(one).predicts_tokens() || task_head_of(one) != nullptr; });
  constraints.forbid(c.logits > 0 && !of_tokens, "distil.logits compares logits of tokens or of a task, and ",
                     in.objectives.empty() ? "there is no objective" : kind_of(in.objectives[0]),
                     " has none; set it to 0");
  constraints.forbid(c.logits > 0 && (in.has<MultilabelConfig>() || in.has<RegressionConfig>()),
                     "distil.logits compares distributions, and ",
                     in.objectives.empty() ? "" : kind_of(in.objectives[0]),
                     " has none; set it to 0, and compare states (distil.cosine, distil.hidden)");
}

}  // namespace cloze
