#include "tasks/scores/scores.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/random.h"
#include "core/report/clusters.h"
#include "core/report/significance.h"
#include "core/spelling.h"
#include "core/text.h"
#include "tasks/scores/bootstrap.h"
#include "tasks/scores/item_clusters.h"
#include "tasks/scores/task_scorer.h"

namespace cloze {

namespace {

SquadVersion version_of(const std::vector<TaskItem>& items, SquadVersion named) {
  if (named != SquadVersion::automatic) return named;
  return std::ranges::any_of(items, is_unanswerable) ? SquadVersion::v2_0 : SquadVersion::v1_1;
}

/// Items and predictions that fit each other.
ScoredItems checked(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                    const std::vector<TaskPrediction>& predictions, const MetricOptions& options) {
  require<DataError>(!items.empty(), "there are no items to score predictions by");
  require<DataError>(items.size() == predictions.size(), "there are ", predictions.size(), " predictions for ",
                     items.size(), " items; each item has one");
  ScoredItems scored{.kind = kind, .labels = &labels, .options = &options};
  scored.squad = version_of(items, options.squad);
  scored.unjudged = kind->unjudged(items, {});
  for (size_t i = 0; i < items.size(); ++i) {
    kind->check_prediction(items[i], predictions[i], labels.size());
    scored.items.push_back(&items[i]);
    scored.predictions.push_back(&predictions[i]);
  }
  scored.cluster_of = clusters_of_items(scored.items);
  return scored;
}

Score score_at(const ScoredItems& scored, const ScoredMetric& metric, double value) {
  Score score{.metric = metric.name, .count = metric.count};
  if (std::isfinite(value))
    score.value = value;
  else
    score.reason = scored.unjudged.empty() ? metric.undefined : scored.unjudged;
  return score;
}

std::vector<int64_t> units_by_cell(const TaskScorer& scorer) {
  std::vector<int64_t> counts(scorer.cells);
  for (const auto cell : scorer.cell_of) ++counts[cell];
  return counts;
}

std::vector<double> full_values(const ScoredItems& scored, const TaskScorer& scorer) {
  std::vector<double> values(scorer.metrics.size(), std::nan(""));
  if (scored.unjudged.empty()) scorer.values(units_by_cell(scorer), values);
  return values;
}

/// The values of one metric for several weightings of cells.
struct MetricValues {
  const TaskScorer& scorer;
  size_t metric;
  std::vector<double> all{};
  double operator()(const std::vector<int64_t>& weights) {
    all.assign(scorer.metrics.size(), std::nan(""));
    scorer.values(weights, all);
    return all[metric];
  }
};

/// A metric of each unit alone: of a proportion 1 or 0, NaN for a unit that it leaves out.
std::vector<double> values_of_units(const TaskScorer& scorer, size_t metric) {
  MetricValues value_of{.scorer = scorer, .metric = metric};
  std::vector<double> of_cells(scorer.cells);
  std::vector<int64_t> weights(scorer.cells);
  for (size_t cell = 0; cell < scorer.cells; ++cell) {
    weights[cell] = 1;
    of_cells[cell] = value_of(weights);
    weights[cell] = 0;
  }
  std::vector<double> of_units;
  for (const auto cell : scorer.cell_of) of_units.push_back(of_cells[cell]);
  return of_units;
}

/// Wilson's interval of a share of independent units; of units in clusters that over these, where it is wider.
Bounds share_bounds(const ScoredItems& scored, const TaskScorer& scorer, size_t metric, double value) {
  const auto count = scorer.metrics[metric].count;
  const auto clusters = unit_clusters(scored, scorer);
  if (clusters.are_units()) return wilson(value * static_cast<double>(count), count);
  std::vector<double> sums(clusters.units.size()), counts(clusters.units.size());
  const auto of_units = values_of_units(scorer, metric);
  for (size_t unit = 0; unit < of_units.size(); ++unit) {
    if (std::isnan(of_units[unit])) continue;
    sums[clusters.of[unit]] += of_units[unit];
    ++counts[clusters.of[unit]];
  }
  return fraction_interval(clustered_mean(sums, counts), count);
}

/// How many units a share of 1 is of: those that have it by themselves, as items with a label have its recall, else
/// all.
int64_t units_behind(const TaskScorer& scorer, size_t metric) {
  constexpr size_t most_cells = 2000;
  const auto counts = units_by_cell(scorer);
  const auto all = static_cast<int64_t>(scorer.cell_of.size());
  if (scorer.cells > most_cells) return all;
  int64_t own = 0;
  std::vector<double> values(scorer.metrics.size());
  std::vector<int64_t> weights(scorer.cells);
  for (size_t cell = 0; cell < scorer.cells; ++cell) {
    weights[cell] = 1;
    scorer.values(weights, values);
    if (values[metric] == 1) own += counts[cell];
    weights[cell] = 0;
  }
  return own > 0 ? own : all;
}

/// The interval of a share that no draw of units varies, since all are right, or none: Wilson's. Correlations of 1 that
/// are agreements, from -1 on, have it, too.
Bounds interval_of_all(const TaskScorer& scorer, size_t metric, double value) {
  const auto& name = scorer.metrics[metric].name;
  const auto units = value == 1 ? units_behind(scorer, metric) : static_cast<int64_t>(scorer.cell_of.size());
  auto bounds = wilson(value * static_cast<double>(units), units);
  if (name == "mcc" || name == "kappa") bounds.low = 2 * bounds.low - 1;
  return bounds;
}

std::optional<Bounds> interval_of(const ScoredItems& scored, const TaskScorer& scorer, size_t metric, double value,
                                  const Resampled& resampled) {
  const auto& [name, undefined, is_proportion, has_interval, count] = scorer.metrics[metric];
  if (is_proportion) return share_bounds(scored, scorer, metric, value);
  if (!has_interval) return std::nullopt;
  const auto bounds = percentile_bounds(resampled, metric, value);
  const bool is_constant = bounds && bounds->low == value && bounds->high == value;
  const bool is_signed = name == "mcc" || name == "kappa";
  if (!is_constant || !scored.kind->is_right_or_wrong || !(value == 1 || (value == 0 && !is_signed))) return bounds;
  return interval_of_all(scorer, metric, value);
}

bool needs_bootstrap(const TaskScorer& scorer) {
  return std::ranges::any_of(scorer.metrics,
                             [](const auto& metric) { return !metric.is_proportion && metric.has_interval; });
}

void add_scores(const ScoredItems& scored, const TaskScorerMaker& make, std::vector<Score>& scores) {
  const auto scorer = make(scored);
  const auto values = full_values(scored, scorer);
  Resampled resampled;
  if (scored.options->resamples > 0 && needs_bootstrap(scorer) && scored.unjudged.empty())
    resampled = resample(scored, make, scorer, *scored.options);
  for (size_t m = 0; m < values.size(); ++m) {
    auto score = score_at(scored, scorer.metrics[m], values[m]);
    if (score.is_defined()) score.interval = interval_of(scored, scorer, m, values[m], resampled);
    scores.push_back(std::move(score));
  }
}

/// By item, whether it is wholly right; empty for kinds whose items are neither right nor wrong.
std::vector<bool> right_items(const ScoredItems& scored) {
  std::vector<bool> right;
  if (!scored.kind->is_right_or_wrong) return right;
  for (size_t i = 0; i < scored.size(); ++i)
    right.push_back(scored.kind->is_right(*scored.items[i], *scored.predictions[i], scored));
  return right;
}

}  // namespace

TaskScores metrics_of(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                      const std::vector<TaskPrediction>& predictions, const MetricOptions& options) {
  const auto scored = checked(kind, items, labels, predictions, options);
  TaskScores scores;
  for (const auto& make : kind->scorers(scored)) add_scores(scored, make, scores.scores);
  kind->add_tables(scored, scores);
  return scores;
}

std::vector<Score> values_of(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                             const std::vector<TaskPrediction>& predictions, const MetricOptions& options) {
  const auto scored = checked(kind, items, labels, predictions, options);
  std::vector<Score> scores;
  for (const auto& make : kind->scorers(scored)) {
    const auto scorer = make(scored);
    const auto values = full_values(scored, scorer);
    for (size_t m = 0; m < values.size(); ++m) scores.push_back(score_at(scored, scorer.metrics[m], values[m]));
  }
  return scores;
}

const Score* score_of(const TaskScores& scores, const std::string& metric) {
  const auto at = std::ranges::find(scores.scores, metric, &Score::metric);
  return at == scores.scores.end() ? nullptr : &*at;
}

PairedScores compare_predictions(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                                 const std::vector<TaskPrediction>& first, const std::vector<TaskPrediction>& second,
                                 const MetricOptions& options) {
  const auto a = checked(kind, items, labels, first, options), b = checked(kind, items, labels, second, options);
  PairedScores scores;
  const auto makers = kind->scorers(a).size() < kind->scorers(b).size() ? kind->scorers(a) : kind->scorers(b);
  for (const auto& make : makers) {
    const auto scorer = make(a), other = make(b);
    const auto values = full_values(a, scorer), others = full_values(b, other);
    const auto resampled = options.resamples > 0 ? resample_difference(a, b, make, options) : Resampled{};
    for (size_t m = 0; m < values.size(); ++m) {
      Score score{.metric = scorer.metrics[m].name};
      const double difference = values[m] - others[m];
      if (std::isfinite(difference)) {
        score.value = difference;
        auto bounds = percentile_bounds(resampled, m, difference);
        if (bounds && scorer.metrics[m].is_proportion) bounds = difference_bounds(*bounds, scorer.metrics[m].count);
        if (scorer.metrics[m].has_interval) score.interval = bounds;
      }
      scores.scores.push_back(std::move(score));
    }
  }
  const auto right = right_items(a), other_right = right_items(b);
  for (size_t i = 0; i < right.size(); ++i) {
    scores.only_first += right[i] && !other_right[i];
    scores.only_second += !right[i] && other_right[i];
  }
  if (!right.empty()) scores.mcnemar = mcnemar_p(scores.only_first, scores.only_second);
  return scores;
}

namespace {

ScoreOnDraws on_draws(const ScoredItems& scored, const TaskScorer& scorer, size_t metric) {
  auto clusters = unit_clusters(scored, scorer);
  ScoreOnDraws score{.value = full_values(scored, scorer)[metric], .units = std::ssize(scorer.cell_of)};
  if (scorer.metrics[metric].is_proportion) score.of_units = values_of_units(scorer, metric);
  MetricValues value_of{.scorer = scorer, .metric = metric};
  for (int64_t draw = 0; draw < comparison_draws && score.of_units.empty(); ++draw) {
    auto stream = Rng(1).stream("units of a comparison", 0, static_cast<uint64_t>(draw));
    std::vector<int64_t> weights(scorer.cells);
    draw_clusters(stream, scorer, clusters, weights);
    score.draws.push_back(value_of(weights));
  }
  score.clusters = std::move(clusters.of);
  return score;
}

}  // namespace

ScoreOnDraws score_on_draws(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                            const std::vector<TaskPrediction>& predictions, const std::string& metric,
                            const MetricOptions& options) {
  const auto scored = checked(kind, items, labels, predictions, options);
  std::vector<std::string> names;
  for (const auto& make : kind->scorers(scored)) {
    const auto scorer = make(scored);
    const auto at = std::ranges::find(scorer.metrics, metric, &ScoredMetric::name) - scorer.metrics.begin();
    if (at < std::ssize(scorer.metrics)) return on_draws(scored, scorer, static_cast<size_t>(at));
    for (const auto& one : scorer.metrics) names.push_back(one.name);
  }
  fail<DataError>("the task has no figure '", metric, "'", did_you_mean(metric, names), "; it has ", listed(names));
}

}  // namespace cloze
