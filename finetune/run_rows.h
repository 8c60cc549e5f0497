#pragma once
// What a network with the head of a task says of rows.
#include <optional>

#include "finetune/labelled_rows.h"
#include "objectives/network.h"
#include "objectives/task_heads/layer_probes.h"

namespace cloze {

/// Puts a network into evaluation mode, or with dropout into that of training, and back into the one that it was in.
class InEvaluation {
 public:
  explicit InEvaluation(Network& network, bool with_dropout = false)
      : network_(network), trained_(network.is_training()) {
    network.train(with_dropout);
  }
  ~InEvaluation() { network_.train(trained_); }
  InEvaluation(const InEvaluation&) = delete;
  InEvaluation& operator=(const InEvaluation&) = delete;

 private:
  Network& network_;
  bool trained_;
};

/// The logits of a batch with gradients, if they are on: [B, L] of texts and candidates, [B, T, L] of tokens.
Tensor task_logits(Network& network, const Batch& batch);

/// The outputs of rows, in the order of the rows.
struct TaskOutputs {
  /// Of each row, fp32 on the CPU: of a text [L], its logits by label, or [1], its value on the scale of the task; of a
  /// candidate [1], its score; of tags [T, L]; of spans [T, 2], as the first and the last token of an answer.
  std::vector<Tensor> logits;
};

/// The tokens of a batch, with padding, unless somebody asks for others.
inline constexpr int64_t tokens_of_batch = 1024;

/// Runs rows without gradients, those of like length together, about `batch_tokens` tokens with padding at a time. The
/// network is in the mode that it was in before. Of probes, the one that stands for the run gives the outputs. Throws
/// ConfigError for a network without the head of a task, Interrupted after a signal to a program that saves.
///
/// dropout_key  with dropout, whose masks are a function of this key and the rows; none: without
TaskOutputs run_rows(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                     int64_t batch_tokens = tokens_of_batch, std::optional<uint64_t> dropout_key = {});

/// The loss of the target of a row: the sum over its tokens, and their number.
struct TargetLoss {
  double sum = 0;
  int64_t tokens = 0;
};

/// The losses of rows with targets, those without one 0 tokens, by a network that generates; as run_rows.
std::vector<TargetLoss> target_losses(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows);

/// What the probes of a network read of rows.
struct RowStates {
  Tensor states{};                ///< fp32 [L, S, D], on the network's device
  std::vector<int64_t> begins{};  ///< of the states of each row, in the order of the rows, and their end
};

/// Of which tokens of tags the states are: of those that have a label, as training reads them, or of all.
enum class ProbedTokens { labelled, all };

/// The states of rows in one pass over them, as run_rows runs them. They depend on all rows together, for these make
/// the batches, and on nothing else.
RowStates states_of_rows(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                         ProbedTokens tokens);

/// The bytes of these states.
double bytes_of_states(const Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                       ProbedTokens tokens);

/// States are kept up to so many bytes: a network that stays as it is need not read the same rows again. The limit is
/// no machine's, so that a run has the same bits everywhere.
inline constexpr double most_bytes_of_states = 4e9;

/// The outputs of rows by each probe of a network, in the order of its layers. `kept`: the states of all tokens of
/// these rows; null: they are computed, in one pass.
std::vector<TaskOutputs> run_probes(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                                    const RowStates* kept = nullptr);

}  // namespace cloze
