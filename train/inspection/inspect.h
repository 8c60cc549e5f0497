#pragma once
// Effects of an objective on real text, measured on its batches and tested against its rules.
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "objectives/batch.h"
#include "run/config/config.h"

namespace cloze {

// A row as a page shows it: its tokens, and below them what is predicted from their positions.

/// What a token is to the objective of its row.
enum class TokenRole {
  text,
  special,      ///< [CLS], [SEP] and their like
  masked,       ///< chosen, and hidden by the mask
  random,       ///< chosen, and replaced by another token
  kept,         ///< chosen, and as it was
  ordered,      ///< predicted, by its rank in a factorisation order
  placeholder,  ///< a mask or a sentinel, for which the target has tokens
  replaced,     ///< a sample that replaces a masked token
  restored      ///< a sample that is the token that was masked
};

struct ShownToken {
  std::string piece{};
  TokenRole role = TokenRole::text;
  std::string below{};  ///< what is predicted here: a token, a label, or its rank in an order; empty: nothing
};

/// What a part of the network reads, or what is predicted.
struct ShownTokens {
  std::string title{};
  std::vector<ShownToken> tokens{};
};

/// One sequence as ids, and as text.
struct InspectedExample {
  std::vector<int64_t> input_ids, labels,
      token_type_ids;                        ///< labels: -100 = not predicted; of a decoder: its targets
  std::vector<int64_t> decoder_input_ids{};  ///< of an encoder-decoder model
  int64_t prefix = -1;      ///< of mntp in a decoder: length of the bidirectional prefix, 0 = a causal row
  int64_t pair_label = -1;  ///< -1: the objective has no pairs
  int64_t masking = -1;     ///< index in the mixture; -1: no mixture
  std::string text{}, corrupted{}, targets{};     ///< `corrupted` marks predicted tokens: {masked} <random> (kept)
  std::vector<int64_t> replacements{};            ///< of rtd: what stands for each predicted token (Replacements)
  std::vector<double> replacement_numbers{};      ///< of a generator of rtd: for each predicted token (Replacements)
  std::vector<int32_t> query_rank{}, key_rank{};  ///< of plm: as in PlmExample
  bool backward = false;                          ///< of plm: the text is reversed
  bool continues = false;                         ///< of plm with mems: the row goes on where the step before ended
  std::vector<ShownTokens> shown{};               ///< for a page
};

/// Histograms of lengths: found in the batches, drawn by the objective, and expected by its rule.
struct LengthCounts {
  std::string name{};              ///< such as `mixture.0` or `kept`; empty if there is only one
  std::vector<int64_t> runs{};     ///< [n]: runs of n adjacent predicted tokens
  std::vector<int64_t> words{};    ///< [n]: such runs of n words
  std::vector<double> drawn{};     ///< [n]: drawn lengths n, before truncation by the end, the budget or a neighbour
  std::vector<double> expected{};  ///< [n]: expected number of drawn lengths n; empty: no lengths are drawn
  const char* unit = "words";      ///< of the draws
};

// Goodness-of-fit tests: observed counts against the expectations of a rule.

/// The result of one test.
struct RuleCheck {
  std::string name;
  double observed = 0, expected = 0;
  double p_value = 1;  ///< for a strict rule: 1 if it holds, 0 if it is violated
  bool passed = true;  ///< p_value at least 1e-4
};

/// A strict rule and the number of its violations.
RuleCheck strict_check(std::string name, int64_t violations);
/// A sum that rules of whole units may leave below what was wanted, by less than a quarter of it.
RuleCheck enough_check(std::string name, double observed, double wanted);
/// A sum of independent draws against its expectation, by the normal approximation; with variance 0 they must be equal.
RuleCheck sum_check(std::string name, double observed, double expected, double variance);
/// Counts [n] of independent draws against their expectations [n], by Pearson's chi-square: observed is the statistic,
/// expected its degrees of freedom. Adjacent cells are merged until at least 5 are expected; a single cell always
/// passes. A count with expectation 0 violates the rule.
RuleCheck fit_check(std::string name, const std::vector<double>& counts, const std::vector<double>& expected);

/// P(a part has length n) [n] if all compositions of `total` into `parts` positive parts are equally likely:
/// C(total - n - 1, parts - 2) / C(total - 1, parts - 1).
std::vector<double> part_lengths(int64_t total, int64_t parts);

struct Inspection {
  std::vector<InspectedExample> examples;
  nlohmann::json facts;
  std::vector<RuleCheck> checks;
  std::vector<LengthCounts> lengths;
};

/// Adds one to bin n of a histogram.
template <class Count>
void add_to_bin(std::vector<Count>& histogram, int64_t n) {
  if (static_cast<int64_t>(histogram.size()) <= n) histogram.resize(static_cast<size_t>(n) + 1);
  ++histogram[static_cast<size_t>(n)];
}

/// Inspects the first `sequences` sequences of training, in batches of train.batch_size, and returns the first
/// `examples` of them in full; under static masking no more than differ. `change` alters each batch before it is
/// counted. `shows`: the examples are made ready for a page, which takes a hundred. Throws ConfigError for a run
/// without tokens, and for numbers out of range.
Inspection inspect_objective(const RunConfig& config, int64_t examples, int64_t sequences,
                             const std::function<void(Batch&)>& change = {}, bool shows = false);

/// The examples, the counts and the tests.
std::string to_text(const Inspection& inspection, bool colour);
/// The counts alone.
std::string counts_text(const Inspection& inspection);
/// The tests alone, a line each.
std::string checks_text(const Inspection& inspection);
/// What else is known of a row, as names with a value: `pair`, `0: B follows A`.
std::vector<std::pair<std::string, std::string>> notes_of(const InspectedExample& example);
nlohmann::json to_json(const Inspection& inspection);

/// Throws ConfigError, which names `file`, for objectives whose rows have no lengths to plot, and for a file that is
/// not an .svg.
void check_picture(const Objectives& objectives, const std::string& file);
/// Plots the histograms of lengths to an .svg file. Throws Error if that fails.
void draw_lengths(const Inspection& inspection, const std::string& file);

/// A config with what its rows are.
struct InspectedConfig {
  std::string name;
  RunConfig config;
  Inspection inspection;
};
/// A page without references to anything outside it, on which the rows of configs stand side by side: what they read,
/// what is predicted and by which rule, and the counts and tests of all rows.
std::string to_html(const std::vector<InspectedConfig>& inspected);

}  // namespace cloze
