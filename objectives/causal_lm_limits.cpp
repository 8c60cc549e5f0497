#include "models/config.h"
#include "objectives/causal_lm.h"
#include "objectives/limits.h"

namespace cloze {

std::string prediction_words(const ClmConfig&) { return "every token from those before it"; }

void check_limits(const ClmConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
  forbid_prefix_lm(c.kind, in, limits);
  limits.forbid(in.backbone().is_encoder_decoder(), "objective clm has no input for the encoder of ", kind_of(in.model),
                "; choose ", families_that(&BackboneConfig::is_decoder),
                ", or span_corruption with corruption: prefix_lm");
}

}  // namespace cloze
