#include "study/search/tuning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/contains.h"
#include "core/log.h"
#include "core/text.h"
#include "study/measures/task_value.h"
#include "study/search/stages.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

/// The seeds of the search. Throws ConfigError for one of the comparison.
std::vector<int64_t> tuning_seeds(const StudyConfig& study) {
  auto seeds = seeds_of(study.tuning.seeds);
  if (study.tuning.seeds.size() == 1)
    for (auto& seed : seeds) seed += first_tuning_seed - 1;
  const auto compared = seeds_of(study.seeds);
  for (const int64_t seed : seeds)
    require<ConfigError>(!contains(compared, seed), "tuning.seeds names ", seed,
                         ", a seed of the comparison, whose runs would be chosen by their own result; name "
                         "others");
  return seeds;
}

std::optional<double> number_of(const ConfigNode& value) {
  char* end = nullptr;
  const double number = std::strtod(value.text.c_str(), &end);
  return value.text.empty() || *end ? std::nullopt : std::optional(number);
}

/// Keys whose best value is the smallest or largest of those that were tried.
std::vector<std::string> keys_at_edge(const ArmTuning& arm) {
  std::vector<std::string> keys;
  const auto& best = arm.candidates[arm.best].keys;
  for (size_t k = 0; k < best.size(); ++k) {
    std::vector<double> values;
    for (const auto& candidate : arm.candidates)
      if (const auto number = number_of(candidate.keys[k].second)) values.push_back(*number);
    const auto own = number_of(best[k].second);
    if (!own || values.size() < arm.candidates.size()) continue;  // words have no edge
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (*own == *low || *own == *high) keys.push_back(best[k].first + " " + one_line(best[k].second));
  }
  return keys;
}

/// `optimizer.learning_rate: 3e-4, train.batch_size: 16`
std::string keys_text(const KeyValues& keys) {
  std::string text;
  for (const auto& [key, value] : keys) text += (text.empty() ? "" : ", ") + key + ": " + one_line(value);
  return text;
}

/// What lies at the edge of its values, what ties and what failed in the search of one arm.
std::vector<std::string> candidate_notes(const ArmTuning& arm) {
  std::vector<std::string> notes;
  const auto name = concat("arm ", arm.arm, arm.task.empty() ? "" : " on " + arm.task, ": ");
  const auto& best = arm.chosen();
  for (const auto& key : keys_at_edge(arm))
    notes.push_back(concat(name, "the best ", key, " is at the edge of its values; widen them"));
  for (size_t c = 0; c < arm.candidates.size(); ++c) {
    const auto& other = arm.candidates[c];
    if (c != arm.best && other.failed == best.failed && other.value.mean == best.value.mean)
      notes.push_back(concat(name, keys_text(best.keys), " and ", keys_text(other.keys), " tie; the first was taken"));
    if (other.failed > 0)
      notes.push_back(concat(name, other.failed, " runs with ", keys_text(other.keys),
                             " failed in the search, which ranks them last"));
  }
  return notes;
}

/// Reads a search run by run.
class TuningReader {
 public:
  /// The search of an arm on a task, which is made where it is new.
  ArmTuning& search_of(const std::string& arm, const std::string& task) {
    auto& arms = tuning_.arms;
    const auto known = std::ranges::find_if(arms, [&](const auto& one) { return one.arm == arm && one.task == task; });
    return known != arms.end() ? *known : arms.emplace_back(ArmTuning{.arm = arm, .task = task});
  }

  /// A run with some values, which is an example of the search if it could begin. `value`: none of one that failed.
  void add(ArmTuning& search, const KeyValues& keys, const PlannedRun& run, bool has_begun,
           const std::optional<double>& value) {
    const auto name = keys_text(keys);
    auto at = std::ranges::find(search.candidates, name, [](const auto& one) { return keys_text(one.keys); });
    if (at == search.candidates.end()) at = search.candidates.insert(at, Candidate{.keys = keys});
    auto& [values, example] = runs_[search.arm + "\n" + search.task];
    if (!example && has_begun) example = &run;
    if (!has_begun) return;
    ++tuning_.runs;
    ++search.tries;
    if (value)
      values[name].push_back(*value);
    else
      ++at->failed;
  }

