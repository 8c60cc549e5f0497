#pragma once
// From the scores of candidates to those of a suite. No network: the former may come from anywhere.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluation/suites/ranking.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

/// The score of a candidate without those of its tokens, which take more memory than all else.
struct RankedCandidate {
  double sum = 0;     ///< of the log-probabilities of its tokens [nats]
  size_t tokens = 0;  ///< their number
};

/// The scores of an item's candidates, and what they say.
struct RankedItem {
  std::vector<RankedCandidate> candidates{};
  std::vector<double> scores{};  ///< normalised, one for each candidate
  size_t choice = 0;             ///< the best candidate, of several equal ones the first
  bool tied = false;             ///< several have the best score, equal to the bit
  double credit = 0;             ///< 1: the answer is best alone; 1 / n: n are best, it among them; else 0
  std::vector<float> sums{};     ///< of the published BabyLM program, one for each candidate; empty: it has none
};

/// Compares the candidates of each item; `scores` are those of all candidates, in the items' order.
/// Throws DataError with the name of an item whose score is not finite, or with a candidate that has no tokens.
std::vector<RankedItem> rank_items(std::span<const RankingItem> items, std::span<const PassageScore> scores,
                                   Normalisation by);

/// Gives items the sums that the published BabyLM program adds up from these scores, those of all candidates in the
/// items' order. Source: babylm-org/babylm-eval, strict, sentence_zero_shot, compute_results.py: rank_and_evaluate.
void add_official_sums(std::span<const RankingItem> items, std::span<const PassageScore> scores,
                       std::vector<RankedItem>& ranked);

/// Scores by suite, phenomenon and paradigm, in this order. Shares of one paradigm have Wilson's interval, wider ones
/// that of clustered_mean over paradigms, cut to [0, 1] and nowhere narrower than Wilson's of all items. `official`:
/// where items have `sums`, and a tie or fp32 changes the score.
std::vector<Score> ranking_scores(std::span<const RankingItem> items, std::span<const RankedItem> ranked);

/// XXH3 of the items: names, candidates and answers.
std::string fingerprint_of(std::span<const RankingItem> items);

/// The items of each accuracy, those with an answer, in clusters of paradigms; guessing is right once in as many times
/// as an item has candidates.
std::vector<ProportionItems> proportions_of(std::span<const RankingItem> items, std::span<const RankedItem> ranked);

/// An item with its scores and its choice: a line of predictions.jsonl.
nlohmann::json to_json(const RankingItem& item, const RankedItem& ranked);

/// A score of a whole suite as the quotient of two sums.
struct ScoreSums {
  std::vector<double> sum{}, count{};  ///< [E]
  int64_t items = 0;                   ///< of all clusters
  double floor = 0;                    ///< what guessing reaches; 0: not known
};

/// The score of a suite over the clusters of its items, in their order, or over the items of a single cluster; none
/// where it is no share. `micro_` before the metric of a mean over clusters: its mean over items.
std::optional<ScoreSums> sums_of(const SuiteResult& result, const std::string& metric);

}  // namespace cloze
