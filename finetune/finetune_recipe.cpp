#include "finetune/finetune_recipe.h"

#include <algorithm>
#include <filesystem>

#include "core/config/named_config.h"
#include "core/contains.h"
#include "core/file.h"
#include "core/spelling.h"
#include "core/text.h"
#include "run/config/load_config.h"
#include "tasks/kind.h"

namespace cloze {

namespace {

/// The tasks and the models for which a recipe has other values.
struct RecipeCase {
  std::vector<std::string> tasks{}, kinds{};
  int64_t min_hidden_size = 0;
  AnyKeys set{};
  bool fits(const RecipeQuestion& question) const {
    return (tasks.empty() || contains(tasks, question.task)) && (kinds.empty() || contains(kinds, question.kind)) &&
           question.hidden_size >= min_hidden_size;
  }
};
template <class V>
void describe(V& v, RecipeCase& c) {
  v("tasks", c.tasks, "names of tasks; empty = all");
  v("kinds", c.kinds, "kinds of tasks; empty = all", or_none(one_of(task_kind_names())));
  v("min_hidden_size", c.min_hidden_size, "the least width of a network", at_least(0));
  v("set", c.set, "keys of the recipe, laid over what stands above");
}

/// A file of configs/recipes.
struct RecipeFile : Recipe {
  std::vector<std::string> models{};  ///< whose head the code has
  RecipeGrid grid{};
  std::vector<RecipeCase> cases{};
};
template <class V>
void describe(V& v, RecipeFile& c) {
  v("optimizer", c.config.optimizer, "details of the update, as in a run");
  v("schedule", c.config.schedule, "details of the schedule, as in a run");
  v("data", c.config.data, "how items are drawn, as in a run");
  v("batch_size", c.config.train.batch_size, "items of a step", at_least(1));
  v("learning_rate", c.config.optimizer.learning_rate, "its peak", in_range(0, 1e3));
  v("weight_decay", c.config.optimizer.weight_decay, "times the learning rate", in_range(0, 10));
  v("epochs", c.config.train.budget.epochs, "passes over the training part", in_range(0, 1e9));
  v("steps", c.config.train.budget.steps, "steps instead of epochs; 0 = epochs", at_least(0));
  v("warmup", c.config.schedule.warmup, "below 1 a fraction of the budget, else steps", in_range(0, 1e12));
  v("max_length", c.max_length, "tokens of a row; 0 = as many as the model reads", at_least(0));
  v("classifier_dropout", c.classifier_dropout, "before a classifier; -1 = that of the head", in_range(-1, 1));
  v("label_smoothing", c.label_smoothing, "of generated targets", in_range(0, 1, open_end));
  v("models", c.models, "the families whose head has the first weights of the code", or_none(one_of(model_kinds())));
  v("babylm_head", c.babylm_head, "the head is that of BabyLM's program");
  v("grid", c.grid, "values that are searched");
  v("cases", c.cases, "other values, in their order");
}

/// The file of a recipe by its name or its path. One of the same name here, with other numbers, is not passed over in
/// silence.
std::string file_of_recipe(const std::string& like) {
  constexpr uint64_t largest = 1 << 20;
  const auto files = shipped_configs("recipes");
  require<ConfigError>(!files.empty(), "the recipes of fine-tuning are missing, configs/recipes/*.yaml; they are ",
                       "installed with the program, in ../share/cloze beside its folder");
  std::error_code ignored;
  const auto file = files.find(like);
  if (file == files.end() && like.ends_with(".yaml") && std::filesystem::is_regular_file(like, ignored)) return like;
  if (file == files.end()) {
    const auto near = did_you_mean(like, recipe_names());
    fail<ConfigError>("there is no recipe '", like, "'", near, near.empty() ? "; " : " ", "the recipes are ",
                      listed(recipe_names()), "; one of your own is named by its file, MINE.yaml");
  }
  const auto own = "configs/recipes/" + like + ".yaml";
  const bool is_other =
      std::filesystem::is_regular_file(own, ignored) && read_text(own, largest) != read_text(file->second, largest);
  require<ConfigError>(!is_other, own, ": has the name of a recipe that comes with the program; name it by its path, ",
                       "--like ", own, ", or give it another name");
  return file->second;
}

/// Notes tasks of a case that look like misspelt ones; tasks of one's own have any names.
void note_tasks(const RecipeCase& one, const RecipeQuestion& question, const std::string& file,
                std::vector<std::string>& notes) {
  for (const auto& task : one.tasks) {
    const bool is_known = task == question.task || contains(names_of_tasks(), task);
    const auto near = is_known ? "" : did_you_mean_task(task);
    if (!near.empty()) notes.push_back(concat(file, ": a case is for '", task, "', which is no ready task", near));
  }
}

/// A recipe, with all of its cases that fit.
RecipeFile read_recipe(const RecipeQuestion& question) {
  const auto file = file_of_recipe(question.like);
  const auto plain = ConfigTree::load(file);
  auto fitting = plain;
  std::vector<std::string> notes;
  for (const auto& one : decode<RecipeFile>(plain).cases) {
    note_tasks(one, question, file, notes);
    auto alone = plain;
    for (const auto& [key, value] : one.set.items) {
      alone.set(key, value);
      if (one.fits(question)) fitting.set(key, value);
    }
    decode<RecipeFile>(alone);  // what is wrong with a case is said whether it fits or not
  }
  auto recipe = decode<RecipeFile>(fitting);
  recipe.notes = std::move(notes);
  auto& budget = recipe.config.train.budget;
  if (budget.steps > 0) budget.epochs = 0;
  recipe.original_head = question.kind != "spans" && contains(recipe.models, question.model);
  return recipe;
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names{usual_recipe};
  for (const auto& [name, file] : shipped_configs("recipes"))
    if (name != usual_recipe) names.push_back(name);
  return names;
}

Recipe recipe_of(const RecipeQuestion& question) { return read_recipe(question); }

RecipeGrid grid_of(const std::string& like) { return like.empty() ? RecipeGrid{} : read_recipe({.like = like}).grid; }

std::vector<RecipePoint> points_of(const RecipeGrid& grid, const std::vector<std::string>& set) {
  const auto is_set = [&](const std::string& key) {
    return std::any_of(set.begin(), set.end(), [&](const auto& one) { return one.starts_with(key + "="); });
  };
  const std::string batch = "train.batch_size", rate = "optimizer.learning_rate";
  std::vector<RecipePoint> points;
  if (grid.learning_rates.empty()) return points;
  if (is_set(batch) && is_set(rate)) return points;
  const auto sizes = is_set(batch) ? std::vector<int64_t>{0} : grid.batch_sizes;  // 0: as it is set
  const auto rates = is_set(rate) ? std::vector<double>{0} : grid.learning_rates;
  for (const auto size : sizes)
    for (const auto learning_rate : rates) {
      auto& point = points.emplace_back();
      const auto add = [&](const std::string& name, const std::string& key, const std::string& value) {
        point.name += (point.name.empty() ? "" : "-") + name + "-" + value;
        point.set.push_back(key + "=" + value);
      };
      if (size > 0) add("batch", batch, std::to_string(size));
      if (learning_rate > 0) add("rate", rate, shortest(learning_rate));
    }
  return points;
}

}  // namespace cloze
