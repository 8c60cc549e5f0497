#include "train/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "objectives/generative_rows.h"
#include "run/checkpoints/checksums.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"
#include "run/folder.h"
#include "run/moved.h"
#include "run/records/provenance.h"
#include "run/run_files.h"
#include "train/schedule.h"
#include "train/training.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The config of a file of the run, as this version writes it.
RunConfig config_before(const Training& training, const std::string& file) {
  auto before = decode<RunConfig>(load_run_config(file));
  // A file of an earlier version lacks these keys.
  take_special_ids(before.model, training.store.tokenizer().special());
  before.evaluation = resolved_evaluation(before);
  return before;
}

/// The config that a run was trained with until now, whatever run.yaml says since somebody edited it.
RunConfig config_until_now(const Training& training, const std::string& checkpoint) {
  const auto& run = training.options.run;
  try {
    return config_before(training, config_file_of(run, checkpoint));
  } catch (const ConfigError&) {
    return config_before(training, run + "/run.yaml");  // that of the checkpoint has a value that this version forbids
  }
}

/// The folders of all texts of a run.
std::string texts_of(const DataConfig& data) {
  std::vector<std::string> folders{data.tokens};
  for (const auto& part : data.mixture) folders.push_back(part.tokens);
  return listed(folders);
}

/// Whether a key is of how a run began, so that going on with another value would only rename what was done.
bool is_settled(const std::string& key) {
  return key.starts_with("init.") || key.starts_with("freeze.") || key.starts_with("adaptation.") ||
         key == "distil.teacher" || key == "train.seeds.init" || key.starts_with("model.initializer") ||
         key.starts_with("task.");
}

/// Throws ConfigError for changes that nobody allowed, or that change nothing.
void check_changes(const Training& training, const std::vector<ChangedKey>& changed, bool same_text) {
  const auto& options = training.options;
  std::string list, settled;
  for (const auto& key : changed) {
    if (!may_change(key.key)) list += "\n  " + to_text(key);
    if (is_settled(key.key)) settled += "\n  " + to_text(key);
  }
  require<ConfigError>(settled.empty(), options.run, ": has begun, and a run that goes on keeps what it began with; ",
                       "undo these changes, or make a new run:", settled);
  require<ConfigError>(list.empty() || options.overwrite_config, options.run,
                       ": was made with a different config; undo these changes (without a config file a run "
                       "continues with its own), or allow them with --allow-config-change:",
                       list);
  const auto run = shell_word(options.run);
  const bool is_untrained = !same_text && recorded_data(options.run).empty();
  require<ConfigError>(!is_untrained || options.overwrite_config, options.run,
                       ": was imported and not trained, so that there is no training to resume; begin one from it: ",
                       "cloze pretrain ", shell_word(options.run + "/run.yaml"), " --set init.from=", run,
                       " --set data.tokens=", shell_word(training.config.data.tokens), " --run NAME");
  require<ConfigError>(same_text || options.overwrite_config, options.run, ": was trained on different tokens than ",
                       texts_of(training.config.data),
                       "; name the same tokens, or allow it with --allow-config-change");
}

/// Whether the steps until now would have been others under the budget that the run goes on with.
bool budget_counts(Training& training, const RunConfig& before, const std::string& checkpoint) {
  const auto& now = training.config;
  if (before.train.budget == now.train.budget || checkpoint.empty()) return false;
  training.progress = load_state(checkpoint, nullptr);
  open_phase(training);
  const auto follows = [&](const RunConfig& config) {
    const auto used = used_share(config.train.budget, usage(training));
    return !config.train.phases.empty() || masking_follows_length(config.objectives) ||
           follows_budget(config.schedule, training.progress.step, used);
  };
  return follows(before) || follows(now);
}

/// Whether a run of a config has no step left from a checkpoint, where its budget is used up or its patience over.
bool has_ended(Training& training, const std::string& checkpoint, const RunConfig& config) {
  if (checkpoint.empty()) return false;
  const auto state = load_state(checkpoint, nullptr);
  training.progress = state;
  open_phase(training);
  const auto patience = config.evaluation.patience;
  const bool lost_patience = patience > 0 && state.evaluations_without_gain >= patience &&
                             state.evaluation_protocol == evaluation_protocol(config, training.held_out_store);
  return lost_patience || used_share(config.train.budget, usage(training)) >= 1;
}

