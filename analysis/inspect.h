#pragma once
// What an objective does to real text, measured from its batches and held against its own rules.
#include <nlohmann/json.hpp>

#include "run/config.h"
#include "analysis/rule_checks.h"

namespace cloze {

/// One sequence as a network reads it, and in words.
struct InspectedExample {
  std::vector<int64_t> input_ids, labels,
      token_type_ids;                          ///< labels: -100 = not predicted; of a decoder: what it should write
  std::vector<int64_t> decoder_input_ids{};    ///< what a decoder beside an encoder reads
  int64_t pair_label = -1;                     ///< -1: the objective has no pairs
  int64_t masking = -1;                        ///< its number in the mixture; -1: there is none
  std::string text{}, corrupted{}, targets{};  ///< `corrupted` marks what was changed: {masked} <random> (kept)
};

/// Lengths that were found, and those that a rule draws.
struct LengthCounts {
  std::string name{};              ///< whose: `mixture.0`, `kept`; empty: there is one
  std::vector<int64_t> runs{};     ///< [n]: runs of n predicted tokens side by side
  std::vector<int64_t> words{};    ///< [n]: such runs of n words
  std::vector<double> drawn{};     ///< [n]: draws of a length n, before the end, the budget or a neighbour cut it
  std::vector<double> expected{};  ///< [n]: how many of these draws the rule expects; empty: no rule draws lengths
  const char* unit = "words";      ///< of the draws
};

struct Inspection {
  std::vector<InspectedExample> examples;
  nlohmann::json facts;
  std::vector<RuleCheck> checks;
  std::vector<LengthCounts> lengths;
};

/// One more at place n of a histogram.
template <class Count>
void note(std::vector<Count>& histogram, int64_t n) {
  if (static_cast<int64_t>(histogram.size()) <= n) histogram.resize(static_cast<size_t>(n) + 1);
  ++histogram[static_cast<size_t>(n)];
}

/// Reads `sequences` sequences of the training order in batches of train.batch_size, the first `examples` of them in
/// full.
Inspection inspect_objective(const RunConfig& config, int64_t examples, int64_t sequences);
/// The same for an objective that lets a decoder write.
Inspection inspect_generative(const RunConfig& config, int64_t examples, int64_t sequences);

std::string to_text(const Inspection& found, bool colour);
nlohmann::json to_json(const Inspection& found);
/// Draws the histograms of lengths to an .svg or .png file with gnuplot. Throws Error when that does not work.
void draw_lengths(const Inspection& found, const std::string& file);

}  // namespace cloze
