#include "run/finetune_recipe.h"

#include <algorithm>

#include "core/spelling.h"
#include "core/text.h"
#include "run/config_io.h"

namespace cloze {

namespace {

/// The numbers of a recipe, as its files have them.
struct RecipeNumbers {
  const char* preset;  ///< of the details of update and schedule
  int64_t batch_size;
  double learning_rate;
  double epochs;  ///< 0: `steps`
  int64_t steps;
  double warmup;  ///< below 1 a share, else steps
  double weight_decay;
  int64_t max_length = 0;
  double max_grad_norm = 1;
  double layer_decay = 1;
  double classifier_dropout = -1;
  const char* shape = "linear";
  bool original_head = true;
};

/// A task for which a recipe has numbers of its own.
struct TaskNumbers {
  const char* task;
  int64_t batch_size;
  double learning_rate;
  int64_t steps, warmup;
};

template <size_t N>
const TaskNumbers* numbers_of(const TaskNumbers (&all)[N], const std::string& task) {
  const auto found = std::find_if(std::begin(all), std::end(all), [&](const auto& one) { return one.task == task; });
  return found == std::end(all) ? nullptr : found;
}

void take(RecipeNumbers& numbers, const TaskNumbers* of_task) {
  if (!of_task) return;
  numbers.batch_size = of_task->batch_size;
  numbers.learning_rate = of_task->learning_rate;
  numbers.epochs = 0;
  numbers.steps = of_task->steps;
  numbers.warmup = static_cast<double>(of_task->warmup);
}

RecipeNumbers google_bert(const RecipeQuestion& asked) {
  if (asked.kind == "spans") return {"google-bert", 12, 3e-5, 2, 0, 0.1, 0.01, 384};
  return {"google-bert", 32, 5e-5, 3, 0, 0.1, 0.01, 128};
}

RecipeNumbers turc(const RecipeQuestion&) { return {"google-bert", 32, 1e-4, 4, 0, 0.1, 0.01}; }

RecipeNumbers hugging_face(const RecipeQuestion&) {
  RecipeNumbers numbers{"huggingface", 32, 2e-5, 3, 0, 0, 0, 128};
  numbers.original_head = false;
  return numbers;
}

RecipeNumbers fairseq_roberta(const RecipeQuestion& asked) {
  static constexpr TaskNumbers tasks[] = {{"rte", 16, 2e-5, 2036, 122},     {"mrpc", 16, 1e-5, 2296, 137},
                                          {"stsb", 16, 2e-5, 3598, 214},    {"cola", 16, 1e-5, 5336, 320},
                                          {"mnli", 32, 1e-5, 123873, 7432}, {"qnli", 32, 1e-5, 33112, 1986},
                                          {"qqp", 32, 1e-5, 113272, 28318}, {"sst2", 32, 1e-5, 20935, 1256}};
  RecipeNumbers numbers{"fairseq-roberta", 32, 1e-5, 10, 0, 0.06, 0.1, 512, 0};
  numbers.classifier_dropout = 0;
  take(numbers, numbers_of(tasks, asked.task));
  return numbers;
}

RecipeNumbers electra(const RecipeQuestion& asked) {
  const bool is_large = asked.hidden_size >= 1024;
  const bool is_small_task = asked.task == "rte" || asked.task == "stsb";
  RecipeNumbers numbers{"electra", 32, is_large ? 5e-5 : 1e-4, 3, 0, 0.1, 0.01, 128};
  numbers.layer_decay = is_large ? 0.9 : 0.8;
  if (is_small_task) numbers.epochs = 10;
  if (asked.kind == "spans") numbers.epochs = 2, numbers.max_length = 512;
  return numbers;
}

RecipeNumbers albert(const RecipeQuestion& asked) {
  static constexpr TaskNumbers tasks[] = {{"sst2", 32, 1e-5, 20935, 1256},  {"qnli", 32, 1e-5, 33112, 1986},
                                          {"rte", 32, 3e-5, 800, 200},      {"mrpc", 32, 2e-5, 800, 200},
                                          {"cola", 16, 1e-5, 5336, 320},    {"stsb", 16, 2e-5, 3598, 214},
                                          {"mnli", 128, 3e-5, 10000, 1000}, {"qqp", 128, 5e-5, 14000, 1000}};
  RecipeNumbers numbers{"google-bert", 32, 3e-5, 3, 0, 0.1, 0.01, 512};
  if (asked.kind == "spans") return {"google-bert", 48, 5e-5, 2, 0, 0.1, 0.01, 384};
  take(numbers, numbers_of(tasks, asked.task));
  return numbers;
}

RecipeNumbers spanbert(const RecipeQuestion& asked) {
  if (asked.kind == "spans") return {"huggingface", 32, 2e-5, 4, 0, 0.1, 0.01, 512};
  return {"huggingface", 32, 2e-5, 10, 0, 0.1, 0.01, 128};
}

RecipeNumbers cramming(const RecipeQuestion&) {
  RecipeNumbers numbers{"huggingface", 16, 4e-5, 5, 0, 0.1, 0, 128, 0};
  numbers.shape = "cosine";
  numbers.original_head = false;
  return numbers;
}

RecipeNumbers babylm_2026(const RecipeQuestion& asked) {
  const bool has_long_texts = asked.task == "boolq" || asked.task == "multirc";
  RecipeNumbers numbers{
      "huggingface", has_long_texts ? 16 : 32, 3e-5, asked.task == "wsc" ? 30.0 : 10.0, 0, 0.06, 0.01, 512, 0};
  numbers.shape = "cosine";
  return numbers;
}

struct NamedRecipe {
  const char* name;
  RecipeNumbers (*numbers)(const RecipeQuestion&);
  std::vector<std::string> models;  ///< whose head the code has
};

const std::vector<NamedRecipe>& recipes() {
  static const std::vector<NamedRecipe> all{{"google-bert", google_bert, {"bert"}},
                                            {"turc-2019", turc, {"bert"}},
                                            {"huggingface", hugging_face, {}},
                                            {"fairseq-roberta", fairseq_roberta, {"roberta"}},
                                            {"albert", albert, {"albert"}},
                                            {"electra", electra, {"electra"}},
                                            {"spanbert", spanbert, {}},
                                            {"cramming", cramming, {}},
                                            {"babylm-2026", babylm_2026, {}}};
  return all;
}

/// Adam's details beside those of the preset.
void set_details(const std::string& name, OptimizerConfig& optimizer) {
  auto* adam = part_in<AdamMoments>(optimizer.rule);
  if (name == "cramming") adam->beta2 = 0.98, adam->epsilon = 1e-6;
}

/// What BabyLM's program has of its own: everything decays, the rate ends at a tenth, and small batches are dropped.
void follow_babylm(Recipe& recipe) {
  recipe.babylm_head = true;
  recipe.config.optimizer.decay_norm_and_bias = true;
  part_in<EndFactor>(recipe.config.schedule.shape)->end_factor = 0.1;
  recipe.config.data.drop_last = true;
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& recipe : recipes()) names.emplace_back(recipe.name);
  return names;
}

Recipe recipe_of(const RecipeQuestion& asked) {
  const auto found =
      std::find_if(recipes().begin(), recipes().end(), [&](const auto& one) { return one.name == asked.like; });
  if (found == recipes().end()) {
    const auto near = did_you_mean(asked.like, recipe_names());
    fail<ConfigError>("there is no recipe '", asked.like, "'", near, near.empty() ? "; " : " ", "the recipes are ",
                      listed(recipe_names()));
  }
  const auto numbers = found->numbers(asked);
  Recipe recipe{.max_length = numbers.max_length, .classifier_dropout = numbers.classifier_dropout};
  recipe.original_head = numbers.original_head && asked.kind != "spans" &&
                         std::find(found->models.begin(), found->models.end(), asked.model) != found->models.end();
  const std::string preset = numbers.preset;
  auto& config = recipe.config;
  config = decode<RunConfig>(ConfigTree::parse(
      "optimizer: {like: " + preset + "}\nschedule: {like: " + preset + ", shape: " + numbers.shape + "}\n",
      "the recipe " + asked.like));
  set_details(asked.like, config.optimizer);
  config.optimizer.learning_rate = numbers.learning_rate;
  config.optimizer.weight_decay = numbers.weight_decay;
  config.optimizer.max_grad_norm = numbers.max_grad_norm;
  config.optimizer.layer_decay = numbers.layer_decay;
  config.schedule.warmup = numbers.warmup;
  config.train.batch_size = numbers.batch_size;
  config.train.budget.epochs = numbers.epochs;
  config.train.budget.steps = numbers.steps;
  if (asked.like == "babylm-2026") follow_babylm(recipe);
  return recipe;
}

}  // namespace cloze
