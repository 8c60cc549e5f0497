// Metrics of tags: by word, and by entity.
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/contains.h"
#include "tasks/kinds/tagging/entities.h"
#include "tasks/scores/task_scorer.h"

namespace cloze {

namespace {

/// The tags of words: names of labels, and of others what was written, of which types and borders are read, too.
std::vector<std::string> written_tags(const TaskAnswer& answer, const TaskLabels& labels) {
  std::vector<std::string> tags;
  size_t others = 0;
  for (const auto id : answer.labels)
    if (id != unknown_label)
      tags.push_back(labels.names[static_cast<size_t>(id)]);
    else  // a run of an earlier version has not kept what was written
      tags.push_back(others < answer.unknown.size() ? answer.unknown[others++] : "B-(unknown)");
  return tags;
}

/// A type in a text: number of the type, entities in the gold tags, in the predicted ones, in both.
using TypeCounts = std::tuple<uint32_t, int64_t, int64_t, int64_t>;

/// Entities of texts, by type.
struct EntityCounts {
  std::vector<std::string> types{};
  std::vector<std::vector<TypeCounts>> texts{};
};

EntityCounts count_entities(const ScoredItems& scored, TagScheme scheme, bool is_strict) {
  std::map<std::string, uint32_t> numbers;
  EntityCounts entity_counts;
  const auto read = [&](const TaskAnswer& answer) {
    const auto tags = written_tags(answer, *scored.labels);
    return is_strict ? strict_entities(tags, scheme) : entities_of(tags);
  };
  for (size_t i = 0; i < scored.size(); ++i) {
    const auto gold = read(scored.items[i]->gold), predicted = read(scored.predictions[i]->answer);
    std::map<uint32_t, LabelCounts> counts;
    const auto of = [&](const Entity& entity) -> LabelCounts& {
      return counts[numbers.try_emplace(entity.type, static_cast<uint32_t>(numbers.size())).first->second];
    };
    for (const auto& entity : gold) ++of(entity).gold;
    for (const auto& entity : predicted) {
      ++of(entity).predicted;
      if (contains(gold, entity)) ++of(entity).right;
    }
    auto& text = entity_counts.texts.emplace_back();
    for (const auto& [type, c] : counts) text.emplace_back(type, c.gold, c.predicted, c.right);
  }
  entity_counts.types.resize(numbers.size());
  for (const auto& [type, number] : numbers) entity_counts.types[number] = type;
  return entity_counts;
}

std::vector<LabelCounts> sums_of(const std::vector<std::vector<TypeCounts>>& texts, size_t types,
                                 std::span<const int64_t> weights) {
  std::vector<LabelCounts> sums(types);
  for (size_t t = 0; t < texts.size(); ++t) {
    const auto weight = weights.empty() ? 1 : weights[t];
    if (weight == 0) continue;
    for (const auto& [type, gold, predicted, right] : texts[t]) {
      sums[type].gold += weight * gold;
      sums[type].predicted += weight * predicted;
      sums[type].right += weight * right;
    }
  }
  return sums;
}

TagScheme chosen_scheme(const ScoredItems& scored) {
  const auto named = scored.options->scheme;
  return named == TagScheme::none ? scheme_of(scored.labels->names) : named;
}

/// Precision, recall and F1 of all entities; F1 as the mean over types that occur, and weighted by their entities.
void add_entity_values(const std::vector<LabelCounts>& types, std::vector<double>& values) {
  LabelCounts all;
  double macro = 0, weighted = 0;
  int64_t seen = 0;
  for (const auto& type : types) {
    all.gold += type.gold;
    all.predicted += type.predicted;
    all.right += type.right;
    macro += type.f1();
    weighted += static_cast<double>(type.gold) * type.f1();
    if (type.gold + type.predicted > 0) ++seen;
  }
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  values.insert(values.end(),
                {all.precision(), all.recall(), all.f1(), seen == 0 ? nothing : macro / static_cast<double>(seen),
                 all.gold == 0 ? 0 : weighted / static_cast<double>(all.gold)});
}

}  // namespace

TaskScorer word_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  std::vector<std::array<int64_t, 2>> texts;  // words, right ones
  int64_t words = 0;
  for (size_t i = 0; i < scored.size(); ++i) {
    const auto& gold = scored.items[i]->gold.labels;
    const auto& predicted = scored.predictions[i]->answer.labels;
    int64_t right = 0;
    for (size_t w = 0; w < gold.size(); ++w) right += gold[w] == predicted[w] && gold[w] != unknown_label;
    texts.push_back({static_cast<int64_t>(gold.size()), right});
    words += texts.back()[0];
  }
  const auto cells = number_cells(texts, scorer);
  scorer.metrics = {{.name = "accuracy", .undefined = "there is no word", .count = words}};
  scorer.values = [cells](std::span<const int64_t> weights, std::span<double> values) {
    int64_t all = 0, right = 0;
    for (size_t c = 0; c < cells.size(); ++c) {
      all += weights[c] * cells[c][0];
      right += weights[c] * cells[c][1];
    }
    values[0] = all == 0 ? std::numeric_limits<double>::quiet_NaN() : ratio_of(right, all);
  };
  return scorer;
}

