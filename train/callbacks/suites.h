#pragma once
// The evaluation suites of a run while it trains.
#include <map>
#include <string>
#include <vector>

#include "evaluation/suites/suite.h"
#include "train/callbacks/checkpoints.h"
#include "train/training.h"

namespace cloze {

/// Evaluates evaluation.suites each evaluation.suite_every steps and at the end, and writes the scores of each as a
/// row of metrics.jsonl. A step that was evaluated before the run was resumed is evaluated again, for its summary,
/// without a row.
class SuiteEvaluation final : public Callback {
 public:
  /// Opens the suites. Throws DataError for a damaged file, ConfigError for a suite that the run cannot answer.
  SuiteEvaluation(const Training& training, Checkpoints& checkpoints);
  /// Throws DataError for a suite with a text that is longer than the network, which has been made.
  void check_lengths(const Training& training) const;

  void restore(Training&, const SavedStep& saved) override;
  void begin(Training& training) override;
  void note_due(const Training& training, bool at_end) override;
  void after_step(Training& training) override;
  void finish(Training& training) override;
  void save(TrainState& state) const override;
  void conclude(const Training&, PretrainReport& report) override { report.suites = results_; }

  bool is_due() const { return due_; }

 private:
  void evaluate(Training& training);

  Checkpoints& checkpoints_;
  std::vector<Suite> suites_{};
  std::vector<SuiteResult> results_{};
  bool due_ = false;
  int64_t evaluated_at_ = -1;  ///< step
};

/// The evaluation.suites of a run, opened. Throws DataError for a damaged file, ConfigError for a suite that the run
/// cannot answer.
std::vector<Suite> suites_of(const RunConfig& config);

/// What one evaluation of each of these suites costs a run, by its name: about a second of answers to a sample of its
/// items. Throws DataError for a suite with a text that is longer than the network.
std::map<std::string, SuiteCost> suite_costs(const LoadedRun& run, const std::vector<Suite>& suites);

/// The content of suites.json (run/records/suite_record.h).
std::string suites_file(int64_t step, const std::vector<SuiteResult>& results);

/// {SUITE: {METRIC: {value, low, high, count, ties}, ..., groups: {GROUP: {METRIC: value}}}}: what metrics.jsonl and
/// summary.json say of suites.
nlohmann::json to_json(const std::vector<SuiteResult>& results);

}  // namespace cloze
