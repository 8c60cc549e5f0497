#pragma once
// `like: babylm-2026`: scores and choices as the published BabyLM program computes them, to the digit.
// Source: github.com/babylm-org/babylm-eval at 45fe2c1, strict/evaluation_pipeline/sentence_zero_shot.
#include <optional>
#include <span>

#include "run/run.h"
#include "scoring/passage.h"
#include "suites/request.h"

namespace cloze {

/// The backend of a run's first objective that has one; none: the published program cannot score it (rtd, plm).
std::optional<BabylmBackend> babylm_backend(const RunConfig& config);
/// The objective is trained as the runs that a backend scores.
bool trains_for(const ObjectiveConfig& objective, BabylmBackend backend);

/// The special tokens that transformers puts around a text of the run's exported folder.
Tokenizer::Frame babylm_frame(const LoadedRun& run);

/// The sum of a candidate's log-probabilities, added in fp32 by at::sum as there.
float babylm_sum(std::span<const float> logs);
/// The same of the Scorer's log-probabilities of a passage, each rounded to fp32 first, of the tokens that count after
/// its left context (`counts_from`). Source: there dataset.py, `if end > start_char_idx`.
float babylm_sum(const Passage& passage, const PassageScore& score);

/// The candidate that counts as chosen: the first of the largest sums, or of those that are not numbers, as torch.max.
size_t babylm_choice(std::span<const float> sums);

/// The probability of the first candidate among all, by a softmax of the sums in fp32.
float babylm_first_probability(std::span<const float> sums);

/// Spearman's correlation to the last bit of scipy.stats.spearmanr; NaN where one side is constant.
double babylm_spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace cloze
