#pragma once
// The loop: batches, loss, gradients, optimizer, evaluation, checkpoints.
#include <functional>

#include "objectives/collator.h"
#include "train/run.h"

namespace cloze {

struct PretrainOptions {
  std::string run;                    ///< the run directory to make, or to go on with
  bool resume = false;                ///< go on from the newest valid checkpoint
  bool overwrite_config = false;      ///< resume although the config differs
  std::string command_line;           ///< for provenance.json
};

/// Held-out loss of one objective.
struct HeldOut {
  std::string name;          ///< `mlm`, `nsp`
  double loss = 0;           ///< mean over predictions
  double accuracy = 0;
  int64_t count = 0;
};

/// Seconds of each part of the work, for the ledger.
struct Ledger {
  double data_wait = 0, forward = 0, backward = 0, optimizer = 0, evaluation = 0, checkpoint = 0, other = 0;
};

struct PretrainReport {
  int64_t steps = 0, tokens = 0;
  double seconds = 0, tokens_per_second = 0, train_loss = 0;
  std::vector<HeldOut> held_out;      ///< of the last evaluation
  double held_out_loss = 0;           ///< weighted sum, what `best` means
  int64_t best_step = 0;
  double unigram_loss = 0;            ///< held-out loss of predicting each token by its frequency in the training text
  double unigram_accuracy = 0;        ///< of always answering the most frequent token
  Ledger ledger;
  std::string stopped_by;             ///< `budget`, `patience`
};

/// Trains. Throws ConfigError (bad config, existing run directory), DataError, CheckpointError, Interrupted (exit 130,
/// after a checkpoint).
PretrainReport pretrain(const RunConfig& config, const PretrainOptions& options);

/// Held-out loss over the first `sequences` sequences of `collator`, in evaluation mode.
std::vector<HeldOut> evaluate(Network& network, const Collator& collator, int64_t sequences, int64_t batch_size, at::Device device);

/// Loss and accuracy of the unigram baseline on the same predictions that `evaluate` scores.
HeldOut unigram_baseline(const Collator& collator, int64_t sequences, int64_t batch_size);

/// True when products of `precision: bf16` run in bf16 on this device: the processor has AVX512-BF16 or AMX units, or it is a GPU.
bool has_fast_bf16(at::Device device);

}  // namespace cloze
