// Notes of a report on its runs and arms.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/text.h"
#include "study/report/report_rows.h"

namespace cloze {

namespace {

/// By what a curve falls over the last quarter of its budget; 0 where it has no point before.
double last_quarter(const std::vector<CurvePoint>& curve) {
  if (curve.empty()) return 0;
  const auto is_late = [&](const CurvePoint& point) { return 4 * point.step > 3 * curve.back().step; };
  const auto late = std::ranges::find_if(curve, is_late);
  return late == curve.begin() ? 0 : (late - 1)->loss - curve.back().loss;
}

/// What a report says of a run that is not done.
std::string note_on(const ReportedRun& run) {
  const auto state = [&] {
    switch (run.state) {
      case RunState::waiting:
        return "has not finished";
      case RunState::running:
        return "is still running";
      case RunState::failed:
        return "failed";
      case RunState::stale:
        return "was made from another config, text, tokenizer or version, or from other weights";
      case RunState::done:
        break;
    }
    return "is done";
  };
  return concat("run ", run.result.arm, "/", run.result.seed, " ", state(), run.message.empty() ? "" : ": ",
                run.message, "; it is not in the table");
}

/// Notes the arms of runs that were changed, and what made the runs where that is not one program and processor.
void note_makers(StudyReport& report) {
  std::map<std::string, std::string> changed, arms_by;  // of arms; by what made their runs
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> dirty;
  std::vector<std::string> of_precision;
  for (const auto& arm : report.arms)
    for (const std::string name = "train.precision: "; const auto& key : arm.differs)
      if (key.starts_with(name)) of_precision.push_back(concat(arm.name, " (", key.substr(name.size()), ")"));
  for (const auto& run : report.runs) {
    if (run.state != RunState::done) continue;
    if (!run.provenance.changed.empty()) changed[run.result.arm] = run.provenance.changed;
    if (run.provenance.is_dirty) dirty.insert(run.result.arm);
    if (run.provenance.made_by.empty() || !seen.insert({run.provenance.made_by, run.result.arm}).second) continue;
    auto& arms = arms_by[run.provenance.made_by];
    arms += (arms.empty() ? "" : ", ") + run.result.arm;
  }
  for (const auto& [arm, change] : changed)
    report.notes.push_back(concat("arm ", arm, ": ", change.substr(change.find(" with ") + 1),
                                  "; it is held apart from runs that never changed"));
  if (!dirty.empty())
    report.notes.push_back(
        concat("made by a program whose source had changes that no commit has, so that nobody else can "
               "make the runs again: ",
               listed(std::vector<std::string>(dirty.begin(), dirty.end()))));
  if (!of_precision.empty())
    report.notes.push_back("arms differ in train.precision, which alone moves a loss: " + listed(of_precision));
  if (arms_by.size() < 2) return;
  std::string makers;
  for (const auto& [made_by, arms] : arms_by) makers += concat(makers.empty() ? "" : "; ", arms, ": ", made_by);
  report.notes.push_back(
      "runs were made by different versions, commits or processors, whose numbers are close but not equal (" + makers +
      ")");
}

/// Names the arms of another budget than the baseline.
void note_budgets(StudyReport& report) {
  std::string budget;
  std::vector<std::string> others;
  for (const auto& run : report.runs)
    if (run.result.arm == report.arms.front().name && budget.empty()) budget = run.budget;
  for (const auto& arm : report.arms)
    if (!arm.other_budget.empty()) others.push_back(concat(arm.name, " (", arm.other_budget, ")"));
  if (!others.empty())
    report.notes.push_back(concat("of another budget than ", report.arms.front().name, " (", budget,
                                  "): ", listed(others),
                                  "; losses and curves stand side by side, without differences and verdicts"));
}

void note_outliers(StudyReport& report) {
  for (const auto& arm : report.arms) {
    if (!arm.outlier) continue;
    const auto& run = arm.runs[arm.outlier->index];
    report.notes.push_back(concat("run ", arm.name, "/", run.seed, " is an outlier (", significant(run.value, 5),
                                  ", the others of the arm have a mean of ", significant(arm.outlier->others.mean, 5),
                                  "; p ", significant(arm.outlier->p, 2), "); it counts like the others"));
  }
}

/// `4.9 nats`
std::string in_unit_of(const StudyReport& report, double value) {
  return concat(significant(value, 5), report.unit.empty() ? "" : " " + report.unit);
}

/// Names the arms that are no better than their floor.
void note_floor(StudyReport& report) {
  std::vector<std::string> at_floor;
  for (const auto& arm : report.arms)
    if (arm.is_at_floor) at_floor.push_back(arm.name);
  if (at_floor.empty()) return;
  const bool is_of_task = std::holds_alternative<TaskMetric>(report.by);
  const auto floor = concat(traits_of(report.by).floor, " (", in_unit_of(report, report.floor),
                            is_of_task ? concat(", by the ", interval_head(report), " of the mean") : "", ")");
  report.notes.push_back(report.is_at_floor
                             ? concat("no arm has left ", floor,
                                      ", so that there is no verdict; train longer, or with a higher learning rate")
                             : concat("no better than ", floor, ": ", listed(at_floor),
                                      "; a difference between such networks says nothing of what they would learn"));
}

/// Names the arms that are no better than what the words of a task tell. Their verdicts stand: the difference is one,
/// of networks that a regression beats.
void note_other_floors(StudyReport& report) {
  for (const auto& [name, value] : report.other_floors) {
    std::vector<std::string> at_floor;
    for (const auto& arm : report.arms) {
      const bool is_better = report.rules.higher_is_better ? arm.summary.mean > value : arm.summary.mean < value;
      if (!arm.runs.empty() && !is_better) at_floor.push_back(arm.name);
    }
    if (!at_floor.empty())
      report.notes.push_back(
          concat("no better than a regression on ", name, " (", in_unit_of(report, value), "): ", listed(at_floor)));
  }
}

/// Names the differences that are over fewer seeds than the means beside them.
void note_seeds(StudyReport& report) {
  const auto& baseline = report.arms.front();
  const auto words_of = [&](const ArmReport& arm, const ArmReport& other) {
    std::vector<double> values;
    for (const auto& run : arm.runs)
      if (std::ranges::find(other.runs, run.seed, &RunResult::seed) != other.runs.end()) values.push_back(run.value);
    return concat(arm.name, " has ", to_text(summarize(values), decimals_of(report)));
  };
  for (const auto& arm : report.arms) {
    const auto seeds = static_cast<size_t>(arm.difference.seeds);
    if (arm.is_baseline || seeds == 0 || seeds == std::max(arm.runs.size(), baseline.runs.size())) continue;
    report.notes.push_back(concat("the difference of ", arm.name, " is over the ",
                                  seeds == 1 ? "one seed" : concat(seeds, " seeds"), " that both have, on which ",
                                  words_of(baseline, arm), " and ", words_of(arm, baseline)));
  }
}

/// Notes that the held-out losses are of few documents, or of one.
void note_documents(StudyReport& report) {
  constexpr size_t few = 10;
  if (!std::holds_alternative<LossMetric>(report.by) || report.arms.front().runs.empty()) return;
  const auto& all = report.arms.front().runs.front().examples.documents;
  const std::set<uint64_t> documents(all.begin(), all.end());
  if (documents.size() == 1 && all.size() > 1)
    report.notes.emplace_back(
        "all held-out examples are of one document and count as independent: intervals hold for texts like it alone; "
        "hold out more documents");
  else if (documents.size() > 1 && documents.size() < few)
    report.notes.push_back(concat("held-out examples are of ", documents.size(),
                                  " documents, of which intervals are wide; hold out more documents"));
}

/// Notes the arms that have not come to rest: the verdict of a longer budget may be another.
void note_movement(StudyReport& report) {
  constexpr double steep = 0.02;  // of the loss
  const double margin = report.rules.margin;
  const auto facts = traits_of(report.by);
  const bool is_rising = facts.higher_is_better && facts.has_curve_in_unit;
  std::vector<std::string> moving, falling;
  for (const auto& arm : report.arms) {
    if (const double moved = last_quarter(arm.difference_curve.mean); margin > 0 && std::abs(moved) > margin)
      moving.push_back(concat(arm.name, " (by ", fixed(-moved, 4, true), ")"));
    const auto& curve = arm.curve.mean;
    const double gained = is_rising ? -last_quarter(curve) : last_quarter(curve);
    if (!curve.empty() && gained > steep * curve.back().loss)
      falling.push_back(concat(arm.name, " (by ", significant(gained, 3), ")"));
  }
  if (!moving.empty() && facts.has_curve_in_unit)
    report.notes.push_back(
        concat("over the last quarter of the budget the difference still moves by more than the "
               "margin: ",
               listed(moving), "; a longer budget may have another verdict"));
  if (!falling.empty())
    report.notes.push_back(concat("over the last quarter of the budget the ",
                                  is_rising ? "figure still rises" : "loss still falls", " by more than ",
                                  significant(100 * steep, 2), " %: ", listed(falling),
                                  "; a longer budget may have another order"));
}

/// The verdict on an arm in words.
std::string verdict_of(const ArmReport& arm, const StudyReport& report) {
  const auto& baseline = report.arms.front();
  if (report.is_at_floor) return "no arm has left " + traits_of(report.by).floor;
  if (arm.difference.verdict == Verdict::held_back) {
    const auto failed = [](const ArmReport& one) {
      return concat(one.failed.size(), " of ", one.runs.size() + one.failed.size());
    };
    return concat("held back: ", failed(arm), " runs failed, of ", baseline.name, " ", failed(baseline),
                  ", and those that are left are the better ones");
  }
  if (arm.difference.seeds > 0) return verdict_words(arm.difference, report.rules, report.unit);
  if (!arm.other_budget.empty()) return "no verdict: another budget (" + arm.other_budget + ")";
  return arm.runs.empty() || baseline.runs.empty() ? "no finished pair of runs" : "no seed in common with the baseline";
}

}  // namespace

std::string failed_words(const StudyReport& report) {
  std::string words;
  for (const auto& arm : report.arms)
    if (!arm.failed.empty())
      words += concat(words.empty() ? "" : ", ", in_one_line(arm.name), " ", arm.failed.size(), " of ",
                      arm.failed.size() + arm.runs.size());
  return words;
}

void describe_comparison(StudyReport& report) {
  for (auto& arm : report.arms)
    if (!arm.is_baseline) arm.verdict = verdict_of(arm, report);
  for (const auto& run : report.runs) {
    report.commands.push_back(run.command);
    if (run.state != RunState::done) report.notes.push_back(note_on(run));
  }
  note_makers(report);
  note_budgets(report);
  note_outliers(report);
  note_floor(report);
  note_other_floors(report);
  note_seeds(report);
  note_documents(report);
  note_movement(report);
  for (auto& table : secondary_tables(report)) report.tables.push_back(std::move(table));
  if (auto suites = suite_table(report)) report.tables.push_back(std::move(*suites));
}

}  // namespace cloze
