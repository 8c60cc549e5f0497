#include "evaluation/attribution/faithfulness.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/random.h"
#include "core/report/clusters.h"
#include "core/text.h"

namespace cloze {

namespace {

constexpr size_t random_orders = 2;

size_t important_words(double share, size_t words) {
  return std::clamp<size_t>(static_cast<size_t>(std::ceil(share * static_cast<double>(words))), 1, words);
}

/// The words by falling value, of equal ones the earlier first.
std::vector<size_t> by_value(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t word) { return values[word]; });
  return order;
}

/// A measure as reports name it, with its values and those of random order.
struct Measure {
  const char* name;
  Faithfulness::ByShare Faithfulness::*of, Faithfulness::*random;
};
constexpr std::array measures{
    Measure{"comprehensiveness", &Faithfulness::comprehensiveness, &Faithfulness::random_comprehensiveness},
    Measure{"sufficiency", &Faithfulness::sufficiency, &Faithfulness::random_sufficiency}};

std::string percent_of(double share) { return fixed(100 * share, 0); }

}  // namespace

std::vector<Faithfulness> faithfulness_of(const ScoredRows& in, const std::vector<Explained>& explained,
                                          const std::vector<Attribution>& attributions, uint64_t seed) {
  std::vector<RowVariant> variants;
  for (size_t s = 0; s < explained.size(); ++s) {
    const auto words = explained[s].words.size();
    auto stream = Rng(seed).stream("faithfulness", name_hash(explained[s].name + "\n" + explained[s].part));
    std::vector<std::vector<size_t>> orders{by_value(attributions[s].values)};
    while (orders.size() <= random_orders) {
      const Permutation order(words, stream.bits64());
      auto& drawn = orders.emplace_back();
      for (uint64_t i = 0; i < words; ++i) drawn.push_back(order(i));
    }
    for (const auto& order : orders)
      for (const auto share : important_shares)
        for (const bool alone : {false, true}) {
          std::vector<bool> present(words, !alone);
          for (size_t i = 0; i < important_words(share, words); ++i) present[order[i]] = alone;
          variants.push_back(with_words(s, explained[s], in.rows[in.scores[s].row], present));
        }
  }
  const auto scored = score_variants(in, variants);
  std::vector<Faithfulness> all(explained.size());
  size_t next = 0;
  for (size_t s = 0; s < explained.size(); ++s)
    for (size_t order = 0; order <= random_orders; ++order)
      for (size_t k = 0; k < important_shares.size(); ++k)
        for (const auto& measure : measures) {
          const double fall = attributions[s].probability - scored[next++].probability;
          if (order == 0)
            (all[s].*measure.of)[k] = fall;
          else
            (all[s].*measure.random)[k] += fall / static_cast<double>(random_orders);
        }
  return all;
}

void FaithfulnessMeans::add(uint64_t item, const Faithfulness& one) {
  items_.push_back(item);
  all_.push_back(one);
}

namespace {

/// The mean over items of numbers of their scores.
template <class Value>
ClusteredMean mean_over(const std::vector<uint64_t>& items, const std::vector<Faithfulness>& all, const Value& value) {
  std::vector<double> values, ones(all.size(), 1);
  for (const auto& one : all) values.push_back(value(one));
  auto clusters = cluster_examples(items, all.size());
  if (items.front() == items.back())  // of one item, no interval is over items
    clusters = {.of = std::vector<size_t>(items.size(), 0), .count = 1};
  return clustered_mean(clusters.sums(values), clusters.sums(ones));
}

std::string interval_text(const std::optional<Bounds>& interval) {
  return interval ? concat(" [", fixed(interval->low, 4), ", ", fixed(interval->high, 4), "]") : "";
}

}  // namespace

Table FaithfulnessMeans::table() const {
  Table table{.title = "Faithfulness",
              .header = {"measure",
                         {"words %", ColumnKind::number},
                         {"value", ColumnKind::number},
                         {"random order", ColumnKind::number},
                         {"difference", ColumnKind::number}}};
  for (const auto& measure : measures)
    for (size_t k = 0; k < important_shares.size(); ++k) {
      const auto mean = [&](const auto& value) { return mean_over(items_, all_, value); };
      const auto of = mean([&](const Faithfulness& one) { return (one.*measure.of)[k]; });
      const auto random = mean([&](const Faithfulness& one) { return (one.*measure.random)[k]; });
      const auto more = mean([&](const Faithfulness& one) { return (one.*measure.of)[k] - (one.*measure.random)[k]; });
      table.rows.push_back({measure.name, percent_of(important_shares[k]), fixed(of.value, 4), fixed(random.value, 4),
                            fixed(more.value, 4, true) + interval_text(more.interval)});
    }
  return table;
}

nlohmann::ordered_json FaithfulnessMeans::json() const {
  nlohmann::ordered_json made;
  for (const auto& measure : measures)
    for (size_t k = 0; k < important_shares.size(); ++k) {
      auto& to = made[measure.name][percent_of(important_shares[k])];
      const auto put = [&](const char* name, const ClusteredMean& mean) {
        auto& field = to[name] = {{"mean", mean.value}};
        if (!mean.interval) return;
        field["low"] = mean.interval->low;
        field["high"] = mean.interval->high;
      };
      const auto mean = [&](const auto& value) { return mean_over(items_, all_, value); };
      put("value", mean([&](const Faithfulness& one) { return (one.*measure.of)[k]; }));
      put("random", mean([&](const Faithfulness& one) { return (one.*measure.random)[k]; }));
      put("difference", mean([&](const Faithfulness& one) { return (one.*measure.of)[k] - (one.*measure.random)[k]; }));
    }
  return made;
}

nlohmann::ordered_json to_json(const Faithfulness& one) {
  nlohmann::ordered_json made;
  for (const auto& measure : measures)
    for (size_t k = 0; k < important_shares.size(); ++k)
      made[measure.name][percent_of(important_shares[k])] = {{"value", (one.*measure.of)[k]},
                                                             {"random", (one.*measure.random)[k]}};
  return made;
}

}  // namespace cloze
