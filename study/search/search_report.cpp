#include "study/search/search.h"

#include <algorithm>

#include "core/log.h"
#include "core/report/chart.h"
#include "core/text.h"

namespace cloze {

std::vector<Trial> read_trials(const Stages& stages) {
  std::vector<Trial> trials;
  for (size_t r = 0; r < stages.rungs.size(); ++r) {
    const auto& rung = stages.plans[stages.rungs[r]];
    for (const auto& arm : rung.arms) {
      auto found = std::find_if(trials.begin(), trials.end(), [&](const Trial& t) { return t.name == arm.name; });
      std::vector<double> losses;
      Trial now{.name = arm.name, .keys = arm.keys, .rung = r};
      double count = 0;
      for (const auto& run : rung.runs) {
        if (run.arm != arm.name) continue;
        const auto result = finished_result(rung, run);
        if (!result) continue;
        losses.push_back(result->value);
        now.tokens += static_cast<double>(result->tokens);
        now.flops += result->flops;
        now.seconds += result->seconds;
        ++count;
      }
      if (losses.size() < rung.seeds.size()) continue;  // failed, or not done yet: what it had before counts
      now.loss = summarize(losses).mean;
      now.tokens /= count;
      now.flops /= count;
      now.seconds /= count;
      if (found == trials.end())
        trials.push_back(now);
      else
        *found = now;
    }
  }
  const auto& by = stages.compared().metric;
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    return a.rung != b.rung ? a.rung > b.rung : is_better(a.loss, b.loss, by);
  });
  mark_frontier(trials, by);
  return trials;
}

namespace {

/// Whether FLOPs are known of all trials, so that they are what a trial costs; else tokens.
bool knows_flops(const std::vector<Trial>& trials) {
  return std::all_of(trials.begin(), trials.end(), [](const Trial& t) { return t.flops > 0; });
}

}  // namespace

void mark_frontier(std::vector<Trial>& trials, const StudyMetric& by) {
  const bool by_flops = knows_flops(trials);
  const auto cost = [&](const Trial& t) { return by_flops ? t.flops : t.tokens; };
  for (auto& trial : trials)
    trial.on_frontier = std::none_of(trials.begin(), trials.end(), [&](const Trial& other) {
      const bool no_worse = !is_better(trial.loss, other.loss, by) && cost(other) <= cost(trial);
      return no_worse && (is_better(other.loss, trial.loss, by) || cost(other) < cost(trial));
    });
}

std::string frontier_chart(const std::vector<Trial>& trials, const StudyMetric& by) {
  if (trials.empty()) return "";
  const bool by_flops = knows_flops(trials);
  ChartSeries frontier{.title = "frontier", .colour = 1}, best{.mark = ChartMark::points, .colour = 1},
      others{.mark = ChartMark::points, .colour = 2};
  Interval losses{trials.front().loss, trials.front().loss};
  double largest = 0;
  for (const auto& trial : trials) {
    const PlotPoint at{by_flops ? trial.flops : trial.tokens, trial.loss};
    auto& dots = trial.on_frontier ? best : others;
    dots.points.push_back(at);
    dots.hints.push_back(concat(trial.name, ", ", shortest(at.y)));
    if (trial.on_frontier) frontier.points.push_back(at);
    losses = {std::min(losses.low, at.y), std::max(losses.high, at.y)};
    largest = std::max(largest, at.x);
  }
  std::ranges::sort(frontier.points, {}, &PlotPoint::x);
  const char* cost = by_flops ? "FLOPs" : "tokens";
  return chart_html({.title = concat(value_words(by), " of trials by ", cost),
                     .x_label = cost,
                     .series = {frontier, best, others},
                     .x = nice_axis(0, largest, 5, true),
                     .y = nice_axis(losses.low, losses.high, 5, true)});
}

Table search_table(const std::vector<Trial>& trials, const StudyMetric& by) {
  constexpr auto number = ColumnKind::number;
  Table table{
      .title = "Trials",
      .header = {
          "trial", {"rung", number}, {value_words(by), number}, {"tokens", number}, {"FLOPs", number}, "frontier"}};
  if (trials.empty()) return table;
  table.picture = frontier_chart(trials, by);
  for (const auto& [key, value] : trials.front().keys) table.header.emplace_back(key, number);
  for (const auto& trial : trials) {
    auto& row = table.rows.emplace_back(
        std::vector<std::string>{trial.name, std::to_string(trial.rung + 1), fixed(trial.loss, 4),
                                 thousands(static_cast<uint64_t>(trial.tokens)),
                                 trial.flops > 0 ? digits(trial.flops, 3) : "", trial.on_frontier ? "yes" : ""});
    for (const auto& [key, value] : trial.keys) row.push_back(one_line(value));
  }
  return table;
}

std::vector<std::string> search_notes(const Stages& stages, const std::vector<Trial>& trials) {
  std::vector<std::string> notes;
  const auto& first = stages.plans[stages.rungs.front()];
  if (stages.rungs.size() > 1) {
    const auto& second = stages.plans[stages.rungs[1]];
    const bool continued = !second.runs.empty() && second.runs.front().continues;
    if (!second.runs.empty())
      notes.emplace_back(
          continued
              ? "the learning rate is constant, so that the runs of a rung go on from the checkpoints of the one before"
              : "the schedule spans the budget, so that every rung trains its trials anew: a run "
                "that is cut short would be judged in the middle of its schedule");
  }
  for (const size_t r : stages.rungs) {
    const auto& rung = stages.plans[r];
    if (!rung.waits_for.empty()) notes.push_back(concat(rung.stage, " waits for ", rung.waits_for));
    for (const auto& run : rung.runs) {
      const auto status = status_of(rung, run);
      const auto name = concat(rung.stage, ": run ", run.arm, "/", run.seed);
      if (status.state != RunState::done)
        notes.push_back(concat(name, " is ", status.state, status.message.empty() ? "" : ": " + status.message));
      else if (!finished_result(rung, run))
        notes.push_back(name + " counts as failed: its held-out loss is not finite");
      if (status.kept) notes.push_back(concat(name, " ", kept_words));
    }
  }
  if (!trials.empty())
    notes.push_back(
        concat("the loss of the best of ", first.arms.size(),
               " trials is lower than new runs of it will be, because it was chosen by that loss; compare it "
               "with others in a study of arms"));
  return notes;
}

}  // namespace cloze
