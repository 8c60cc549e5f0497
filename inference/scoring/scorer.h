#pragma once
// Log-probabilities of texts under a trained model: one engine for every family, suite and verb.
#include <functional>
#include <optional>
#include <span>

#include "run/run.h"
#include "objectives/kind.h"
#include "inference/scoring/passage.h"

namespace cloze {

struct ScoringOptions {
  std::optional<ScoringForm> form{};      ///< none: default_form of the run
  int64_t stride = 0;                     ///< scored tokens of each window over a text longer than a row; 0: refused
  bool takes_stride = true;               ///< whoever asks can give one: what the refusal of a long text advises
  std::string cache{};                    ///< folder of earlier scores by hash of weights and text; empty: none
  Precision precision = Precision::fp32;  ///< of the states; logits are fp32
  bool ranks = false;                     ///< also the rank of each token
  int64_t batch_tokens = 0;               ///< tokens of a forward pass; 0: chosen by the model's size
  std::function<void(int64_t done, int64_t all)> progress{};  ///< in passages
};

/// The form that a run is scored by unless another is asked for. Throws ConfigError for a run without a head that
/// scores tokens.
ScoringForm default_form(const RunConfig& config);

/// Why a run cannot be scored by a form, none: by default_form, as a sentence with what can be done; empty if it can.
std::string scoring_fault(const RunConfig& config, std::optional<ScoringForm> form);

/// Scores passages by one run. Logits are fp32, log-sum-exps and sums fp64.
class Scorer {
 public:
  /// Throws ConfigError by scoring_fault, CheckpointError for a run without a tokenizer.
  Scorer(const LoadedRun& run, const ScoringOptions& options);
  ~Scorer();
  ScoringForm form() const;
  /// The form in words, with the factorisation: for reports.
  std::string description() const;
  /// The scores of passages, in their order. Rows are sorted by length, and equal rows are computed once; the result
  /// does not depend on the order or the batch. Throws PassageError with the text of a passage that is too long, and
  /// for logits that are not finite.
  std::vector<PassageScore> score(std::span<const Passage> passages) const;
  /// Throws PassageError as `score` for a passage that is too long, and scores nothing.
  void check_fit(std::span<const Passage> passages) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cloze
