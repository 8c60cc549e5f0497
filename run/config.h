#pragma once
// The config of a whole run, with a field for each YAML key.
#include "data/config.h"
#include "models/families/model_config.h"
#include "objectives/config.h"
#include "objectives/row_streams.h"
#include "run/babylm.h"

namespace cloze {

/// The update of an optimizer step.
enum class OptimizerKind { adamw, lamb, adafactor };
constexpr auto choices(OptimizerKind) {
  return std::array{
      Choice{OptimizerKind::adamw, "adamw"},
      Choice{OptimizerKind::lamb, "lamb", "the step of each tensor is scaled to the norm of the tensor"},
      Choice{OptimizerKind::adafactor, "adafactor",
             "factored second moments (rows and columns), no first moment, steps in proportion to the weights"}};
}

/// The optimizer. Sources: AdamW: Loshchilov and Hutter 2019, algorithm 2 (arXiv 1711.05101); LAMB:
/// You et al. 2020, algorithm 2 (arXiv 1904.00962), norms of whole tensors, not clamped, as in
/// google-research/albert; Adafactor: Shazeer and Stern 2018, algorithms 4 and 5 (arXiv 1804.04235), without a first
/// moment, as in Mesh TensorFlow's T5. Differs: weight decay of Adafactor is decoupled; a tensor of three axes is
/// treated as a matrix with its last axis as columns (there the two longest axes are factored).
struct OptimizerConfig {
  std::string like;
  OptimizerKind kind = OptimizerKind::adamw;
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;
  bool epsilon_hat = false;
  bool decay_norm_and_bias = false;
  bool decay_score_biases = false;
  bool bias_correction = true;
  double max_grad_norm = 1.0;
};

/// In what published updates of Adam differ.
inline void set_adam(OptimizerConfig& o, bool bias_correction, double epsilon) {
  o.bias_correction = bias_correction;
  o.epsilon = epsilon;
}

/// Source: fairseq, optim/adam.py and examples/roberta/config/pretraining/base.yaml.
inline void fairseq_roberta_optimizer(OptimizerConfig& o) {
  o.bias_correction = o.epsilon_hat = o.decay_norm_and_bias = true;
  o.epsilon = 1e-6;
  o.beta2 = 0.98;
  o.max_grad_norm = 0;
}

/// Source: facebookresearch/SpanBERT, pretraining/README.md and pretraining/fairseq/optim/adam.py.
inline void spanbert_optimizer(OptimizerConfig& o) {
  o.bias_correction = o.epsilon_hat = o.decay_norm_and_bias = true;
  o.epsilon = 1e-8;
  o.max_grad_norm = 1;
}

/// Source: Yang et al. 2019, appendix A.4.1; zihangdai/xlnet, model_utils.py, AdamWeightDecayOptimizer.
inline void xlnet_optimizer(OptimizerConfig& o) {
  set_adam(o, false, 1e-6);
  o.decay_score_biases = true;
}

inline void albert_optimizer(OptimizerConfig& o) {
  set_adam(o, false, 1e-6);
  o.kind = OptimizerKind::lamb;
  o.learning_rate = 1.76e-3;
}

inline void t5_optimizer(OptimizerConfig& o) {
  o.kind = OptimizerKind::adafactor;
  o.learning_rate = 1e-2;
  o.weight_decay = 0;
  o.max_grad_norm = 0;
}

template <class V>
void describe(V& v, OptimizerConfig& c) {
  v.like(c, "the details of the update follow that code",
         {{"google-bert", [](OptimizerConfig& o) { set_adam(o, false, 1e-6); }},
          {"huggingface", [](OptimizerConfig& o) { set_adam(o, true, 1e-8); }},
          {"fairseq-roberta", fairseq_roberta_optimizer},
          {"spanbert", spanbert_optimizer},
          {"electra", [](OptimizerConfig& o) { set_adam(o, false, 1e-6); }},
          {"xlnet", xlnet_optimizer},
          {"megatron", [](OptimizerConfig& o) { set_adam(o, true, 1e-8); }},
          {"albert", albert_optimizer},
          {"t5", t5_optimizer}});
  v("kind", c.kind, "the update rule");
  v("learning_rate", c.learning_rate, "peak learning rate", in_range(0, 1e3));
  v("beta1", c.beta1, "decay of the first moment (adamw, lamb)", in_range(0, 1, open_end));
  v("beta2", c.beta2, "decay of the second moment (adamw, lamb; adafactor: 1 - t^-0.8)", in_range(0, 1, open_end));
  v("epsilon", c.epsilon, "added to the square root of the second moment (adamw, lamb)", in_range(0, 1));
  v("epsilon_hat", c.epsilon_hat,
    "epsilon is added before the bias correction of the second moment and is corrected with it, as in fairseq and "
    "TensorFlow "
    "(Kingma and Ba 2015, end of section 2)");
  v("weight_decay", c.weight_decay, "decoupled decay, times the learning rate", in_range(0, 10));
  v("decay_norm_and_bias", c.decay_norm_and_bias,
    "weight decay applies to biases and norms too (lamb: so does the trust ratio)");
  v("decay_score_biases", c.decay_score_biases,
    "weight decay applies to biases of attention scores (XLNet's r_w_bias, r_r_bias and r_s_bias, T5's "
    "relative_attention_bias) although it does not apply to other biases");
  v("bias_correction", c.bias_correction, "moments are divided by 1 - beta^t (adamw, lamb)");
  v("max_grad_norm", c.max_grad_norm, "global gradient norm above which gradients are scaled down; 0 = never",
    in_range(0, 1e9));
}

enum class ScheduleShape { linear, cosine, constant, inverse_sqrt, wsd, wsd_s, one_cycle, transformer };
constexpr auto choices(ScheduleShape) {
  using enum ScheduleShape;
  return std::array{
      Choice{linear, "linear", "a straight line from the peak to end_factor"},
      Choice{cosine, "cosine", "half a cosine from the peak to end_factor (Loshchilov and Hutter 2017)"},
      Choice{constant, "constant", "the peak to the end"},
      Choice{inverse_sqrt, "inverse_sqrt", "the peak times sqrt(warmup / step)"},
      Choice{wsd, "wsd", "the peak until the last `decay` of the budget, then decay_form (Hu et al. 2024)"},
      Choice{
          wsd_s, "wsd_s",
          "as wsd for each of `decays` budgets, every one twice the one before; between them training goes on at the "
          "peak from the decayed weights (Wen et al. 2024)"},
      Choice{one_cycle, "one_cycle",
             "half a cosine from start_factor up to the peak over the warm-up, half a cosine down to end_factor (Smith "
             "and Topin 2018, as PyTorch's OneCycleLR)"},
      Choice{transformer, "transformer",
             "the peak times min(step / warmup, sqrt(warmup / step)), steps counted from 1 (Vaswani et al. 2017)"}};
}

/// The form of a decay (wsd, wsd_s).
enum class DecayForm { linear, cosine, one_minus_sqrt };
constexpr auto choices(DecayForm) {
  using enum DecayForm;
  return std::array{Choice{linear, "linear"}, Choice{cosine, "cosine"},
                    Choice{one_minus_sqrt, "1-sqrt", "1 - sqrt(share of the decay that is over), Hagele et al. 2024"}};
}

/// The learning rate as a function of progress.
struct ScheduleConfig {
  std::string like;
  ScheduleShape shape = ScheduleShape::linear;
  double warmup = 0.1;
  double start_factor = 0.04;
  double end_factor = 0.0;
  double decay = 0.2;
  DecayForm decay_form = DecayForm::one_minus_sqrt;
  int64_t decays = 3;
  bool decay_from_start = false;
  bool decay_in_warmup = false;
};

/// The share of the budget before which the rate of a step is the same for every budget, given a warm-up in steps: runs
/// of several budgets are one run so far. 0: the rate depends on the budget from the start.
double stable_share(const ScheduleConfig& schedule);

inline void decays_linearly(ScheduleConfig& s, bool from_start) {
  s.shape = ScheduleShape::linear;
  s.decay_from_start = from_start;
  s.decay_in_warmup = false;
  s.end_factor = 0;
}

template <class V>
void describe(V& v, ScheduleConfig& c) {
  v.like(c, "the start and the end of the decay follow that code",
         {{"google-bert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"albert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"spanbert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"electra", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true), s.decay_in_warmup = true; }},
          {"huggingface", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"fairseq-roberta", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"megatron", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"xlnet", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false), s.end_factor = 1e-3; }},
          {"t5", [](ScheduleConfig& s) { s.shape = ScheduleShape::inverse_sqrt; }}});
  v("shape", c.shape, "the rate after the warm-up");
  v("warmup", c.warmup,
    "length of the linear warm-up from 0: below 1 a fraction of the budget, from 1 on a number of steps",
    in_range(0, 1e12));
  v("start_factor", c.start_factor, "first learning rate as a fraction of the peak (one_cycle)", in_range(0, 1));
  v("end_factor", c.end_factor, "final learning rate as a fraction of the peak (linear, cosine, wsd, wsd_s, one_cycle)",
    in_range(0, 1));
  v("decay", c.decay, "length of a decay as a fraction of the budget at which it ends (wsd, wsd_s)", in_range(0, 1));
  v("decay_form", c.decay_form, "form of a decay (wsd, wsd_s)");
  v("decays", c.decays, "number of decays (wsd_s): 3 end at a quarter, a half and all of the budget", in_range(1, 32));
  v("decay_from_start", c.decay_from_start, "linear decay counts from step 0 instead of the end of the warm-up");
  v("decay_in_warmup", c.decay_in_warmup,
    "with decay_from_start: the warm-up is multiplied by the decay, so that the peak is never reached, as in ELECTRA's "
    "code");
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
}