/// Throws ConfigError for changes of steps where none is left: the records of the run would have them, and its weights
/// not. A run may be ended early, by a budget that it has used up.
void check_has_steps(Training& training, const std::string& checkpoint, const RunConfig& before,
                     const Changes& changes) {
  if (!has_ended(training, checkpoint, training.config)) return;
  const bool had_ended = has_ended(training, checkpoint, before);
  std::string list;
  for (const auto& changed : changes.keys) {
    const bool is_of_budget = changed.key.starts_with("train.budget."),
               is_of_steps = !may_change(changed.key) && !changed.key.starts_with("evaluation.");
    if (is_of_budget ? had_ended : is_of_steps) list += "\n  " + to_text(changed);
  }
  require<ConfigError>(list.empty(), training.options.run, ": has no step left after step ", changes.step,
                       ", so that nothing would be trained with these changes; raise train.budget as well, or train a "
                       "new run with them:",
                       list);
}

/// What this process changes in a run that it goes on with.
struct Resumed {
  Changes changes{};
  bool rows_differ = false;  ///< what it changes may give other rows
};

/// Throws ConfigError for what nobody allowed.
Resumed check_resumed(Training& training, const std::string& checkpoint, int64_t step) {
  const auto& run = training.options.run;
  const auto text = recorded_data(run), new_text = data_fingerprint(training.store, training.held_out_store);
  check_changes(training, changed_keys(config_before(training, run + "/run.yaml"), training.config), text == new_text);
  // What somebody has edited in run.yaml needs no leave, and is reported and recorded like all the others.
  const auto before = config_until_now(training, checkpoint);
  Changes changes{.step = step, .keys = changed_keys(before, training.config)};
  std::erase_if(changes.keys, [](const ChangedKey& changed) { return names_text(changed.key); });
  if (text != new_text) changes.keys.push_back({text_key, text.empty() ? "none" : text, new_text});
  check_has_steps(training, checkpoint, before, changes);
  changes.budget_counts = budget_counts(training, before, checkpoint);
  const bool is_free = std::ranges::all_of(changes.keys, [](const auto& changed) { return may_change(changed.key); });
  // A run that went on with other tokens at this step or later may have lost its checkpoints since.
  return {.changes = changes, .rows_differ = !is_free || data_since(run).value_or(-1) >= step};
}

/// Says what a process changed.
void log_changes(const Changes& changes) {
  const auto text = to_text(changes);
  if (text.empty()) return;
  const bool tells = !telling(changes).keys.empty();
  log_info("train", concat("resumed at ", text, tells ? "; reports hold it apart from runs that never changed" : ""));
}

void write_provenance(const Training& training, const std::optional<BranchPoint>& branch) {
  auto origin = provenance(training.store, training.held_out_store, training.options.command_line);
  const int64_t step = branch ? training.progress.step : 0;
  if (branch) {
    origin["branched_from"] = {{"run", branch->run}, {"checkpoint", branch->checkpoint}, {"step", step}};
    origin["history"] = history_until(parse_json(read_text(branch->run + "/provenance.json", 16 << 20)), step);
  }
  add_to_history(origin, process_entry(training.options.command_line), {.step = step});
  write_atomic(training.options.run + "/provenance.json", json_text(origin, 2) + "\n");
}

/// The tokenizer of the tokens, alone in its folder: files of another kind would be opened in its place.
void save_tokenizer(const Training& training) {
  StagedFolder staged(training.options.run + "/tokenizer");
  training.store.tokenizer().save(staged.path());
  staged.commit();
}

/// What came with the imported model whose weights a run begins with: its exports have it again.
void copy_imported_facts(const Origin& origin, const std::string& run) {
  const auto& initial = origin.initial;
  const auto from = origin.branch             ? origin.branch->run
                    : is_step_folder(initial) ? fs::path(located_step(initial)).parent_path().string()
                                              : initial;
  for (const auto* name : {"config.json", "generation_config.json", "sentence_transformers.json", head_dropout_file}) {
    const auto file = concat(from, "/", imported_folder, "/", name),
               kept = concat(run, "/", imported_folder, "/", name);
    if (from.empty() || !fs::exists(file)) continue;
    const auto content = parse_json(read_text(file, 64 << 20));
    if (!content.is_object()) continue;
    fs::create_directories(fs::path(kept).parent_path());
    write_atomic(kept, json_text(content, 2) + "\n");
  }
}

}  // namespace

