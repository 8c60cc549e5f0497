#include "study/costs/costs.h"

#include <algorithm>
#include <map>

#include "core/contains.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/store/read_mixture.h"
#include "run/config/load_config.h"

namespace cloze {

std::string labelled(const std::string& label, const std::string& text, int64_t columns) {
  constexpr size_t label_width = 10;
  return wrapped(padded(label, label_width), text, columns, label_width);
}

namespace {

std::string range_of(const std::vector<RunCost>& costs, double RunCost::* field) {
  const auto by = [&](const RunCost& a, const RunCost& b) { return a.*field < b.*field; };
  const auto [low, high] = std::minmax_element(costs.begin(), costs.end(), by);
  return with_prefix((*low).*field) + " to " + with_prefix((*high).*field);
}

/// Whether all arms use up the same, to 1 %.
bool is_equal(const std::vector<RunCost>& costs, double RunCost::* field) {
  const auto by = [&](const RunCost& a, const RunCost& b) { return a.*field < b.*field; };
  const auto [low, high] = std::minmax_element(costs.begin(), costs.end(), by);
  return (*high).*field <= 1.01 * (*low).*field;
}

/// What a run of each arm costs in one currency.
struct CostColumn {
  std::string head, unit;  ///< `unit` follows a value in a sentence
  std::vector<std::string> cells{};
  /// The same for several arms, so that it is said once.
  bool is_common() const {
    return cells.size() > 1 && std::all_of(cells.begin(), cells.end(), [&](const auto& c) { return c == cells[0]; });
  }
};

std::vector<CostColumn> cost_columns(const std::vector<Probe>& probes, const std::vector<RunCost>& costs) {
  std::vector<CostColumn> columns{{"parameters", " parameters"}, {"FLOPs", "FLOPs"}, {"tokens", " tokens"},
                                  {"steps", " steps"},           {"time", ""},       {"disk", " of disk"}};
  for (size_t i = 0; i < costs.size(); ++i) {
    const std::string cells[] = {with_prefix(static_cast<double>(probes[i].parameters)),
                                 with_prefix(costs[i].flops),
                                 with_prefix(costs[i].tokens),
                                 with_prefix(costs[i].steps),
                                 duration(costs[i].seconds),
                                 bytes(costs[i].disk_bytes)};
    for (size_t k = 0; k < columns.size(); ++k) columns[k].cells.push_back(cells[k]);
  }
  return columns;
}

/// What every run costs, whatever its arm; empty where nothing is.
std::string common_costs(const std::vector<CostColumn>& columns) {
  std::string text;
  for (const auto& column : columns)
    if (column.is_common()) text += (text.empty() ? "" : ", ") + column.cells[0] + column.unit;
  return text;
}

/// A line for each arm with the costs that are not common.
std::string cost_rows(const Plan& plan, const std::vector<CostColumn>& all, int64_t columns) {
  std::vector<std::vector<std::string>> rows{{"arm"}};
  for (size_t i = 0; i < plan.arms.size(); ++i)
    rows.push_back({plan.arms[i].name + (i == 0 && plan.compares ? " (baseline)" : "")});
  for (const auto& column : all) {
    if (column.is_common()) continue;
    rows[0].push_back(column.head);
    for (size_t i = 0; i < column.cells.size(); ++i) rows[i + 1].push_back(column.cells[i]);
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], width_of(row[k]));
  size_t others = 0;
  for (size_t k = 1; k < widths.size(); ++k) others += widths[k] + 2;
  const auto room = static_cast<size_t>(std::max<int64_t>(12, columns - static_cast<int64_t>(others)));
  widths[0] = std::min(widths[0], room);
  std::string text;
  for (const auto& row : rows) {
    const bool too_long = width_of(row[0]) > widths[0];
    text += too_long ? row[0] + "\n" + std::string(widths[0], ' ') : padded(row[0], widths[0]);
    for (size_t k = 1; k < row.size(); ++k) text += "  " + aligned_right(row[k], widths[k]);
    text += "\n";
  }
  return text;
}

/// What is shown of the values of a key, one for each arm: those of a sweep once, since the names of the arms have
/// them.
std::vector<std::string> shown_values(const Plan& plan, const std::vector<std::string>& values) {
  std::vector<std::string> names, by_name, distinct;
  bool is_swept = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& name = plan.arms[i].unswept.value_or(plan.arms[i].name);
    const auto known = std::find(names.begin(), names.end(), name) - names.begin();
    if (known == std::ssize(names)) {
      names.push_back(name);
      by_name.push_back(values[i]);
    }
    is_swept = is_swept || by_name[static_cast<size_t>(known)] != values[i];
    if (!contains(distinct, values[i])) distinct.push_back(values[i]);
  }
  return is_swept ? distinct : by_name;
}

