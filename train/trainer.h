#pragma once
// The loop: batches, loss, gradients, optimizer, evaluation, checkpoints.
#include <functional>

#include "evaluation/evaluate.h"
#include "run/run.h"

namespace cloze {

struct PretrainOptions {
  std::string run{};              ///< the run directory to make, or to go on with
  bool resume = false;            ///< go on from the newest valid checkpoint
  bool overwrite_config = false;  ///< resume although the config differs
  std::string command_line{};     ///< for provenance.json
};

struct PretrainReport {
  int64_t steps = 0, tokens = 0;
  double seconds = 0, tokens_per_second = 0, train_loss = 0;
  std::vector<HeldOut> held_out;  ///< of the last evaluation
  double held_out_loss = 0;       ///< weighted sum, what `best` means; NaN: nothing was measured
  int64_t best_step = 0;
  double unigram_loss = 0;      ///< held-out loss of predicting each token by its frequency in the training text
  double unigram_accuracy = 0;  ///< of always answering the most frequent token
  Ledger ledger;
  std::string stopped_by;  ///< `budget`, `patience`
};

/// Trains. Throws ConfigError (bad config, existing run directory), DataError, CheckpointError, Interrupted (exit 130,
/// after a checkpoint).
PretrainReport pretrain(const RunConfig& config, const PretrainOptions& options);

/// One optimizer step and what surrounds it: the piece that `pretrain` and `benchmark` share.
class Stepper {
 public:
  Stepper(const RunConfig& config, Network& network);
  ~Stepper();
  struct Result {
    std::vector<LossPart> parts;  ///< summed over the micro-batches; `sum` holds the summed loss
    double loss = 0;              ///< weighted means added up
    double grad_norm = 0;
    int64_t tokens = 0;
    bool finite = true;
    std::string trouble;  ///< the first thing that is not finite
  };
  /// Forward and backward over `batches`, normalised by the predictions of all of them, then the update at
  /// `learning_rate`. Without update when something is not finite; gradients are cleared either way. A model that
  /// carries a memory remembers each micro-batch for the one at its place in the next step, where that continues it; a
  /// step without update is not remembered.
  Result step(const std::vector<Batch>& batches, int64_t number, double learning_rate);
  std::vector<NamedParam> params() const;
  std::vector<std::pair<std::string, Tensor>> optimizer_state() const;
  void load_optimizer(const std::vector<std::pair<std::string, Tensor>>& state, int64_t updates);
  /// What rows remember of the steps before: `memory.MICROBATCH.LAYER` [B, M, D]; empty: nothing, as at the start of a
  /// text and behind a step without update.
  std::vector<std::pair<std::string, Tensor>> memories() const;
  /// Takes them back, or nothing. Throws CheckpointError for others than the rows of this config carry.
  void load_memories(const std::vector<std::pair<std::string, Tensor>>& saved);
  /// Size of a checkpoint: weights, moments, memories.
  int64_t checkpoint_bytes() const;
  /// Call after weights were changed from outside.
  void refresh();
  int64_t parameters() const;
  /// What products run in: `fp32`, `bf16`, with the reason where that is not what was asked for.
  std::string precision_words() const;
  Ledger ledger;  ///< forward, backward and optimizer are filled here

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The device of a config. Throws ConfigError when it is not there.
at::Device device_of(const std::string& name);

/// True when products of `precision: bf16` run in bf16 on this device: the processor has AVX512-BF16 or AMX units, or
/// it is a GPU.
bool has_fast_bf16(at::Device device);

}  // namespace cloze
