#pragma once
// The words and the rounded numbers of a report, the same in every form that people read.
#include <string>
#include <utility>
#include <vector>

#include "study/report.h"

namespace cloze {

/// The cells of one arm.
struct ReportRow {
  std::string arm{}, runs{}, value{}, difference{}, interval{}, bootstrap{}, p{}, effect{}, equivalence{}, verdict{};
};

/// One row for each arm, and the heads of its columns.
std::vector<ReportRow> rows_of(const StudyReport& report);
ReportRow row_heads(const StudyReport& report);

/// Decimals that show two digits of the smallest spread among the runs of an arm.
int decimals_of(const StudyReport& report);

/// A number with so many decimals; `sign`: also a plus.
std::string fixed(double value, int decimals, bool sign = false);

/// What is asked, in one sentence.
std::string question_of(const StudyReport& report);

/// How it was asked: metric, unit, baseline, seeds, budget, margin, runs.
std::vector<std::pair<std::string, std::string>> facts_of(const StudyReport& report);

/// The tied sets, one sentence each.
std::vector<std::string> tied_words(const StudyReport& report);

/// How the numbers were computed, with sources, one sentence each.
std::vector<std::string> methods_of(const StudyReport& report);

/// What a run used up, or the mean of runs.
struct RunUsage {
  double steps = 0, tokens = 0, predicted_tokens = 0, words = 0, epochs = 0, seconds = 0, flops = 0;
};
RunUsage usage_of(const RunResult& run);
RunUsage mean_usage(const ArmReport& arm);

/// What the finished runs of each arm used up in the mean, in the currencies that the runs logged; without rows where
/// they logged none.
Table usage_table(const StudyReport& report);

}  // namespace cloze
