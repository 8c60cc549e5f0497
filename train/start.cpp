#include "train/start.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/log.h"
#include "run/checkpoints/base.h"
#include "run/checkpoints/teacher.h"
#include "run/config/load_config.h"
#include "run/device.h"
#include "run/memory.h"
#include "run/process.h"
#include "train/callbacks/babylm_rules.h"
#include "optimizers/optimizer.h"
#include "train/run_folder.h"
#include "train/training.h"

namespace cloze {

namespace {

void check_data(const Training& training) {
  if (training.processes.is_first_here()) {  // seconds are cheaper than days of training on damaged text
    training.store.verify();
    training.held_out_store.verify();
  }
  const auto& config = training.config;
  if (training.store.train_words()) return;
  require<ConfigError>(config.train.budget.words == 0, config.data.tokens,
                       ": was prepared without a count of its words, which train.budget.words needs; prepare the text "
                       "again with --force, or give another budget");
  require<ConfigError>(config.checkpoint.at_words.empty(), config.data.tokens,
                       ": was prepared without a count of its words, which checkpoint.at_words needs; prepare the text "
                       "again with --force, or leave it out");
}

/// The teacher of a run: that of its checkpoint, or as its config names it.
BaseRecord find_teacher(const Training& training, const Origin& origin) {
  const auto before = origin.branch ? origin.branch->checkpoint : origin.checkpoint;
  if (!training.config.distil.is_on() || before.empty()) return teacher_of(training.config);
  auto teacher = load_state(before, nullptr).teacher;
  teacher.checkpoint = located_checkpoint(training.options.run, teacher, "learns from", "");
  return teacher;
}

/// Makes the network with drawn weights, and gives it its teacher, which the first process has found.
void make_network(Training& training) {
  const auto& config = training.config;
  const auto& model = backbone_of(config.model);
  training.network = std::make_shared<Network>(config.model, config.objectives);
  keep_base(config, *training.network);
  if (config.distil.is_on())
    give_teacher(training.processes.broadcast_text(training.progress.teacher.checkpoint), config,
                 training.store.tokenizer(), *training.network);
  initialize(collect_params(*training.network), model.initializer_range, is_truncated(model.initializer),
             rng_of(config.train, RandomStream::init));
}

void check_branch_point(Training& training, const BranchPoint& branch) {
  training.progress = load_state(branch.checkpoint, nullptr);
  open_phase(training);
  const auto used = [&](const BudgetConfig& budget) {
    const auto [done, total] = nearest_limit(budget, usage(training));
    return done / total;
  };
  const auto& config = training.config;
  check_branch(branch, config, training.store, training.held_out_store, used(branch.config.train.budget),
               used(config.train.budget));
}

/// Continues from the checkpoint of the origin, if it has one.
void restore_origin(Training& training, const Origin& origin, Checkpoints& checkpoints, bool rows_differ) {
  if (origin.branch)
    checkpoints.restore_all(training, origin.branch->checkpoint, /*is_branch=*/true, rows_differ);
  else if (!origin.checkpoint.empty())
    checkpoints.restore_all(training, origin.checkpoint, /*is_branch=*/false, rows_differ);
  else if (training.options.resume)
    log_info("train", concat(training.options.run, " has no checkpoint: the run starts from the beginning"));
}

/// Opens metrics.jsonl, without the rows that were written after the checkpoint.
void open_metrics(Training& training, const std::optional<TrainState>& restored) {
  training.lock->require_in_place();
  training.metrics =
      std::make_unique<Metrics>(training.options.run, restored ? restored->metrics_bytes : 0, training.progress.step);
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& entry : entries(training.config))
    if (entry.leaf) values.emplace_back(entry.path, entry.value);
  training.metrics->describe(to_yaml(training.config), values);
}

/// The mean number of tokens in a row of the first phase; those of longer phases have at least as many.
double row_tokens(const Training& training) {
  return static_cast<double>(training.store.num_tokens()) / static_cast<double>(training.collator.size());
}

/// Compares the memory of every phase with that of the machine by `compare`.
void compare_memory(const Training& training, decltype(require_memory)& compare) {
  const auto& config = training.config;
  for (int64_t phase = 0; phase <= static_cast<int64_t>(config.train.phases.size()); ++phase)
    compare(config_of_phase(config, phase), row_tokens(training), training.machine);
}

/// Compares memory, devices and tokens with what the config asks for.
void check_means(const Training& training) {
  const auto& config = training.config;
  compare_memory(training, require_memory);
  configure_threads(config.train.threads);
  device_of(config.train.device);
  check_data(training);
}

/// Opens the folder of the run, with the weights that it begins with. Returns whether its rows may differ from those of
/// the run so far.
bool open_folder(Training& training, const Origin& origin) {
  const auto& config = training.config;
  InitReport initialized;
  if (!origin.initial.empty()) {
    initialized =
        init_from(origin.initial, *training.network, training.store.tokenizer(), config.init, config.objectives);
    training.progress.base = recorded_base(initialized, *training.network);
  }
  const bool rows_differ = open_run_folder(training, origin);
  compare_memory(training, warn_of_memory);  // in the log of the run, too
  if (!config.train.deterministic && config.train.parts > 1)
    log_info("train",
             "train.deterministic is false: the weights depend on the number of processes and on their processors");
  if (origin.initial.empty()) return rows_differ;
  log_info("init", to_text(initialized));
  training.write("init.json", json_text(to_json(initialized), 2) + "\n");
  return rows_differ;
}

std::unique_ptr<Stepper> make_stepper(Training& training) {
  return std::make_unique<Stepper>(config_of_phase(training.config, 0), *training.network, training.processes);
}

}  // namespace

void prepare_to_follow(Training& training) {
  check_means(training);
  make_network(training);
  training.stepper = make_stepper(training);
}

Callbacks prepare(Training& training) {
  check_means(training);
  auto checkpoints = std::make_unique<Checkpoints>();
  auto suites = std::make_unique<SuiteEvaluation>(training, *checkpoints);
  const auto origin = find_origin(training.config, training.options);
  if (origin.branch) check_branch_point(training, *origin.branch);
  training.progress.teacher = find_teacher(training, origin);
  make_network(training);
  check_groups(training.config.optimizer, collect_params(*training.network));
  suites->check_lengths(training);
  if (!origin.checkpoint.empty())  // before the folder says what has changed
    check_weights(origin.checkpoint + "/weights.safetensors",
                  params_in(load_state(origin.checkpoint, nullptr), *training.network));
  const bool rows_differ = open_folder(training, origin);
  training.stepper = make_stepper(training);
  auto& log = training.add(std::make_unique<TrainingLog>());
  auto& held_out = training.add(std::make_unique<HeldOutEvaluation>(training, log, *checkpoints));
  auto& suites_callback = training.add(std::move(suites));
  training.add(std::make_unique<BabylmRules>());
  const auto& milestones = training.add(std::make_unique<Milestones>(*checkpoints));
  auto& last = training.add(std::move(checkpoints));
  training.parts.add_callbacks(training);
  restore_origin(training, origin, last, rows_differ);
  check_disk(training, milestones.ahead(training));
  open_metrics(training, last.restored());
  return {.log = log, .held_out = held_out, .suites = suites_callback, .checkpoints = last};
}

}  // namespace cloze
