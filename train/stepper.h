#pragma once
// One optimizer step: forward and backward passes, then the update.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/communicator.h"
#include "run/run.h"

namespace cloze {

/// The random key of the passes over a micro-batch of a step, from the stream of dropout.
uint64_t pass_key(const Rng& rng, int64_t step, size_t micro);

/// The batches of a training step that one process computes.
struct OwnBatches {
  int64_t of_step = 1;  ///< micro-batches that all processes compute
  /// Of each own micro-batch: one batch, or several or none where its rows are those of a task.
  std::vector<std::vector<Batch>> micro_batches{};
};

/// One optimizer step from batches to update, shared by `pretrain` and `benchmark`. The processes of a run make each
/// step together, each its shares of it (train/shares.h): the weights have the same bits for any number of them.
class Stepper {
 public:
  /// `config` has no phases; `processes` outlives this.
  Stepper(const RunConfig& config, Network& network, Communicator& processes = alone());
  ~Stepper();
  struct Result {
    std::vector<LossPart> parts;  ///< summed over the micro-batches
    double loss = 0;              ///< weighted sum of the mean losses
    double grad_norm = 0;
    int64_t tokens = 0;
    int64_t predicted_tokens = 0;
    double flops = 0;
    bool finite = true;
    std::string nonfinite;  ///< the first loss or gradient that is not finite
    bool complete = true;   ///< false: a signal came between its micro-batches, and the step has left nothing
  };
  /// Forward and backward passes over the batches of a step, normalised by the predictions of all of them, then the
  /// update at `learning_rate`. No update if a loss or gradient is not finite; gradients are cleared either way. With
  /// mems, each micro-batch passes its mems to the micro-batch of the same index in the next step, if that continues
  /// its text; a step without update clears them. After a signal no further micro-batch of one process begins, and no
  /// step of several: gradients and mems are then those before the step, and nothing is updated.
  Result step(const OwnBatches& batches, int64_t number, double learning_rate);
  /// The same of a single process whose micro-batches are one batch each.
  Result step(const std::vector<Batch>& batches, int64_t number, double learning_rate);
  /// Brings all moments and mems to the first process, which alone saves them. Throws Error where the weights of
  /// another differ.
  void collect();
  /// Gives back the memory of the moments of others, when they are saved.
  void forget_collected();
  /// Gives the others what the first process has: the weights to all, and to each its moments and mems.
  void spread();
  /// The weights of the last step, which the next one continues from, without base.
  std::vector<NamedParam> params() const;
  /// With train.ema_decay: the moving average of the weights; else empty.
  std::vector<NamedParam> averages() const;
  /// The average starts again from the weights.
  void restart_average();
  /// Of the first process: of all from `collect` to `forget_collected`.
  StateDict optimizer_state() const;
  void load_optimizer(const StateDict& state, int64_t updates);
  /// The mems after the last step: `memory.MICROBATCH.LAYER` [B, M, D]; empty before the first step and after a step
  /// without update.
  StateDict mems() const;
  /// Restores mems; an empty list clears them. Throws CheckpointError if their names or shapes do not match this
  /// config.
  void load_mems(const StateDict& saved);
  /// Bytes of a checkpoint: weights, their average, moments, mems.
  int64_t checkpoint_bytes() const;
  /// Must be called after weights were changed from outside, base too.
  void refresh();
  /// Of the network, and those of them that are trained.
  int64_t parameters() const { return parameters_; }
  int64_t trained_parameters() const { return trained_parameters_; }
  /// The precision of matrix multiplications, `fp32` or `bf16`, with the reason if it is not the configured one.
  std::string precision_description() const;
  /// From now on the time_breakdown has the time of a GPU's work, for which each part of a step waits, not of its
  /// launches.
  void wait_for_parts();
  /// Gives back the memory of weights, gradients and moments: nothing but the ledger and the numbers of
  /// parameters may be asked for after this.
  void end();
  TimeBreakdown time_breakdown;  ///< the stepper fills forward, backward and optimizer

 private:
  friend class AveragedWeights;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int64_t parameters_ = 0, trained_parameters_ = 0;
};

/// The network has the average of its weights, if the run keeps one, while this lives.
class AveragedWeights {
 public:
  explicit AveragedWeights(Stepper& stepper) : stepper_(stepper) { exchange(); }
  ~AveragedWeights() { exchange(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  void exchange();
  Stepper& stepper_;
};

}  // namespace cloze
