#include "study/search/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/contains.h"
#include "core/log.h"
#include "core/text.h"
#include "study/plan/plan.h"
#include "study/search/stages.h"

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
  std::vector<std::string> found;
  const auto& best = arm.candidates[arm.best].keys;
  for (size_t k = 0; k < best.size(); ++k) {
    std::vector<double> values;
    for (const auto& candidate : arm.candidates)
      if (const auto number = number_of(candidate.keys[k].second)) values.push_back(*number);
    const auto own = number_of(best[k].second);
    if (!own || values.size() < arm.candidates.size()) continue;  // words have no edge
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (*own == *low || *own == *high) found.push_back(best[k].first + " " + one_line(best[k].second));
  }
  return found;
}

std::string loss_text(const Candidate& candidate) {
  if (candidate.failed > 0) return concat(candidate.failed, " failed");
  const auto mean = fixed(candidate.loss.mean, 4);
  return candidate.loss.count > 1 ? mean + " ± " + fixed(candidate.loss.sd, 4) : mean;
}

}  // namespace

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
    return a.failed != b.failed ? a.failed < b.failed : is_better(a.loss.mean, b.loss.mean, by);
  };
  return static_cast<size_t>(std::min_element(candidates.begin(), candidates.end(), better) - candidates.begin());
}

std::string keys_text(const std::vector<std::pair<std::string, ConfigNode>>& keys) {
  std::string text;
  for (const auto& [key, value] : keys) text += (text.empty() ? "" : ", ") + key + ": " + one_line(value);
  return text;
}

std::vector<std::string> candidate_notes(const ArmTuning& arm) {
  std::vector<std::string> notes;
  const auto& best = arm.candidates[arm.best];
  for (const auto& key : keys_at_edge(arm))
    notes.push_back(concat("arm ", arm.arm, ": the best ", key, " is at the edge of its values; widen them"));
  for (size_t c = 0; c < arm.candidates.size(); ++c) {
    const auto& other = arm.candidates[c];
    if (c != arm.best && other.failed == best.failed && other.loss.mean == best.loss.mean)
      notes.push_back(concat("arm ", arm.arm, ": ", keys_text(best.keys), " and ", keys_text(other.keys),
                             " tie; the first was taken"));
    if (other.failed > 0)
      notes.push_back(concat("arm ", arm.arm, ": ", other.failed, " runs with ", keys_text(other.keys),
                             " failed in the search, which ranks them last"));
  }
  return notes;
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
  auto plan = plan_of(each, file, folder + "/tuning", searched, seeds);
  plan.stage = "tuning";
  develop(plan);
  plan.compares = false;
  for (const auto& run : plan.runs) check_budget(run.config, "tuning.budget over the runs of an arm");
  return plan;
}

std::optional<Tuning> read_tuning(const Plan& tuning, const std::vector<Arm>& arms) {
  if (!is_settled(tuning)) return std::nullopt;
  Tuning found{.by = tuning.metric, .seeds = tuning.seeds};
  const size_t combinations = tuning.arms.size() / arms.size(), keys = tuning.study.tune.items.size();
  for (size_t a = 0; a < arms.size(); ++a) {
    auto& arm = found.arms.emplace_back(ArmTuning{.arm = arms[a].name});
    for (size_t c = 0; c < combinations; ++c) {
      const auto& searched = tuning.arms[a * combinations + c];
      auto& candidate = arm.candidates.emplace_back();
      candidate.keys.assign(searched.keys.end() - static_cast<int64_t>(keys), searched.keys.end());
      std::vector<double> losses;
      for (const auto& run : tuning.runs) {
        if (run.arm != searched.name) continue;
        ++found.runs;
        const auto result = finished_result(tuning, run);
        if (!result) {
          ++candidate.failed;
          continue;
        }
        losses.push_back(result->value);
        found.sequences = std::ssize(result->examples.sum);
        found.documents = result->documents;
        found.tokens += result->tokens;
        found.seconds += result->seconds;
      }
      candidate.loss = summarize(losses);
    }
    arm.best = best_candidate(arm.candidates, tuning.metric);
    if (arm.candidates[arm.best].loss.count == 0 && found.lacks.empty())
      found.lacks = new_try(concat("arm '", arm.arm, "' in the search"), tuning, tuning.runs[a * combinations]);
  }
  return found;
}

Table tuning_table(const Tuning& tuning) {
  Table table{.title = "What was tuned", .header = {"arm"}};
  for (const auto& [key, value] : tuning.arms.front().candidates.front().keys)
    table.header.emplace_back(key, ColumnKind::number);
  table.header.emplace_back(value_words(tuning.by), ColumnKind::number);
  table.header.emplace_back("chosen");
  for (const auto& arm : tuning.arms)
    for (size_t c = 0; c < arm.candidates.size(); ++c) {
      auto& row = table.rows.emplace_back(std::vector<std::string>{arm.arm});
      for (const auto& [key, value] : arm.candidates[c].keys) row.push_back(one_line(value));
      row.push_back(loss_text(arm.candidates[c]));
      row.emplace_back(c == arm.best ? "yes" : "");
    }
  return table;
}

std::vector<std::string> tuning_notes(const Tuning& tuning) {
  std::string seeds;
  for (const int64_t seed : tuning.seeds) seeds += (seeds.empty() ? "" : ", ") + std::to_string(seed);
  std::vector<std::string> notes{
      concat("every arm was tuned over ", tuning.arms.front().candidates.size(), " combinations on seeds ", seeds,
             ", which the comparison does not use: ", tuning.runs, " runs, ",
             thousands(static_cast<uint64_t>(tuning.tokens)), " tokens, ", duration(tuning.seconds))};
  notes.push_back(concat("what was tuned was chosen on ", tuning.sequences, " held-out examples of ", tuning.documents,
                         " documents, which the verdict does not see; curves are of all of them"));
  for (const auto& arm : tuning.arms)
    for (auto& note : candidate_notes(arm)) notes.push_back(std::move(note));
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
      rates.push_back(
          std::ranges::find(plan.runs, arm.name, &PlannedRun::arm)->network_config().optimizer.learning_rate);
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
