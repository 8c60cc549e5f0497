#include "evaluation/suites/ranking_scores.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/fingerprint.h"
#include "core/spelling.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/statistics.h"

namespace cloze {

namespace {

using nlohmann::json;

void require_scored(const RankingItem& item, const PassageScore& score, const Passage& candidate) {
  require<DataError>(!score.tokens.empty(), "item ", item.name, ": '", shortened(candidate.scored),
                     "' has no token to score; its characters are none of the tokenizer's, or the model reads nothing "
                     "before it; remove the item");
  require<DataError>(std::isfinite(score.sum), "item ", item.name, ": the score of '", shortened(candidate.text()),
                     "' is not finite; the weights of the run are damaged, or its training diverged");
}

RankedItem rank_item(const RankingItem& item, std::span<const PassageScore> scores, Normalisation by) {
  RankedItem ranked;
  for (size_t i = 0; i < scores.size(); ++i) {
    require_scored(item, scores[i], item.candidates[i]);
    ranked.candidates.push_back({.sum = scores[i].sum, .tokens = scores[i].tokens.size()});
    ranked.scores.push_back(normalised(scores[i], by));
  }
  ranked.choice =
      static_cast<size_t>(std::max_element(ranked.scores.begin(), ranked.scores.end()) - ranked.scores.begin());
  const double best = ranked.scores[ranked.choice];
  const auto equal = std::count(ranked.scores.begin(), ranked.scores.end(), best);
  ranked.tied = equal > 1;
  if (item.answer && ranked.scores[*item.answer] == best) ranked.credit = 1 / static_cast<double>(equal);
  return ranked;
}

/// What the items of a paradigm came to.
struct Tally {
  std::string paradigm;
  double right = 0, official = 0;
  int64_t count = 0, ties = 0;
  bool differs = false;  ///< of some item, the official credit from its own
};

/// The items of a suite that count for a metric: those with an answer.
struct Counted {
  std::span<const RankingItem> items;
  std::span<const RankedItem> ranked;
  const std::string& metric;
  bool has(size_t i) const { return items[i].metric == metric && items[i].answer.has_value(); }
};

/// Tallies of paradigms in the order of their first items; of their items in a phenomenon, or of all.
std::vector<Tally> tallies_of(const Counted& counted, const std::string* phenomenon = nullptr) {
  const auto& [items, ranked, metric] = counted;
  std::vector<Tally> tallies;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto& item = items[i];
    if (!counted.has(i) || (phenomenon && item.phenomenon != *phenomenon)) continue;
    auto at =
        std::find_if(tallies.rbegin(), tallies.rend(), [&](const Tally& t) { return t.paradigm == item.paradigm; });
    if (at == tallies.rend()) {
      tallies.push_back({.paradigm = item.paradigm});
      at = tallies.rbegin();
    }
    const auto& sums = ranked[i].sums;
    const double official = sums.empty() ? ranked[i].credit : babylm_choice(sums) == *item.answer ? 1 : 0;
    at->right += ranked[i].credit;
    at->official += official;
    at->differs = at->differs || official != ranked[i].credit;
    at->ties += ranked[i].tied ? 1 : 0;
    ++at->count;
  }
  return tallies;
}

/// An accuracy over paradigms: each counts alike, or each item.
enum class Mean { of_paradigms, of_items };
Score score_of(SuiteLevel level, const std::string& group, const std::string& metric, std::span<const Tally> tallies,
               Mean mean) {
  Score score{.level = level, .group = group, .metric = metric};
  std::vector<double> right, official, counts;
  bool differs = false;
  for (const auto& tally : tallies) {
    const auto count = static_cast<double>(tally.count), parts = mean == Mean::of_paradigms ? count : 1.0;
    right.push_back(tally.right / parts);
    official.push_back(tally.official / parts);
    counts.push_back(count / parts);
    score.count += tally.count;
    score.ties += tally.ties;
    differs = differs || tally.differs;
  }
  const auto estimate = clustered_mean(right, counts);
  score.value = estimate.value;
  score.interval = fraction_interval(estimate, score.count);
  if (differs) score.official = clustered_mean(official, counts).value;
  return score;
}

/// The correlation of scores and people over the pairs of a paradigm, or of all with an empty name; none without
/// such pairs, or where they do not vary.
std::optional<Score> correlation_of(std::span<const RankingItem> items, std::span<const RankedItem> ranked,
                                    const std::string& paradigm) {
  // The log-odds have the order of the softmax, but for pairs whose softmax rounds to 0 or 1.
  std::vector<double> odds, official, people;
  Score score{.group = paradigm, .metric = "spearman"};
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].preference || (!paradigm.empty() && items[i].paradigm != paradigm)) continue;
    odds.push_back(ranked[i].scores[0] - ranked[i].scores[1]);
    if (!ranked[i].sums.empty()) official.push_back(babylm_first_probability(ranked[i].sums));
    people.push_back(*items[i].preference);
    score.ties += ranked[i].tied ? 1 : 0;
  }
  const auto value = spearman(odds, people);
  if (!value) return std::nullopt;
  score.level = paradigm.empty() ? SuiteLevel::suite : SuiteLevel::paradigm;
  score.count = static_cast<int64_t>(people.size());
  score.value = *value;
  score.interval = spearman_interval(*value, score.count);
  const auto of_official = official.empty() ? std::nullopt : spearman(official, people);
  if (of_official && *of_official != *value) score.official = of_official;
  return score;
}

