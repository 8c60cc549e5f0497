#include "cli/finetune_grid.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "run/config_changes.h"
#include "run/run_files.h"
#include "tasks/task_metric.h"

namespace cloze {

namespace {

using nlohmann::json;

/// The best figure of a finished run on the valid part.
struct PointFigure {
  std::string metric{};
  std::optional<double> value{};
};

PointFigure figure_of_run(const std::string& run) {
  const auto file = run + "/summary.json";
  const auto summary = parse_json(read_text(file));
  const auto metric = value_at(summary, "/task/metric"), best = value_at(summary, "/task/best");
  require<DataError>(metric.is_string(), file, ": has no figure of a task; remove the folder, and fine-tune again");
  return {.metric = metric, .value = best.is_number() ? std::optional(best.get<double>()) : std::nullopt};
}

bool is_better(const PointFigure& one, const PointFigure& other) {
  if (!one.value || !other.value) return one.value.has_value();
  return is_error(one.metric) ? *one.value < *other.value : *one.value > *other.value;
}

/// Refuses to go on with a run that began with other settings.
void check_same_point(const std::string& run, const RunConfig& config) {
  const auto before = read_resumed_config(run + "/run.yaml", {}, run);
  for (const auto& changed : changed_keys(before, config)) {
    const bool is_of_point = changed.key.starts_with("optimizer.") || changed.key.starts_with("schedule.") ||
                             changed.key.starts_with("train.") || changed.key == "init.from";
    require<ConfigError>(!is_of_point || may_change(changed.key), run, ": is a run of another grid (", to_text(changed),
                         "); name another folder with --run, or remove that one");
  }
}

}  // namespace

RecipePoint best_of_grid(
    const std::vector<RecipePoint>& points, const std::string& folder,
    const std::function<RunConfig(const RecipePoint& point)>& config_of,
    const std::function<void(const RecipePoint& point, const std::string& run, bool resume)>& make) {
  const RecipePoint* best = nullptr;
  PointFigure best_figure;
  for (const auto& point : points) {
    const auto run = folder + "/" + point.name;
    const bool resume = run_folder(run) == RunFolder::saved;
    if (resume) check_same_point(run, config_of(point));
    if (!std::filesystem::exists(run + "/summary.json")) make(point, run, resume);
    const auto figure = figure_of_run(run);
    log_info("task", words(point.name, ": ", figure.metric, " ", figure.value ? digits(*figure.value, 4) : "undefined",
                           " on the valid part"));
    if (best && !is_better(figure, best_figure)) continue;
    best = &point;
    best_figure = figure;
  }
  require<ConfigError>(best_figure.value.has_value(), folder, ": no run has a ", best_figure.metric,
                       " on the valid part; name another figure with --set task.metric");
  return *best;
}

}  // namespace cloze
