#pragma once
// `cloze evaluate`: held-out losses of runs on the same text with the same masks.
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/evaluate.h"
#include "evaluation/request.h"
#include "run/run.h"

namespace cloze {

/// Computes the losses of the runs and prints them; with pairs also the measures of generated targets. Throws
/// ConfigError, CheckpointError, DataError.
void evaluate_losses(const EvaluationRequest& request);

struct TrainingCounts {
  std::vector<uint64_t> counts{};  ///< of each id in the training split; empty: not known
  std::string why{};               ///< why they are not known; empty too where the tokens were prepared without counts
};

/// The counts that the manifests of a run's prepared tokens have: of data.tokens or, as often as each is read, of the
/// texts of data.mixture. `tokenizer`: whose ids they must be.
TrainingCounts training_counts(const DataConfig& data, const Tokenizer& tokenizer);

/// A run with its losses.
struct EvaluatedRun {
  std::string path;  ///< as given on the command line
  LoadedRun run;
  RunConfig config{};  ///< of the run, with the evaluation that all runs share
  std::string tokens{};
  std::optional<TokenStore> store{};
  std::vector<HeldOut> losses{};
  std::optional<double> bits_per_byte{};
};

/// True if both are scored on the same tokens, and so on the same sequences with the same masks.
inline bool same_sequences(const EvaluatedRun& one, const EvaluatedRun& other) {
  return one.store->fingerprint() == other.store->fingerprint();
}

/// The difference of two losses of the same predictions, and its standard error.
struct LossDifference {
  double mean = 0;
  std::optional<double> standard_error;
};

/// The difference between the loss `a` of `one` and the same loss `b` of `first`. None if their predictions differ:
/// those of other tokens, and those of tokens that each run's own generator replaced.
std::optional<LossDifference> difference(const EvaluatedRun& one, const HeldOut& a, const EvaluatedRun& first,
                                         const HeldOut& b);

/// The short forms of its objectives.
std::vector<std::string> names_of(const EvaluationConfig& evaluation);

/// Prints a table of the losses; of several runs, one for each loss, with the differences from the first run, and the
/// bits per byte.
void print_losses(const std::vector<EvaluatedRun>& runs);

/// The same as JSON: a run, or {runs: [...]}, and the evaluation. `measures` are further ones of the first run.
nlohmann::json losses_json(const std::vector<EvaluatedRun>& runs, const EvaluationRequest& request,
                           const nlohmann::json& measures);

/// The files of --text and --target; pipes, which can be read only once, are copied to disk.
struct EvaluationTexts {
  std::vector<std::string> sources, targets;
  std::map<std::string, std::string> names{};  ///< of the sources of text, by file: name_sources
};

/// Held-out sources with generated targets and references.
struct GeneratedPairs {
  std::vector<std::string> sources, generated, references;
};

/// The first evaluation.sequences pairs of the texts, or without them of the run's tokens. Throws ConfigError for
/// tokens that are not of pairs.
GeneratedPairs generate_pairs(const EvaluatedRun& one, const EvaluationRequest& request, const EvaluationTexts& texts);

/// {bleu, chrf, rouge1, rouge2, rougeL, exact_match}.
nlohmann::json measures_of(const GeneratedPairs& pairs);

/// Prints these measures, and the first pairs.
void print_pairs(const GeneratedPairs& pairs, const nlohmann::json& measures);

}  // namespace cloze
