#pragma once
// Weights of another run as the start of a new one.
#include <nlohmann/json.hpp>

#include "run/run.h"

namespace cloze {

/// Where each parameter of a network came from.
struct InitReport {
  std::string from;                     ///< the checkpoint
  std::vector<std::string> copied;      ///< as they stood
  std::vector<std::string> tiled;       ///< places: the old ones over and over, or the first of them
  std::vector<std::string> from_local;  ///< projections of global tokens: those of all tokens
  std::vector<std::string> partly;      ///< the rows that both have; the others are fresh
  std::vector<std::string> fresh;       ///< drawn anew
  std::vector<std::string> unused;      ///< of the other run
};

/// Fills `network` from `run`, a run directory or one of its step folders: parameters of the same name and shape are
/// copied; a longer table of positions repeats the old one, behind the padding id where places count from there; the
/// projections of global tokens start as those of all tokens. Throws ConfigError where the tokenizers differ or nothing
/// fits. Source: Beltagy et al. 2020, section 5; allenai/longformer, convert_model_to_long. Differs: the rows up to the
/// padding id are copied too.
InitReport init_from(const std::string& run, Network& network, const Tokenizer& tokenizer);

/// The report in a few lines.
std::string to_text(const InitReport& report);
nlohmann::json to_json(const InitReport& report);

}  // namespace cloze
