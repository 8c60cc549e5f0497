#pragma once
// Random search over the keys under `space:`, with or without successive halving. Sources: Bergstra and Bengio 2012;
// Jamieson and Talwalkar 2016 (arXiv 1502.07943), algorithm 1; Li et al. 2018 (arXiv 1603.06560), inner loop of
// algorithm 1. And what was found: the trials, and those on the frontier of loss and cost.
#include "core/report/table.h"
#include "study/execution/runs.h"
#include "study/search/stages.h"

namespace cloze {

/// One rung of successive halving; a search without it has one.
struct Rung {
  int64_t trials = 0;
  double used = 0;    ///< share of the total budget that one run has had at its end
  double budget = 0;  ///< share of the total budget that the runs of the rung get
};

/// The rungs of `trials` trials: rung i has trials / halving^i of them, each with halving^i times the budget of the
/// first, so that all together use the total exactly.
///
/// seeds      runs of each trial
/// continued  a run of a later rung goes on from its checkpoint, so that it pays for the difference alone
/// Throws ConfigError for fewer trials than `halving`.
/// Differs: Jamieson and Talwalkar halve and give every rung the same share; here runs that start anew do so to within
/// the rounding of trials, and runs that go on spend less on later rungs.
std::vector<Rung> rungs_of(int64_t trials, int64_t halving, int64_t seeds, bool continued);

/// The keys of trial number `draw`, each by its own stream of `seed`. Throws ConfigError for a key without a list or a
/// distribution.
std::vector<std::pair<std::string, ConfigNode>> draw_trial(const AnyKeys& space, uint64_t seed, uint64_t draw);

/// The rungs of a search; those whose trials are not decided yet wait without runs. Throws ConfigError.
Stages search_stages(const StudyConfig& study, const std::string& file, const std::string& folder);

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
