#pragma once
// The section `train` of a run, with its budget, phases and seeds.
#include "core/config/config_rule.h"
#include "objectives/step_rows.h"

namespace cloze {

/// Which FLOPs of a step are counted.
enum class FlopsCount { computed, published };
constexpr auto choices(FlopsCount) {
  using enum FlopsCount;
  return std::array{
      Choice{computed, "computed", "those of Cloze, whose last block is for the tokens alone whose states are read"},
      Choice{published, "published", "those of the published networks, whose last block is for every token"}};
}

/// The budget: a run ends when the first of these limits is reached. The schedule spans the given one.
struct BudgetConfig {
  int64_t steps = 0;
  int64_t tokens = 0;
  int64_t predicted_tokens = 0;
  int64_t words = 0;
  double epochs = 0;
  double flops = 0;
  double minutes = 0;
  FlopsCount count = FlopsCount::computed;
  bool limited() const {
    return steps > 0 || tokens > 0 || predicted_tokens > 0 || words > 0 || epochs > 0 || flops > 0 || minutes > 0;
  }
  bool operator==(const BudgetConfig&) const = default;
};

template <class V>
void describe(V& v, BudgetConfig& c) {
  v("steps", c.steps, "optimizer steps; 0 = not limited", at_least(0));
  v("tokens", c.tokens, "tokens read, without padding; 0 = not limited", at_least(0));
  v("predicted_tokens", c.predicted_tokens, "tokens that losses predict; 0 = not limited", at_least(0));
  v("words", c.words,
    "words of the raw text, separated by white space and counted each time they are seen; 0 = not limited",
    at_least(0));
  v("epochs", c.epochs, "passes over the training text; 0 = not limited", in_range(0, 1e9));
  v("flops", c.flops, "training FLOPs, as `cloze describe` counts them; 0 = not limited", in_range(0, 1e40));
  v("minutes", c.minutes, "minutes of training, without evaluation and saving; 0 = not limited", in_range(0, 1e9));
  v("count", c.count, "which FLOPs a run counts, for its budget and in what it logs");
}

enum class Precision { fp32, bf16 };
constexpr auto choices(Precision) {
  return std::array{Choice{Precision::fp32, "fp32"},
                    Choice{Precision::bf16, "bf16",
                           "bf16 matrix multiplications and activations with fp32 master weights if the processor has "
                           "bf16 units, else fp32"}};
}

enum class DropoutMasks { fast, exact };
constexpr auto choices(DropoutMasks) {
  return std::array{Choice{DropoutMasks::fast, "fast",
                           "on a GPU, those of attention are drawn by LibTorch's kernel, which keeps no scores"},
                    Choice{DropoutMasks::exact, "exact", "all are the bits that a CPU draws"}};
}

/// A phase of training with steps of another shape, which the budget spans as it spans those before. Sources: Devlin et
/// al. 2019, appendix A.2 (rows of 512 tokens in the last tenth of the steps); ltgoslo/gpt-bert,
/// pretraining/train_10m.py, load_datasets.
struct PhaseConfig {
  double from = 0;
  int64_t max_seq_length = 0;
  int64_t batch_size = 0;
  int64_t accumulation = 0;
};

template <class V>
void describe(V& v, PhaseConfig& c) {
  v("from", c.from, "share of the budget after which the phase begins", in_range(0, 1, open_end));
  v("max_seq_length", c.max_seq_length, "tokens in a sequence, special ones included; 0 = data.max_seq_length",
    in_range(0, 1 << 28));
  v("batch_size", c.batch_size, "sequences in a forward pass; 0 = train.batch_size", in_range(0, 1 << 20));
  v("accumulation", c.accumulation, "forward passes in an optimizer step; 0 = train.accumulation",
    in_range(0, 1 << 20));
}

/// The reaction to a loss or gradient that is not finite.
enum class OnNonFinite { stop, skip };
constexpr auto choices(OnNonFinite) {
  return std::array{Choice{OnNonFinite::stop, "stop", "the run ends without taking the step"},
                    Choice{OnNonFinite::skip, "skip", "the step is skipped"}};
}

/// The reaction to losses that say that a run has diverged, though they are finite.
enum class OnDivergence { warn, stop };
constexpr auto choices(OnDivergence) {
  return std::array{Choice{OnDivergence::warn, "warn", "a warning, and the run goes on"},
                    Choice{OnDivergence::stop, "stop", "the run ends with exit code 3"}};
}

/// The random streams of a run, each of which can have a seed of its own.
enum class RandomStream { init, order, masking, dropout };
constexpr auto choices(RandomStream) {
  using enum RandomStream;
  return std::array{Choice{init, "init", "initial weights"},
                    Choice{order, "order", "the order of the text, how it is cut and paired"},
                    Choice{masking, "masking", "which tokens are masked or corrupted, and how"},
                    Choice{dropout, "dropout", "dropout, the replacements of a generator and redrawn features"}};
}

/// Seeds of single random streams; -1: train.seed.
struct SeedsConfig {
  int64_t init = -1;
  int64_t order = -1;
  int64_t masking = -1;
  int64_t dropout = -1;
  int64_t& of(RandomStream stream) {
    switch (stream) {
      case RandomStream::init:
        return init;
      case RandomStream::order:
        return order;
      case RandomStream::masking:
        return masking;
      case RandomStream::dropout:
        return dropout;
    }
    return init;
  }
};

template <class V>
void describe(V& v, SeedsConfig& c) {
  v("init", c.init, "seed of initial weights; -1 = train.seed", at_least(-1));
  v("order", c.order, "seed of the order of the text, of how it is cut and paired; -1 = train.seed", at_least(-1));
  v("masking", c.masking, "seed of which tokens are masked or corrupted, and how; -1 = train.seed", at_least(-1));
  v("dropout", c.dropout,
    "seed of dropout, of the replacements of a generator and of redrawn features; -1 = train.seed", at_least(-1));
}

/// The training loop.
struct TrainConfig {
  int64_t batch_size = 32;
  int64_t accumulation = 1;
  int64_t parts = 1;
  bool deterministic = true;
  Precision precision = Precision::bf16;
  bool gradient_checkpointing = false;
  std::string device = "cpu";
  DropoutMasks dropout_masks = DropoutMasks::fast;
  int64_t threads = 0;
  int64_t workers = 1;
  int64_t seed = 1;
  SeedsConfig seeds{};
  OnNonFinite on_nonfinite = OnNonFinite::stop;
  OnDivergence on_divergence = OnDivergence::warn;
  double ema_decay = 0;
  std::vector<PhaseConfig> phases{};
  BudgetConfig budget{};
};

template <class V>
void describe(V& v, TrainConfig& c) {
  v("batch_size", c.batch_size, "sequences in a forward pass", in_range(1, 1 << 20));
  v("accumulation", c.accumulation,
    "forward passes in an optimizer step (gradient accumulation); the sequences of a step are distributed over them by "
    "length, and the loss is normalised over all of them",
    in_range(1, 1 << 20));
  v("parts", c.parts,
    "parts of an optimizer step, of which each process of a run has whole ones; the run has the same bits on any "
    "number of processes up to it, and where it is more than accumulation, forward passes are divided",
    in_range(1, 1 << 12));
  v("deterministic", c.deterministic,
    "the parts of a step are added in the same order on any number of processes; false: each process adds its own as "
    "they come, and processors of several kinds train together");
  v("precision", c.precision, "data type of matrix multiplications and activations");
  v("gradient_checkpointing", c.gradient_checkpointing,
    "each block is recomputed in the backward pass, which saves memory");
  v("device", c.device, "cpu, cuda or cuda:N; GPUs are experimental: docs/gpu.md says what was checked");
  v("dropout_masks", c.dropout_masks, "the masks of dropout on a GPU; a CPU draws exact ones");
  v("threads", c.threads, "compute threads; 0 = one per core", in_range(0, 1 << 12));
  v("workers", c.workers, "threads that prepare batches in the background", in_range(1, 64));
  v("seed", c.seed, "seed of every random stream", at_least(0));
  v("seeds", c.seeds, "seeds of single random streams, which a comparison varies one at a time");
  v("on_nonfinite", c.on_nonfinite, "reaction to a loss or gradient that is not finite");
  v("on_divergence", c.on_divergence,
    "reaction to a loss of more than twice ln(vocab_size), that of guessing evenly; of a task to a training loss of "
    "more than ten times that of guessing evenly, and 5 more");
  v("ema_decay", c.ema_decay,
    "decay of an exponential moving average of the weights, (1 + step) / (10 + step) as long as that is smaller; "
    "evaluation, checkpoints and exports have the average; 0.999 in GPT-BERT; 0 = the weights themselves",
    in_range(0, 1, open_end));
  v("phases", c.phases,
    "phases after the first: a list of `from`, the share of the budget at which one begins, and of its max_seq_length, "
    "batch_size and accumulation; [] = all steps have those of data and train");
  v("budget", c.budget, "when the run ends; at least one limit is needed");
}

/// The generator of a random stream.
inline Rng rng_of(TrainConfig train, RandomStream stream) {
  const int64_t own = train.seeds.of(stream);
  return Rng(static_cast<uint64_t>(own >= 0 ? own : train.seed));
}

/// Those of its rows.
inline RowStreams row_streams(const TrainConfig& train) {
  return {rng_of(train, RandomStream::order), rng_of(train, RandomStream::masking)};
}

}  // namespace cloze
