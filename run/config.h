#pragma once
// A whole run, as it stands in YAML.
#include "data/config.h"
#include "models/families/model_config.h"
#include "objectives/config.h"

namespace cloze {

/// The update of an optimizer step.
enum class OptimizerKind { adamw, lamb, adafactor };
constexpr auto choices(OptimizerKind) {
  return std::array{
      Choice{OptimizerKind::adamw, "adamw"},
      Choice{OptimizerKind::lamb, "lamb", "the step of each tensor is as long as the tensor"},
      Choice{OptimizerKind::adafactor, "adafactor",
             "second moments of rows and columns alone, no first moment, steps in proportion to the weights"}};
}

/// What turns gradients into updates. Sources: AdamW: Loshchilov and Hutter 2019, algorithm 2 (arXiv 1711.05101); LAMB:
/// You et al. 2020, algorithm 2 (arXiv 1904.00962), norms of whole tensors, not clamped, as google-research/albert has
/// it; Adafactor: Shazeer and Stern 2018, algorithms 4 and 5 (arXiv 1804.04235), without a first moment, as Mesh
/// TensorFlow's T5 has it. Differs: weight decay of Adafactor is decoupled; a tensor of three axes is a matrix of its
/// last one (there the two longest are factored).
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
  o.bias_correction = false;
  o.epsilon = 1e-6;
  o.decay_score_biases = true;
}

template <class V>
void describe(V& v, OptimizerConfig& c) {
  v.like(c, "details of the update as in that code",
         {{"google-bert", [](OptimizerConfig& o) { o.bias_correction = false, o.epsilon = 1e-6; }},
          {"huggingface", [](OptimizerConfig& o) { o.bias_correction = true, o.epsilon = 1e-8; }},
          {"fairseq-roberta", fairseq_roberta_optimizer},
          {"spanbert", spanbert_optimizer},
          {"electra", [](OptimizerConfig& o) { o.bias_correction = false, o.epsilon = 1e-6; }},
          {"xlnet", xlnet_optimizer},
          {"megatron", [](OptimizerConfig& o) { o.bias_correction = true, o.epsilon = 1e-8; }},
          {"albert",
           [](OptimizerConfig& o) {
             o.kind = OptimizerKind::lamb, o.learning_rate = 1.76e-3, o.bias_correction = false, o.epsilon = 1e-6;
           }},
          {"t5", [](OptimizerConfig& o) {
             o.kind = OptimizerKind::adafactor, o.learning_rate = 1e-2, o.weight_decay = 0, o.max_grad_norm = 0;
           }}});
  v("kind", c.kind, "the update");
  v("learning_rate", c.learning_rate, "peak learning rate", in_range(0, 1e3));
  v("beta1", c.beta1, "decay of the first moment (adamw, lamb)", in_range(0, 1, open_end));
  v("beta2", c.beta2, "decay of the second moment (adamw, lamb; adafactor: 1 - t^-0.8)", in_range(0, 1, open_end));
  v("epsilon", c.epsilon, "added to the root of the second moment (adamw, lamb)", in_range(0, 1));
  v("epsilon_hat", c.epsilon_hat,
    "epsilon is added before the bias correction of the second moment and shares it, as in fairseq and TensorFlow "
    "(Kingma and Ba 2015, end of section 2)");
  v("weight_decay", c.weight_decay, "decoupled decay, times the learning rate", in_range(0, 10));
  v("decay_norm_and_bias", c.decay_norm_and_bias,
    "biases and norms decay too (lamb: and take steps as long as they are)");
  v("decay_score_biases", c.decay_score_biases,
    "biases of attention scores (XLNet's r_w_bias, r_r_bias and r_s_bias, T5's relative_attention_bias) decay although "
    "other biases do not");
  v("bias_correction", c.bias_correction, "moments are divided by 1 - beta^t (adamw, lamb)");
  v("max_grad_norm", c.max_grad_norm, "global gradient norm above which gradients are scaled down; 0 = never",
    in_range(0, 1e9));
}

