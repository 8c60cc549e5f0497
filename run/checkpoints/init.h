#pragma once
// Initial weights from another run.
#include <nlohmann/json_fwd.hpp>

#include "run/run.h"

namespace cloze {

/// The origin of each parameter of a network.
struct InitReport {
  std::string from;                     ///< the checkpoint
  std::string weights;                  ///< their fingerprint (run/checkpoints/checksums.h)
  std::vector<std::string> copied;      ///< unchanged
  std::vector<std::string> tiled;       ///< position embeddings: repeated, or truncated
  std::vector<std::string> from_local;  ///< projections of global tokens, from those of all tokens
  std::vector<std::string> partly;      ///< tables of which the common rows are copied; the others are drawn
  std::vector<std::string> fresh;       ///< drawn
  std::vector<std::string> unused;      ///< parameters of the source run that are not used
  /// Options of the same objectives that the source run had with another value, `objectives.0.unit: word -> token`.
  std::vector<std::string> other_options{};
};

/// Initializes `network` from `run`, a run directory or one of its step folders: parameters of the same name and shape
/// are copied; a longer table of position embeddings repeats the old one, starting after the padding id where positions
/// are offset by it; the projections of global tokens start as those of all tokens; an encoder alone takes that of an
/// encoder-decoder. Throws ConfigError if the tokenizers differ or nothing fits. Source: Beltagy et al. 2020, section
/// 5; allenai/longformer, convert_model_to_long. Differs: the rows up to the padding id are copied too.
///
/// The head of a task is copied where both have the same labels in the same order, or the same scale of values.
///
/// options     its layers and probe: with `probe`, parameters of heads and of the pooler are drawn
/// objectives  those of `network`
InitReport init_from(const std::string& run, Network& network, const Tokenizer& tokenizer,
                     const InitConfig& options = {}, const Objectives& objectives = {});

/// The report as one line of the log.
std::string to_text(const InitReport& report);
nlohmann::json to_json(const InitReport& report);

}  // namespace cloze
