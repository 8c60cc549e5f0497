#pragma once
// The run that another one learns from (the section distil).
#include <optional>

#include "run/run.h"

namespace cloze {

/// The teacher that a config names; empty without one. Throws CheckpointError for what is no run, and for one without a
/// checkpoint.
BaseRecord teacher_of(const RunConfig& config);

/// Lets a network learn from the teacher in a step folder. Throws ConfigError where it reads another tokenizer, shorter
/// rows or other labels, and for what the two cannot compare.
void give_teacher(const std::string& checkpoint, const RunConfig& config, const Tokenizer& tokenizer, Network& network);

/// The config of the teacher; nullopt without one.
std::optional<RunConfig> teachers_config(const RunConfig& config);

/// As give_teacher for a network whose costs are asked: the teacher's weights are drawn, and tokenizers not compared.
void give_teachers_shape(const RunConfig& config, Network& network);

}  // namespace cloze
