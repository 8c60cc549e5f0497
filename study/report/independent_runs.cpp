#include "study/report/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/contains.h"
#include "core/json.h"
#include "core/spelling.h"
#include "core/text.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "study/costs/costs.h"
#include "study/report/task_report.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/task_metric.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t most_keys = 2;  // by which an arm is named

struct IndependentRun {
  std::string folder;
  RunConfig config;
  ReportedRun run{};
  HeldOutFile held_out{};
};

/// The folders of the texts of a run.
std::vector<std::string*> folders_of(DataConfig& data) {
  std::vector<std::string*> folders{&data.tokens};
  for (auto& part : data.mixture) folders.push_back(&part.tokens);
  return folders;
}

/// What tells the texts of a run from those of others: their fingerprint, else their folders.
std::string texts_of(IndependentRun& one) {
  if (!one.run.provenance.texts.empty()) return one.run.provenance.texts;
  auto texts = one.run.provenance.tokenizer;
  for (const auto* folder : folders_of(one.config.data)) texts += " " + *folder;
  return texts;
}

/// For each run its config with the folders that the first run on the same texts names. Texts that were prepared anew
/// in a folder have its name with their fingerprint.
std::vector<RunConfig> configs_by_texts(std::vector<IndependentRun> runs) {
  std::map<std::string, std::vector<std::string>> first;  // folders by texts
  std::set<std::vector<std::string>> named;
  std::vector<RunConfig> configs;
  for (auto& one : runs) {
    const auto texts = texts_of(one);
    const auto folders = folders_of(one.config.data);
    std::vector<std::string> names;
    for (const auto* folder : folders) names.push_back(*folder);
    if (!first.contains(texts) && !named.insert(names).second) names[0] += "-" + texts;
    const auto& known = first.emplace(texts, names).first->second;
    for (size_t i = 0; i < folders.size() && known.size() == folders.size(); ++i) *folders[i] = known[i];
    configs.push_back(one.config);
  }
  return configs;
}

/// Everything by which runs of one arm are alike.
RunConfig without_seed(RunConfig config) {
  config.train.seed = 0;
  config.train.threads = 0;
  config.train.workers = 1;
  config.train.on_divergence = {};
  config.checkpoint = {};
  if (!config.task.name.empty()) config.data.tokens = "";  // config.task has the fingerprint of its rows
  return config;
}

/// Refuses a unit that says nothing of this loss.
void check_unit(LossUnit unit, const std::string& metric) {
  require<ConfigError>(unit == LossUnit::nats || as_kind(parse_objective(metric, "--metric")).is_generative(),
                       "--unit ", unit, ": ", metric,
                       " predicts a part of the text only; choose a generative loss such as clm with "
                       "--metric, or compare in nats");
}

/// Why a run is not at the end of its budget; empty where it is.
std::string why_unfinished(const IndependentRun& one) {
  const auto& budget = one.config.train.budget;
  const auto step = static_cast<int64_t>(read_log(one.folder).last.step);
  const auto resume = " resume it with `cloze pretrain --run " + shell_word(one.folder) + " --resume`";
  const auto of = budget.steps > 0 ? concat(" of ", budget.steps) : "";
  if (!fs::exists(one.folder + "/held_out.json")) return concat("it stands at step ", step, of, ";", resume);
  const auto scored = one.held_out.step;
  if (string_at(read_summary(one.folder), "/stopped_by") == "patience" && step <= scored)
    return concat("it stopped early at step ", step, of, " (evaluation.patience)");
  auto others = budget;
  others.steps = 0;
  if (step > scored || (scored < budget.steps && !others.limited()))
    return concat("it went on after step ", scored, " and stands at step ", step, of, ";", resume);
  return "";
}

