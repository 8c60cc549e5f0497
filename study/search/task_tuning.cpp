#include "study/search/task_tuning.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "core/contains.h"
#include "core/log.h"
#include "core/text.h"
#include "study/report/task_report.h"
#include "study/search/stages.h"
#include "study/statistics/task_value.h"
#include "tasks/figures/task_metric.h"

namespace cloze {

namespace {

using Tried = std::vector<std::pair<std::string, ConfigNode>>;

bool is_same(const Tried& a, const Tried& b) { return keys_text(a) == keys_text(b); }

/// The search of an arm on a task, which is made where it is new.
TaskSearch& search_of(TaskTuning& tuning, const Finetuning& job) {
  for (auto& one : tuning.searches)
    if (one.arm == job.arm && one.task == job.task) return one;
  return tuning.searches.emplace_back(TaskSearch{{.arm = job.arm}, job.task, {.task = job.task}});
}

/// Of the candidates of a search, the figures of their fine-tunings.
using Figures = std::map<const TaskSearch*, std::vector<std::vector<double>>>;

void add_cost(const Plan& plan, const PlannedRun& run, TaskTuning& tuning) {
  ++tuning.runs;
  const auto curve = read_curve(plan, run);
  if (curve.empty()) return;
  tuning.tokens += curve.back().tokens;
  tuning.seconds += curve.back().seconds;
  tuning.flops += curve.back().flops;
}

/// Adds a fine-tuning to the search of its arm on its task. One that was changed on its way counts as one that failed.
void add_try(const Plan& plan, const PlannedRun& run, TaskTuning& tuning, Figures& figures) {
  const auto& job = run.finetuning;
  auto& search = search_of(tuning, job);
  auto at = std::ranges::find_if(search.candidates, [&](const auto& one) { return is_same(one.keys, job.tuned); });
  if (at == search.candidates.end()) at = search.candidates.insert(at, Candidate{.keys = job.tuned});
  auto& values = figures[&search];
  values.resize(search.candidates.size());
  if (!contains(tuning.seeds, job.seed)) tuning.seeds.push_back(job.seed);
  const auto status = status_of(plan, run);
  if (status.is_of_failed_source) return;
  ++search.tries;
  add_cost(plan, run, tuning);
  const auto changed = change_of(run_path(plan, run));
  if (!changed.empty())
    tuning.notes.push_back(concat("fine-tuning ", run.arm, "/", run.seed, " of the search was ", changed,
                                  ", and counts as one that failed"));
  const bool is_done = status.state == RunState::done && changed.empty();
  const auto valid = is_done ? valid_of(run_path(plan, run)) : ValidFigure{};
  if (is_done) search.figure.figure = valid.figure;
  if (is_done) search.figure.is_error = is_error(valid.figure);
  search.is_of_test = search.is_of_test || valid.is_of_test;
  if (std::isfinite(valid.value))
    values[static_cast<size_t>(at - search.candidates.begin())].push_back(valid.value);
  else
    ++at->failed;
}

/// What a search without any figure lacks; empty where none of its runs was there to be fine-tuned.
std::string lack_of(const TaskSearch& search, const Plan& plan) {
  const auto example = std::ranges::find_if(plan.runs, [&](const PlannedRun& run) {
    return run.finetuning.arm == search.arm && run.finetuning.task == search.task &&
           std::filesystem::exists(run.source + "/held_out.json");
  });
  if (example == plan.runs.end()) return "";
  return new_try(concat("arm '", search.arm, "' on ", search.task, " in the search"), plan, *example);
}

/// `6 tries for every arm`, or where runs of pretraining failed `3 to 6 tries for an arm, ...`.
std::string tries_words(const TaskTuning& tuning) {
  const auto [least, most] = std::ranges::minmax(tuning.searches, {}, &TaskSearch::tries);
  if (least.tries == most.tries) return concat(most.tries, most.tries == 1 ? " try" : " tries", " for every arm");
  return concat(least.tries, " to ", most.tries, " tries for an arm, since runs of pretraining failed");
}

std::string seeds_words(const std::vector<int64_t>& seeds) {
  std::string text;
  for (const auto seed : seeds) text += (text.empty() ? "" : ", ") + std::to_string(seed);
  return text;
}

std::string figure_text(const Candidate& candidate, const TaskMetric& figure) {
  if (candidate.loss.count == 0) return "failed";
  const int decimals = figure.is_error ? 4 : 2;
  auto text = fixed(candidate.loss.mean, decimals);
  if (candidate.loss.count > 1) text += " ± " + fixed(candidate.loss.sd, decimals);
  return candidate.failed > 0 ? concat(text, ", ", candidate.failed, " failed") : text;
}

}  // namespace

std::vector<std::pair<std::string, ConfigNode>> TaskTuning::best_keys(const std::string& arm,
                                                                      const std::string& task) const {
  for (const auto& one : searches)
    if (one.arm == arm && one.task == task && one.candidates[one.best].loss.count > 0)
      return one.candidates[one.best].keys;
  return {};
}

std::optional<TaskTuning> read_task_tuning(const Plan& tuning) {
  if (!is_settled(tuning)) return std::nullopt;
  TaskTuning task_tuning;
  // References to the searches stay: there are as many as pairs of an arm and a task.
  task_tuning.searches.reserve(tuning.runs.size());
  Figures figures;
  for (const auto& run : tuning.runs) add_try(tuning, run, task_tuning, figures);
  for (auto& search : task_tuning.searches) {
    for (size_t c = 0; c < search.candidates.size(); ++c) search.candidates[c].loss = summarize(figures[&search][c]);
    search.best = best_candidate(search.candidates, search.figure);
    const bool has_best = search.candidates[search.best].loss.count > 0;
    if (!has_best && task_tuning.lacks.empty()) task_tuning.lacks = lack_of(search, tuning);
  }
  return task_tuning;
}

Table task_tuning_table(const TaskTuning& tuning) {
  constexpr auto number = ColumnKind::number;
  Table table{.title = "What was tuned of the fine-tunings", .header = {"task", "arm"}};
  for (const auto& [key, value] : tuning.searches.front().candidates.front().keys)
    table.header.emplace_back(key, number);
  table.header.emplace_back("on the valid part", number);
  table.header.emplace_back("chosen");
  for (const auto& search : tuning.searches)
    for (size_t c = 0; c < search.candidates.size(); ++c) {
      const auto& candidate = search.candidates[c];
      auto& row = table.rows.emplace_back(std::vector<std::string>{search.task, search.arm});
      for (const auto& [key, value] : candidate.keys) row.push_back(one_line(value));
      row.push_back(figure_text(candidate, search.figure));
      row.emplace_back(c == search.best && candidate.loss.count > 0 ? "yes" : "");
    }
  return table;
}

std::string chosen_words(const TaskTuning& tuning, const std::string& task) {
  std::string chosen;
  for (const auto& search : tuning.searches) {
    if (search.task != task) continue;
    const auto& best = search.candidates[search.best];
    const auto what = best.loss.count > 0 ? keys_text(best.keys) : "nothing, since none of its runs ended";
    chosen += concat(chosen.empty() ? "" : "; ", search.arm, ": ", what);
  }
  return concat("on ", task, ": ", chosen);
}

std::vector<std::string> task_tuning_notes(const TaskTuning& tuning) {
  const bool has_flops = tuning.flops > 0;
  std::vector<std::string> notes{
      concat("fine-tunings of each arm on each task have the best of ", tuning.searches.front().candidates.size(),
             " combinations by the mean on the valid part, over ", tries_words(tuning), ", with seeds ",
             seeds_words(tuning.seeds), ", which the verdict does not see: ", tuning.runs, " fine-tunings, ",
             thousands(static_cast<uint64_t>(tuning.tokens)), " tokens, ",
             has_flops ? with_prefix(tuning.flops) + "FLOPs, " : "", duration(tuning.seconds))};
  notes.insert(notes.end(), tuning.notes.begin(), tuning.notes.end());
  std::set<std::string> tasks;
  for (const auto& search : tuning.searches) {
    if (!tasks.insert(search.task).second) continue;
    notes.push_back("chosen for the fine-tunings " + chosen_words(tuning, search.task));
    if (search.is_of_test)
      notes.push_back(
          concat("valid is test on ", search.task, ": what was tuned is chosen on the items of the verdict"));
  }
  for (const auto& search : tuning.searches) {
    if (search.candidates[search.best].loss.count == 0) continue;
    auto named = static_cast<const ArmTuning&>(search);
    named.arm += " on " + search.task;
    for (auto& note : candidate_notes(named)) notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace cloze
