#pragma once
// The generated targets of pairs, and how they compare with the references.
#include <nlohmann/json_fwd.hpp>

#include "cli/command.h"
#include "cli/engine/evaluation_texts.h"

namespace cloze {

/// Held-out sources with generated targets and references.
struct GeneratedPairs {
  std::vector<std::string> sources, generated, references;
};

/// The first `max_pairs` pairs of the texts, or without them of the run's tokens. Throws ConfigError for tokens that
/// are not of pairs.
GeneratedPairs generate_pairs(const EvaluatedRun& one, const EvaluateCommand& command, const EvaluationTexts& texts,
                              int64_t max_pairs);

/// {bleu, chrf, rouge1, rouge2, rougeL, exact_match}.
nlohmann::json measures_of(const GeneratedPairs& pairs);

/// Prints these measures, and the first pairs.
void print_pairs(const GeneratedPairs& pairs, const nlohmann::json& measures);

}  // namespace cloze