IndependentRun open_run(const std::string& path) {
  const auto folder = fs::path(path).lexically_normal().string();
  const auto trimmed = folder.size() > 1 && folder.back() == '/' ? folder.substr(0, folder.size() - 1) : folder;
  const auto config_file = trimmed + "/run.yaml";
  require<DataError>(fs::exists(config_file), path, ": is not a run directory (it has no run.yaml)");
  IndependentRun one{.folder = trimmed, .config = decode<RunConfig>(load_run_config(config_file))};
  auto& run = one.run;
  run.result.seed = one.config.train.seed;
  run.result.folder = trimmed;
  run.budget = budget_words(one.config.train.budget);
  run.command = concat("cloze pretrain ", shell_word(config_file), " --run ", shell_word(trimmed + "-again"));
  run.provenance = read_provenance(trimmed);
  if (fs::exists(trimmed + "/held_out.json"))
    one.held_out = read_held_out(trimmed, concat("remove ", trimmed, " and train the run again"));
  const auto diverged = read_log(trimmed).diverged;
  run.message = diverged.empty() ? why_unfinished(one) : diverged;
  run.state = !diverged.empty() ? RunState::failed : run.message.empty() ? RunState::done : RunState::waiting;
  return one;
}

std::vector<IndependentRun> open_runs(const std::vector<std::string>& folders) {
  std::vector<IndependentRun> runs;
  std::set<fs::path> seen;
  for (const auto& folder : folders) {
    runs.push_back(open_run(folder));
    require<ConfigError>(seen.insert(fs::canonical(runs.back().folder)).second, folder,
                         ": is given twice, and would count as two runs; name it once");
  }
  const bool any = std::any_of(runs.begin(), runs.end(), [](const auto& r) { return r.run.state == RunState::done; });
  require<DataError>(any, "none of the ", runs.size(), " runs is finished: ", runs.front().folder, ": ",
                     runs.front().run.message);
  return runs;
}

/// The first of some losses in the order in which a run is scored by them.
std::string first_of(const std::vector<std::string>& losses, const RunConfig& config) {
  for (const auto& objective : resolved_evaluation(config).objectives)
    if (const auto name = short_form(objective); contains(losses, name)) return name;
  return losses.front();
}

/// The loss to compare by, of those that all finished runs have; a `note` says which of several was taken unasked.
struct CommonMetric {
  std::string name{}, note{};
};
CommonMetric common_metric(const std::vector<IndependentRun>& runs, const std::string& wanted) {
  std::vector<std::string> common;
  const IndependentRun* first = nullptr;
  for (const auto& one : runs) {
    if (one.run.state != RunState::done) continue;
    const auto& losses = one.held_out.losses;
    if (!first)
      for (const auto& [name, values] : losses) common.push_back(name);
    first = first ? first : &one;
    const auto before = common;
    std::erase_if(common, [&](const std::string& name) { return losses.count(name) == 0; });
    std::string had, has;
    for (const auto& name : before) had += (had.empty() ? "" : " and ") + name;
    for (const auto& [name, values] : losses) has += (has.empty() ? "" : " and ") + name;
    require<DataError>(!common.empty(), first->folder, " and ", one.folder, ": were scored by different losses (", had,
                       "; ", has, "); give all runs the same evaluation.objectives");
  }
  if (wanted.empty() && common.size() == 1) return {.name = common.front()};
  if (wanted.empty()) {
    const auto name = first_of(common, first->config);
    return {.name = name,
            .note = concat("compared by ", name, ", the first of the held-out losses that all runs have (",
                           listed(common), "); --metric names another")};
  }
  const auto near = did_you_mean(wanted, common);
  require<ConfigError>(contains(common, wanted), "--metric ", wanted, ": not all runs have this held-out loss", near,
                       near.empty() ? "; " : " ", "they have ", listed(common));
  return {.name = wanted};
}

/// Runs of one config, in which the same was changed on the way.
struct IndependentArm {
  std::string name{};
  RunConfig config{};
  std::string changed{};
  std::vector<std::pair<std::string, std::string>> keys{};  ///< in which the arms differ; an empty value: no such key
  std::vector<const IndependentRun*> runs{};
};

