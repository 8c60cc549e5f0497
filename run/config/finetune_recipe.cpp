#include "run/config/finetune_recipe.h"

#include <algorithm>
#include <cmath>

#include "core/contains.h"
#include "core/spelling.h"
#include "core/text.h"
#include "run/config/load_config.h"

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
  void (*set_details)(OptimizerConfig& optimizer) = nullptr;  ///< beside those of the preset
};

/// Adam's second decay and its epsilon.
void set_moments(OptimizerConfig& optimizer, double beta2, double epsilon) {
  auto* adam = part_in<AdamMoments>(optimizer.rule);
  adam->beta2 = beta2;
  adam->epsilon = epsilon;
}

/// A task for which a recipe has numbers of its own.
struct TaskNumbers {
  const char* task;
  int64_t batch_size;
  double learning_rate;
  int64_t steps, warmup;
};

/// The task by whose training part a recipe has numbers.
std::string trained_as(const std::string& task) {
  if (task == "mnli-mm") return "mnli";
  return task == "superglue-rte" ? "rte" : task;
}

template <size_t N>
const TaskNumbers* numbers_of(const TaskNumbers (&all)[N], const std::string& task) {
  const auto name = trained_as(task);
  const auto found = std::find_if(std::begin(all), std::end(all), [&](const auto& one) { return one.task == name; });
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

/// Passes over the questions of a published training part.
double race_passes(double steps) { return std::round(100 * steps * 32 / 87866) / 100; }
double squad_2_passes(double steps, double batch_size) { return std::round(100 * steps * batch_size / 130319) / 100; }

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
  const bool is_small_task = trained_as(asked.task) == "rte" || asked.task == "stsb";
  RecipeNumbers numbers{"electra", 32, is_large ? 5e-5 : 1e-4, 3, 0, 0.1, 0.01, 128};
  numbers.layer_decay = is_large ? 0.9 : 0.8;
  if (is_small_task) numbers.epochs = 10;
  if (asked.kind == "spans") numbers.epochs = 2, numbers.max_length = 512;
  return numbers;
}

RecipeNumbers albert(const RecipeQuestion& asked) {
  static constexpr TaskNumbers tasks[] = {
      {"sst2", 32, 1e-5, 20935, 1256},  {"qnli", 32, 1e-5, 33112, 1986}, {"rte", 32, 3e-5, 800, 200},
      {"mrpc", 32, 2e-5, 800, 200},     {"cola", 16, 1e-5, 5336, 320},   {"stsb", 16, 2e-5, 3598, 214},
      {"mnli", 128, 3e-5, 10000, 1000}, {"qqp", 128, 5e-5, 14000, 1000}, {"race", 32, 1e-5, 12000, 1000}};
  RecipeNumbers numbers{"google-bert", 32, 3e-5, 3, 0, 0.1, 0.01, 512};
  if (asked.kind == "choice") numbers = {"google-bert", 32, 1e-5, race_passes(12000), 0, 1.0 / 12, 0.01, 512};
  if (asked.kind == "spans") return {"google-bert", 48, 5e-5, 2, 0, 0.1, 0.01, 384};
  take(numbers, numbers_of(tasks, asked.task));
  return numbers;
}

/// Its commands have --fp16, with which the update is apex's, without a correction of the bias.
RecipeNumbers spanbert(const RecipeQuestion& asked) {
  RecipeNumbers numbers{"huggingface", 32, 2e-5, 10, 0, 0.1, 0.01, 128};
  if (asked.kind == "spans") {
    numbers.epochs = 4;
    numbers.max_length = 512;
  }
  numbers.set_details = [](OptimizerConfig& optimizer) {
    part_in<AdamMoments>(optimizer.rule)->bias_correction = false;
  };
  return numbers;
}

RecipeNumbers cramming(const RecipeQuestion&) {
  RecipeNumbers numbers{"huggingface", 16, 4e-5, 5, 0, 0.1, 0, 128, 0};
  numbers.shape = "cosine";
  numbers.original_head = false;
  numbers.set_details = [](OptimizerConfig& optimizer) { set_moments(optimizer, 0.98, 1e-6); };
  return numbers;
}

/// Without decay the code takes TensorFlow's own Adam, whose epsilon is added before the correction; that of a
/// classifier is the default of its program. Of other texts than those of its files IMDB's numbers are taken, in
/// passes; of other choices and questions RACE's and SQuAD's.
RecipeNumbers xlnet(const RecipeQuestion& asked) {
  const bool is_large = asked.hidden_size >= 1024;
  RecipeNumbers numbers{"huggingface", 32, 2e-5, 5.12, 0, 0.125, 0, 128};
  numbers.set_details = [](OptimizerConfig& optimizer) {
    set_moments(optimizer, 0.999, 1e-8);
    part_in<AdamMoments>(optimizer.rule)->epsilon_hat = true;
  };
  static constexpr TaskNumbers tasks[] = {{"stsb", 32, 5e-5, 1200, 120}, {"imdb", 32, 2e-5, 4000, 500}};
  take(numbers, numbers_of(tasks, asked.task));
  if (asked.task == "imdb") numbers.max_length = 512;
  if (asked.kind != "spans" && asked.kind != "choice") return numbers;
  static constexpr TaskNumbers race[] = {{"race", 32, 2e-5, 12000, 1000}};
  static constexpr TaskNumbers base[] = {{"squad-2.0", 24, 2e-5, 12000, 1000}};
  static constexpr TaskNumbers large[] = {{"squad-2.0", 48, 3e-5, 8000, 1000}};
  const auto& published = asked.kind == "choice" ? race : is_large ? large : base;
  numbers.batch_size = published[0].batch_size;
  numbers.learning_rate = published[0].learning_rate;
  const auto steps = static_cast<double>(published[0].steps);
  numbers.epochs =
      asked.kind == "choice" ? race_passes(steps) : squad_2_passes(steps, static_cast<double>(numbers.batch_size));
  numbers.warmup = static_cast<double>(published[0].warmup) / steps;
  take(numbers, numbers_of(published, asked.task));
  numbers.max_length = 512;
  numbers.set_details = [](OptimizerConfig& optimizer) {
    set_moments(optimizer, 0.999, 1e-6);
    part_in<AdamMoments>(optimizer.rule)->epsilon_hat = true;
  };
  return numbers;
}

