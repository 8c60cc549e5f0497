#include "train/callbacks/suites.h"

#include "core/error.h"
#include "core/fingerprint.h"
#include "core/log.h"
#include "core/report/score_json.h"
#include "core/stopwatch.h"
#include "evaluation/suites/driver.h"
#include "evaluation/suites/ranking_scores.h"
#include "run/records/suite_record.h"
#include "run/records/suite_units.h"
#include "train/records.h"

namespace cloze {

namespace {

using nlohmann::json;

/// How suites of a training are evaluated: no option of theirs gives a stride.
SuiteOptions training_options() {
  SuiteOptions options;
  options.scoring.takes_stride = false;
  return options;
}

/// The network that is trained, as the run that a suite evaluates.
LoadedRun run_of(const Training& training) {
  return {.folder = training.options.run,
          .checkpoint = concat("step ", training.progress.step),
          .config = training.config,
          .tokenizer = training.store.tokenizer(),
          .has_tokenizer = true,
          .network = training.network};
}

/// Throws DataError for a suite with a text that is longer than the network.
void require_fitting(const LoadedRun& run, const std::vector<Suite>& suites) {
  for (const auto& suite : suites) {
    try {
      check_fit(run, suite, training_options());
    } catch (const DataError& e) {
      fail<DataError>("evaluation.suites: ", suite.name, ": ", e.what(), ", or leave the suite out");
    }
  }
}

/// The results of all suites. One that fails, such as one with a text that is too long and could not be known before,
/// or one for which the device has too little memory, is reported and left out: it is no reason to lose a training.
std::vector<SuiteResult> results_of(const Training& training, const std::vector<Suite>& suites) {
  std::vector<SuiteResult> results;
  std::vector<SuiteTask> tasks;
  const auto run = run_of(training);
  for (const auto& suite : suites)
    tasks.push_back({.evaluate = [&] { results.push_back(run_suite(run, suite, training_options())); }});
  evaluate_tasks(tasks, [&](size_t task, const std::exception& e) {
    const std::string text = e.what();  // of LibTorch goes on with the stack
    log_warning("train", concat("suite ", suites[task].name, " is left out at step ", training.progress.step, ": ",
                                text.substr(0, text.find('\n'))));
  });
  return results;
}

/// `blimp accuracy 61.23 %`
std::string to_text(const SuiteResult& result) {
  std::string text = result.suite;
  for (const auto& score : result.scores) {
    if (score.level != SuiteLevel::suite) continue;
    text +=
        concat(" ", score.metric, " ", score_cell(score.value, score.metric), is_proportion(score.metric) ? " %" : "");
  }
  return text;
}

}  // namespace

std::vector<Suite> suites_of(const RunConfig& config) {
  std::vector<Suite> suites;
  for (const auto& path : config.evaluation.suites) {
    auto suite = open_suite(find_suite(path, "evaluation.suites"));
    require_new(suite, suites, "evaluation.suites:");
    const auto items = config.evaluation.suite_items;
    if (auto* ranking = std::get_if<RankingSuite>(&suite.items); ranking && items > 0) keep_first(*ranking, items);
    const auto fault = suite_fault(config, suite, {});
    require<ConfigError>(fault.empty(), "evaluation.suites: ", fault);
    suites.push_back(std::move(suite));
  }
  return suites;
}

std::map<std::string, SuiteCost> suite_costs(const LoadedRun& run, const std::vector<Suite>& suites) {
  constexpr double seconds = 1;
  require_fitting(run, suites);
  std::map<std::string, SuiteCost> costs;
  for (const auto& suite : suites) costs[suite.name] = suite_cost(run, suite, training_options(), seconds);
  return costs;
}

std::string suites_file(int64_t step, const std::vector<SuiteResult>& results) {
  SuiteRecord record{.step = step};
  for (const auto& result : results)
    for (const auto& score : result.scores) {
      if (score.level != SuiteLevel::suite) continue;
      auto& recorded = record.suites[result.suite][score.metric];
      recorded = {
          .value = score.value, .higher_is_better = is_higher_better(score.metric), .items_hash = result.items_hash};
      const auto sums = sums_of(result, score.metric);
      if (!sums) continue;
      recorded.floor = sums->floor;
      recorded.items = sums->items;
      recorded.sum = sums->sum;
      recorded.count = sums->count;
    }
  record.xxh3 = hash_hex(json_text(json(record.suites)));
  return json_text(json(record)) + "\n";
}

SuiteEvaluation::SuiteEvaluation(const Training& training, Checkpoints& checkpoints)
    : checkpoints_(checkpoints), suites_(suites_of(training.config)) {}

void SuiteEvaluation::check_lengths(const Training& training) const { require_fitting(run_of(training), suites_); }

void SuiteEvaluation::restore(Training&, const SavedStep& saved) {
  evaluated_at_ = saved.state.suites_at;
  due_ = saved.state.suites_due && !saved.is_branch;
}

void SuiteEvaluation::begin(Training& training) {
  due_ = due_ && training.config.evaluation.suite_every > 0 && !suites_.empty();
  after_step(training);
}

void SuiteEvaluation::note_due(const Training& training, bool at_end) {
  const int64_t step = training.progress.step, every = training.config.evaluation.suite_every;
  const bool is_time = at_end ? evaluated_at_ != step : is_within_budget(training) && every > 0 && step % every == 0;
  due_ = is_time && !suites_.empty();
}

void SuiteEvaluation::after_step(Training& training) {
  if (due_) evaluate(training);
}

void SuiteEvaluation::finish(Training& training) {
  if (due_ || results_.empty()) evaluate(training);
}

void SuiteEvaluation::save(TrainState& state) const {
  state.suites_at = evaluated_at_;
  state.suites_due = due_;
}

/// Evaluates all suites. Throws Interrupted after a signal.
void SuiteEvaluation::evaluate(Training& training) {
  if (suites_.empty()) return;
  const auto start = Clock::now();
  const AveragedWeights averaged(*training.stepper);
  const bool was_training = training.network->is_training();
  training.network->eval();
  results_ = results_of(training, suites_);
  due_ = false;
  training.network->train(was_training);
  end_progress();
  std::string text;
  for (const auto& result : results_) text += (text.empty() ? " " : ", ") + to_text(result);
  if (!text.empty()) log_info("train", concat("suites at step ", training.progress.step, ":", text));
  training.time_breakdown.evaluation += seconds_since(start);
  if (evaluated_at_ == training.progress.step) return;
  evaluated_at_ = training.progress.step;
  checkpoints_.forget_saved();
  auto row = row_of(training);
  row["suites"] = to_json(results_);
  training.record(row);
}

json to_json(const std::vector<SuiteResult>& results) {
  json all = json::object();
  for (const auto& result : results) {
    auto& entry = all[result.suite];
    for (const auto& score : result.scores)
      if (score.level == SuiteLevel::suite)
        entry[score.metric] = score_json(score);
      else
        entry["groups"][score.group][score.metric] = score.value;
  }
  return all;
}

}  // namespace cloze
