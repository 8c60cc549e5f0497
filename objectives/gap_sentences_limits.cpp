#include "objectives/gap_sentences.h"
#include "objectives/limits.h"

namespace cloze {

void check_limits(const GapSentencesConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
  limits.forbid(in.data.packing == RowPacking::full,
                "objective gap_sentences masks whole sentences, and data.packing full cuts them; choose "
                "doc_sentences or full_sentences");
}

}  // namespace cloze
