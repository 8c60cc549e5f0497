#pragma once
// What is reached on the test parts of tasks without a network. That of words is the result of an optimisation, and is
// kept:
//
//   FOLDER/floors.json   {"floors": {"FINGERPRINT FIGURE VERSION": value or null}, "xxh3"}
//
// FOLDER is that of the fine-tunings, and the fingerprint that of the prepared rows with their items.
#include <map>
#include <optional>
#include <string>

#include "study/plan/plan.h"
#include "tasks/figures/floors.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

/// What the words of a task's training part tell of its test part by a figure; none where its kind has no such floor.
/// Throws DataError as read_prepared_part.
///
/// folder  of the prepared rows
std::optional<NamedFloor> floor_of_words(const std::string& folder, const std::string& figure);

/// The floors of the tasks of a plan of fine-tunings.
class TaskFloors {
 public:
  explicit TaskFloors(const Plan& tasks);
  /// That of a task by a figure; none without a finished fine-tuning, and where its kind has no such floor. Throws
  /// DataError as read_prepared_part.
  std::optional<NamedFloor> find(const std::string& task, const std::string& figure, Floor floor);

 private:
  /// The rows of a finished fine-tuning.
  struct Rows {
    std::string folder{};
    PreparedTask prepared{};
  };
  const std::optional<Rows>& rows_of(const std::string& task);
  std::optional<double> of_words(const Rows& rows, const std::string& figure);
  void keep() const;

  const Plan& tasks_;
  std::string path_;
  std::map<std::string, std::optional<Rows>> rows_{};        ///< by task
  std::map<std::string, std::optional<double>> of_words_{};  ///< by what they are of
};

}  // namespace cloze
