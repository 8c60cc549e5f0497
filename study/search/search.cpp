#include "study/search/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/contains.h"
#include "core/random.h"
#include "core/text.h"
#include "study/plan/plan.h"

namespace cloze {

namespace {

std::string trial_name(size_t number, int64_t trials) {
  auto digits = std::to_string(number + 1);
  const auto width = std::to_string(trials).size();
  return "trial-" + std::string(width - std::min(width, digits.size()), '0') + digits;
}

/// The limits of a distribution. Throws ConfigError.
std::pair<double, double> limits_of(const std::string& key, const ConfigNode& node, const std::string& kind) {
  const auto number = [&](const ConfigNode& value) {
    char* end = nullptr;
    const double parsed = std::strtod(value.text.c_str(), &end);
    require<ConfigError>(!value.text.empty() && !*end && std::isfinite(parsed), value.where, ": space '", key,
                         "': ", kind, " has limits that are numbers, not '", value.text, "'");
    return parsed;
  };
  require<ConfigError>(node.type == ConfigNode::Type::list && node.items.size() == 2, node.where, ": space '", key,
                       "': ", kind, " is ", one_line(node), ", must be [low, high]");
  const double low = number(node.items[0].second), high = number(node.items[1].second);
  require<ConfigError>(low < high, node.where, ": space '", key, "': ", kind, " goes from ", shortest(low), " to ",
                       shortest(high), "; the first must be the smaller");
  require<ConfigError>(kind != "log" || low > 0, node.where, ": space '", key, "': log starts at ", shortest(low),
                       ", and a logarithm needs numbers above 0; use uniform, or a low above 0");
  return {low, high};
}

/// A number of four significant digits, which is what a draw is worth.
std::string four_digits(double value) { return shortest(std::atof(digits(value, 4).c_str())); }

ConfigNode draw_value(const std::string& key, const ConfigNode& of, Stream stream) {
  static const std::vector<std::string> kinds{"log", "uniform", "integers"};
  if (of.type == ConfigNode::Type::list) {
    require<ConfigError>(of.items.size() > 1, of.where, ": space '", key, "' is ", one_line(of),
                         ", must have at least two values; a single one belongs under `set:`");
    return of.items[stream.below(of.items.size())].second;
  }
  const std::string wanted =
      of.type == ConfigNode::Type::map && of.items.size() == 1 ? of.items.front().first : std::string();
  const auto near = did_you_mean(wanted, kinds);
  require<ConfigError>(contains(kinds, wanted), of.where, ": space '", key, "' is ", one_line(of), near,
                       near.empty() ? "; " : " ",
                       "give a list of values, {log: [low, high]}, {uniform: [low, high]} or {integers: [low, high]}");
  const auto [low, high] = limits_of(key, of.items.front().second, wanted);
  ConfigNode value;
  value.type = ConfigNode::Type::scalar;
  value.where = of.where;
  if (wanted == "integers") {
    const double first = std::ceil(low), count = std::floor(high) - first + 1;
    require<ConfigError>(count >= 1, of.where, ": space '", key, "': no whole number lies between ", shortest(low),
                         " and ", shortest(high));
    value.text =
        std::to_string(static_cast<int64_t>(first + static_cast<double>(stream.below(static_cast<uint64_t>(count)))));
  } else if (wanted == "log") {
    value.text = four_digits(std::exp(std::log(low) + stream.uniform() * (std::log(high) - std::log(low))));
  } else {
    value.text = four_digits(low + stream.uniform() * (high - low));
  }
  return value;
}

/// So many different configs of the space. Throws ConfigError for a space that has fewer.
std::vector<Arm> draw_trials(const StudyConfig& study) {
  std::vector<Arm> trials;
  std::set<std::string> seen;
  const auto wanted = static_cast<size_t>(study.trials);
  for (uint64_t draw = 0; trials.size() < wanted; ++draw) {
    require<ConfigError>(draw < 100 * wanted, "'trials' is ", study.trials, ", and the space seems to have only ",
                         trials.size(), " different configs; lower it, or widen `space:`");
    auto keys = draw_trial(study.space, static_cast<uint64_t>(seeds_of(study.seeds).front()), draw);
    std::string text;
    for (const auto& [key, value] : keys) text += key + "=" + one_line(value) + "\n";
    if (seen.insert(text).second) trials.push_back({trial_name(trials.size(), study.trials), std::move(keys)});
  }
  return trials;
}

void check_search(const StudyConfig& study, const std::string& file) {
  const bool has_arms =
      !study.arms.items.empty() || !study.sweep.items.empty() || !study.tune.items.empty() || study.split;
  require<ConfigError>(!has_arms, file,
                       ": a search over `space:` has trials instead of arms; remove `arms`, `sweep`, `tune` and "
                       "`split`, or the space");
  require<ConfigError>(study.trials > 1, file, ": 'trials' is ", study.trials,
                       "; say how many configs are drawn from the space, at least 2");
  require<ConfigError>(study.halving != 1, file,
                       ": 'halving' is 1, which keeps every trial; choose 2 or more, 3 is usual, or 0 for none");
  require<ConfigError>(study.budget.limited(), file,
                       ": 'budget' is missing; a search states what all of its trials get together");
}

/// Mean loss of each trial of a rung; NaN where a run has failed.
std::vector<double> losses_of(const Plan& rung) {
  std::vector<double> losses;
  for (const auto& arm : rung.arms) {
    std::vector<double> values;
    for (const auto& result : finished_results(rung, arm.name)) values.push_back(result.value);
    const bool is_complete = values.size() == rung.seeds.size();
    losses.push_back(is_complete ? summarize(values).mean : std::numeric_limits<double>::quiet_NaN());
  }
  return losses;
}

/// The best trials of a rung, in the order of their numbers. Failed ones do not go on; none where all have failed.
std::vector<Arm> survivors(const Plan& rung, int64_t count) {
  const auto losses = losses_of(rung);
  std::vector<size_t> order;
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::isfinite(losses[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return is_better(losses[a], losses[b], rung.metric); });
  order.resize(std::min(order.size(), static_cast<size_t>(count)));
  std::sort(order.begin(), order.end());
  std::vector<Arm> best;
  for (const size_t i : order) best.push_back(rung.arms[i]);
  return best;
}

/// The plan of one rung. `length`: of held-out sequences.
Plan rung_plan(Plan plan, const std::vector<Arm>& trials, const Rung& rung, int64_t length) {
  const auto total = concat(plan.file, ": the budget over ", plan.study.trials, " trials");
  plan.study.budget = scaled(plan.study.budget, rung.used);
  require<ConfigError>(plan.study.budget.limited(), total,
                       " is not one step for each run of the first rung; raise it, or draw fewer trials");
  plan.arms = trials;
  plan.part = HeldOutPart::development;
  plan = plan_of(std::move(plan), length);
  for (const auto& run : plan.runs) check_budget(run.config, total);
  return plan;
}

/// Makes the runs of a rung go on from those of the one before.
void continue_from(Plan& rung, const Plan& before) {
  for (auto& run : rung.runs) {
    const auto source = std::ranges::find(before.runs, run.name(), &PlannedRun::name);
    run.kind = RunKind::continued;
    run.inputs = {source->folder};
  }
}

/// Whether a run that was trained with a smaller budget is the beginning of one with a larger: its schedule is constant
/// after a warm-up in steps, and no masking changes over the budget.
bool can_continue(const RunConfig& config) {
  const auto& schedule = config.schedule;
  const bool same_rate = part_in<ConstantSchedule>(schedule.shape) && (schedule.warmup == 0 || schedule.warmup >= 1);
  return same_rate && config.train.phases.empty() && !masking_follows_length(config.objectives);
}

}  // namespace

std::vector<Rung> rungs_of(int64_t trials, int64_t halving, int64_t seeds, bool continued) {
  std::vector<Rung> rungs{{.trials = trials, .used = 1}};
  require<ConfigError>(halving == 0 || trials >= halving, "'halving' keeps one of ", halving,
                       " trials, and 'trials' is ", trials, "; draw more, or set halving to 0");
  for (int64_t left = trials / std::max<int64_t>(halving, 1); halving > 1 && left >= 1; left /= halving)
    rungs.push_back({.trials = left, .used = rungs.back().used * static_cast<double>(halving)});
  double total = 0, before = 0;
  for (auto& rung : rungs) {
    rung.budget = static_cast<double>(rung.trials * seeds) * (rung.used - (continued ? before : 0));
    total += rung.budget;
    before = rung.used;
  }
  for (auto& rung : rungs) {
    rung.used /= total;
    rung.budget /= total;
  }
  return rungs;
}

KeyValues draw_trial(const AnyKeys& space, uint64_t seed, uint64_t draw) {
  KeyValues keys;
  for (const auto& [key, of] : space.items) {
    auto value = draw_value(key, of, Rng(seed).stream("space " + key, 0, draw));
    value.key_where = of.key_where;
    keys.emplace_back(key, std::move(value));
  }
  return keys;
}

Stages search_stages(const StudyConfig& study, const std::string& file, const std::string& folder) {
  check_search(study, file);
  auto trials = draw_trials(study);
  const auto seeds = seeds_of(study.seeds);
  const auto drawn_plan =
      plan_of({.file = file, .root = folder, .folder = folder, .study = study, .arms = trials, .seeds = seeds});
  const auto& drawn = drawn_plan.runs;
  const bool continued = study.probe_head.share == 0 && std::ranges::all_of(drawn, can_continue, &PlannedRun::config);
  const auto length_of = [](const PlannedRun& run) { return run.config.data.max_seq_length; };
  const auto length = length_of(std::ranges::min(drawn, {}, length_of));  // of held-out sequences, in every rung
  const auto rungs = rungs_of(study.trials, study.halving, std::ssize(seeds), continued);
  Stages stages;
  std::optional<Plan> before;
  for (size_t i = 0; i < rungs.size(); ++i) {
    const bool settled = before && is_settled(*before);
    if (settled) trials = survivors(*before, rungs[i].trials);
    const bool decided = i == 0 || (settled && !trials.empty());
    Plan plan{.file = file,
              .root = folder,
              .folder = rungs.size() > 1 ? concat(folder, "/rung-", i + 1) : folder,
              .stage = rungs.size() > 1 ? concat("rung ", i + 1, " of ", rungs.size()) : std::string("trials"),
              .study = study,
              .seeds = seeds,
              .compares = false};
    if (decided) {
      plan = rung_plan(std::move(plan), trials, rungs[i], length);
      if (i > 0 && continued) continue_from(plan, *before);
    } else {
      plan.waits_for = settled ? new_try(concat("a trial of rung ", i), before->runs.front()) : concat("rung ", i);
      plan.study.trials = rungs[i].trials;
      plan.metric = drawn_plan.metric;
    }
    stages.rungs.push_back(add_stage(stages, plan));
    before = decided ? std::optional(stages.plans[stages.rungs.back()]) : std::nullopt;
  }
  stages.comparison = stages.rungs.back();
  return stages;
}

}  // namespace cloze
