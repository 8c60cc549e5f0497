#pragma once
// Scores of a checkpoint's predictions on the fast evaluation, as a submission has them.
// Source: BabyLM 2026, strict/evaluation_pipeline/collate_preds.py, get_revision_fast_eval_metrics.
#include <string>

#include "evaluation/suites/python_json.h"

namespace cloze {

/// The score of each part of a task: fractions of right predictions, correlations, or gains of reading times.
///
/// task          `blimp`, `blimp_supplement`, `ewok`, `entity_tracking`, `wug_adj`, `wug_past` or `reading`
/// predictions   content of predictions.json
/// data          folder `fast_eval` with the right answers
///
/// Fractions and correlations agree to the last bit; gains to about 1e-12 of their value, as far as regressions of two
/// libraries do. Throws DataError for predictions of another form and for answers that are not there.
PythonJson fast_scores(const std::string& task, const PythonJson& predictions, const std::string& data);

}  // namespace cloze
