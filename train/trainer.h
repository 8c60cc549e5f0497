#pragma once
// The training loop: batches, loss, gradients, optimizer, evaluation, checkpoints.
#include <functional>

#include "evaluation/evaluate.h"
#include "run/run.h"

namespace cloze {

struct PretrainOptions {
  std::string run{};              ///< the run directory to create or resume
  bool resume = false;            ///< continue from the newest valid checkpoint
  bool overwrite_config = false;  ///< resume even if the config differs
  std::string branch_from{};      ///< run directory or step folder whose checkpoint a new run continues
  std::string command_line{};     ///< for provenance.json
};

struct PretrainReport {
  int64_t steps = 0, tokens = 0;
  double seconds = 0, tokens_per_second = 0, train_loss = 0;
  std::vector<HeldOut> held_out;  ///< of the last evaluation
  double held_out_loss = 0;       ///< weighted sum, by which the best step is chosen; NaN: not evaluated
  int64_t best_step = 0;
  double unigram_loss = 0;      ///< held-out loss of predicting each token by its frequency in the training text
  double unigram_accuracy = 0;  ///< of always predicting the most frequent token
  Ledger ledger;
  std::string stopped_by;  ///< `budget`, `patience`
};

/// Trains. Throws ConfigError (bad config, existing run directory), DataError, CheckpointError, Interrupted (exit 130,
/// after a checkpoint).
PretrainReport pretrain(const RunConfig& config, const PretrainOptions& options);

/// One optimizer step from batches to update, shared by `pretrain` and `benchmark`.
class Stepper {
 public:
  Stepper(const RunConfig& config, Network& network);
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
  };
  /// Forward and backward passes over `batches`, normalised by the predictions of all of them, then the update at
  /// `learning_rate`. No update if a loss or gradient is not finite; gradients are cleared either way. With mems, each
  /// micro-batch passes its mems to the micro-batch of the same index in the next step, if that continues its text; a
  /// step without update clears them.
  Result step(const std::vector<Batch>& batches, int64_t number, double learning_rate);
  std::vector<NamedParam> params() const;
  std::vector<std::pair<std::string, Tensor>> optimizer_state() const;
  void load_optimizer(const std::vector<std::pair<std::string, Tensor>>& state, int64_t updates);
  /// The mems after the last step: `memory.MICROBATCH.LAYER` [B, M, D]; empty before the first step and after a step
  /// without update.
  std::vector<std::pair<std::string, Tensor>> mems() const;
  /// Restores mems; an empty list clears them. Throws CheckpointError if their names or shapes do not match this
  /// config.
  void load_mems(const std::vector<std::pair<std::string, Tensor>>& saved);
  /// Bytes of a checkpoint: weights, moments, mems.
  int64_t checkpoint_bytes() const;
  /// Must be called after weights were changed from outside.
  void refresh();
  int64_t parameters() const;
  /// The precision of matrix multiplications, `fp32` or `bf16`, with the reason if it is not the configured one.
  std::string precision_description() const;
  Ledger ledger;  ///< the stepper fills forward, backward and optimizer

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The device of a config. Throws ConfigError if it is not available.
at::Device device_of(const std::string& name);

/// True if matrix multiplications with `precision: bf16` run in bf16 on this device: the processor has AVX512-BF16 or
/// AMX units, or it is a GPU.
bool has_fast_bf16(at::Device device);

}  // namespace cloze