enum class ScheduleShape { linear, cosine, constant, inverse_sqrt };
constexpr auto choices(ScheduleShape) {
  using enum ScheduleShape;
  return std::array{Choice{linear, "linear"}, Choice{cosine, "cosine"}, Choice{constant, "constant"},
                    Choice{inverse_sqrt, "inverse_sqrt"}};
}

/// The learning rate as a function of progress.
struct ScheduleConfig {
  std::string like;
  ScheduleShape shape = ScheduleShape::linear;
  double warmup = 0.1;
  double end_factor = 0.0;
  bool decay_from_start = false;
  bool decay_in_warmup = false;
};

inline void decays_linearly(ScheduleConfig& s, bool from_start) {
  s.shape = ScheduleShape::linear;
  s.decay_from_start = from_start;
  s.decay_in_warmup = false;
  s.end_factor = 0;
}

template <class V>
void describe(V& v, ScheduleConfig& c) {
  v.like(c, "where the decay starts, as in that code",
         {{"google-bert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"albert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"spanbert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"electra", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true), s.decay_in_warmup = true; }},
          {"huggingface", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"fairseq-roberta", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"megatron", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"xlnet", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false), s.end_factor = 1e-3; }},
          {"t5", [](ScheduleConfig& s) { s.shape = ScheduleShape::inverse_sqrt; }}});
  v("shape", c.shape, "what follows the warm-up");
  v("warmup", c.warmup, "linear rise from 0: a share of the budget below 1, or a number of steps from 1 on",
    in_range(0, 1e12));
  v("end_factor", c.end_factor, "learning rate at the end, as a share of the peak (linear, cosine)", in_range(0, 1));
  v("decay_from_start", c.decay_from_start, "linear decay counts from step 0, not from the end of the warm-up");
  v("decay_in_warmup", c.decay_in_warmup,
    "with decay_from_start: the warm-up is multiplied by the decay, so that the peak is never reached, as in ELECTRA's "
    "code");
}

/// When a run ends: at the first of these that is reached. The schedule is stretched over the one given.
struct BudgetConfig {
  int64_t steps = 0;
  int64_t tokens = 0;
  double minutes = 0;
};

template <class V>
void describe(V& v, BudgetConfig& c) {
  v("steps", c.steps, "optimizer steps; 0 = not limited", at_least(0));
  v("tokens", c.tokens, "tokens read, padding not counted; 0 = not limited", at_least(0));
  v("minutes", c.minutes, "minutes of training, evaluation and saving not counted; 0 = not limited", in_range(0, 1e9));
}

enum class Precision { fp32, bf16 };
constexpr auto choices(Precision) {
  return std::array{
      Choice{Precision::fp32, "fp32"},
      Choice{
          Precision::bf16, "bf16",
          "products and activations in bf16 with fp32 master weights where the processor has bf16 units, else fp32"}};
}

/// What is done about a loss or gradient that is not finite.
enum class OnNonFinite { stop, skip };
constexpr auto choices(OnNonFinite) {
  return std::array{Choice{OnNonFinite::stop, "stop", "the run ends before the step"},
                    Choice{OnNonFinite::skip, "skip", "the step is left out"}};
}

/// The loop.
struct TrainConfig {
  int64_t batch_size = 32;
  int64_t accumulation = 1;
  Precision precision = Precision::bf16;
  bool gradient_checkpointing = false;
  std::string device = "cpu";
  int64_t threads = 0;
  int64_t workers = 1;
  int64_t seed = 1;
  OnNonFinite on_nonfinite = OnNonFinite::stop;
  BudgetConfig budget{};
};

