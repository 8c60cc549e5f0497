#pragma once
// What every suite answers: scores, by group, and a prediction for each item.
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/report/score.h"
#include "core/json.h"
#include "inference/scoring/pooling.h"
#include "inference/scoring/scorer.h"

namespace cloze {

/// JSON objects, one for each item of a suite, each kept as its line: objects of a pair take 7 kB, their lines 0.5 kB.
class SuitePredictions {
 public:
  SuitePredictions() = default;
  SuitePredictions(std::initializer_list<nlohmann::json> items);
  /// What is not UTF-8 in `item` is replaced by U+FFFD.
  void push_back(const nlohmann::json& item);
  size_t size() const { return lines_.size(); }
  nlohmann::json operator[](size_t i) const { return parse_json(lines_[i]); }
  /// A line for each item: `identity`, an object with keys of its own, and then what the item says.
  std::string lines(const nlohmann::json& identity) const;

 private:
  std::vector<std::string> lines_{};
};

/// How right a run's answer to an item is.
struct ItemCredit {
  std::string item;     ///< its name, the same for all runs
  std::string cluster;  ///< of items that are alike: their paradigm, relation or section
  double credit = 0;    ///< 1: right, 0: wrong, between them: one of several best candidates
  double guess = 0;     ///< credit that guessing has; 0: not known
};

/// The items of which a share is the mean, by which runs are compared.
struct ProportionItems {
  std::string metric;          ///< the name of the share
  bool is_of_clusters = true;  ///< a mean over clusters, else over items
  std::vector<ItemCredit> items{};
};

/// The answers of one run to one suite.
struct SuiteResult {
  std::string suite;
  std::string scored_by;                       ///< Scorer::description, or the layer and pooling of embeddings
  std::vector<Score> scores;                   ///< the first is the one that stands for the suite
  SuitePredictions items;                      ///< one for each
  std::string items_hash{};                    ///< XXH3 of the items; empty: not known
  std::vector<std::string> notes{};            ///< what a reader of the scores must know, a sentence each
  std::vector<ProportionItems> proportions{};  ///< of right items, by metric; the first is compared between two runs
};

/// How suites are answered: by scores, or by embeddings.
struct SuiteOptions {
  ScoringOptions scoring{};
  Normalisation normalisation = Normalisation::sum;
  std::optional<int64_t> layer{};   ///< of embeddings: 0 = the embedding layer; none: the last
  Pooling pooling = Pooling::mean;  ///< of embeddings
};

}  // namespace cloze
