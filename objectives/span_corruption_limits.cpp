#include "core/spelling.h"
#include "core/text.h"
#include "objectives/limits.h"
#include "objectives/span_corruption.h"

namespace cloze {

std::string prediction_words(const SpanCorruptionConfig& c) {
  const auto share = in_percent(c.noise_density) + " of the tokens";
  switch (c.corruption) {
    case Corruption::spans:
      return words(share, ", in spans of ", shortest(c.mean_noise_span_length), " on average, each behind a sentinel");
    case Corruption::iid:
      return share + ", each behind a sentinel";
    case Corruption::drop:
      return share + ", which the source lacks";
    case Corruption::mass:
      return "the whole text, where " + share + " are masked";
    case Corruption::bert:
      return "the whole text, where " + share + " are masked, a tenth of them by random tokens";
    case Corruption::deshuffle:
      return "the text, whose tokens come in random order";
    case Corruption::prefix_lm:
      return "the rest of a text from its start";
  }
  return "";
}

void check_limits(const SpanCorruptionConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
}

}  // namespace cloze
