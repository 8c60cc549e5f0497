#pragma once
// What a report is made of: checks and curves of its runs, and the words, the tables and the charts of its forms.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/table.h"
#include "study/report/report.h"
#include "study/search/stages.h"

namespace cloze {

/// What the deciding interval of a difference is computed from, with it and its p.
nlohmann::json parts_json(const Difference& difference);
/// `a 4 of 10, b 1 of 10`: the arms that have lost runs; empty where none has.
std::string failed_words(const StudyReport& report);

/// The scores, in the units of `evaluate`, of the suites that runs of every arm answered (evaluation.suites), of each
/// arm with its paired difference to the baseline; p is corrected by Holm over all differences of the table. None where
/// no suite was answered. Throws DataError for a summary.json that is damaged.
std::optional<Table> suite_table(const StudyReport& report);

/// Adds to a table of arms, whose names are its first column, a column for each score of these suites: the mean of an
/// arm's runs, with their standard deviation. Throws as suite_table.
void add_suite_columns(Table& table, const StudyReport& report);

/// A table of each secondary metric: arms with their means, and their differences to the baseline.
std::vector<Table> secondary_tables(const StudyReport& report);

/// Adds what the words of the tasks tell that arms are compared by, of those that have a finished fine-tuning.
void add_floors_of_words(StudyReport& report, const Stages& stages);

/// Adds the tables and notes of tuning, of a split and of probes.
void add_stages(StudyReport& report, const Stages& stages);

/// The report of a study with a `space:`: its trials, and no comparison.
StudyReport search_report(const Stages& stages);

/// Decimals that show two digits of the smallest spread among the runs of an arm.
int decimals_of(const StudyReport& report);

/// `held-out mlm loss`, `blimp accuracy`
std::string metric_title(const StudyReport& report);

/// ` [nats]`; empty for scores without a unit.
std::string in_brackets(const std::string& unit);

/// What curves are of: the metric, or the loss of runs that are judged after their training.
/// of   CurvePoint::of
std::string curve_title(const StudyReport& report, const std::string& of);

/// The unit of curves, in brackets.
std::string curve_unit(const StudyReport& report);

/// `95 % interval`
std::string interval_head(const StudyReport& report);

/// `, simultaneous over 3 comparisons`; empty for one.
std::string at_once_words(const StudyReport& report);

/// What is asked, in one sentence.
std::string question_of(const StudyReport& report);

/// How it was asked: metric, unit, baseline, seeds, budget, margin, runs.
std::vector<std::pair<std::string, std::string>> report_settings(const StudyReport& report);

/// The tied sets, one sentence each.
std::vector<std::string> tied_words(const StudyReport& report);

/// How the numbers were computed, with sources, one sentence each.
std::vector<std::string> methods_of(const StudyReport& report);

/// `3.1033 ± 0.0078` of the runs of an arm; empty without any.
std::string mean_text(const StudyReport& report, const ArmReport& arm);

/// The floors of the metric that decides: that of its runs, and the others.
std::vector<NamedFloor> floors_of(const StudyReport& report);

/// A row for each arm: its mean, its difference to the baseline with intervals and tests, and the verdict.
Table verdict_table(const StudyReport& report);

/// The same for a paper: one interval, and marks for verdicts, which the caption explains.
Table paper_table(const StudyReport& report);

/// A row for each run.
Table run_table(const StudyReport& report);

/// What the arms differ in.
Table key_table(const StudyReport& report);

/// What a run of an arm used up in the mean.
Usage mean_usage(const ArmReport& arm);

/// What the finished runs of each arm used up in the mean, in the currencies that the runs logged; without rows where
/// they logged none.
Table usage_table(const StudyReport& report);

// Charts of a page, as HTML; empty where there is nothing to draw.
/// The differences of all arms on one axis, with the margin.
std::string interval_chart(const StudyReport& report);
/// Losses and differences along training, by each currency that is known.
std::string curve_chart(const StudyReport& report);
/// The value of each run, a row for each arm.
std::string value_chart(const StudyReport& report);

/// One trial at the end of the last rung that it reached.
struct Trial {
  std::string name;
  KeyValues keys{};
  size_t rung = 0;
  double loss = 0;           ///< of the metric, mean over its seeds
  Usage used{};              ///< by one run, from its start
  bool on_frontier = false;  ///< no other trial is better at the same cost or less
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
