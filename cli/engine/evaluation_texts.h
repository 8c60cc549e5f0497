#pragma once
// The held-out text that the runs of the verb `evaluate` are scored on: their own tokens, those of --tokens, or --text.
#include "cli/command.h"
#include "cli/engine/evaluated_run.h"

namespace cloze {

/// A temporary folder, removed when the verb ends.
struct ScratchFolder {
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path;
};

/// The files of --text and --target; pipes, which can be read only once, are copied to disk.
struct EvaluationTexts {
  std::vector<std::string> sources, targets;
};
EvaluationTexts readable_texts(const EvaluateCommand& command, const ScratchFolder& scratch);

/// Opens the text to score on, the same for every run. Throws ConfigError, CheckpointError, DataError.
void open_texts(std::vector<EvaluatedRun>& runs, const EvaluateCommand& command, const EvaluationTexts& texts,
                const ScratchFolder& scratch);

}  // namespace cloze