TaskScorer entity_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto scheme = chosen_scheme(scored);
  const bool has_strict = scheme != TagScheme::none;
  auto loose = count_entities(scored, scheme, false);
  auto strict = has_strict ? count_entities(scored, scheme, true) : EntityCounts{};
  strict.texts.resize(scored.size());
  std::vector<std::array<std::vector<TypeCounts>, 2>> texts;
  for (size_t i = 0; i < scored.size(); ++i) texts.push_back({std::move(loose.texts[i]), std::move(strict.texts[i])});
  const auto keys = number_cells(texts, scorer);
  std::vector<std::vector<TypeCounts>> loose_cells, strict_cells;
  for (const auto& [one, other] : keys) {
    loose_cells.push_back(one);
    strict_cells.push_back(other);
  }
  const auto n = static_cast<int64_t>(scored.size());
  for (const std::string ending : {"", "_strict"})
    for (const std::string name : {"precision", "recall", "f1", "f1_macro", "f1_weighted"})
      scorer.metrics.push_back({.name = name + ending, .undefined = "there is no entity", .count = n});
  if (!has_strict)
    for (size_t m = 5; m < 10; ++m)
      scorer.metrics[m].undefined = "the tags are of no scheme that their letters tell; name one";
  scorer.values = [loose_cells, strict_cells, has_strict, loose_types = loose.types.size(),
                   strict_types = strict.types.size()](std::span<const int64_t> weights, std::span<double> values) {
    std::vector<double> entity_values;
    add_entity_values(sums_of(loose_cells, loose_types, weights), entity_values);
    if (has_strict) add_entity_values(sums_of(strict_cells, strict_types, weights), entity_values);
    entity_values.resize(values.size(), std::numeric_limits<double>::quiet_NaN());
    std::ranges::copy(entity_values, values.begin());
  };
  return scorer;
}

void add_tag_tables(const ScoredItems& scored, TaskScores& scores) {
  std::vector<LabelPair> words;
  for (size_t i = 0; i < scored.size(); ++i)
    for (size_t w = 0; w < scored.items[i]->gold.labels.size(); ++w)
      words.push_back({scored.items[i]->gold.labels[w], scored.predictions[i]->answer.labels[w]});
  add_label_tables(words, *scored.labels, scores);
  if (!are_entity_tags(scored.labels->names)) return;
  const auto entities = count_entities(scored, chosen_scheme(scored), false);
  const auto sums = sums_of(entities.texts, entities.types.size(), {});
  std::map<std::string, LabelCounts> by_type;
  for (size_t t = 0; t < sums.size(); ++t) by_type[entities.types[t]] = sums[t];
  scores.per_label.clear();
  for (const auto& [type, counts] : by_type) scores.per_label.push_back(label_metrics(type, counts));
}

}  // namespace cloze
