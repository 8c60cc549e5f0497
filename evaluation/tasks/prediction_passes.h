#pragma once
// What is predicted for items by one network or by several, in one pass or, with dropout, in many.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/tasks/predict.h"
#include "evaluation/tasks/task_runs.h"
#include "tasks/scores/uncertainty.h"

namespace cloze {

class PredictionPasses {
 public:
  /// Opens the runs of a request. Throws as predict().
  explicit PredictionPasses(const PredictRequest& request);

  /// Of the first run.
  const JudgedTask& task() const { return members_.front().opened.task; }
  /// Its prepared task; empty: its head was trained elsewhere.
  const std::string& folder() const { return members_.front().opened.folder; }

  /// The prediction of one pass, or the mean over all. Throws DataError for what is not finite.
  std::vector<MeanPrediction> predict(const std::vector<TaskItem>& items);
  /// What a line of JSON says of it besides: `entropy`, `mutual_information`, `deviation`, `set`.
  nlohmann::ordered_json json_of(const MeanPrediction& prediction, const TaskItem& item);
  /// How rows were cut, and that all passes were alike.
  std::vector<std::string> notes() const;
  /// How often sets of labels held what is right; empty without sets or without labels.
  std::string said_of_sets() const;

 private:
  struct Member {
    TaskRun opened{};
    TaskRowMaker maker;
    RowCounts counts{};
  };
  void add_member(const std::string& path, const std::string& task);
  /// The temperature of a mean, and the sets.
  void learn_from_valid(bool is_mean);
  std::vector<std::vector<ItemPrediction>> passes_of(Member& member, const std::vector<TaskItem>& items);

  const PredictRequest& request_;
  std::vector<Member> members_{};
  double temperature_ = 1;  ///< of the mean
  std::optional<ConformalSets> sets_{};
  uint64_t windows_ = 0;  ///< that were predicted
  bool are_alike_ = true;
  int64_t judged_ = 0, held_ = 0, labels_in_sets_ = 0;
};

}  // namespace cloze
