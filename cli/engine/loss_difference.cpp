#include "cli/engine/loss_difference.h"

namespace cloze {

namespace {

/// The loss is one of detecting replaced tokens, which differ between runs.
bool has_labels_of_run(const HeldOut& part) { return part.f1.has_value(); }

}  // namespace

std::optional<LossDifference> difference(const EvaluatedRun& one, const HeldOut& a, const EvaluatedRun& first,
                                         const HeldOut& b) {
  if (!same_sequences(one, first) || has_labels_of_run(a)) return std::nullopt;
  if (a.sequences.size() != b.sequences.size() || a.count == 0) return std::nullopt;
  auto sequences = a.sequences;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].count != b.sequences[i].count) return std::nullopt;
    sequences[i].sum -= b.sequences[i].sum;
  }
  return LossDifference{a.loss - b.loss, standard_error(sequences)};
}

}  // namespace cloze