enum class Precision { fp32, bf16 };
constexpr auto choices(Precision) {
  return std::array{Choice{Precision::fp32, "fp32"},
                    Choice{Precision::bf16, "bf16",
                           "bf16 matrix multiplications and activations with fp32 master weights if the processor has "
                           "bf16 units, else fp32"}};
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
  Precision precision = Precision::bf16;
  bool gradient_checkpointing = false;
  std::string device = "cpu";
  int64_t threads = 0;
  int64_t workers = 1;
  int64_t seed = 1;
  SeedsConfig seeds{};
  OnNonFinite on_nonfinite = OnNonFinite::stop;
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
  v("precision", c.precision, "data type of matrix multiplications and activations");
  v("gradient_checkpointing", c.gradient_checkpointing,
    "each block is recomputed in the backward pass, which saves memory");
  v("device", c.device, "cpu, cuda or cuda:N; GPUs are experimental: the tests have not run on one yet");
  v("threads", c.threads, "compute threads; 0 = one per core", in_range(0, 1 << 12));
  v("workers", c.workers, "threads that prepare batches in the background", in_range(1, 64));
  v("seed", c.seed, "seed of every random stream", at_least(0));
  v("seeds", c.seeds, "seeds of single random streams, which a comparison varies one at a time");
  v("on_nonfinite", c.on_nonfinite, "reaction to a loss or gradient that is not finite");
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

/// Held-out evaluation, independent of the training options, so that runs can be compared by it.
struct EvaluationConfig {
  int64_t every = 500;
  int64_t points = 0;
  int64_t sequences = 1024;
  int64_t patience = 0;
  int64_t seed = 1;
  int64_t max_seq_length = 0;
  RowPacking packing = RowPacking::document;
  Objectives objectives{};
  std::vector<std::string> suites{};
  int64_t suite_every = 0;
  int64_t suite_items = 0;
};

template <class V>
void describe(V& v, EvaluationConfig& c) {
  v("every", c.every, "steps between evaluations; 0 = only at the end", at_least(0));
  v("points", c.points,
    "evaluations of a run at equal shares of its budget, instead of every so many steps; 0 = as `every` says",
    in_range(0, 1000));
  v("sequences", c.sequences, "held-out sequences in an evaluation", in_range(1, 1e9));
  v("patience", c.patience, "early stopping after this many evaluations without a better loss; 0 = never", at_least(0));
  v.standalone();
  v("seed", c.seed, "seed of the held-out sequences and their masks, independent of train.seed", at_least(0));
  v("max_seq_length", c.max_seq_length, "tokens in a held-out sequence; 0 = data.max_seq_length", in_range(0, 1 << 28));
  v("packing", c.packing,
    "packing of held-out sequences, independent of data.packing; nsp, sop and pairs make their own rows",
    one_of({"document", "full", "doc_sentences", "full_sentences"}));
  v("objectives", c.objectives,
    "objectives to evaluate, each on its own rows; [] = the kinds of `objectives`, each in its standard form: the "
    "defaults of its kind (mlm: 15 % single tokens), except that span_corruption keeps its `corruption` and rtd its "
    "networks; a hybrid of mntp is evaluated as mntp and clm");
  v("suites", c.suites,
    "evaluation suites that the run answers: files, folders, or names in the folder CLOZE_SUITES; [] = none");
  v("suite_every", c.suite_every, "steps between answers to the suites, besides those at the end; 0 = only at the end",
    at_least(0));
  v("suite_items", c.suite_items, "items of each paradigm of minimal pairs and completions that are asked; 0 = all", at_least(0));
}

/// Checkpoints and logging.
struct CheckpointConfig {
  int64_t every = 1000;
  std::vector<int64_t> at_words{};
  int64_t keep = 2;
  int64_t log_every = 10;
};

template <class V>
void describe(V& v, CheckpointConfig& c) {
  v("every", c.every, "steps between checkpoints; 0 = only at the end", at_least(0));
  v("at_words", c.at_words,
    "numbers of words, counted as in train.budget.words, after each of which a checkpoint is kept for good: that of "
    "the "
    "first step at or past it; babylm = 1M to 9M, 10M to 90M and 100M to 1000M, as the BabyLM Challenge has them",
    or_none({.low = 1, .named = {{"babylm", babylm::checkpoint_words()}}}));
  v("keep", c.keep, "newest checkpoints to keep, besides the best one and those of at_words", at_least(1));
  v("log_every", c.log_every,
    "steps between lines of the log and of metrics.jsonl; each line gives means over those steps", at_least(1));
}

/// Initial weights.
struct InitConfig {
  std::string from;
  bool probe = false;
};

template <class V>
void describe(V& v, InitConfig& c) {
  v("from", c.from,
    "run directory, or step folder of one, whose weights initialize a new run where they fit; empty = random "
    "initialization");
  v("probe", c.probe,
    "the backbone of init.from stays as it is, without dropout, and new heads (and the pooler) are trained on it");
}

/// The config of a run.
struct RunConfig {
  std::string like;
  ModelConfig model{};
  InitConfig init{};
  Objectives objectives{MlmConfig{}, NspConfig{}};
  DataConfig data{};
  OptimizerConfig optimizer{};
  ScheduleConfig schedule{};
  TrainConfig train{};
  EvaluationConfig evaluation{};
  CheckpointConfig checkpoint{};
};

template <class V>
void describe(V& v, RunConfig& c) {
  v.like(c, "preset for every section that has a preset of this name and no `like` of its own",
         {{"google-bert", [](RunConfig&) {}},
          {"huggingface", [](RunConfig&) {}},
          {"fairseq-roberta", [](RunConfig&) {}},
          {"albert", [](RunConfig&) {}},
          {"spanbert", [](RunConfig&) {}},
          {"electra", [](RunConfig&) {}},
          {"megatron", [](RunConfig&) {}},
          {"t5", [](RunConfig&) {}},
          {"bart", [](RunConfig&) {}},
          {"pegasus", [](RunConfig&) {}},
          {"xlnet", [](RunConfig&) {}}});
  v("model", c.model, "the network");
  v("init", c.init, "initial weights from another run");
  v("objectives", c.objectives, "losses, summed in every step");
  v("data", c.data, "prepared tokens and how they are packed into sequences");
  v("optimizer", c.optimizer, "AdamW, LAMB or Adafactor");
  v("schedule", c.schedule, "learning rate schedule");
  v("train", c.train, "the training loop");
  v("evaluation", c.evaluation, "held-out evaluation");
  v("checkpoint", c.checkpoint, "checkpoints and logging");
}

/// What follows "unknown key" for a key that a run does not have but another program or section has; empty for others.
/// decode() asks it (core/config.h).
std::string meaning_of_unknown(const RunConfig& config, const std::string& key);

/// The config as it is in a phase: 0 is the first, k > 0 the one of train.phases[k - 1]. It has no phases itself.
RunConfig config_of_phase(const RunConfig& config, int64_t phase);

/// True if the same losses are active in the optimizer steps a + 1 and b + 1.
bool same_losses(const RunConfig& config, int64_t a, int64_t b);

/// Checks every rule that involves several fields; throws one ConfigError that lists all violations. Called after
/// decoding, before anything is built.
void validate(const RunConfig& config);

// Reading and writing a whole run is compiled once, in run/config_io.cpp.
extern template RunConfig decode<RunConfig>(const ConfigTree&);
extern template std::vector<config_detail::Entry> entries<RunConfig>(RunConfig);
extern template std::string to_yaml<RunConfig>(const RunConfig&);
extern template std::string document<RunConfig>(const RunConfig&);
extern template std::string explain<RunConfig>(const ConfigTree&, const std::string&);
extern template std::vector<std::string> deviations<RunConfig>(RunConfig);

}  // namespace cloze