template <class V>
void describe(V& v, TrainConfig& c) {
  v("batch_size", c.batch_size, "sequences in a forward pass", in_range(1, 1 << 20));
  v("accumulation", c.accumulation,
    "forward passes in an optimizer step, whose sequences they share out by length; the loss is normalised over all of "
    "them",
    in_range(1, 1 << 20));
  v("precision", c.precision, "the type of products and activations");
  v("gradient_checkpointing", c.gradient_checkpointing,
    "each block is computed again in the backward pass, for memory");
  v("device", c.device, "cpu, cuda or cuda:N; a GPU is experimental: none has run the tests yet");
  v("threads", c.threads, "threads of the numerical work; 0 = one for each core", in_range(0, 1 << 12));
  v("workers", c.workers, "threads that make batches ahead of time", in_range(1, 64));
  v("seed", c.seed, "seed of every random stream", at_least(0));
  v("on_nonfinite", c.on_nonfinite, "a loss or gradient that is not finite");
  v("budget", c.budget, "when the run ends; at least one limit is needed");
}

/// Held-out evaluation: a yardstick that nothing in training changes, so that runs can be compared by it.
struct EvaluationConfig {
  int64_t every = 500;
  int64_t sequences = 1024;
  int64_t patience = 0;
  int64_t seed = 1;
  int64_t max_seq_length = 0;
  RowPacking packing = RowPacking::document;
  Objectives objectives{};
};

template <class V>
void describe(V& v, EvaluationConfig& c) {
  v("every", c.every, "steps between evaluations; 0 = only at the end", at_least(0));
  v("sequences", c.sequences, "held-out sequences in an evaluation", in_range(1, 1e9));
  v("patience", c.patience, "evaluations without a better loss before the run stops; 0 = never stops early",
    at_least(0));
  v.standalone();
  v("seed", c.seed, "seed of the held-out sequences and their masks, on which train.seed has no influence",
    at_least(0));
  v("max_seq_length", c.max_seq_length, "tokens in a held-out sequence; 0 = data.max_seq_length", in_range(0, 1 << 28));
  v("packing", c.packing,
    "how held-out sequences are cut, whatever data.packing is; nsp, sop and pairs make their own rows",
    one_of({"document", "full", "doc_sentences", "full_sentences"}));
  v("objectives", c.objectives,
    "what is scored, each objective on rows of its own; [] = the kinds of `objectives`, each in its standard form: the "
    "defaults of its kind "
    "(mlm: 15 % single tokens), of span_corruption its `corruption` and of rtd its networks");
}

/// What is written, and how often.
struct CheckpointConfig {
  int64_t every = 1000;
  int64_t keep = 2;
  int64_t log_every = 10;
};

template <class V>
void describe(V& v, CheckpointConfig& c) {
  v("every", c.every, "steps between checkpoints; 0 = only at the end", at_least(0));
  v("keep", c.keep, "newest checkpoints that stay, beside the best one", at_least(1));
  v("log_every", c.log_every, "steps between lines of the log and of metrics.jsonl, which give means over those steps",
    at_least(1));
}

/// What a run starts from.
struct InitConfig {
  std::string from;
};

template <class V>
void describe(V& v, InitConfig& c) {
  v("from", c.from,
    "run directory, or step folder of one, whose weights a new run starts from, as far as they fit; empty = all "
    "weights are drawn");
}

/// Everything that makes a run.
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
  v.like(c, "preset for every part that knows this name and has no `like` of its own",
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
  v("init", c.init, "weights of another run as the start");
  v("objectives", c.objectives, "losses that are summed in every step");
  v("data", c.data, "prepared tokens and how sequences are cut from them");
  v("optimizer", c.optimizer, "AdamW, LAMB or Adafactor");
  v("schedule", c.schedule, "learning rate over the run");
  v("train", c.train, "the loop");
  v("evaluation", c.evaluation, "held-out evaluation");
  v("checkpoint", c.checkpoint, "what is written, and how often");
}

/// The losses that count in optimizer step a + 1 are those of step b + 1.
bool same_losses(const RunConfig& config, int64_t a, int64_t b);

/// Every rule that spans fields; all broken rules in one ConfigError. Called after decoding and before anything is
/// built.
void validate(const RunConfig& config);

}  // namespace cloze