/// The phenomena of items, in their order.
std::vector<std::string> phenomena_of(const Counted& counted) {
  std::vector<std::string> phenomena;
  for (size_t i = 0; i < counted.items.size(); ++i) {
    const auto& name = counted.items[i].phenomenon;
    if (counted.has(i) && !name.empty() && std::find(phenomena.rbegin(), phenomena.rend(), name) == phenomena.rend())
      phenomena.push_back(name);
  }
  return phenomena;
}

/// The scores of one metric, by level.
void add_accuracies(const Counted& counted, std::vector<Score>& suite, std::vector<Score>& narrower) {
  const auto tallies = tallies_of(counted);
  if (tallies.empty()) return;
  const auto& metric = counted.metric;
  suite.push_back(score_of(SuiteLevel::suite, "", metric, tallies, Mean::of_paradigms));
  if (tallies.size() > 1) suite.push_back(score_of(SuiteLevel::suite, "", "micro_" + metric, tallies, Mean::of_items));
  for (const auto& phenomenon : phenomena_of(counted))
    narrower.push_back(
        score_of(SuiteLevel::phenomenon, phenomenon, metric, tallies_of(counted, &phenomenon), Mean::of_paradigms));
  for (const auto& tally : tallies)
    narrower.push_back(score_of(SuiteLevel::paradigm, tally.paradigm, metric, {&tally, 1}, Mean::of_items));
}

}  // namespace

std::vector<RankedItem> rank_items(std::span<const RankingItem> items, std::span<const PassageScore> scores,
                                   Normalisation by) {
  std::vector<RankedItem> ranked;
  for (const auto& item : items) {
    ranked.push_back(rank_item(item, scores.first(item.candidates.size()), by));
    scores = scores.subspan(item.candidates.size());
  }
  return ranked;
}

void add_official_sums(std::span<const RankingItem> items, std::span<const PassageScore> scores,
                       std::vector<RankedItem>& ranked) {
  size_t at = 0;
  for (size_t i = 0; i < items.size(); ++i)
    for (const auto& candidate : items[i].candidates) ranked[i].sums.push_back(babylm_sum(candidate, scores[at++]));
}

std::vector<Score> ranking_scores(std::span<const RankingItem> items, std::span<const RankedItem> ranked) {
  std::vector<Score> suite, narrower;
  std::vector<std::string> metrics, judged;  // metrics; paradigms with judgements
  const auto note = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.rbegin(), names.rend(), name) == names.rend()) names.push_back(name);
  };
  for (const auto& item : items) {
    note(metrics, item.metric);
    if (item.preference) note(judged, item.paradigm);
  }
  if (const auto all = correlation_of(items, ranked, "")) suite.push_back(*all);
  for (const auto& paradigm : judged)
    if (const auto one = correlation_of(items, ranked, paradigm)) narrower.push_back(*one);
  for (const auto& metric : metrics) add_accuracies({items, ranked, metric}, suite, narrower);
  std::stable_sort(narrower.begin(), narrower.end(), [](const Score& a, const Score& b) { return a.level < b.level; });
  suite.insert(suite.end(), narrower.begin(), narrower.end());
  return suite;
}