  Tuning& tuning() { return tuning_; }

  Tuning finish() {
    for (auto& search : tuning_.arms) {
      auto& [values, example] = runs_[search.arm + "\n" + search.task];
      for (auto& candidate : search.candidates) candidate.value = summarize(values[keys_text(candidate.keys)]);
      search.best = best_candidate(search.candidates, search.by);
      if (search.has_choice() || !example || !tuning_.lacks.empty()) continue;
      const auto on_task = search.task.empty() ? "" : " on " + search.task;
      tuning_.lacks = new_try(concat("arm '", search.arm, "'", on_task, " in the search"), *example);
    }
    return std::move(tuning_);
  }

 private:
  struct Runs {
    std::map<std::string, std::vector<double>> values{};  ///< by candidate
    const PlannedRun* example = nullptr;
  };
  Tuning tuning_{};
  std::map<std::string, Runs> runs_{};  ///< by arm and task
};

/// The metric of a fine-tuning on the valid part; none of one that failed. One that was changed on its way counts so.
std::optional<double> read_try(const Plan& plan, const PlannedRun& run, RunState state, ArmTuning& search,
                               Tuning& tuning) {
  if (const auto curve = read_curve(plan, run); !curve.empty()) tuning.used += curve.back();
  const auto changed = read_provenance(run.folder).changed;
  if (!changed.empty())
    tuning.notes.push_back(
        concat("fine-tuning ", run.name(), " of the search was ", changed, ", and counts as one that failed"));
  if (state != RunState::done || !changed.empty()) return {};
  const auto outcome = outcome_of(run.folder);
  search.by = TaskMetric{.task = search.task, .name = outcome.metric, .is_error = is_error(outcome.metric)};
  search.is_of_test = search.is_of_test || outcome.is_chosen_on_test;
  return std::isfinite(outcome.valid) ? std::optional(outcome.valid) : std::nullopt;
}

/// `6 tries for every arm`, or where runs of pretraining failed `3 to 6 tries for an arm, ...`.
std::string tries_words(const Tuning& tuning) {
  const auto [least, most] = std::ranges::minmax(tuning.arms, {}, &ArmTuning::tries);
  if (least.tries == most.tries) return concat(most.tries, most.tries == 1 ? " try" : " tries", " for every arm");
  return concat(least.tries, " to ", most.tries, " tries for an arm, since runs of pretraining failed");
}

std::string seeds_words(const std::vector<int64_t>& seeds) {
  std::string text;
  for (const auto seed : seeds) text += (text.empty() ? "" : ", ") + std::to_string(seed);
  return text;
}

/// What a candidate reached: of one with a failed run its mean is none to choose by, but of a task it is shown.
std::string value_text(const Candidate& candidate, const ArmTuning& search) {
  const auto* of = std::get_if<TaskMetric>(&search.by);
  const bool is_of_task = !search.task.empty();
  if (is_of_task && candidate.value.count == 0) return "failed";
  if (!is_of_task && candidate.failed > 0) return concat(candidate.failed, " failed");
  const int decimals = of && !of->is_error ? 2 : 4;
  const auto text = to_text(candidate.value, decimals);
  return candidate.failed > 0 ? concat(text, ", ", candidate.failed, " failed") : text;
}

}  // namespace

KeyValues Tuning::best_keys(const std::string& arm, const std::string& task) const {
  for (const auto& one : arms)
    if (one.arm == arm && one.task == task && one.has_choice()) return one.chosen().keys;
  return {};
}

std::vector<Arm> searched_arms(const std::vector<Arm>& arms, const AnyKeys& tune, const std::string& list) {
  auto searched = arms;
  for (const auto& [key, values] : tune.items) {
    require<ConfigError>(values.type == ConfigNode::Type::list && values.items.size() > 1, values.where, ": ", list,
                         " '", key, "' is ", one_line(values), ", must be a list of at least two values",
                         values.type == ConfigNode::Type::list ? "; a single one belongs under `set:`" : "");
    searched = swept(searched, key, values, list);
  }
  return searched;
}

