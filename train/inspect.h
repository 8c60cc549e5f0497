#pragma once
// What an objective does to real text, measured from its batches and held against its own rules.
#include <nlohmann/json.hpp>

#include "train/config.h"

namespace cloze {

/// One sequence as a network reads it, and in words.
struct InspectedExample {
  std::vector<int64_t> input_ids, labels, token_type_ids;   ///< labels: -100 = not predicted; of a decoder: what it should write
  std::vector<int64_t> decoder_input_ids{};                 ///< what a decoder beside an encoder reads
  int64_t pair_label = -1;                                  ///< -1: the objective has no pairs
  std::string text, corrupted, targets;                     ///< `corrupted` marks what was changed: {masked} <random> (kept)
};

/// A rule and what was found.
struct RuleCheck {
  std::string name;
  double observed = 0, expected = 0;
  double p_value = 1;      ///< of the deviation being chance; 0 for a rule without exceptions that was broken
  bool passed = true;      ///< p_value at least 1e-4
};

struct Inspection {
  std::vector<InspectedExample> examples;
  nlohmann::json facts;
  std::vector<RuleCheck> checks;
  std::vector<int64_t> run_lengths, word_lengths;   ///< [n]: runs of n predicted tokens side by side; of n words
};

/// Reads `sequences` sequences of the training order in batches of train.batch_size, the first `examples` of them in full.
Inspection inspect_objective(const RunConfig& config, int64_t examples, int64_t sequences);
/// The same for an objective that lets a decoder write.
Inspection inspect_writing(const RunConfig& config, int64_t examples, int64_t sequences);

std::string to_text(const Inspection& found, bool colour);
nlohmann::json to_json(const Inspection& found);
/// Draws the histograms of lengths to an .svg or .png file with gnuplot. Throws Error when that does not work.
void draw_lengths(const Inspection& found, const std::string& file);

}  // namespace cloze
