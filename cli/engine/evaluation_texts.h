#pragma once
// The held-out text that the runs of the verb `evaluate` are scored on: their own tokens, those of --tokens, or --text.
#include "cli/command.h"
#include "cli/engine/evaluated_run.h"
#include "core/scratch_folder.h"

namespace cloze {

/// The files of --text and --target; pipes, which can be read only once, are copied to disk.
struct EvaluationTexts {
  std::vector<std::string> sources, targets;
};
EvaluationTexts readable_texts(const EvaluateCommand& command, const ScratchFolder& scratch);

/// Opens the text to score on, the same for every run. Throws ConfigError, CheckpointError, DataError.
void open_texts(std::vector<EvaluatedRun>& runs, const EvaluateCommand& command, const EvaluationTexts& texts,
                const ScratchFolder& scratch);

}  // namespace cloze
