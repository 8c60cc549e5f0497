#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include "cli/engine/parts.h"
#include "cli/engine/suite_output.h"
#include "core/error.h"
#include "core/log.h"
#include "run/config_io.h"
#include "run/load_config.h"
#include "run/run_tokenizer.h"
#include "suites/find_suite.h"
#include "suites/suite.h"
#include "suites/suite_report.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The suites of the command, cut down as it says.
std::vector<Suite> read_suites(const SuitesCommand& c) {
  std::vector<Suite> suites;
  for (const auto& name : c.names) {
    auto suite = open_suite(find_suite(name));
    require_new(suite, suites, "--suite");
    auto* ranking = std::get_if<RankingSuite>(&suite.items);
    require<ConfigError>(
        ranking != nullptr || (c.keep.empty() && c.limit == 0), "--suite ", suite.path,
        ": --limit and --keep cut minimal pairs and completions, and it is of another kind; leave them out");
    if (!c.keep.empty()) keep_named(*ranking, c.keep);
    if (c.limit > 0) keep_first(*ranking, c.limit);
    suites.push_back(std::move(suite));
  }
  return suites;
}

/// What a suite is answered by.
struct Uses {
  bool scores = false, candidates = false, embeddings = false;
  void operator()(const RankingSuite&) { scores = candidates = true; }
  void operator()(const FactSuite&) { scores = true; }
  void operator()(const ReadingSuite&) { scores = true; }
  void operator()(const AcquisitionSuite&) { scores = true; }
  void operator()(const WordSimilaritySuite&) { embeddings = true; }
  void operator()(const AnalogySuite&) { embeddings = true; }
  void operator()(const SentenceSimilaritySuite&) { embeddings = true; }
};

/// Throws ConfigError for an option that none of the suites uses.
void check_options(const SuitesCommand& c, const std::vector<Suite>& suites) {
  Uses uses;
  for (const auto& suite : suites) std::visit(uses, suite.items);
  const auto check = [](bool is_given, bool is_used, const char* option, const char* of) {
    require<ConfigError>(!is_given || is_used, option, " is of ", of,
                         ", and no suite that is asked for is one of these; leave it out");
  };
  constexpr const char* embeddings = "suites of embeddings, which are similarities and analogies";
  check(c.layer.has_value(), uses.embeddings, "--layer", embeddings);
  check(c.pooling.has_value(), uses.embeddings, "--pooling", embeddings);
  constexpr const char* scores = "suites of scores, which are all but similarities and analogies";
  check(c.form.has_value(), uses.scores, "--as", scores);
  check(c.stride.has_value(), uses.scores, "--stride", scores);
  check(c.precision.has_value(), uses.scores, "--precision", scores);
  check(!c.cache.empty(), uses.scores, "--cache", scores);
  check(c.normalisation.has_value(), uses.candidates, "--normalise", "minimal pairs and completions");
}

}  // namespace

SuiteOptions options_of(const SuitesCommand& c) {
  return {.scoring = {.form = c.form,
                      .stride = c.stride.value_or(0),
                      .cache = c.cache,
                      .precision = c.precision.value_or(Precision::fp32)},
          .normalisation = c.normalisation.value_or(Normalisation::sum),
          .layer = c.layer,
          .pooling = c.pooling.value_or(Pooling::mean)};
}

