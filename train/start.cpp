#include "train/start.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/log.h"
#include "evaluation/held_out_file.h"
#include "run/config_io.h"
#include "run/device.h"
#include "run/init.h"
#include "run/memory.h"
#include "run/process.h"
#include "train/babylm_rules.h"
#include "train/branch.h"
#include "train/checkpoints.h"
#include "train/events.h"
#include "train/origin.h"
#include "train/phases.h"
#include "train/progress_log.h"
#include "train/run_folder.h"
#include "train/suites.h"

namespace cloze {

namespace {

void check_data(const Session& session) {
  // Checking for seconds is cheaper than training for days on damaged text.
  session.store.verify();
  session.held_out_store.verify();
  const auto& config = session.config;
  if (session.store.train_words()) return;
  require<ConfigError>(config.train.budget.words == 0, config.data.tokens,
                       ": was prepared without a count of its words, which train.budget.words needs; prepare the text "
                       "again with --force, or give another budget");
  require<ConfigError>(config.checkpoint.at_words.empty(), config.data.tokens,
                       ": was prepared without a count of its words, which checkpoint.at_words needs; prepare the text "
                       "again with --force, or leave it out");
}

void draw_weights(Session& session) {
  const auto& config = session.config;
  const auto& model = backbone_of(config.model);
  session.network = std::make_shared<Network>(config.model, config.objectives);
  initialize(collect_params(*session.network), model.initializer_range, is_truncated(model.initializer),
             rng_of(config.train, RandomStream::init));
}

void check_branch_point(Session& session, const BranchPoint& branch) {
  session.state = load_state(branch.checkpoint, nullptr);
  open_phase(session);
  const auto used = [&](const BudgetConfig& budget) {
    const auto [done, total] = nearest_limit(budget, usage(session));
    return done / total;
  };
  const auto& config = session.config;
  check_branch(branch, config, session.store, used(branch.config.train.budget), used(config.train.budget));
}

/// Continues from the checkpoint of the origin, if it has one.
void restore_origin(Session& session, const Origin& origin) {
  if (origin.branch)
    restore(session, origin.branch->checkpoint);
  else if (!origin.checkpoint.empty())
    restore(session, origin.checkpoint);
  else if (session.options.resume)
    log_info("train", words(session.options.run, " has no checkpoint: the run starts from the beginning"));
  if (!origin.branch) return;
  session.state.best_step = 0;  // the best is searched for in this run
  session.state.evaluations_without_gain = 0;
  session.state.held_out_due = session.state.suites_due = false;  // of the origin
}

void open_metrics(Session& session) {
  session.lock.require_in_place();
  session.metrics = std::make_unique<Metrics>(session.options.run, session.state.metrics_bytes, session.state.step);
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& entry : entries(session.config))
    if (entry.leaf) values.emplace_back(entry.path, entry.value);
  session.metrics->describe(to_yaml(session.config), values);
}

/// Compares the memory of every phase with that of the machine by `compare`.
void compare_memory(const RunConfig& config, double row_tokens, decltype(require_memory)& compare) {
  for (int64_t phase = 0; phase <= static_cast<int64_t>(config.train.phases.size()); ++phase)
    compare(config_of_phase(config, phase), row_tokens, machine_memory());
}

/// The mean number of tokens in a row of the first phase; those of longer phases have at least as many.
double row_tokens(const Session& session) {
  return static_cast<double>(session.store.num_tokens()) / static_cast<double>(session.collator.size());
}

}  // namespace

void start(Session& session) {
  const auto& config = session.config;
  compare_memory(config, row_tokens(session), require_memory);
  configure_threads(config.train.threads);
  device_of(config.train.device);
  check_data(session);
  open_suites(session);
  draw_weights(session);
  check_suites(session);
  const auto origin = find_origin(config, session.options);
  if (origin.branch) check_branch_point(session, *origin.branch);
  InitReport initialized;
  if (!origin.initial.empty())
    initialized = init_from(origin.initial, *session.network, session.store.tokenizer(), config.init.probe);
  if (config.init.probe) session.network->freeze_backbone();
  open_run_folder(session, origin);
  compare_memory(config, row_tokens(session), warn_of_memory);  // in the log of the run, too
  if (!origin.initial.empty()) {
    log_info("init", to_text(initialized));
    session.lock.write("init.json", json_text(to_json(initialized), 2) + "\n");
  }
  session.stepper = std::make_unique<Stepper>(config, *session.network);
  restore_origin(session, origin);
  session.state.optimizer = name_of(config.optimizer.kind);
  session.state.evaluation_protocol = evaluation_protocol(config, session.held_out_store);
  check_disk(session);
  open_metrics(session);
  tell_started(session);
  if (origin.branch) {
    session.saved_at = -1;
    save(session, true);
  }
  announce(session);
  warn_of_babylm_rules(session);
}

}  // namespace cloze