size_t best_candidate(const std::vector<Candidate>& candidates, const StudyMetric& by) {
  const auto better = [&](const Candidate& a, const Candidate& b) {
    return a.failed != b.failed ? a.failed < b.failed : is_better(a.value.mean, b.value.mean, by);
  };
  return static_cast<size_t>(std::min_element(candidates.begin(), candidates.end(), better) - candidates.begin());
}

Plan tuning_plan(const StudyConfig& study, const std::string& file, const std::string& folder,
                 const std::vector<Arm>& arms) {
  const auto searched = searched_arms(arms, study.tune, "tune");
  const auto seeds = tuning_seeds(study);
  auto each = study;
  if (study.tuning.budget.limited()) {
    const auto runs = static_cast<double>(searched.size() / arms.size()) * static_cast<double>(seeds.size());
    each.budget = scaled(study.tuning.budget, 1 / runs);
    each.budget.count = count_of_part(study.tuning.budget, study.budget, "tuning.budget");
    require<ConfigError>(each.budget.limited(), "tuning.budget over the ", runs,
                         " runs of an arm is not one step for each; raise it, or make fewer runs");
  }
  auto plan = plan_of({.file = file,
                       .root = folder,
                       .folder = folder + "/tuning",
                       .stage = "tuning",
                       .study = each,
                       .arms = searched,
                       .seeds = seeds,
                       .compares = false,
                       .part = HeldOutPart::development});
  for (const auto& run : plan.runs) check_budget(run.config, "tuning.budget over the runs of an arm");
  return plan;
}

std::optional<Tuning> read_tuning(const Plan& plan, const std::vector<Arm>& arms) {
  if (!is_settled(plan)) return std::nullopt;
  TuningReader reader;
  auto& tuning = reader.tuning();
  tuning.seeds = plan.seeds;
  const size_t combinations = plan.arms.size() / arms.size();
  const auto keys = std::ssize(plan.study.tune.items);
  for (const auto& run : plan.runs) {
    const auto at = std::ranges::find(plan.arms, run.arm, &Arm::name);
    auto& search = reader.search_of(arms[static_cast<size_t>(at - plan.arms.begin()) / combinations].name, "");
    search.by = plan.metric;
    const auto result = finished_result(plan, run);
    const auto value = result ? std::optional(result->value) : std::nullopt;
    reader.add(search, {at->keys.end() - keys, at->keys.end()}, run, true, value);
    if (!result) continue;
    tuning.sequences = std::ssize(result->examples.sum);
    tuning.documents = documents_in(*result);
    tuning.used += *result;
  }
  return reader.finish();
}

std::optional<Tuning> read_task_tuning(const Plan& plan) {
  if (!is_settled(plan)) return std::nullopt;
  TuningReader reader;
  auto& tuning = reader.tuning();
  for (const auto& run : plan.runs) {
    const auto& job = run.finetuning;
    auto& search = reader.search_of(job.arm, job.task);
    if (!contains(tuning.seeds, job.seed)) tuning.seeds.push_back(job.seed);
    const auto status = status_of(plan, run);
    const bool has_begun = !status.is_of_failed_source;
    const auto value = has_begun ? read_try(plan, run, status.state, search, tuning) : std::nullopt;
    reader.add(search, job.tuned, run, has_begun, value);
  }
  return reader.finish();
}

Table tuning_table(const Tuning& tuning) {
  const auto& first = tuning.arms.front();
  const bool is_of_tasks = !first.task.empty();
  Table table{.title = is_of_tasks ? "What was tuned of the fine-tunings" : "What was tuned"};
  if (is_of_tasks) table.header.emplace_back("task");
  table.header.emplace_back("arm");
  for (const auto& [key, value] : first.candidates.front().keys) table.header.emplace_back(key, ColumnKind::number);
  table.header.emplace_back(is_of_tasks ? "on the valid part" : value_words(first.by), ColumnKind::number);
  table.header.emplace_back("chosen");
  for (const auto& arm : tuning.arms)
    for (const auto& candidate : arm.candidates) {
      auto& row = table.rows.emplace_back();
      if (is_of_tasks) row.push_back(arm.task);
      row.push_back(arm.arm);
      for (const auto& [key, value] : candidate.keys) row.push_back(one_line(value));
      row.push_back(value_text(candidate, arm));
      row.emplace_back(&candidate == &arm.chosen() && arm.has_choice() ? "yes" : "");
    }
  return table;
}

