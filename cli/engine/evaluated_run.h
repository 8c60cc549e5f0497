#pragma once
// A run of the verb `evaluate`: what it is evaluated on, and its losses.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/evaluate.h"
#include "run/run.h"

namespace cloze {

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

}  // namespace cloze
