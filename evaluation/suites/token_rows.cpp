#include "evaluation/suites/token_rows.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/spelling.h"
#include "inference/scoring/form_rules.h"
#include "inference/scoring/forward.h"

namespace cloze {

namespace {

/// The head that predicts tokens.
std::string token_head(const LoadedRun& run) {
  const auto& model = backbone_of(run.config.model);
  for (const auto form : {ScoringForm::likelihood, ScoringForm::pll})
    if (const auto* objective = scored_objective(run.config.objectives, model, form)) return head_of(*objective);
  fail<ConfigError>(run.folder, ": has no head that predicts tokens");
}

std::vector<int32_t> narrowed(const std::vector<int64_t>& ids) {
  std::vector<int32_t> narrow;
  for (const auto id : ids) narrow.push_back(static_cast<int32_t>(id));
  return narrow;
}

ScoringRow scoring_row(const TokenRow& row, bool prefix, size_t number) {
  ScoringRow made{.ids = narrowed(row.read.ids), .decoder = narrowed(row.read.decoder)};
  if (prefix) made.prefix = static_cast<int32_t>(made.ids.size());
  for (size_t k = 0; k < row.predicted.size(); ++k)
    made.predictions.push_back({.position = static_cast<int32_t>(row.predicted[k].position),
                                .label = static_cast<int32_t>(row.predicted[k].target),
                                .passage = static_cast<uint32_t>(number),
                                .token = static_cast<uint32_t>(k)});
  return made;
}

}  // namespace

void check_fit(const LoadedRun& run, const std::vector<TokenRow>& rows) {
  const auto longest = static_cast<size_t>(backbone_of(run.config.model).max_input_length());
  for (const auto& row : rows) {
    const size_t length = std::max(row.read.ids.size(), row.read.decoder.size());
    require<DataError>(length <= longest, run.folder, ": reads at most ", longest, " tokens; a text has ", length,
                       "; shorten it, or take a model that reads more");
  }
}

std::vector<std::vector<float>> log_probabilities(const LoadedRun& run, const std::vector<TokenRow>& rows,
                                                  bool bidirectional) {
  check_fit(run, rows);
  const bool prefix = bidirectional && backbone_of(run.config.model).is_decoder();
  const RowScorer scorer(*run.network, token_head(run), /*detects=*/false, Precision::fp32, /*batch_tokens=*/0);
  std::vector<std::vector<float>> answers;
  std::vector<ScoringRow> scored;
  for (size_t r = 0; r < rows.size(); ++r) {
    answers.emplace_back(rows[r].predicted.size());
    if (!rows[r].predicted.empty()) scored.push_back(scoring_row(rows[r], prefix, r));
  }
  scorer.score(distinct(std::move(scored)), [&](const Prediction& prediction, const Answer& answer) {
    require<DataError>(std::isfinite(answer.log_probability), run.folder, ": its logits for the text '",
                       shortened(run.tokenizer.decode(rows[prediction.passage].read.ids)),
                       "' are not finite; the training diverged or the weights are damaged: take an earlier "
                       "checkpoint, or import it again");
    answers[prediction.passage][prediction.token] = static_cast<float>(answer.log_probability);
  });
  return answers;
}

}  // namespace cloze