std::string fingerprint_of(std::span<const RankingItem> items) {
  std::string text;
  for (const auto& item : items) {
    text += item.name + '\n';
    for (const auto& [left, scored, right] : item.candidates) text += left + '\t' + scored + '\t' + right + '\n';
    text += item.answer ? std::to_string(*item.answer) + '\n' : "\n";
  }
  return hash_hex(text);
}

std::vector<ProportionItems> proportions_of(std::span<const RankingItem> items, std::span<const RankedItem> ranked) {
  std::vector<ProportionItems> proportions;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto& item = items[i];
    if (!item.answer) continue;
    auto proportion = std::ranges::find(proportions, item.metric, &ProportionItems::metric);
    if (proportion == proportions.end())
      proportion = proportions.insert(proportions.end(), ProportionItems{.metric = item.metric});
    proportion->items.push_back({.item = item.name,
                                 .cluster = item.paradigm,
                                 .credit = ranked[i].credit,
                                 .guess = 1 / static_cast<double>(item.candidates.size())});
  }
  return proportions;
}

json to_json(const RankingItem& item, const RankedItem& ranked) {
  json candidates = json::array();
  for (size_t i = 0; i < item.candidates.size(); ++i) {
    const auto& [left, scored, right] = item.candidates[i];
    auto& one = candidates.emplace_back(json{{"scored", scored},
                                             {"score", ranked.scores[i]},
                                             {"sum", ranked.candidates[i].sum},
                                             {"tokens", ranked.candidates[i].tokens}});
    if (!left.empty()) one["left"] = left;
    if (!right.empty()) one["right"] = right;
  }
  json line{{"item", item.name},        {"paradigm", item.paradigm}, {"metric", item.metric},
            {"candidates", candidates}, {"choice", ranked.choice},   {"tie", ranked.tied}};
  if (!ranked.sums.empty()) line["official_choice"] = babylm_choice(ranked.sums);
  if (!item.phenomenon.empty()) line["phenomenon"] = item.phenomenon;
  if (item.answer) line["answer"] = *item.answer, line["credit"] = ranked.credit;
  if (item.preference) {
    line["preference"] = *item.preference;
    line["probability"] = 1 / (1 + std::exp(ranked.scores[1] - ranked.scores[0]));
    if (!ranked.sums.empty()) line["official_probability"] = babylm_first_probability(ranked.sums);
  }
  return line;
}

namespace {

/// Items that are alike, summed.
struct ItemCluster {
  double credit = 0, guess = 0, count = 0;
};

std::vector<ItemCluster> clusters_of(const std::vector<ItemCredit>& items) {
  std::unordered_map<std::string, size_t> index;
  std::vector<ItemCluster> clusters;
  for (const auto& item : items) {
    const auto at = index.emplace(item.cluster, clusters.size()).first->second;
    if (at == clusters.size()) clusters.emplace_back();
    clusters[at].credit += item.credit;
    clusters[at].guess += item.guess;
    ++clusters[at].count;
  }
  if (clusters.size() > 1) return clusters;
  clusters.clear();
  for (const auto& item : items) clusters.push_back({.credit = item.credit, .guess = item.guess, .count = 1});
  return clusters;
}

}  // namespace

std::optional<ScoreSums> sums_of(const SuiteResult& result, const std::string& metric) {
  const auto is_of = [&](const ProportionItems& proportion) {
    return metric == proportion.metric || metric == "micro_" + proportion.metric;
  };
  const auto proportion = std::ranges::find_if(result.proportions, is_of);
  if (proportion == result.proportions.end() || proportion->items.empty()) return std::nullopt;
  const bool is_of_clusters = proportion->is_of_clusters && metric == proportion->metric;
  ScoreSums sums{.items = std::ssize(proportion->items)};
  double guess = 0, count = 0;
  for (const auto& cluster : clusters_of(proportion->items)) {
    const double parts = is_of_clusters ? cluster.count : 1;
    sums.sum.push_back(cluster.credit / parts);
    sums.count.push_back(cluster.count / parts);
    guess += cluster.guess / parts;
    count += sums.count.back();
  }
  sums.floor = guess / count;
  return sums;
}

}  // namespace cloze
