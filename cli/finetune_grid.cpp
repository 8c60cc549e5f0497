#include "cli/finetune_grid.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/random.h"
#include "core/report/table.h"
#include "core/spelling.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"
#include "run/records/history.h"
#include "run/run_files.h"
#include "study/measures/task_value.h"
#include "study/plan/plan.h"
#include "tasks/rows/prepared_task.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

/// A key of a grid with its values.
struct SearchedKey {
  std::string key;
  std::vector<std::string> values{};
};

SearchedKey searched_key(const std::string& one) {
  const auto equals = one.find('=');
  SearchedKey searched{.key = one.substr(0, equals)};
  std::istringstream values(equals == one.npos ? "" : one.substr(equals + 1));
  for (std::string value; std::getline(values, value, ',');) searched.values.push_back(value);
  require<ConfigError>(searched.values.size() > 1 && !contains(searched.values, ""), "--grid ", one,
                       ": names no two values; write KEY=VALUE,VALUE: optimizer.learning_rate=1e-4,3e-4");
  require<ConfigError>(!searched.key.starts_with("task."), "--grid ", one,
                       ": the settings of a grid are judged on one task; give a value of it with --set");
  return searched;
}

bool is_better(const TaskOutcome& one, const TaskOutcome& other) {
  if (std::isnan(one.valid) || std::isnan(other.valid)) return !std::isnan(one.valid);
  return is_error(one.metric) ? one.valid < other.valid : one.valid > other.valid;
}

/// The config of a task and the names of its labels.
std::string written(Task task) {
  task.config.labels.items
      .clear();  // of a task that was opened from a run they are there, also where its file has none
  return to_yaml(task.config) + listed(task.labels.names);
}

/// Refuses to go on with a run that began with other settings or weights, or with another task.
void check_same_point(const std::string& run, const RunConfig& config, const Task& task) {
  const auto before = read_resumed_config(run + "/run.yaml", {}, run);
  constexpr const char* refusal = "; name another folder with --run, or remove that one";
  for (const auto& changed : changed_keys(before, config)) {
    const auto is_in = [&](const char* section) { return changed.key.starts_with(section); };
    const bool is_setting = is_in("optimizer.") || is_in("schedule.") || is_in("train.") || is_in("objectives.") ||
                            is_in("freeze.") || is_in("init.") || is_in("adaptation.") || is_in("distil.") ||
                            changed.key == "task.metric";
    require<ConfigError>(!is_setting || (may_change(changed.key) && !is_in("train.budget.")), run,
                         ": is a run of another grid (", to_text(changed), ")", refusal);
  }
  const auto rows = run + "/" + task_folder;
  require<ConfigError>(written(open_prepared_task(rows).task) == written(task), run,
                       ": is a run of another grid, whose task file was another", refusal);
  require<ConfigError>(has_items_of(rows, task), run, ": is a run of another grid, whose items were others", refusal);
  const auto began_with = string_at(parse_json(read_text(run + "/init.json")), "/weights");
  require<ConfigError>(began_with == weights_fingerprint(config.init.from), run,
                       ": is not known to begin with the weights that ", config.init.from, " has now", refusal);
}

}  // namespace

std::vector<std::string> set_with_grid(std::vector<std::string> set, const std::vector<std::string>& grid) {
  for (const auto& one : grid) {
    const auto [key, values] = searched_key(one);
    set.push_back(key + "=" + values.front());
  }
  return set;
}

std::vector<RecipePoint> grid_points(const std::vector<std::string>& grid, const std::vector<RecipePoint>& points) {
  auto all = points;
  std::vector<std::string> keys;
  for (const auto& one : grid) {
    const auto [key, values] = searched_key(one);
    require<ConfigError>(!contains(keys, key), "--grid ", one, ": its key is given twice; name all values once");
    keys.push_back(key);
    if (all.empty()) all.emplace_back();
    std::vector<RecipePoint> wider;
    for (const auto& point : all)
      for (const auto& value : values) {
        auto& next = wider.emplace_back(point);
        const auto name = concat(key.substr(key.rfind('.') + 1), "-", value);
        next.name += (next.name.empty() ? "" : "-") + folder_name(name);
        next.set.push_back(key + "=" + value);
      }
    all = std::move(wider);
  }
  return all;
}

std::vector<RecipePoint> drawn_points(const std::vector<RecipePoint>& points, int64_t tries, uint64_t seed) {
  if (tries == 0 || tries >= std::ssize(points)) return points;
  const Permutation order(points.size(), mix(name_hash("settings of a grid"), seed));
  std::vector<uint64_t> drawn;
  for (uint64_t i = 0; i < static_cast<uint64_t>(tries); ++i) drawn.push_back(order(i));
  std::ranges::sort(drawn);
  std::vector<RecipePoint> all;
  for (const auto i : drawn) all.push_back(points[i]);
  return all;
}

RecipePoint best_of_grid(
    const std::vector<RecipePoint>& points, const std::string& folder, const Task& task,
    const std::function<RunConfig(const RecipePoint& point)>& config_of,
    const std::function<void(const RecipePoint& point, const std::string& run, bool resume)>& make) {
  const RecipePoint* best = nullptr;
  TaskOutcome best_outcome{.valid = std::nan("")};
  Table table{.header = columns_of_numbers({"setting", "valid"})};
  double longest = 0;  // of the runs of this process [s]
  for (const auto& point : points) {
    const auto start = Clock::now();
    const auto run = folder + "/" + point.name;
    const bool resume = run_folder(run) == RunFolder::saved;
    if (resume) check_same_point(run, config_of(point), task);
    const bool is_made = std::filesystem::exists(run + "/summary.json");
    if (!is_made) make(point, run, resume);
    longest = std::max(longest, is_made ? 0 : seconds_since(start));
    const auto outcome = outcome_of(run);
    const auto value = outcome.valid / points_of(1, outcome.metric);
    const auto shown = std::isnan(value) ? "undefined" : digits(value, 4);
    table.rows.push_back({point.name, shown});
    const auto left = static_cast<double>(points.size() - table.rows.size() + 1) * longest;  // the run of the best, too
    log_info("task", concat(point.name, ": ", outcome.metric, " ", shown, " on the valid part",
                            longest > 0 ? concat("; about ", duration(left), " left") : ""));
    if (best && !is_better(outcome, best_outcome)) continue;
    best = &point;
    best_outcome = outcome;
  }
  write_atomic(folder + "/grid.csv", to_csv(table));
  require<ConfigError>(!std::isnan(best_outcome.valid), folder, ": no run has a ", best_outcome.metric,
                       " on the valid part; name another figure with --set task.metric");
  return *best;
}

}  // namespace cloze
