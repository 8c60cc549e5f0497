#pragma once
// Published recipes of fine-tuning.
#include <string>
#include <vector>

#include "run/config.h"

namespace cloze {

/// What a recipe is asked for.
struct RecipeQuestion {
  std::string like{};   ///< name of the recipe
  std::string task{};   ///< name of the task, by which some have other numbers: `rte`
  std::string kind{};   ///< `classification`, `spans`, ...
  std::string model{};  ///< `bert`, `electra`, ...
  int64_t hidden_size = 0;
};

/// A recipe for a task: the sections optimizer, schedule and train of a run, and what of the task itself it says.
struct Recipe {
  RunConfig config{};
  int64_t max_length = 0;      ///< tokens of a row; 0: as many as the model reads
  bool original_head = false;  ///< the head has the first weights of that code
  bool babylm_head = false;    ///< it is that of BabyLM's program
  double classifier_dropout = -1;
};

/// The names of the recipes, the usual one first.
std::vector<std::string> recipe_names();

/// The numbers of a recipe. Throws ConfigError for another name.
/// Source: google-research/bert, run_classifier.py, run_squad.py, optimization.py, README.md; google-research/electra,
/// configure_finetuning.py; facebookresearch/fairseq, examples/roberta/config/finetuning and examples/bart/
/// README.glue.md; google-research/albert, run_glue.sh; facebookresearch/SpanBERT, README.md, code/run_glue.py;
/// JonasGeiping/cramming, config/eval/GLUE_sane.yaml; babylm-org/babylm-eval, strict/scripts/eval_finetuning.sh and
/// strict/evaluation_pipeline/finetune; transformers, examples/pytorch/text-classification/README.md.
/// Differs: of a grid one point is taken, which is said in docs/tasks.md; fairseq's steps for a task that its files do
/// not have are ten epochs with a warm-up of 6 %.
Recipe recipe_of(const RecipeQuestion& asked);

}  // namespace cloze
