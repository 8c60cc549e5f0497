#include "train/run_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "objectives/generative_rows.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"
#include "run/records/history.h"
#include "run/records/provenance.h"
#include "train/schedule.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

void check_keys(const BranchPoint& point, const RunConfig& now) {
  std::string list;
  for (const auto& changed : changed_keys(point.config, now))
    if (!may_change(changed.key) && !changed.key.starts_with("schedule.")) list += "\n  " + to_text(changed);
  require<ConfigError>(
      list.empty(), point.checkpoint,
      ": a branch may change budget and schedule; undo these changes, or start a new run with init.from:", list);
}

void check_text(const BranchPoint& point, const std::string& data) {
  require<ConfigError>(recorded_data(point.run) == data, point.run,
                       ": was trained on different tokens; name the same tokens");
  require<ConfigError>(load_state(point.checkpoint, nullptr).step >= data_since(point.run).value_or(0),
                       point.checkpoint, ": was trained on the tokens that ", point.run,
                       " had before it went on with others; branch from a later checkpoint");
}

/// Throws ConfigError for phases, which begin at shares of the budget.
void check_phases(const BranchPoint& point, const RunConfig& now) {
  require<ConfigError>(now.train.phases.empty() || point.config.train.budget == now.train.budget, point.checkpoint,
                       ": train.phases begin at shares of train.budget, so that its rows depend on it; give the branch "
                       "the budget of ",
                       point.run, ", or branch runs without phases");
}

/// Throws ConfigError for a masking whose share changes over the budget.
void check_masking(const BranchPoint& point, const RunConfig& now) {
  const auto &a = point.config.train.budget, &b = now.train.budget;
  if (a.steps == b.steps && (a.steps > 0 || (a.words == b.words && a.epochs == b.epochs))) return;
  const auto all = entries(now);
  const auto value = [&](const std::string& path) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.path == path; });
    return found == all.end() ? "" : found->value;
  };
  const std::string initial = "initial_mlm_probability";
  for (const auto& entry : all) {
    if (!entry.path.ends_with(initial) || entry.value == "0") continue;
    const auto steps = entry.path.substr(0, entry.path.size() - initial.size()) + "decay_steps";
    require<ConfigError>(value(steps) != "0", point.checkpoint, ": ", entry.path, " is ", entry.value,
                         ", so that its masks depend on train.budget; give ", steps, " to runs that are branched");
  }
}

/// Throws ConfigError if `schedule` has begun to depend on its budget.
void check_stable(const std::string& whose, const ScheduleConfig& schedule, double used) {
  const double stable = stable_fraction(schedule);
  constexpr double rounding = 1e-9;
  if (used <= stable + rounding) return;
  fail<ConfigError>(
      whose,
      stable == 0 ? concat(" (schedule.shape ", kind_in(schedule.shape), ") depends on the budget from the start")
                  : concat(" (schedule.shape ", kind_in(schedule.shape), ") begins its decay after ", shortest(stable),
                           " of the budget, and the checkpoint stands at ", shortest(std::round(used * 1e4) / 1e4)),
      "; branch from a checkpoint before the decay of a run with schedule.shape constant or wsd, to a budget "
      "whose decay begins later");
}

}  // namespace

BranchPoint find_branch_point(const std::string& from) {
  BranchPoint point;
  point.run = run_directory_of(from);
  const auto step = fs::path(located_step(from)).filename().string();
  point.checkpoint = find_checkpoint(point.run, point.run == from ? "latest" : step.substr(5));
  require<CheckpointError>(!point.checkpoint.empty(), from, ": there is no checkpoint to branch from; a run keeps its ",
                           "newest checkpoint.keep checkpoints");
  point.config = decode<RunConfig>(load_run_config(point.run + "/run.yaml"));
  require_made_by(point.run, point.checkpoint, std::nullopt);
  return point;
}

void check_branch(const BranchPoint& point, const RunConfig& now, const TokenStore& store, const TokenStore& held_out,
                  double used_before, double used_now) {
  auto before = point;
  take_special_ids(before.config.model, store.tokenizer().special());
  before.config.evaluation = resolved_evaluation(before.config);
  check_keys(before, now);
  check_phases(before, now);
  check_masking(before, now);
  check_text(before, data_fingerprint(store, held_out));
  require<ConfigError>(used_now < 1, point.checkpoint, ": has used up the budget of the branch; raise train.budget");
  check_stable("the schedule of " + point.run, point.config.schedule, used_before);
  check_stable("the schedule of the branch", now.schedule, used_now);
  require<ConfigError>(same_stable_rates(point.config.schedule, now.schedule), point.checkpoint,
                       ": the branch would have had other learning rates up to here (schedule.shape ",
                       kind_in(point.config.schedule.shape), ", warmup ", shortest(point.config.schedule.warmup),
                       " -> ", kind_in(now.schedule.shape), ", warmup ", shortest(now.schedule.warmup),
                       "); give both runs the same schedule.warmup in steps, and shapes of constant, wsd and wsd_s");
}

}  // namespace cloze
