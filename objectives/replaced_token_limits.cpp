#include "core/text.h"
#include "objectives/limits.h"
#include "objectives/replaced_token.h"

namespace cloze {

std::string prediction_words(const RtdConfig& c) {
  return words(c.positions == DiscriminatorPositions::all ? "which tokens are replaced"
                                                          : "which of the filled tokens are replaced",
               c.replace_by == ReplaceBy::generator ? ", where a generator fills " : ", where random tokens fill ",
               prediction_words(c.mlm));
}

void check_limits(const RtdConfig& c, const ObjectiveSetting& in, Limits& limits) {
  check_maskings("rtd.mlm", c.mlm, in, limits);
  require_bidirectional(c.kind, in, limits);
  limits.forbid(in.has<MlmConfig>(), "rtd does its own masking (rtd.mlm) and cannot be combined with mlm; remove mlm");
  limits.forbid(in.backbone().is_decoder(), "rtd needs a bidirectional generator; set model.architecture: encoder");
  const bool same_shape = c.replace_by == ReplaceBy::generator && c.generator_hidden_size == 1 &&
                          c.generator_layers == 1 && c.tie == EmbeddingTie::none;
  limits.forbid(c.generator_steps > 0 && !same_shape,
                "rtd.generator_steps: the discriminator starts with the generator's weights, so both need the same "
                "shape and separate embeddings; set replace_by: generator, generator_hidden_size: 1, "
                "generator_layers: 1 and tie: none");
}

}  // namespace cloze
