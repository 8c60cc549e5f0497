#pragma once
// What `evaluate --suite` prints and writes.
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "cli/command.h"
#include "core/file.h"
#include "suites/suite_report.h"

namespace cloze {

/// The options of a command as suites have them.
SuiteOptions options_of(const SuitesCommand& command);

/// Shows how many texts of a suite are scored, a few times a second.
std::function<void(int64_t, int64_t)> suite_progress(const std::string& what);

/// The checkpoint of a run that is asked; of several runs a damaged step folder itself, which open_whole refuses.
std::string asked_checkpoint(const EvaluateCommand& command, const std::string& run);
/// Opens a checkpoint. Throws CheckpointError for a step folder whose files are not those of its manifest.
LoadedRun open_whole(const std::string& checkpoint);

/// The answers of a checkpoint of a run before there are any, with the progress that its state has.
SuiteAnswers blank_answers(const std::string& name, const LoadedRun& run);

/// Those of a checkpoint that cannot be read: `fault`, and the step in the name of its folder.
SuiteAnswers unread_answers(const std::string& name, const std::string& checkpoint, const std::string& fault);

/// The folder of --out while it is filled, if there is one, and standard output.
class SuiteOutput {
 public:
  /// Makes no folder for an empty name.
  explicit SuiteOutput(const std::string& folder);
  /// Adds the predictions of a result.
  void add(const SuiteAnswers& answers, const SuiteResult& result);
  /// Completes the folder, and prints the table or, with --json, one line.
  void finish(const EvaluateCommand& command, std::span<const SuiteAnswers> answers);

 private:
  void check() const;
  void commit(std::span<const SuiteAnswers> answers, const Table& table, std::span<const std::string> notes);
  std::optional<StagedFolder> staged_;
  std::ofstream predictions_;
};

/// Whether a command's --suite is BabyLM's evaluation data.
bool names_babylm(const SuitesCommand& command);
/// `evaluate --suite babylm`: answers its tasks, writes the files of the published program, and prints the table.
int evaluate_babylm(const EvaluateCommand& command);

}  // namespace cloze
