#pragma once
// What runs found: arms against the baseline, with intervals and verdicts, in the forms that readers and programs
// want. Runs come from a study (make_report) or were made by hand (report_of_runs).
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/report/report.h"
#include "study/execution/runs.h"

namespace cloze {

struct Stages;

/// A curve of an arm: mean and spread over its finished runs at the steps that all of them have.
struct ArmCurve {
  std::vector<CurvePoint> mean{};
  std::vector<double> sd{};
};

/// The difference of an arm to the baseline along training: `mean[i].loss` is that of pairs of runs.
struct DifferenceCurve {
  std::vector<CurvePoint> mean{};
  std::vector<Interval> t_interval{};
};

/// What a secondary metric says of an arm.
struct SecondaryScore {
  Summary summary{};
  Difference difference{};  ///< to the baseline; its interval is of this arm alone, and p_holm corrected over all
                            ///< secondary metrics and arms
  double floor = 0;         ///< as in ArmReport
};

/// An arm: its finished runs, and how it compares with the baseline.
struct ArmReport {
  std::string name;
  std::vector<std::string> differs{};  ///< keys and values that set it apart from the base
  std::vector<RunResult> runs{};       ///< finished, by seed
  std::vector<int64_t> failed{};       ///< seeds of runs that failed for a reason of their own
  Summary summary{};
  std::optional<Outlier> outlier{};
  Difference difference{};  ///< to the baseline; empty for the baseline itself
  bool is_baseline = false;
  std::string other_budget{};  ///< its budget where that is not the baseline's: it has curves, and no difference
  std::string verdict{};
  ArmCurve curve{};
  DifferenceCurve difference_curve{};
  double floor = 0;  ///< mean value of a network that has learnt nothing, on what its runs were scored on; 0: not known
  bool is_at_floor = false;                 ///< no better than that, of a task by more than its interval
  std::vector<SecondaryScore> secondary{};  ///< one for each secondary metric of the report
};

/// Two arms of which none is the baseline.
struct ArmPair {
  std::string first, second;
  Difference difference{};  ///< of the first less the second: mean, sd, seeds, examples, p and p_holm over all pairs
};

/// A run in any state.
struct ReportedRun {
  RunResult result{};  ///< of a run that is not done: arm, seed and folder alone
  RunState state = RunState::waiting;
  std::string message{};  ///< why it is not done; of one that is done, what its secondary metrics lack
  std::string command{};  ///< that makes it again
  std::string budget{};   ///< `20,000,000 tokens`
  Provenance provenance{};
  std::vector<CurvePoint> curve{};
  bool outlying = false;
};

/// All that the forms of a report say.
struct StudyReport {
  std::string name, unit, metric, baseline;
  std::string declaration{};             ///< XXH3 of what a study declared before its first run
  std::string source{};                  ///< the study file; empty for runs made by hand
  StudyMetric by{};                      ///< that decides; `metric` and `unit` are its names
  std::vector<StudyMetric> secondary{};  ///< that decide nothing
  ComparisonRules rules{};
  std::vector<ArmReport> arms{};  ///< the baseline first
  std::vector<ReportedRun> runs{};
  double floor = 0;                                         ///< the lowest of the arms; 0: not known
  bool is_at_floor = false;                                 ///< no arm is better, which takes back all verdicts
  std::vector<NamedFloor> other_floors{};                   ///< that take back no verdict: of a task `words`
  std::vector<std::vector<NamedFloor>> secondary_floors{};  ///< the same of each secondary metric; empty: none
  std::vector<ArmPair> pairs{};                  ///< by which arms besides the baseline are told from each other
  std::vector<std::vector<std::string>> tied{};  ///< sets of arms of which no two can be told from each other
  std::vector<std::string> notes{};     ///< failed, missing, stale and outlying runs; what was changed after the start
  std::vector<std::string> commands{};  ///< that reproduce every run
  std::string finetuning{};     ///< how all fine-tunings were made, for the caption of a paper; empty: there are none
  std::vector<Table> tables{};  ///< tuning, the split of the variance, the trials of a search
};

/// The report of what is finished. An arm of another budget than the baseline has its losses and curves, without a
/// difference and a verdict. Throws DataError where runs differ in held-out text, tokenizer or form of the evaluation,
/// so that they cannot be compared.
StudyReport make_report(const Stages& stages);

/// What is asked of runs that were made by hand.
struct RunsQuestion {
  std::vector<std::string> folders;
  /// Held-out loss in short form, of fine-tuned runs a score of their task; empty: the first that all runs have, and
  /// the score that chose their best steps.
  std::string metric{};
  std::string baseline{};  ///< name of an arm, or one of its folders; empty: the arm of the first folder
  LossUnit unit = LossUnit::nats;
  double better_by = 0;  ///< the smallest difference that matters, in the unit; 0: none is stated
};

/// The report of run directories. Runs whose texts and configs are equal but for the seed are an arm, named by the
/// keys in which arms differ where these are few, else by its folders; those that were changed on their way in the same
/// manner are one of their own. Runs that are not finished are listed.
/// Fine-tuned runs are compared by the score of their task on its test part.
/// Throws ConfigError for an unknown metric or baseline, for a metric that the unit cannot measure and for runs that
/// are given twice or have one seed in one arm, DataError for folders without a run, damaged files and runs that cannot
/// be compared.
StudyReport report_of_runs(const RunsQuestion& question);

/// Throws DataError where the finished runs differ in held-out text, tokenizer or form of the evaluation.
void check_comparable(const StudyReport& report);

/// Fills in the numbers that follow from `name` and `differs` of the arms and from the runs: everything else of the
/// arms, pairs and tied sets.
void compare_arms(StudyReport& report);

/// Adds what a reader of these numbers has to know: verdicts in words, notes, tables, commands.
void describe_comparison(StudyReport& report);

/// The forms of a report.
enum class ReportFormat { text, markdown, csv, latex, html, json };
constexpr auto choices(ReportFormat) {
  using enum ReportFormat;
  return std::array{Choice{text, "text"},   Choice{markdown, "markdown"}, Choice{csv, "csv"},
                    Choice{latex, "latex"}, Choice{html, "html"},         Choice{json, "json"}};
}

/// A table that fits `columns`, with the tied sets and the notes.
std::string to_text(const StudyReport& report, int64_t columns);
std::string to_markdown(const StudyReport& report);
/// Every number of the other forms, in full: a line for each setting, arm, run and point of a curve, by `kind`.
std::string to_csv(const StudyReport& report);
/// A booktabs table for one column of a paper, whose caption says metric, unit, seeds and budget.
std::string to_latex(const StudyReport& report);
/// One page without references to anything outside it.
std::string to_html(const StudyReport& report);
nlohmann::json to_json(const StudyReport& report);

}  // namespace cloze
