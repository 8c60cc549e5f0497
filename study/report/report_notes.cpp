// Notes of a report on its runs and arms.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/log.h"
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

}  // namespace

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
    if (!run.changed.empty()) changed[run.result.arm] = run.changed;
    if (run.is_dirty) dirty.insert(run.result.arm);
    if (run.made_by.empty() || !seen.insert({run.made_by, run.result.arm}).second) continue;
    auto& arms = arms_by[run.made_by];
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

void note_movement(StudyReport& report) {
  constexpr double steep = 0.02;  // of the loss
  const double margin = report.rules.margin;
  const auto facts = facts_of(report.by);
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

std::string failed_words(const StudyReport& report) {
  std::string words;
  for (const auto& arm : report.arms)
    if (!arm.failed.empty())
      words += concat(words.empty() ? "" : ", ", in_one_line(arm.name), " ", arm.failed.size(), " of ",
                      arm.failed.size() + arm.runs.size());
  return words;
}

void note_seeds(StudyReport& report) {
  const auto& baseline = report.arms.front();
  const auto words_of = [&](const ArmReport& arm, const ArmReport& other) {
    std::vector<double> values;
    for (const auto& run : arm.runs)
      if (std::ranges::find(other.runs, run.seed, &RunResult::seed) != other.runs.end()) values.push_back(run.value);
    const auto summary = summarize(values);
    return concat(arm.name, " has ", fixed(summary.mean, decimals_of(report)),
                  values.size() > 1 ? " ± " + fixed(summary.sd, decimals_of(report)) : "");
  };
  for (const auto& arm : report.arms) {
    const auto seeds = static_cast<size_t>(arm.difference.seeds);
    if (arm.is_baseline || seeds == 0 || seeds == std::max(arm.runs.size(), baseline.runs.size())) continue;
    report.notes.push_back(concat("the difference of ", arm.name, " is over the ",
                                  seeds == 1 ? "one seed" : concat(seeds, " seeds"), " that both have, on which ",
                                  words_of(baseline, arm), " and ", words_of(arm, baseline)));
  }
}

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

}  // namespace cloze