/// What the folders of an arm have in common, without the number of the run: runs/word-1 and runs/word-2 give `word`.
std::string name_by_folders(const std::vector<const IndependentRun*>& runs) {
  auto common = runs.front()->folder;
  for (const auto* run : runs)
    common.resize(static_cast<size_t>(
        std::mismatch(common.begin(), common.end(), run->folder.begin(), run->folder.end()).first - common.begin()));
  for (const std::string tail : {"seed", "run", ""}) {
    while (runs.size() > 1 && !common.empty() && std::string("-_./0123456789").find(common.back()) != std::string::npos)
      common.pop_back();
    if (!tail.empty() && common.ends_with("/" + tail)) common.resize(common.size() - tail.size() - 1);
  }
  return fs::path(common).filename().string();
}

/// Names arms by the keys in which they differ where these are few, else by their folders.
void name_arms(std::vector<IndependentArm>& arms) {
  for (auto& arm : arms) {
    if (arm.keys.size() <= most_keys)
      for (const auto& [key, value] : arm.keys)
        arm.name += (arm.name.empty() ? "" : ", ") + key.substr(key.rfind('.') + 1) + "=" + value;
    if (arm.name.empty()) arm.name = name_by_folders(arm.runs);
    if (!arm.changed.empty()) arm.name += changed_name(arm.changed);
  }
  std::map<std::string, int64_t> times;
  for (const auto& arm : arms) ++times[arm.name];
  for (auto& arm : arms)
    if (arm.name.empty() || times[arm.name] > 1) arm.name = arm.runs.front()->folder;
}

/// The arms in the order of their first runs, each with its runs by seed.
std::vector<IndependentArm> arms_of(const std::vector<IndependentRun>& runs) {
  std::vector<IndependentArm> arms;
  std::map<std::pair<std::string, std::string>, size_t> arm_of;  // by config and change
  const auto configs = configs_by_texts(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& one = runs[i];
    const auto config = without_seed(configs[i]);
    const auto [at, is_new] = arm_of.emplace(std::pair(to_yaml(config), one.run.provenance.changed), arms.size());
    if (is_new) arms.push_back({.config = config, .changed = one.run.provenance.changed});
    auto& members = arms[at->second].runs;
    for (const auto* other : members)
      require<ConfigError>(other->config.train.seed != one.config.train.seed, other->folder, " and ", one.folder,
                           ": have the same config, text and seed, so that one run would count twice; leave one out");
    members.push_back(&one);
  }
  std::vector<RunConfig> distinct;
  for (const auto& arm : arms) distinct.push_back(arm.config);
  for (const auto& [key, values] : differing_keys(distinct, ""))
    for (size_t i = 0; i < arms.size(); ++i) arms[i].keys.emplace_back(key, values[i]);
  name_arms(arms);
  for (auto& arm : arms)
    std::sort(arm.runs.begin(), arm.runs.end(),
              [](const auto* a, const auto* b) { return a->config.train.seed < b->config.train.seed; });
  return arms;
}

/// The curve and the value of a run by the metric.
void measure(IndependentRun& one, const StudyMetric& metric) {
  auto& run = one.run;
  run.curve = read_curve(one.folder, metric, one.config.evaluation.points);
  if (run.state != RunState::done) return;
  const auto* loss = std::get_if<LossMetric>(&metric);
  static_cast<MetricValue&>(run.result) =
      value_of(metric, one.folder, "fine-tune it with `cloze finetune RUN TASK.yaml`");
  add_usage(run.result, run.curve);
  if (std::isfinite(run.result.value)) return;
  run.state = RunState::failed;
  run.message = loss ? "its held-out loss is not finite" : "the figure of its task is not defined";
}

