#pragma once
// What a search found: its trials, and those on the frontier of loss and cost.
#include "core/report/table.h"
#include "study/search/search.h"

namespace cloze {

/// One trial at the end of the last rung that it reached.
struct Trial {
  std::string name;
  std::vector<std::pair<std::string, ConfigNode>> keys{};
  size_t rung = 0;
  double loss = 0;                            ///< of the metric, mean over its seeds
  double tokens = 0, flops = 0, seconds = 0;  ///< of one run, from its start
  bool on_frontier = false;                   ///< no other trial is better at the same cost or less
};

/// All trials with a result, the best of the last rung first.
std::vector<Trial> read_trials(const Stages& stages);

/// Marks the trials that no other beats in loss at the same FLOPs or less (tokens, where FLOPs are not known).
/// `by`: the metric.
void mark_frontier(std::vector<Trial>& trials, const StudyMetric& by = {});

/// Loss against FLOPs (tokens, where FLOPs are not known), a part of a page: a dot for each trial, a line through those
/// on the frontier.
std::string frontier_chart(const std::vector<Trial>& trials, const StudyMetric& by = {});

/// The trials with that picture.
Table search_table(const std::vector<Trial>& trials, const StudyMetric& by);
/// What a reader of the table has to know: waiting rungs, failed runs, and what choosing by the loss does to it.
std::vector<std::string> search_notes(const Stages& stages, const std::vector<Trial>& trials);

}  // namespace cloze
