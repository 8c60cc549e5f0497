#include "suites/figure_sums.h"

#include <algorithm>
#include <unordered_map>

namespace cloze {

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

std::optional<FigureSums> sums_of(const SuiteResult& result, const std::string& metric) {
  const auto is_of = [&](const ShareItems& share) {
    return metric == share.metric || metric == "micro_" + share.metric;
  };
  const auto share = std::ranges::find_if(result.shares, is_of);
  if (share == result.shares.end() || share->items.empty()) return std::nullopt;
  const bool is_of_clusters = share->is_of_clusters && metric == share->metric;
  FigureSums sums;
  double guess = 0, count = 0;
  for (const auto& cluster : clusters_of(share->items)) {
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
