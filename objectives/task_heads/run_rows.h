#pragma once
// What a network with the head of a task says of rows.
#include "objectives/network.h"
#include "objectives/task_heads/labelled_rows.h"

namespace cloze {

/// The outputs of rows, in the order of the rows.
struct TaskOutputs {
  /// Of each row, fp32 on the CPU: of a text [L], its logits by label, or [1], its value on the scale of the task; of a
  /// candidate [1], its score; of tags [T, L]; of spans [T, 2], as the first and the last token of an answer.
  std::vector<Tensor> logits;
};

/// Runs rows without dropout and without gradients, those of like length together, about `batch_tokens` tokens with
/// padding at a time. The network is in the mode that it was in before. Throws ConfigError for a network without the
/// head of a task, Interrupted after a signal to a program that saves.
TaskOutputs run_rows(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                     int64_t batch_tokens = 8192);

}  // namespace cloze
