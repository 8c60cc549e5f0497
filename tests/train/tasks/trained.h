#pragma once
#include "train/tasks/finetune.h"

/// Trains a run by the parts that it has, of a task or of a text.
inline cloze::PretrainReport finetune(const cloze::RunConfig& config, const cloze::PretrainOptions& options) {
  return cloze::pretrain(config, options, cloze::parts_of_run(config));
}
