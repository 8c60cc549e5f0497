#include "train/run_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "run/config_changes.h"
#include "objectives/generative_rows.h"
#include "run/config_io.h"
#include "run/evaluation_protocol.h"
#include "run/folder.h"
#include "run/load_config.h"
#include "run/provenance.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The keys that have changed since the run began, one a line.
std::vector<std::string> changes_since_start(const Session& session) {
  auto before = decode<RunConfig>(load_run_config(session.options.run + "/run.yaml"));
  // A file of an earlier version lacks these keys.
  take_special_ids(before.model, session.store.tokenizer().special());
  before.evaluation = resolved_evaluation(before);
  return changed_keys(before, session.config);
}

void check_resumed(Session& session, int64_t step) {
  const auto& options = session.options;
  const auto changed = changes_since_start(session);
  std::string list;
  for (const auto& line : changed) list += "\n  " + line;
  require<ConfigError>(changed.empty() || options.overwrite_config, options.run,
                       ": was made with a different config; undo these changes (without a config file a run "
                       "continues with its own), or allow them with --allow-config-change:",
                       list);
  const bool same_text = recorded_data(options.run) == session.store.fingerprint();
  // A run that went on with other tokens at this step or later may have lost its checkpoints since.
  session.changed = !changed.empty() || !same_text || data_since(options.run).value_or(-1) >= step;
  require<ConfigError>(same_text || options.overwrite_config, options.run, ": was trained on different tokens than ",
                       session.config.data.tokens, "; name the same tokens, or allow it with --allow-config-change");
}

void write_provenance(const Session& session, const std::optional<BranchPoint>& branch) {
  auto origin = provenance(session.store, session.options.command_line);
  if (branch)
    origin["branched_from"] = {{"run", branch->run}, {"checkpoint", branch->checkpoint}, {"step", session.state.step}};
  write_atomic(session.options.run + "/provenance.json", json_text(origin, 2) + "\n");
}

/// The tokenizer of the tokens, alone in its folder: files of another kind would be opened in its place.
void save_tokenizer(const Session& session) {
  StagedFolder staged(session.options.run + "/tokenizer");
  session.store.tokenizer().save(staged.path());
  staged.commit();
}

}  // namespace

void open_run_folder(Session& session, const Origin& origin) {
  const auto& run = session.options.run;
  const auto& branch = origin.branch;
  session.lock.require_in_place();
  const int64_t step = origin.checkpoint.empty() ? 0 : load_state(origin.checkpoint, nullptr).step;
  if (!session.options.resume) clear_begun_run(run);
  const bool exists = fs::exists(run + "/run.yaml");
  if (exists) check_resumed(session, step);
  if (exists && !origin.checkpoint.empty() && !session.options.overwrite_config)
    require_made_by(run, origin.checkpoint, std::nullopt);
  if (!exists) write_provenance(session, branch);  // first: with it, a run that is killed here may begin anew
  if (branch)
    fs::copy_file(branch->run + "/metrics.jsonl", run + "/metrics.jsonl", fs::copy_options::overwrite_existing);
  write_atomic(run + "/run.yaml", to_yaml(session.config));
  save_tokenizer(session);
  if (exists) record_data(run, session.store, step);
  record_made_by(run, made_by(session));
  set_log_file(run + "/log.txt");
}

}  // namespace cloze
