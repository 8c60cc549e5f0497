#pragma once
// `like: babylm-2026`: scores and choices as the published BabyLM program computes them, to the digit.
// Source: github.com/babylm-org/babylm-eval at 45fe2c1, strict/evaluation_pipeline/sentence_zero_shot.
#include <optional>
#include <span>
#include <string>

#include "evaluation/suites/request.h"
#include "inference/scoring/passage.h"
#include "inference/scoring/scorer.h"
#include "run/run.h"

namespace cloze {

/// The backend of a run's first objective that has one; none: the published program cannot score it (rtd, plm).
std::optional<BabylmBackend> babylm_backend(const RunConfig& config);

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

/// One candidate of an item.
struct BabylmCandidate {
  std::string sentence;                    ///< the whole text
  std::string completion;                  ///< its end, which is scored
  std::optional<std::string> prefix = {};  ///< read by the encoder of enc_dec_prefix; not always the rest of `sentence`
};

/// Why a run cannot be scored by a backend, as a sentence; empty if it can.
std::string babylm_fault(const LoadedRun& run, BabylmBackend backend);

/// The backend of a run by babylm_backend, if that can score it.
std::optional<BabylmBackend> official_backend(const LoadedRun& run);
/// Why a run without an official_backend has none, as a sentence.
std::string no_official_backend(const LoadedRun& run);

/// Whether the sums of a backend are those of the Scorer's scores of this form, by babylm_sum.
bool adds_up_scores(BabylmBackend backend, ScoringForm form);

/// The sums of candidates in their order: token log-probabilities in fp32 at temperature 1, added by at::sum.
///
/// Texts have the special tokens that transformers puts around those of the exported folder. mlm and mntp are read by
/// the Scorer. A causal row has no token before a text unless the tokenizer adds one, and then its first token is not
/// scored; the encoder of enc_dec_mask reads the text with one token replaced, its decoder [bos, mask]; the encoder of
/// enc_dec_prefix reads the prefix and a mask, its decoder [bos, mask] and the completion.
///
/// Differs: there mntp predicts a first token without one before it by the last position of its batch (index -1), here
/// by the token that ends texts, which stands before it in training. There a causal row is summed with zeros for its
/// other tokens, in the width of its batch of 64, and its log-probabilities are computed in fp32, here in fp64 from
/// fp32 logits and rounded; both can move the last bit. Source: BabyLM 2026,
/// strict/evaluation_pipeline/sentence_zero_shot/{dataset,compute_results}.py.
std::vector<float> babylm_sums(const LoadedRun& run, const std::vector<BabylmCandidate>& candidates,
                               BabylmBackend backend, const ScoringOptions& options);

/// Throws DataError for a candidate that babylm_sums finds too long; computes nothing. Rows of mlm and mntp are those
/// of the Scorer, which has a check of its own.
void check_babylm_fit(const LoadedRun& run, const std::vector<BabylmCandidate>& candidates, BabylmBackend backend);

}  // namespace cloze