/// The task that all runs are fine-tuned on, with each of them for its own fine-tuning; none where no run is
/// fine-tuned. Throws DataError for runs of different tasks.
std::optional<TaskMetric> common_task(const std::vector<IndependentRun>& runs, const RunsQuestion& question) {
  const auto& first = runs.front();
  const auto& task = first.config.task;
  TaskMetric metric{.task = task.name, .name = question.metric.empty() ? task.metric : question.metric};
  for (const auto& one : runs) {
    const auto& own = one.config.task.name;
    const auto words_of = [](const std::string& name) { return name.empty() ? "on no task" : "on " + name; };
    require<DataError>(own == task.name, first.folder, " and ", one.folder, ": are fine-tuned ", words_of(task.name),
                       " and ", words_of(own), ", so that they have no figure in common; report runs of one task");
    metric.finetunings[one.folder] = {one.folder};
  }
  if (task.name.empty()) return std::nullopt;
  require<ConfigError>(question.unit == LossUnit::nats, "--unit ", question.unit, ": is of losses, and figures of ",
                       task.name, " are in points; leave it out");
  metric.is_error = is_error(metric.name);
  const auto kind = open_prepared_task(first.folder + "/" + task_folder).task.config.kind;
  metric.floor = name_of_floor(kind, Floor::constant);
  return metric;
}

/// What the words of a task tell, where they tell the same in the rows of all finished runs.
std::vector<NamedFloor> common_floor_of_words(const std::vector<IndependentRun>& runs, const std::string& metric) {
  std::set<std::string> seen;  // fingerprints of rows
  std::vector<NamedFloor> floors;
  for (const auto& one : runs) {
    const auto rows = one.folder + "/" + task_folder;
    if (one.run.state != RunState::done || !seen.insert(open_prepared_task(rows).fingerprint).second) continue;
    const auto floor = floor_of_words(rows, metric);
    if (!floor || (!floors.empty() && floors.front().value != floor->value)) return {};
    floors = {*floor};
  }
  return floors;
}

/// The arm of the baseline, by its name or a folder.
size_t baseline_of(const std::vector<IndependentArm>& arms, const std::string& wanted) {
  if (wanted.empty()) return 0;
  const auto folder = (fs::path(wanted) / "").lexically_normal().parent_path().string();
  std::vector<std::string> names;
  std::string all;
  for (size_t i = 0; i < arms.size(); ++i) {
    const auto& arm = arms[i];
    if (arm.name == wanted) return i;
    if (std::any_of(arm.runs.begin(), arm.runs.end(), [&](const auto* run) { return run->folder == folder; })) return i;
    names.push_back(arm.name);
    all += (all.empty() ? "" : "; ") + arm.name;
  }
  const auto near = did_you_mean(wanted, names);
  fail<ConfigError>("--baseline ", wanted, ": is no arm of these runs", near, near.empty() ? "; " : " ",
                    "the arms are: ", all);
}

void add_arm(StudyReport& report, const IndependentArm& arm) {
  auto& one = report.arms.emplace_back(ArmReport{.name = arm.name});
  for (const auto& [key, value] : arm.keys)
    if (!value.empty()) one.differs.push_back(key + ": " + value);
  if (!arm.changed.empty()) one.differs.push_back(arm.changed);
  for (const auto* member : arm.runs) {
    report.runs.push_back(member->run);
    report.runs.back().result.arm = arm.name;
  }
}

}  // namespace

StudyReport report_of_runs(const RunsQuestion& question) {
  auto runs = open_runs(question.folders);
  const auto task = common_task(runs, question);
  const auto [metric, note] = task ? CommonMetric{.name = task->task} : common_metric(runs, question.metric);
  if (!task) check_unit(question.unit, metric);
  const auto by = task ? StudyMetric(*task) : StudyMetric(LossMetric{.name = metric, .unit = question.unit});
  for (auto& one : runs) measure(one, by);
  const auto arms = arms_of(runs);
  const auto baseline = baseline_of(arms, question.baseline);

  StudyReport report{
      .name = "comparison", .unit = traits_of(by).unit, .metric = metric, .baseline = arms[baseline].name, .by = by};
  report.rules.margin = question.better_by;
  report.rules.higher_is_better = traits_of(by).higher_is_better;
  if (!note.empty()) report.notes.push_back(note);
  if (task) report.other_floors = common_floor_of_words(runs, task->name);
  add_arm(report, arms[baseline]);
  for (size_t i = 0; i < arms.size(); ++i)
    if (i != baseline) add_arm(report, arms[i]);
  check_comparable(report);
  compare_arms(report);
  describe_comparison(report);
  return report;
}

}  // namespace cloze