/// In what all runs are equal, and in what they are not.
std::string equalities(const Plan& plan, const std::vector<RunCost>& costs, int64_t columns) {
  std::vector<std::string> equal{"held-out text and masks"}, unequal;
  const auto differing = differing_keys(plan);
  const auto differs_below = [&](const std::string& section) {
    return std::any_of(differing.begin(), differing.end(),
                       [&](const DifferingKey& one) { return one.key.starts_with(section); });
  };
  if (!differs_below("data.")) equal.emplace_back("text, and its order for runs of one seed");
  if (!differs_below("optimizer.") && !differs_below("schedule.")) equal.emplace_back("optimizer and schedule");
  if (!differs_below("model.")) equal.emplace_back("first weights of one seed, where shapes agree");
  if (!costs.empty()) {
    const std::pair<const char*, double RunCost::*> currencies[] = {
        {"steps", &RunCost::steps}, {"tokens", &RunCost::tokens}, {"predicted tokens", &RunCost::predicted_tokens},
        {"words", &RunCost::words}, {"epochs", &RunCost::epochs}, {"FLOPs", &RunCost::flops}};
    for (const auto& [name, field] : currencies) {
      if (costs.front().*field == 0) continue;  // not known
      if (is_equal(costs, field))
        equal.emplace_back(name);
      else
        unequal.push_back(concat(name, " (", range_of(costs, field), ")"));
    }
  }
  std::string text = labelled("equal", listed(equal), columns);
  if (!unequal.empty()) text += labelled("not equal", listed(unequal), columns);
  constexpr size_t shown = 12;
  for (size_t i = 0; i < std::min(shown, differing.size()); ++i) {
    std::string values;
    for (const auto& value : shown_values(plan, differing[i].values))
      values += (values.empty() ? "" : ", ") + (value.empty() ? std::string("empty") : value);
    text += labelled(i == 0 ? "keys" : "", differing[i].key + ": " + values, columns);
  }
  if (differing.size() > shown) text += labelled("", concat("and ", differing.size() - shown, " more keys"), columns);
  return text;
}

/// Which part of the held-out text a plan looks at, with the sizes that are known: of what is scored, or of all.
std::string part_words(const Plan& plan, const std::vector<Probe>& probes) {
  const bool is_development = plan.part == HeldOutPart::development;
  const auto part = is_development ? "a quarter of the documents, which the verdict does not see"
                                   : "the documents on which nothing was tuned";
  if (plan.documents == 0 || std::holds_alternative<SuiteMetric>(plan.metric)) return part;
  const auto scored = count_scored(probes);
  const auto [all, development] =
      scored.all > 0 ? scored : DocumentCounts{.all = plan.documents, .development = plan.development};
  return concat(part, ": ", is_development ? development : all - development, " of ", all,
                scored.all > 0 ? " that are scored" : "");
}

/// The metric that decides, and the others.
std::string metrics_text(const Plan& plan) {
  const auto loss = std::holds_alternative<LossMetric>(plan.metric);
  auto text = (loss ? "held-out " : "") + metric_name(plan);
  std::vector<std::string> others;
  for (const auto& metric : plan.secondary) others.push_back(traits_of(metric).name);
  return others.empty() ? text : text + "; beside it " + listed(others);
}

/// `2 TFLOPs of training and 80 GFLOPs of evaluation, about 3m20s with 2 runs at once (4 % of it evaluation)`, with
/// answers to suites beside held-out losses where there are any.
std::string sum_words(const std::vector<RunCost>& costs, double seeds, int64_t jobs) {
  const auto sum = [&](double RunCost::* field) {
    double all = 0;
    for (const auto& cost : costs) all += seeds * (cost.*field);
    return all;
  };
  const double seconds = sum(&RunCost::seconds);
  const auto flops = [&](double RunCost::* field) { return with_prefix(sum(field)) + "FLOPs"; };
  const auto percent_of = [&](double RunCost::* field) { return in_percent(seconds > 0 ? sum(field) / seconds : 0); };
  const bool has_suites = sum(&RunCost::suite_seconds) > 0;
  const auto done = flops(&RunCost::flops) + " of training";
  const auto time =
      concat("about ", duration(seconds / static_cast<double>(jobs)), " with ", jobs, jobs == 1 ? " run" : " runs",
             " at once (", percent_of(&RunCost::evaluation_seconds), " of it ");
  if (!has_suites)
    return concat(done, " and ", flops(&RunCost::evaluation_flops), " of evaluation, ", time, "evaluation)");
  return concat(done, ", ", flops(&RunCost::evaluation_flops), " of held-out losses and ", flops(&RunCost::suite_flops),
                " of suites, ", time, "held-out losses, ", percent_of(&RunCost::suite_seconds), " suites)");
}

