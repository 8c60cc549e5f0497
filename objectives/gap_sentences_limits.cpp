#include "core/text.h"
#include "objectives/gap_sentences.h"
#include "objectives/limits.h"

namespace cloze {

std::string prediction_words(const GapSentencesConfig& c) {
  return words(in_percent(c.gap_sentences_ratio), " of the sentences, each masked in the source");
}

void check_limits(const GapSentencesConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
  limits.forbid(in.data.packing == RowPacking::full,
                "objective gap_sentences masks whole sentences, and data.packing full cuts them; choose "
                "doc_sentences or full_sentences");
}

}  // namespace cloze
