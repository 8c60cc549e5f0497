#pragma once
// Reports of runs that no study planned.
#include <string>
#include <vector>

#include "study/report/report.h"

namespace cloze {

/// What is asked of runs that were made by hand.
struct RunsQuestion {
  std::vector<std::string> folders;
  /// Held-out loss in short form, of fine-tuned runs a figure of their task; empty: the first that all runs have, and
  /// the figure that chose their best steps.
  std::string metric{};
  std::string baseline{};  ///< name of an arm, or one of its folders; empty: the arm of the first folder
  LossUnit unit = LossUnit::nats;
  double better_by = 0;  ///< the smallest difference that matters, in the unit; 0: none is stated
};

/// The report of run directories. Runs whose tokenizers and configs are equal but for the seed are an arm, named by the
/// keys in which arms differ where these are few, else by its folders; those that were changed on their way in the same
/// manner are one of their own. Runs that are not finished are listed.
/// Fine-tuned runs are compared by the figure of their task on its test part.
/// Throws ConfigError for an unknown metric or baseline, for a metric that the unit cannot measure and for runs that
/// are given twice or have one seed in one arm, DataError for folders without a run, damaged files and runs that cannot
/// be compared.
StudyReport report_of_runs(const RunsQuestion& question);

}  // namespace cloze
