#pragma once
// What a study found: arms against the baseline, with intervals and verdicts, in the forms that readers and programs
// want.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "study/runs.h"
#include "study/table.h"

namespace cloze {

/// A curve of an arm: mean and spread over its seeds at the steps that all of them have.
struct ArmCurve {
  std::vector<CurvePoint> mean{};
  std::vector<double> sd{};
};

struct ArmReport {
  std::string name;
  std::vector<std::string> differs{};  ///< keys and values that set it apart from the base
  std::vector<RunResult> runs{};       ///< finished, by seed
  Summary summary{};
  Difference difference{};  ///< to the baseline; empty for the baseline itself
  bool is_baseline = false;
  std::string verdict{};
  ArmCurve curve{};
};

struct StudyReport {
  std::string name, unit, metric, baseline, declaration;
  ComparisonRules rules{};
  std::vector<ArmReport> arms{};
  std::vector<std::vector<std::string>> tied{};  ///< sets of arms of which no two can be told from each other
  std::vector<std::string> notes{};     ///< failed, missing, stale and outlying runs; what was changed after the start
  std::vector<std::string> commands{};  ///< that reproduce every run
  std::vector<Table> tables{};          ///< tuning, the split of the variance, the trials of a search
};

/// The report of what is finished. Throws DataError where runs differ in held-out text or budget, so that they cannot
/// be compared.
StudyReport make_report(const Plan& plan);

/// A table that fits `columns`, with the tied sets and the notes.
std::string to_text(const StudyReport& report, int64_t columns);
std::string to_markdown(const StudyReport& report);
/// One line for each run and one for each arm.
std::string to_csv(const StudyReport& report);
/// A booktabs table.
std::string to_latex(const StudyReport& report);
nlohmann::json to_json(const StudyReport& report);

}  // namespace cloze
