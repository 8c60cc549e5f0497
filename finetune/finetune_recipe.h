#pragma once
// Published recipes of fine-tuning: files of configs/recipes.
#include <string>
#include <vector>

#include "core/config/config_rule.h"
#include "run/config/config.h"

namespace cloze {

/// The recipe of a fine-tuning for which nobody names one.
inline constexpr const char* usual_recipe = "google-bert";

/// What a recipe is question for.
struct RecipeQuestion {
  std::string like{};   ///< name of the recipe, or its file
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
  double label_smoothing = 0;        ///< of generated targets
  std::vector<std::string> notes{};  ///< what its author should know, a sentence each
};

/// The names of the recipes, the usual one first, then by the alphabet.
std::vector<std::string> recipe_names();

/// Values that a recipe searches, each with each, of which those of the best score on the valid part are taken; empty:
/// it has one setting. As `tune:` of a study has them.
struct RecipeGrid {
  std::vector<int64_t> batch_sizes{};
  std::vector<double> learning_rates{};
};
template <class V>
void describe(V& v, RecipeGrid& c) {
  v("batch_sizes", c.batch_sizes, "items of a step", or_none(at_least(1)));
  v("learning_rates", c.learning_rates, "peaks");
}
/// The grid of a recipe; none where no recipe is named. Throws ConfigError as recipe_of.
RecipeGrid grid_of(const std::string& like);

/// A setting of a grid.
struct RecipePoint {
  std::string name{};              ///< of a folder: `batch-8-rate-3e-04`
  std::vector<std::string> set{};  ///< overrides: `train.batch_size=8`, `optimizer.learning_rate=3e-04`
};

/// The points of a grid in their order, without the values that are overridden by `set`; none where both are.
std::vector<RecipePoint> points_of(const RecipeGrid& grid, const std::vector<std::string>& set);

/// The numbers of a recipe, from its file in configs/recipes, which names its source and what differs. Of a grid
/// (grid_of) one point is taken; a last, smaller batch counts by its items. Throws ConfigError for another name, for a
/// file that is no recipe, and for a name that is that of another file of configs/recipes here, too.
Recipe recipe_of(const RecipeQuestion& question);

}  // namespace cloze
