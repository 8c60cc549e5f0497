#include "train/suites.h"

#include "core/error.h"
#include "core/log.h"
#include "run/suite_units.h"
#include "suites/find_suite.h"
#include "train/records.h"
#include "train/stopwatch.h"

namespace cloze {

namespace {

using nlohmann::json;

/// How suites of a training are answered: no option of theirs gives a stride.
SuiteOptions training_options() {
  SuiteOptions options;
  options.scoring.takes_stride = false;
  return options;
}

/// The network that is trained, as the run that a suite asks.
LoadedRun run_of(const Session& session) {
  return {.folder = session.options.run,
          .checkpoint = words("step ", session.state.step),
          .config = session.config,
          .tokenizer = session.store.tokenizer(),
          .has_tokenizer = true,
          .network = session.network};
}

json figure_json(const SuiteFigure& figure) {
  json entry{{"value", figure.value}, {"count", figure.count}, {"ties", figure.ties}};
  if (figure.low) entry["low"] = *figure.low;
  if (figure.high) entry["high"] = *figure.high;
  return entry;
}

/// The answers to all suites. One without an answer, such as one with a text that is too long and could not be known
/// before, or one for which the device has too little memory, is told and left out: it is no reason to lose a training.
std::vector<SuiteResult> answers_of(const Session& session) {
  std::vector<SuiteResult> answers;
  const auto run = run_of(session);
  for (const auto& suite : session.suites) {
    try {
      answers.push_back(run_suite(run, suite, training_options()));
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& e) {  // also of LibTorch, whose text goes on with the stack
      const std::string text = e.what();
      end_progress();
      log_warning("train", words("suite ", suite.name, " is left out at step ", session.state.step, ": ",
                                 text.substr(0, text.find('\n'))));
    }
  }
  return answers;
}

/// `blimp accuracy 61.23 %`
std::string to_text(const SuiteResult& answer) {
  std::string text = answer.suite;
  for (const auto& figure : answer.figures) {
    if (figure.level != SuiteLevel::suite) continue;
    text +=
        words(" ", figure.metric, " ", figure_cell(figure.value, figure.metric), is_share(figure.metric) ? " %" : "");
  }
  return text;
}

}  // namespace

void open_suites(Session& session) {
  for (const auto& path : session.config.evaluation.suites) {
    auto suite = open_suite(find_suite(path, "evaluation.suites"));
    require_new(suite, session.suites, "evaluation.suites:");
    const auto items = session.config.evaluation.suite_items;
    if (auto* ranking = std::get_if<RankingSuite>(&suite.items); ranking && items > 0) keep_first(*ranking, items);
    const auto fault = suite_fault(session.config, suite, {});
    require<ConfigError>(fault.empty(), "evaluation.suites: ", fault);
    session.suites.push_back(std::move(suite));
  }
}

void check_suites(const Session& session) {
  const auto run = run_of(session);
  for (const auto& suite : session.suites) {
    try {
      check_fit(run, suite, training_options());
    } catch (const DataError& e) {
      fail<DataError>("evaluation.suites: ", suite.name, ": ", e.what(), ", or leave the suite out");
    }
  }
}

bool suites_are_due(const Session& session) {
  const int64_t every = session.config.evaluation.suite_every;
  return !session.suites.empty() && every > 0 && session.state.step % every == 0;
}

void answer_suites(Session& session) {
  if (session.suites.empty()) return;
  const auto start = Clock::now();
  const AveragedWeights averaged(*session.stepper);
  const bool was_training = session.network->is_training();
  session.network->eval();
  session.suite_results = answers_of(session);
  session.state.suites_due = false;
  session.network->train(was_training);
  end_progress();
  std::string text;
  for (const auto& answer : session.suite_results) text += (text.empty() ? " " : ", ") + to_text(answer);
  if (!text.empty()) log_info("train", words("suites at step ", session.state.step, ":", text));
  session.ledger.evaluation += seconds_since(start);
  auto& answered_at = session.state.suites_at;
  if (answered_at == session.state.step) return;
  answered_at = session.state.step;
  session.saved_at = -1;
  record_row(session, {{"step", session.state.step},
                       {"tokens", session.state.tokens},
                       {"flops", session.state.flops},
                       {"suites", to_json(session.suite_results)}});
}

json to_json(const std::vector<SuiteResult>& answers) {
  json all = json::object();
  for (const auto& answer : answers) {
    auto& entry = all[answer.suite];
    for (const auto& figure : answer.figures)
      if (figure.level == SuiteLevel::suite)
        entry[figure.metric] = figure_json(figure);
      else
        entry["groups"][figure.group][figure.metric] = figure.value;
  }
  return all;
}

}  // namespace cloze