bool open_run_folder(Training& training, const Origin& origin) {
  const auto& run = training.options.run;
  const auto& branch = origin.branch;
  training.lock->require_in_place();
  const int64_t step = origin.checkpoint.empty() ? training.progress.step : load_state(origin.checkpoint, nullptr).step;
  if (!training.options.resume) clear_begun_run(run);
  const bool exists = fs::exists(run + "/run.yaml");
  const auto [changes, rows_differ] = exists ? check_resumed(training, origin.checkpoint, step) : Resumed{};
  if (exists && !origin.checkpoint.empty() && !training.options.overwrite_config)
    require_made_by(run, origin.checkpoint, std::nullopt);
  if (!exists) write_provenance(training, branch);  // first: with it, a run that is killed here may begin anew
  if (exists) record_changes(run, training.options.command_line, changes);  // before run.yaml forgets what was
  if (!exists) copy_imported_facts(origin, run);
  if (branch)
    fs::copy_file(branch->run + "/metrics.jsonl", run + "/metrics.jsonl", fs::copy_options::overwrite_existing);
  write_atomic(run + "/run.yaml", to_yaml(training.config));
  save_tokenizer(training);
  if (exists) record_data(run, training.store, training.held_out_store, step);
  record_made_by(run, made_by(training));
  set_log_file(run + "/log.txt");
  log_changes(changes);
  return rows_differ;
}

namespace {

using nlohmann::json;

/// Whether a run has saved a checkpoint, which may be gone.
bool has_saved(const std::string& run) {
  std::error_code unknown;
  const auto has = [&](const char* name) { return fs::exists(fs::symlink_status(run + name, unknown)); };
  return !step_folders(run).empty() || has("/latest") || has("/summary.json");
}

/// Where a checkpoint that a run recorded is now; the recorded path where it is not found.
std::string found_checkpoint(const std::string& run, const std::string& recorded) {
  for (const auto& path : likely_paths(run, recorded))
    if (is_step_folder(path)) return path;
  return recorded;
}

/// init.from, or, for a run that was killed before its first checkpoint, the checkpoint that it was initialized from,
/// even if the run of that checkpoint has gone on since; empty without init.from.
std::string initial_checkpoint(const RunConfig& config, const PretrainOptions& options) {
  const auto& from = config.init.from;
  const auto report = options.run + "/init.json";
  if (from.empty() || !options.resume || !fs::exists(report)) return from;
  const auto origin = parse_json(read_text(report, 16 << 20));
  const auto recorded = origin.is_object() ? origin.value("from", json()) : json();
  require<CheckpointError>(recorded.is_string(), report, ": is damaged; start a new run in another folder");
  const auto checkpoint = found_checkpoint(options.run, recorded.get<std::string>());
  require<CheckpointError>(
      fs::exists(checkpoint), options.run, ": has no checkpoint of its own, and ", checkpoint,
      ", from which it was initialized, is missing; restore it, or start a new run in another folder");
  const auto weights = string_at(origin, "/weights");
  require<CheckpointError>(weights.empty() || weights == weights_fingerprint(checkpoint), options.run,
                           ": has no checkpoint of its own, and ", checkpoint,
                           ", from which it was initialized, has other weights by now; start a new run in another "
                           "folder");
  return checkpoint;
}

/// The branch point of a new branch, or of one that was killed before its first checkpoint.
std::optional<BranchPoint> branch_point(const PretrainOptions& options) {
  if (!options.resume)
    return options.branch_from.empty() ? std::nullopt : std::optional(find_branch_point(options.branch_from));
  const auto path = options.run + "/provenance.json";
  const auto recorded = fs::exists(path) ? parse_json(read_text(path, 16 << 20)) : json();
  if (!recorded.is_object() || !recorded.contains("branched_from")) return std::nullopt;
  const auto& origin = recorded["branched_from"];
  const auto checkpoint = origin.is_object() ? origin.value("checkpoint", json()) : json();
  require<CheckpointError>(checkpoint.is_string(), path, ": is damaged, so that the checkpoint which ", options.run,
                           " was branched from is not known; branch again, into another folder");
  return find_branch_point(found_checkpoint(options.run, checkpoint.get<std::string>()));
}

}  // namespace

Origin find_origin(const RunConfig& config, const PretrainOptions& options) {
  Origin origin;
  if (options.resume) origin.checkpoint = find_checkpoint(options.run);
  if (!origin.checkpoint.empty()) return origin;
  require<CheckpointError>(!options.resume || !has_saved(options.run), options.run,
                           ": has no intact checkpoint to continue from; restore one, start a new run in another "
                           "folder with --run, or remove this one and begin anew");
  origin.branch = branch_point(options);
  if (!origin.branch) origin.initial = initial_checkpoint(config, options);
  return origin;
}

}  // namespace cloze