namespace {

/// Calls `f`; the message of an Error of it, after `what`, is told and returned, so that other answers are not lost
/// with it. Empty: there is none. An Error passes where nothing else is asked, and where the program is stopped.
template <class F>
std::string fault_in(const std::string& run, const std::string& what, bool is_all, const F& f) {
  try {
    f();
    return "";
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& e) {
    if (is_all) throw;
    end_progress();
    const auto fault = words(what, ": ", e.what());
    log_warning("suites", words(run, ": ", fault));
    return fault;
  }
}

/// What is answered by whom: a run as it is named, its checkpoint, and why it cannot answer some suites.
struct SuiteTask {
  std::string run, checkpoint;
  std::string unread{};               ///< why its config cannot be read; empty: it can
  std::vector<std::string> faults{};  ///< of each suite; empty: it can
  bool answers_any() const {
    return std::any_of(faults.begin(), faults.end(), [](const auto& fault) { return fault.empty(); });
  }
};

/// Asks each run whether it can answer each suite, before weights are read. `is_all`: no other run is asked.
SuiteTask task_of(const std::string& run, const std::string& checkpoint, const std::vector<Suite>& suites,
                  const SuiteOptions& options, bool is_all) {
  SuiteTask task{.run = run, .checkpoint = checkpoint};
  std::string folder;
  RunConfig config;
  task.unread = fault_in(run, "cannot be read", is_all, [&] {
    folder = run_directory_of(checkpoint);
    config = decode<RunConfig>(load_run_config(folder + "/run.yaml"));
  });
  if (!task.unread.empty()) return task;
  const bool has_tokenizer = fs::exists(folder + "/tokenizer");
  for (const auto& suite : suites) {
    const auto fault = has_tokenizer ? suite_fault(config, suite, options) : "it " + no_tokenizer(folder);
    task.faults.push_back(fault.empty() ? "" : words("cannot answer ", suite.name, ": ", fault));
  }
  return task;
}

std::vector<SuiteTask> tasks_of(const EvaluateCommand& c, const std::vector<Suite>& suites,
                                const SuiteOptions& options) {
  std::vector<SuiteTask> tasks;
  if (c.suites.all_checkpoints)
    for (const auto& checkpoint : all_checkpoints_of(c.runs[0]))
      tasks.push_back(task_of(c.runs[0], checkpoint, suites, options, /*is_all=*/true));
  else
    for (const auto& run : c.runs)
      tasks.push_back(task_of(run, asked_checkpoint(c, run), suites, options, c.runs.size() == 1));
  std::string first;
  for (const auto& task : tasks)
    for (const auto& fault : task.faults)
      if (first.empty() && !fault.empty()) first = words(task.run, ": ", fault);
  const bool any = std::any_of(tasks.begin(), tasks.end(), [](const SuiteTask& task) { return task.answers_any(); });
  require<DataError>(any || !first.empty(), "no run can be read; the warnings above say why");
  require<ConfigError>(any, first);
  for (size_t t = 0; t < (c.suites.all_checkpoints ? 1 : tasks.size()); ++t)  // checkpoints have one config
    for (const auto& fault : tasks[t].faults)
      if (!fault.empty()) log_warning("suites", words(tasks[t].run, ": ", fault));
  return tasks;
}

/// The answer of a run to a suite.
SuiteResult answer_of(const LoadedRun& run, const Suite& suite, SuiteOptions options) {
  const auto start = Clock::now();
  options.scoring.progress = suite_progress(suite.name + ", " + run.checkpoint);
  auto result = run_suite(run, suite, options);
  end_progress();
  log_info("suites", words(suite.name, ", ", run.checkpoint, ": ", thousands(result.items.size()), " items in ",
                           duration(std::chrono::duration<double>(Clock::now() - start).count())));
  return result;
}

/// The surprisals of words at the checkpoints of a run, in their order.
struct SurprisalCurves {
  std::vector<CheckpointSurprisals> checkpoints{};
  double chance = 0;  ///< the surprisal before training
  void add(const LoadedRun& run, const SuiteResult& result) {
    const auto& state = run.state;
    const bool has_words = state.words > 0 || state.step == 0;
    if (!has_words) return;  // the checkpoint does not say how many it had read
    auto& one = checkpoints.emplace_back(CheckpointSurprisals{
        .name = fs::path(run.checkpoint).filename().string(), .words = std::max(state.words, 0.0), .surprisals = {}});
    for (size_t i = 0; i < result.items.size(); ++i)
      one.surprisals.push_back(result.items[i].at("surprisal").get<double>());
    chance = std::log(static_cast<double>(run.tokenizer.size()));
  }
};

/// Asks runs one after the other.
class Asker {
 public:
  /// `tasks`: the number of runs and checkpoints.
  Asker(const EvaluateCommand& c, const std::vector<Suite>& suites, size_t tasks)
      : command_(c),
        suites_(suites),
        options_(options_of(c.suites)),
        output_(c.suites.out),
        of_checkpoints_(c.suites.all_checkpoints),
        tasks_(tasks),
        curves_(suites.size()) {}

  /// Adds the answers of one run. What cannot be read, or scored as a text that is too long cannot, is left out: the
  /// others are not lost with it. Texts that are too long are told before any is scored.
  /// Of a run that trains, a checkpoint that it has removed meanwhile is left out, or the one that is asked now is.
  void ask(SuiteTask task) {
    if (of_checkpoints_ && was_removed(task.checkpoint)) {
      log_info("suites", task.checkpoint + ": the run has removed it meanwhile; it is left out");
      return;
    }
    LoadedRun run;
    const auto name = fs::path(task.checkpoint).filename().string();
    auto unread = task.unread;
    if (unread.empty())
      unread = fault_in(task.run, of_checkpoints_ ? name + " cannot be read" : "cannot be read", tasks_ == 1,
                        [&] { run = of_checkpoints_ ? open_whole(task.checkpoint) : opened(task); });
    if (!unread.empty()) {
      answers_.push_back(unread_answers(task.run, task.checkpoint, unread));
      has_failed_ = true;
      return;
    }
    auto& answers = answers_.emplace_back(blank_answers(task.run, run));
    check_texts(task, run);
    for (size_t s = 0; s < suites_.size(); ++s) {
      if (task.faults[s].empty()) answer(task, s, run, answers);
      if (!task.faults[s].empty()) answers.unanswered.push_back(task.faults[s]);
    }
  }