std::string chosen_words(const Tuning& tuning, const std::string& task) {
  std::string chosen;
  for (const auto& search : tuning.arms) {
    if (search.task != task) continue;
    const auto what = search.has_choice() ? keys_text(search.chosen().keys) : "nothing, since none of its runs ended";
    chosen += concat(chosen.empty() ? "" : "; ", search.arm, ": ", what);
  }
  return concat("on ", task, ": ", chosen);
}

std::vector<std::string> tuning_notes(const Tuning& tuning) {
  std::vector<std::string> notes{
      concat("every arm was tuned over ", tuning.arms.front().candidates.size(), " combinations on seeds ",
             seeds_words(tuning.seeds), ", which the comparison does not use: ", tuning.runs, " runs, ",
             thousands(static_cast<uint64_t>(tuning.used.tokens)), " tokens, ", duration(tuning.used.seconds)),
      concat("what was tuned was chosen on ", tuning.sequences, " held-out examples of ", tuning.documents,
             " documents, which the verdict does not see; curves are of all of them")};
  for (const auto& arm : tuning.arms) std::ranges::move(candidate_notes(arm), std::back_inserter(notes));
  return notes;
}

std::vector<std::string> task_tuning_notes(const Tuning& tuning) {
  const auto& used = tuning.used;
  std::vector<std::string> notes{
      concat("fine-tunings of each arm on each task have the best of ", tuning.arms.front().candidates.size(),
             " combinations by the mean on the valid part, over ", tries_words(tuning), ", with seeds ",
             seeds_words(tuning.seeds), ", which the verdict does not see: ", tuning.runs, " fine-tunings, ",
             thousands(static_cast<uint64_t>(used.tokens)), " tokens, ",
             used.flops > 0 ? with_prefix(used.flops) + "FLOPs, " : "", duration(used.seconds))};
  notes.insert(notes.end(), tuning.notes.begin(), tuning.notes.end());
  std::set<std::string> tasks;
  for (const auto& search : tuning.arms) {
    if (!tasks.insert(search.task).second) continue;
    notes.push_back("chosen for the fine-tunings " + chosen_words(tuning, search.task));
    if (search.is_of_test)
      notes.push_back(
          concat("valid is test on ", search.task, ": what was tuned is chosen on the items of the verdict"));
  }
  for (const auto& search : tuning.arms)
    if (search.has_choice()) std::ranges::move(candidate_notes(search), std::back_inserter(notes));
  return notes;
}

std::string untuned_words(std::span<const Plan> trained) {
  const auto& arms = trained.back().arms;
  std::map<std::vector<double>, std::vector<std::string>> arms_by_rates;
  for (const auto& arm : arms) {
    const auto is_rate = [](const auto& key) { return key.first == "optimizer.learning_rate"; };
    if (std::ranges::any_of(arm.tuned, is_rate)) continue;
    std::vector<double> rates;
    for (const auto& plan : trained)
      rates.push_back(std::ranges::find(plan.runs, arm.name, &PlannedRun::arm)->config.optimizer.learning_rate);
    if (std::ranges::count(rates, rates[0]) == std::ssize(rates)) rates.resize(1);
    arms_by_rates[rates].push_back(arm.name);
  }
  std::string text;
  for (const auto& [rates, names] : arms_by_rates) {
    std::string words;
    for (const double rate : rates) words += (words.empty() ? "" : ", then ") + shortest(rate);
    text += concat(text.empty() ? "no learning rate was tuned: " : "; ",
                   names.size() == arms.size() ? "every arm" : listed(names), " ran with ", words);
  }
  return text;
}

}  // namespace cloze
