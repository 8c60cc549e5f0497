#include "core/text.h"
#include "objectives/gap_sentences/gap_sentences.h"
#include "objectives/constraints.h"

namespace cloze {

std::string GapSentencesConfig::prediction() const {
  return concat(in_percent(gap_sentences_ratio), " of the sentences, each masked in the source");
}

void GapSentencesConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  require_generative(kind, *this, in, constraints);
  constraints.forbid(in.data.packing == RowPacking::full,
                     "objective gap_sentences masks whole sentences, and data.packing full cuts them; choose "
                     "doc_sentences or full_sentences");
}

void GapSentencesConfig::expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const {
  expect_source_target(gap_sentences_ratio, in, rows);
}

std::optional<SourceTargetLayout> GapSentencesConfig::layout() const {
  return SourceTargetLayout{.prefix = SourceTargetLayout::Prefix::placeholder, .of_sentences = true};
}

}  // namespace cloze