RecipeNumbers bart(const RecipeQuestion& asked) {
  static constexpr TaskNumbers tasks[] = {{"mnli", 128, 5e-6, 30968, 1858}, {"qnli", 32, 1e-5, 33112, 1986},
                                          {"qqp", 32, 1e-5, 113272, 6796},  {"rte", 32, 1e-5, 1018, 61},
                                          {"sst2", 128, 5e-6, 5233, 314},   {"mrpc", 64, 2e-5, 1148, 68},
                                          {"cola", 64, 2e-5, 1334, 80},     {"stsb", 32, 2e-5, 1799, 107}};
  RecipeNumbers numbers{"fairseq-roberta", 32, 1e-5, 10, 0, 0.06, 0.01, 0, 0};
  numbers.classifier_dropout = 0;
  numbers.set_details = [](OptimizerConfig& optimizer) { set_moments(optimizer, 0.98, 1e-8); };
  take(numbers, numbers_of(tasks, asked.task));
  return numbers;
}

/// Composer's decay of a step is the rate's share of its peak times the published number, ours the rate times
/// weight_decay: the published number by the peak.
RecipeNumbers mosaicbert(const RecipeQuestion& asked) {
  struct JobNumbers {
    const char* task;
    int64_t batch_size;
    double learning_rate, epochs, decay;
  };
  static constexpr JobNumbers jobs[] = {{"mnli", 64, 5e-5, 2, 1e-6},  {"rte", 16, 1e-5, 3, 1e-5},
                                        {"qqp", 16, 3e-5, 5, 3e-6},   {"cola", 32, 5e-5, 10, 5e-6},
                                        {"mrpc", 32, 8e-5, 10, 8e-6}, {"qnli", 16, 1e-5, 10, 1e-6},
                                        {"sst2", 16, 3e-5, 3, 3e-6},  {"stsb", 32, 3e-5, 10, 3e-6}};
  const auto found = std::ranges::find(jobs, trained_as(asked.task), &JobNumbers::task);
  const auto& job = found == std::end(jobs) ? jobs[6] : *found;
  RecipeNumbers numbers{
      "huggingface", job.batch_size, job.learning_rate, job.epochs, 0, 0.06, job.decay / job.learning_rate, 256, 0};
  numbers.original_head = false;
  numbers.set_details = [](OptimizerConfig& optimizer) {
    set_moments(optimizer, 0.98, 1e-6);
    optimizer.decay_norm_and_bias = true;
  };
  return numbers;
}

RecipeNumbers babylm_2026(const RecipeQuestion& asked) {
  const bool is_long = asked.task == "boolq" || asked.task == "multirc";
  RecipeNumbers numbers{
      "huggingface", is_long ? 16 : 32, 3e-5, asked.task == "wsc" ? 30.0 : 10.0, 0, 0.06, 0.01, 512, 0};
  numbers.shape = "cosine, end_factor: 0.1";
  numbers.original_head = false;
  numbers.set_details = [](OptimizerConfig& optimizer) { optimizer.decay_norm_and_bias = true; };
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
                                            {"xlnet", xlnet, {"xlnet"}},
                                            {"bart", bart, {"bart"}},
                                            {"mosaicbert", mosaicbert, {}},
                                            {"babylm-2026", babylm_2026, {}}};
  return all;
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
  recipe.original_head = numbers.original_head && asked.kind != "spans" && contains(found->models, asked.model);
  const std::string preset = numbers.preset;
  auto& config = recipe.config;
  config = decode<RunConfig>(ConfigTree::parse(
      "optimizer: {like: " + preset + "}\nschedule: {like: " + preset + ", shape: " + numbers.shape + "}\n",
      "the recipe " + asked.like));
  if (numbers.set_details) numbers.set_details(config.optimizer);
  config.optimizer.learning_rate = numbers.learning_rate;
  config.optimizer.weight_decay = numbers.weight_decay;
  config.optimizer.max_grad_norm = numbers.max_grad_norm;
  config.optimizer.layer_decay = numbers.layer_decay;
  config.schedule.warmup = numbers.warmup;
  config.train.batch_size = numbers.batch_size;
  config.train.budget.epochs = numbers.epochs;
  config.train.budget.steps = numbers.steps;
  recipe.babylm_head = recipe.config.data.drop_last = asked.like == "babylm-2026";
  return recipe;
}

RecipeGrid grid_of(const std::string& like) {
  if (like != "turc-2019") return {};
  return {.batch_sizes = {8, 16, 32, 64, 128}, .learning_rates = {3e-4, 1e-4, 5e-5, 3e-5}};
}

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