/// Warnings of texts of mixtures that are read too often.
std::string repeats(const Plan& plan, const std::vector<RunCost>& costs, int64_t columns) {
  std::string text;
  for (size_t i = 0; i < costs.size(); ++i)
    for (const auto& part : read_mixture(plan.runs[i].config.data))
      if (const auto warning = repeats_warning(part.tokens, costs[i].epochs * part.passes); !warning.empty())
        text += labelled("warning", concat("arm '", plan.arms[i].name, "': ", warning), columns);
  return text;
}

/// Whether a run starts from the network that its own arm has had before.
bool starts_from_input(const PlannedRun& run) { return !run.inputs.empty() && run.config.init.from == run.source(); }

}  // namespace

std::vector<DifferingKey> differing_keys(const std::vector<RunConfig>& configs, const std::string& absent) {
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string> order;
  for (size_t i = 0; i < configs.size(); ++i)
    for (const auto& entry : entries(configs[i])) {
      if (!entry.leaf) continue;
      const auto [at, is_new] = values.try_emplace(entry.path, configs.size(), absent);
      if (is_new) order.push_back(entry.path);
      at->second[i] = entry.value;
    }
  std::vector<DifferingKey> differing;
  for (const auto& key : order) {
    const auto& of_arms = values[key];
    const bool is_same = std::ranges::all_of(of_arms, [&](const auto& value) { return value == of_arms.front(); });
    if (!is_same) differing.push_back({key, of_arms});
  }
  return differing;
}

std::vector<DifferingKey> differing_keys(const Plan& plan) {
  std::vector<RunConfig> configs;
  for (size_t i = 0; i < plan.arms.size(); ++i) {
    auto& config = configs.emplace_back(plan.runs[i].config);
    config.train.seed = 0;
    if (starts_from_input(plan.runs[i])) config.init.from.clear();  // each from the network of its own arm
  }
  return differing_keys(configs, "-");
}

double disk_bytes_of(const Plan& plan, const std::vector<Probe>& probes) {
  double all = 0;
  for (size_t i = 0; i < probes.size(); ++i)
    all += static_cast<double>(plan.seeds.size()) * cost_of_run(plan.runs[i].config, probes[i]).disk_bytes;
  return all;
}

void require_disk(const std::string& folder, double needed, double free) {
  require<Error>(needed < free, folder, ": the runs need ", bytes(needed), " of disk, of which ", bytes(free),
                 " are free; free some space, or give another folder with --out");
}

std::string plan_table(const Plan& plan, const std::vector<Probe>& probes, int64_t jobs, int64_t columns) {
  const auto seeds = plan.seeds.size();
  std::string text = concat(plan.study.study, ": ", plan.arms.size(), " arms x ", seeds,
                            seeds == 1 ? " seed" : " seeds", " = ", plan.runs.size(), " runs in ", plan.folder, "\n");
  text += labelled("budget", budget_words(plan.runs.front().config.train.budget) + " a run", columns);
  if (!metric_name(plan).empty()) text += labelled("metric", metrics_text(plan), columns);
  if (plan.part != HeldOutPart::whole) text += labelled("held out", part_words(plan, probes), columns);
  std::vector<RunCost> costs;
  for (size_t i = 0; i < probes.size(); ++i) costs.push_back(cost_of_run(plan.runs[i].config, probes[i]));
  if (!costs.empty()) {
    text += labelled(
        "in all",
        sum_words(costs, static_cast<double>(seeds), jobs) + ", " + bytes(disk_bytes_of(plan, probes)) + " of disk",
        columns);
    const auto by_currency = cost_columns(probes, costs);
    if (const auto common = common_costs(by_currency); !common.empty()) text += labelled("each run", common, columns);
    text += "\n" + cost_rows(plan, by_currency, columns);
  }
  text += "\n" + equalities(plan, costs, columns) + repeats(plan, costs, columns);
  if (seeds == 1 && plan.compares)
    text += labelled("warning", "one seed gives no interval and no verdict; two or more do", columns);
  return text;
}

}  // namespace cloze
