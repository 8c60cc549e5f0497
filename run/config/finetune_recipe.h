#pragma once
// Published recipes of fine-tuning.
#include <string>
#include <vector>

#include "run/config/config.h"

namespace cloze {

/// The recipe of a fine-tuning for which nobody names one.
inline constexpr const char* usual_recipe = "google-bert";

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

/// Values that a recipe searches, each with each, of which those of the best figure on the valid part are taken; empty:
/// it has one setting. As `tune:` of a study has them.
struct RecipeGrid {
  std::vector<int64_t> batch_sizes{};
  std::vector<double> learning_rates{};
};
RecipeGrid grid_of(const std::string& like);

/// A setting of a grid.
struct RecipePoint {
  std::string name{};              ///< of a folder: `batch-8-rate-3e-04`
  std::vector<std::string> set{};  ///< overrides: `train.batch_size=8`, `optimizer.learning_rate=3e-04`
};

/// The points of a grid in their order, without the values that are overridden by `set`; none where both are.
std::vector<RecipePoint> points_of(const RecipeGrid& grid, const std::vector<std::string>& set);

/// The numbers of a recipe. Throws ConfigError for another name.
/// Source: google-research/bert, run_classifier.py, run_squad.py, optimization.py, README.md; google-research/electra,
/// configure_finetuning.py; facebookresearch/fairseq, examples/roberta/config/finetuning and examples/bart/
/// README.glue.md; google-research/albert, run_glue.sh; facebookresearch/SpanBERT, README.md, code/run_glue.py;
/// JonasGeiping/cramming, config/eval/GLUE_sane.yaml; transformers, examples/pytorch/text-classification/README.md;
/// zihangdai/xlnet, README.md, scripts, run_classifier.py, model_utils.py; AnswerDotAI/ModernBERT,
/// src/evals/glue_jobs.py, yamls/finetuning/glue; babylm-org/babylm-eval, strict/scripts/eval_finetuning.sh and
/// strict/evaluation_pipeline/finetune.
/// Differs: of a grid (grid_of) one point is taken here; fairseq's steps for a task that its files do not have are ten
/// epochs with a warm-up of 6 %; the layer decay that XLNet's code has for SQuAD is left out, since Adam divides it out
/// of the gradients again; a last, smaller batch counts by its items, where BERT's and ALBERT's code drop it; and pairs
/// without an order are trained on in theirs alone, where ELECTRA's code has both.
Recipe recipe_of(const RecipeQuestion& asked);

}  // namespace cloze
