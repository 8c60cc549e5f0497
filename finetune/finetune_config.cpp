#include "finetune/finetune_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/config/leaf_overrides.h"
#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "finetune/finetune_recipe.h"
#include "models/backbone_config.h"
#include "objectives/kinds.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

ObjectiveConfig head_for(const Task& task, const Recipe& recipe) {
  if (task.config.kind->generates) {
    PairsConfig pairs;
    pairs.label_smoothing = recipe.label_smoothing;
    return pairs;
  }
  TaskHeadTerms terms;
  terms.head = recipe.babylm_head     ? HeadDesign::babylm
               : recipe.original_head ? HeadDesign::original
                                      : HeadDesign::huggingface;
  terms.classifier_dropout = recipe.classifier_dropout;
  const auto kind = task.config.kind;
  if (kind->learns_labels) terms.labels = task.labels.names;
  terms.class_weights = class_weights_of(task.config, task.labels, task.train);
  terms.scale.assign(task.config.scale.begin(), task.config.scale.end());
  return task_head_objective(kind->head, terms);
}

}  // namespace

ModelConfig finetuned_model(const ModelConfig& trained, const Tokenizer& tokenizer) {
  auto model = held_out_model(trained);
  auto& backbone = backbone_of(model);  // one that was imported has the ids of its family
  backbone.pad_token_id = tokenizer.special().filler();
  if (tokenizer.special().sep >= 0) backbone.eos_token_id = tokenizer.special().sep;
  return model;
}

RunConfig take_recipe(Task& task, const std::string& like, const ModelConfig& model) {
  auto& of_task = task.config;
  if (!like.empty()) of_task.like = like;
  if (of_task.like.empty()) of_task.like = of_task.kind->generates ? "t5" : usual_recipe;
  const auto& backbone = backbone_of(model);
  const auto recipe = recipe_of({.like = of_task.like,
                                 .task = of_task.task,
                                 .kind = name_of(of_task.kind),
                                 .model = kind_of(model),
                                 .hidden_size = backbone.hidden_size});
  for (const auto& note : recipe.notes) log_info("task", note);
  if (of_task.max_length == 0) of_task.max_length = recipe.max_length;
  auto config = recipe.config;
  config.model = model;
  config.objectives = {head_for(task, recipe)};
  config.data.short_seq_prob = 0;
  config.data.max_seq_length = std::min(config.data.max_seq_length, backbone.max_input_length());
  config.task.name = of_task.task;
  config.task.file = task.file;
  config.task.like = of_task.like;
  config.task.metric = chosen_metric(task);
  return config;
}

double brought_dropout(const std::string& folder, const RunConfig& run, const TaskHead& own) {
  for (const auto& objective : run.objectives)
    if (const auto* head = task_head_of(objective); head && head->use() == own.use()) return head->classifier_dropout;
  const auto imported = concat(folder, "/", imported_folder, "/", head_dropout_file);
  if (!std::filesystem::exists(imported)) return -1;
  const auto dropout = value_at(parse_json(read_text(imported, 1 << 20)), concat("/", own.name()).c_str());
  return dropout.is_number() ? dropout.get<double>() : -1;
}

namespace {

/// A key, or the beginning of several with a point at its end, that a fine-tuning does not use, and why.
struct UnusedKey {
  const char *key, *why;
  bool is_folder = false;
};
constexpr const char *of_recipe = "a recipe has set all that a preset would; choose another one with --like",
                     *of_task = "the rows are those of the task",
                     *of_valid = "the whole valid part of the task is judged, on rows of its own",
                     *of_weights = "the weights are those of the run, and only its head is drawn";
constexpr UnusedKey unused_keys[] = {
    {"like", of_recipe},
    {"model.like", of_recipe},
    {"optimizer.like", of_recipe},
    {"schedule.like", of_recipe},
    {"model.initializer", of_weights},
    {"init.from", "the run is named before the task: cloze finetune RUN TASK.yaml", true},
    {"data.tokens", "the rows are made of the files of the task, task.data.train and others", true},
    {"data.max_seq_length", "`cloze finetune` cuts the rows to task.max_length as it makes a run; set that there"},
    {"data.packing", of_task},
    {"data.short_seq_prob", of_task},
    {"train.seeds.masking", "nothing is masked"},
    {"evaluation.sequences", of_valid},
    {"evaluation.seed", of_valid},
    {"evaluation.max_seq_length", of_valid},
    {"evaluation.packing", of_valid},
    {"evaluation.objectives", of_valid},
    {"evaluation.objectives.", of_valid},
};

template <class T>
std::vector<std::string> paths_of(const T& config) {
  std::vector<std::string> paths;
  for (const auto& entry : entries(config)) paths.push_back(entry.path);
  return paths;
}

}  // namespace

void refuse_unused(const std::vector<std::string>& set, bool goes_on) {
  const auto of_task = paths_of(TaskConfig{}), of_run = paths_of(RunConfig{});
  for (const auto& one : leaf_overrides(set)) {
    const auto key = one.substr(0, one.find('='));
    for (const auto& unused : unused_keys) {
      if (goes_on && unused.is_folder) continue;
      const std::string known = unused.key;
      require<ConfigError>(known.back() == '.' ? !key.starts_with(known) : key != known, "--set ", one,
                           ": changes nothing of a fine-tuning: ", unused.why);
    }
    require<ConfigError>(!contains(of_task, key) || contains(of_run, key), "--set ", one, ": unknown key '", key,
                         "'; did you mean 'task.", key, "'?");
  }
}

void refuse_task_keys(const std::vector<std::string>& set) {
  for (const auto& one : leaf_overrides(set))
    require<ConfigError>(!one.starts_with("task."), "--set ", one,
                         ": `cloze finetune` reads the task as it makes a run; set that there");
}

RunConfig with_overrides(const RunConfig& config, const std::vector<std::string>& set) {
  auto made = decode<RunConfig>(ConfigTree::parse(to_yaml(config), "the recipe " + config.task.like, set));
  validate(made);
  return made;
}

int64_t steps_of_pass(const RunConfig& config, int64_t examples) {
  const auto step = config.train.batch_size * config.train.accumulation;
  return config.data.drop_last ? std::max<int64_t>(1, examples / step) : (examples + step - 1) / step;
}

void fit_to_rows(RunConfig& config, const PreparedTask& prepared, const RunConfig& first) {
  const auto& train = first.train;
  const auto steps = steps_of_pass(first, static_cast<int64_t>(prepared.train_examples));
  constexpr int64_t shortest_row = 4;
  config.task.fingerprint = prepared.fingerprint;
  config.data.max_seq_length = std::max(prepared.longest, shortest_row);
  config.evaluation.every = config.checkpoint.every = steps;
  const double total = train.budget.epochs > 0 ? train.budget.epochs * static_cast<double>(steps)
                                               : static_cast<double>(train.budget.steps);
  if (first.data.drop_last && first.schedule.warmup < 1)
    config.schedule.warmup = std::floor(first.schedule.warmup * total);
  config.evaluation.sequences = static_cast<int64_t>(prepared.valid_examples);
}

}  // namespace cloze