  /// Prints the answers; the exit code of the program: 1 where something that was asked has failed.
  int finish(const EvaluateCommand& c) {
    const auto has_any = [](const SuiteAnswers& one) { return !one.results.empty(); };
    require<DataError>(std::ranges::any_of(answers_, has_any),
                       "no run has answered a suite; the warnings above say why");
    for (size_t s = 0; s < suites_.size() && of_checkpoints_; ++s)
      if (const auto* of_words = std::get_if<AcquisitionSuite>(&suites_[s].items); of_words && !of_words->ages.empty())
        add_ages(suites_[s].name, *of_words, curves_[s]);
    output_.finish(c, answers_);
    return has_failed_ ? 1 : 0;
  }

 private:
  LoadedRun opened(const SuiteTask& task) const {
    const auto checkpoint = [&] {
      return was_removed(task.checkpoint) ? asked_checkpoint(command_, task.run) : task.checkpoint;
    };
    return read_checkpoint(checkpoint, open_whole);
  }

  bool is_all() const { return tasks_ * suites_.size() == 1; }

  /// Once for a run, its tokenizer and a suite: all checkpoints of a run cut texts alike.
  void check_texts(SuiteTask& task, const LoadedRun& run) {
    for (size_t s = 0; s < suites_.size(); ++s) {
      const auto texts = words(task.run, "\n", run.has_tokenizer ? run.tokenizer.fingerprint() : "", "\n", s);
      if (!task.faults[s].empty()) continue;
      const auto [known, is_new] = misfits_.emplace(texts, "");
      if (is_new)
        known->second = fault_in(task.run, "cannot answer " + suites_[s].name, is_all(),
                                 [&] { check_fit(run, suites_[s], options_); });
      task.faults[s] = known->second;
      has_failed_ = has_failed_ || !known->second.empty();
    }
  }

  /// Adds the answer to a suite; its predictions are written, and not kept.
  void answer(SuiteTask& task, size_t s, const LoadedRun& run, SuiteAnswers& answers) {
    SuiteResult result;
    task.faults[s] = fault_in(task.run, "cannot answer " + suites_[s].name, is_all(),
                              [&] { result = answer_of(run, suites_[s], options_); });
    if (!task.faults[s].empty()) {
      has_failed_ = true;
      return;
    }
    output_.add(answers, result);
    if (std::holds_alternative<AcquisitionSuite>(suites_[s].items)) curves_[s].add(run, result);
    result.items = {};
    answers.results.push_back(std::move(result));
  }

  /// Adds the correlation of ages over the checkpoints to the answer of the last one; a note where there is none.
  void add_ages(const std::string& name, const AcquisitionSuite& suite, const SurprisalCurves& curves) {
    const auto is_answer = [&](const SuiteResult& result) { return result.suite == name; };
    const auto last = std::find_if(answers_.rbegin(), answers_.rend(), [&](const SuiteAnswers& one) {
      return std::ranges::any_of(one.results, is_answer);
    });
    if (last == answers_.rend()) return;
    auto& result = *std::ranges::find_if(last->results, is_answer);
    const auto count = curves.checkpoints.size();
    if (count < 3) {
      result.notes.push_back(
          words("no ages of acquisition, which need 3 checkpoints that record the words they have "
                "read; there are ",
                count));
      return;
    }
    auto ages = acquisition_result(suite, curves.checkpoints, curves.chance);
    ages.suite = name;
    output_.add(*last, ages);
    for (auto& figure : ages.figures) {
      figure.official.reset();  // the published program has surprisals of its own
      result.notes.push_back(words(figure.metric, " is that of the ages at which children and the run know ",
                                   figure.count, " words, by their surprisals at ", count, " checkpoints",
                                   figure.count < 3 ? ", of which a correlation needs 3" : ""));
      result.figures.push_back(figure);
    }
  }

  const EvaluateCommand& command_;
  const std::vector<Suite>& suites_;
  SuiteOptions options_;
  SuiteOutput output_;
  bool of_checkpoints_;
  size_t tasks_;
  std::map<std::string, std::string> misfits_;  ///< of runs with their tokenizers and suites; empty: the texts fit
  std::vector<SurprisalCurves> curves_;         ///< of each suite
  std::vector<SuiteAnswers> answers_;
  bool has_failed_ = false;
};

}  // namespace

int evaluate_suites(const EvaluateCommand& c) {
  if (names_babylm(c.suites)) return evaluate_babylm(c);
  const auto suites = read_suites(c.suites);
  check_options(c.suites, suites);
  const auto tasks = tasks_of(c, suites, options_of(c.suites));
  Asker asker(c, suites, tasks.size());
  for (const auto& task : tasks) asker.ask(task);
  return asker.finish(c);
}

}  // namespace cloze
