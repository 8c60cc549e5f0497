#include "evaluation/suites/comparison.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/log.h"
#include "core/report/significance.h"
#include "core/text.h"
#include "run/records/suite_units.h"

namespace cloze {

namespace {

using nlohmann::json;

/// What two runs made of one item.
struct ItemPair {
  std::string cluster;
  double first = 0, second = 0;
};

std::vector<ItemPair> pairs_of(const ShareItems& first, const ShareItems& second) {
  std::unordered_map<std::string, double> credits;
  for (const auto& item : second.items) credits.emplace(item.item, item.credit);
  std::vector<ItemPair> pairs;
  for (const auto& item : first.items)
    if (const auto other = credits.find(item.item); other != credits.end())
      pairs.push_back({.cluster = item.cluster, .first = item.credit, .second = other->second});
  return pairs;
}

struct ClusteredSum {
  double sum = 0, weight = 0;
};

/// The difference and its interval; an item of a mean over clusters weighs the less, the more items its cluster has.
void add_difference(const std::vector<ItemPair>& pairs, bool is_of_clusters, SuiteComparison& compared) {
  std::map<std::string, double> sizes;
  for (const auto& pair : pairs) ++sizes[pair.cluster];
  std::map<std::string, ClusteredSum> clusters;
  std::vector<double> sums, weights, cluster_sums, cluster_weights;
  for (const auto& pair : pairs) {
    const double weight = is_of_clusters ? 1 / sizes[pair.cluster] : 1;
    weights.push_back(weight);
    sums.push_back(weight * (pair.first - pair.second));
    clusters[pair.cluster].sum += sums.back();
    clusters[pair.cluster].weight += weight;
  }
  for (const auto& [name, cluster] : clusters) {
    cluster_sums.push_back(cluster.sum);
    cluster_weights.push_back(cluster.weight);
  }
  const auto of_items = clustered_mean(sums, weights), of_clusters = clustered_mean(cluster_sums, cluster_weights);
  compared.difference = of_clusters.value;
  if (!of_items.interval) return;
  const auto bounds = of_clusters.interval.value_or(*of_items.interval);
  const auto widest =
      difference_bounds({std::min(bounds.low, of_items.interval->low), std::max(bounds.high, of_items.interval->high)},
                        std::ssize(pairs));
  compared.interval = Bounds{std::max(-1.0, widest.low), std::min(1.0, widest.high)};
}

const SuiteFigure* share_figure(const SuiteResult& result) {
  const auto is_proportion = [&](const SuiteFigure& figure) {
    return figure.level == SuiteLevel::suite && figure.metric == result.shares.front().metric;
  };
  const auto at = std::ranges::find_if(result.figures, is_proportion);
  return at == result.figures.end() ? nullptr : &*at;
}

std::optional<SuiteComparison> compare_results(const SuiteResult& first, const SuiteResult& second) {
  if (first.shares.empty() || second.shares.empty()) return std::nullopt;
  const auto &share = first.shares.front(), &other_share = second.shares.front();
  if (share.metric != other_share.metric) return std::nullopt;
  const auto *figure = share_figure(first), *other = share_figure(second);
  const auto pairs = pairs_of(share, other_share);
  if (figure == nullptr || other == nullptr || pairs.empty()) return std::nullopt;
  SuiteComparison compared{.suite = first.suite, .metric = figure->metric, .first = *figure, .second = *other};
  compared.items = static_cast<int64_t>(pairs.size());
  add_difference(pairs, share.is_of_clusters, compared);
  for (const auto& pair : pairs) {
    compared.only_first += pair.first == 1 && pair.second < 1;
    compared.only_second += pair.second == 1 && pair.first < 1;
  }
  compared.mcnemar = mcnemar_p(compared.only_first, compared.only_second);
  return compared;
}

/// `66.71 [64.01, 69.40]`
std::string value_cell(const SuiteFigure& figure) {
  auto cell = figure_cell(figure.value, figure.metric);
  if (figure.low && figure.high)
    cell += concat(" [", figure_cell(*figure.low, figure.metric), ", ", figure_cell(*figure.high, figure.metric), "]");
  return cell;
}

std::string points(double difference) { return fixed(100 * difference, 2, /*sign=*/true); }

json value_json(const SuiteFigure& figure) {
  json value{{"value", figure.value}, {"low", nullptr}, {"high", nullptr}};
  if (figure.low) value["low"] = *figure.low;
  if (figure.high) value["high"] = *figure.high;
  return value;
}

}  // namespace

std::vector<SuiteComparison> compare_runs(const CheckpointResults& first, const CheckpointResults& second) {
  std::vector<SuiteComparison> all;
  std::vector<double> p;
  for (const auto& result : first.results) {
    const auto other = std::ranges::find(second.results, result.suite, &SuiteResult::suite);
    if (other == second.results.end()) continue;
    if (const auto compared = compare_results(result, *other)) {
      all.push_back(*compared);
      p.push_back(compared->mcnemar);
    }
  }
  const auto corrected = holm(p);
  for (size_t i = 0; i < all.size(); ++i) all[i].holm = corrected[i];
  return all;
}

Table table_of(std::span<const SuiteComparison> compared, const std::string& first, const std::string& second) {
  // On a narrow terminal the values go, which the table of runs has too.
  const auto number = [](const std::string& name, int rank) { return TableColumn(name, ColumnKind::number, rank); };
  Table table{
      .title = concat(first, " less ", second),
      .header = {"suite", number(first, 2), number(second, 2), number("difference", 0), number("95 % interval", 0),
                 number("only first right", 1), number("only second", 1), number("McNemar's p", 0)}};
  if (compared.size() > 1) table.header.push_back(number("Holm", 0));
  for (const auto& one : compared) {
    auto& row = table.rows.emplace_back(
        std::vector{concat(one.suite, " ", metric_words(one.metric)), value_cell(one.first), value_cell(one.second),
                    points(one.difference),
                    one.interval ? concat("[", points(one.interval->low), ", ", points(one.interval->high), "]") : "",
                    thousands(static_cast<uint64_t>(one.only_first)), thousands(static_cast<uint64_t>(one.only_second)),
                    digits(one.mcnemar, 2)});
    if (compared.size() > 1) row.push_back(digits(one.holm, 2));
  }
  return table;
}

json to_json(const SuiteComparison& compared) {
  json found{{"suite", compared.suite},
             {"metric", compared.metric},
             {"first", value_json(compared.first)},
             {"second", value_json(compared.second)},
             {"difference", compared.difference},
             {"low", nullptr},
             {"high", nullptr},
             {"items", compared.items},
             {"only_first", compared.only_first},
             {"only_second", compared.only_second},
             {"mcnemar", compared.mcnemar},
             {"mcnemar_holm", compared.holm}};
  if (compared.interval) {
    found["low"] = compared.interval->low;
    found["high"] = compared.interval->high;
  }
  return found;
}

}  // namespace cloze
