#pragma once
// The config of a whole run, with a field for each YAML key.
#include "data/config.h"
#include "models/families/model_config.h"
#include "models/adaptation/config.h"
#include "objectives/config.h"
#include "objectives/distil/config.h"
#include "optimizers/config.h"
#include "run/config/schedule_config.h"
#include "run/config/train_config.h"

namespace cloze {

namespace babylm {

// What the rules of the BabyLM Challenge say about the training of a text track. Sources: the call for papers
// (Charpentier et al. 2025, arXiv 2502.10645): 10 M words of text in strict-small, 100 M in strict, each read at most
// ten times; babylm-org/babylm-eval, strict/evaluation_pipeline/collate_preds.py: the checkpoints of a submission.
inline constexpr int64_t strict_small_words = 10'000'000, strict_words = 100'000'000;
inline constexpr double max_epochs = 10;

/// Words after which a submission has a checkpoint, each time they are seen: 1 M to 9 M, 10 M to 90 M, and 100 M, where
/// strict-small ends, to 1,000 M.
inline std::vector<int64_t> checkpoint_words() {
  std::vector<int64_t> milestones;
  for (int64_t unit = 1'000'000; unit <= 100'000'000; unit *= 10)
    for (int64_t count = 1; count <= 9; ++count) milestones.push_back(count * unit);
  milestones.push_back(1'000'000'000);
  return milestones;
}

}  // namespace babylm

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
  std::vector<int64_t> layers{};
  bool probe = false;
};

template <class V>
void describe(V& v, InitConfig& c) {
  v("from", c.from,
    "run directory, or step folder of one, whose weights initialize a new run where they fit; empty = random "
    "initialization");
  v("layers", c.layers,
    "its layers that this network's begin with, one for each, from 1 on: every = of 12 for 6 the layers 2, 4, ... 12; "
    "last = the last; [] = those of the same numbers",
    layer_list());
  v("probe", c.probe,
    "the backbone of init.from stays as it is, without dropout, and new heads (and the pooler) are trained on it");
}

/// What keeps the weights of another run while the rest is trained.
struct FreezeConfig {
  int64_t layers = -1;
  bool gradual = false;
};

template <class V>
void describe(V& v, FreezeConfig& c) {
  v("layers", c.layers,
    "number of layers that keep the weights of init.from, counted from the embeddings, which keep them too; layers of "
    "a decoder come after those of its encoder; 0 = the embeddings alone, -1 = everything is trained",
    at_least(-1));
  v("gradual", c.gradual,
    "in the first epoch the last layer is trained beside the heads, in the second one the last two, and so on; the "
    "embeddings follow the first layer (Howard and Ruder 2018, section 3.3)");
}

/// The task that a run is fine-tuned on; its rows are those of data.tokens.
struct TaskSection {
  std::string name;  ///< empty: the run is not fine-tuned
  std::string file, like, metric, fingerprint;
};

template <class V>
void describe(V& v, TaskSection& c) {
  v("name", c.name, "the task that the run is fine-tuned on, by `cloze finetune`; empty = none");
  v("file", c.file, "its task file");
  v("like", c.like, "the recipe whose numbers are those of a config that names none");
  v("metric", c.metric, "the figure on the valid part that chooses the best checkpoint");
  v("fingerprint", c.fingerprint, "of its rows, and so of its parts, labels, lengths and cuts, and of the tokenizer");
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
    "evaluation suites on which the run is evaluated: files, folders, or names in the folder CLOZE_SUITES; [] = none");
  v("suite_every", c.suite_every,
    "steps between evaluations on the suites, besides those at the end; 0 = only at the end", at_least(0));
  v("suite_items", c.suite_items, "items of each paradigm of minimal pairs and completions that are asked; 0 = all",
    at_least(0));
}

/// The config of a run.
struct RunConfig {
  std::string like;
  ModelConfig model{};
  InitConfig init{};
  FreezeConfig freeze{};
  AdaptationSection adaptation{};
  TaskSection task{};
  Objectives objectives = default_objectives();
  DistilConfig distil{};
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
         {{"google-bert", {}},
          {"huggingface", {}},
          {"fairseq-roberta", {}},
          {"albert", {}},
          {"spanbert", {}},
          {"electra", {}},
          {"megatron", {}},
          {"t5", {}},
          {"bart", {}},
          {"pegasus", {}},
          {"xlnet", {}}});
  v("model", c.model, "the network");
  v("init", c.init, "initial weights from another run");
  v("freeze", c.freeze, "what keeps the weights of init.from");
  v("adaptation", c.adaptation, "how much of them is trained");
  v("task", c.task, "the task of a fine-tuned run");
  v("objectives", c.objectives, "losses, summed in every step");
  v("data", c.data, "prepared tokens and how they are packed into sequences");
  v("optimizer", c.optimizer, "the update of the weights");
  v("schedule", c.schedule, "learning rate schedule");
  v("train", c.train, "the training loop");
  v("evaluation", c.evaluation, "held-out evaluation");
  // After a part that is standalone, for its presets are its own.
  v("distil", c.distil, "losses by which the network becomes like another run's, its teacher");
  v("checkpoint", c.checkpoint, "checkpoints and logging");
}

/// What follows "unknown key" for a key that a run does not have but another program or section has; empty for others.
/// decode() asks it (core/config/config.h).
std::string meaning_of_unknown(const RunConfig& config, const std::string& key);

/// The config as it is in a phase: 0 is the first, k > 0 the one of train.phases[k - 1]. It has no phases itself.
RunConfig config_of_phase(const RunConfig& config, int64_t phase);

/// What surrounds the objectives of this run. It refers to `config`.
ObjectiveSetting objective_setting(const RunConfig& config);

/// True if the same losses are active in the optimizer steps a + 1 and b + 1.
bool same_losses(const RunConfig& config, int64_t a, int64_t b);

/// Checks every rule that involves several fields; throws one ConfigError that lists all violations. Called after
/// decoding, before anything is built.
void validate(const RunConfig& config);

}  // namespace cloze
