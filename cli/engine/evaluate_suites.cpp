#include <algorithm>
#include <chrono>
#include <filesystem>

#include "cli/engine/parts.h"
#include "cli/engine/suite_output.h"
#include "core/error.h"
#include "core/log.h"
#include "run/load_config.h"
#include "run/milestones.h"
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
    for (const auto& other : suites)
      require<ConfigError>(other.name != suite.name, "--suite ", suite.path, " and ", other.path, " are both called ",
                           suite.name, "; rename one of them");
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
  check(c.form.has_value(), uses.scores, "--as", "suites of scores, which are all but similarities and analogies");
  check(c.normalisation.has_value(), uses.candidates, "--normalise", "minimal pairs and completions");
}

}  // namespace

SuiteOptions options_of(const SuitesCommand& c) {
  return {.scoring = {.form = c.form, .cache = c.cache},
          .normalisation = c.normalisation.value_or(Normalisation::sum),
          .layer = c.layer,
          .pooling = c.pooling.value_or(Pooling::mean)};
}

namespace {

/// The step folders of a run, from the first on; of one that keeps checkpoints by words (checkpoint.at_words) those.
/// Throws ConfigError for a path that is none, or has none.
std::vector<std::string> checkpoints_of(const std::string& run) {
  require<ConfigError>(fs::exists(run + "/run.yaml"), run,
                       ": is not a run directory, and --all-checkpoints needs one; name the run, not one of its steps");
  std::vector<std::string> found;
  for (const auto& milestone : milestones_of(run))
    if (found.empty() || found.back() != milestone.checkpoint) found.push_back(milestone.checkpoint);
  if (!found.empty()) return found;
  for (const auto& entry : fs::directory_iterator(run))
    if (is_step_folder(entry.path().filename().string())) found.push_back(entry.path().string());
  require<ConfigError>(!found.empty(), run, ": holds no checkpoint; train it, or import it again");
  std::sort(found.begin(), found.end());
  return found;
}

/// What is answered by whom: a run as it is named, its checkpoint, and why it cannot answer some suites.
struct Task {
  std::string run, checkpoint;
  std::vector<std::string> faults{};  ///< of each suite; empty: it can
  bool answers_any() const {
    return std::any_of(faults.begin(), faults.end(), [](const auto& fault) { return fault.empty(); });
  }
};

/// Asks each run whether it can answer each suite, before weights are read.
Task task_of(const std::string& run, const std::string& checkpoint, const std::vector<Suite>& suites,
             const SuiteOptions& options) {
  Task task{.run = run, .checkpoint = checkpoint};
  const auto folder = run_directory_of(checkpoint);
  const auto config = decode<RunConfig>(load_run_config(folder + "/run.yaml"));
  const bool has_tokenizer = fs::exists(folder + "/tokenizer");
  for (const auto& suite : suites) {
    auto fault = has_tokenizer ? suite_fault(config, suite, options)
                               : "it has no tokenizer, so it cannot read text; import it with its tokenizer files";
    task.faults.push_back(fault.empty() ? "" : words("cannot answer ", suite.name, ": ", fault));
  }
  return task;
}

std::vector<Task> tasks_of(const EvaluateCommand& c, const std::vector<Suite>& suites, const SuiteOptions& options) {
  std::vector<Task> tasks;
  if (c.suites.all_checkpoints)
    for (const auto& checkpoint : checkpoints_of(c.runs[0]))
      tasks.push_back(task_of(c.runs[0], checkpoint, suites, options));
  else
    for (const auto& run : c.runs) tasks.push_back(task_of(run, chosen_checkpoint(run, c.checkpoint), suites, options));
  std::string first;
  for (const auto& task : tasks)
    for (const auto& fault : task.faults)
      if (first.empty() && !fault.empty()) first = words(task.run, ": ", fault);
  const bool any = std::any_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.answers_any(); });
  require<ConfigError>(any, first);
  for (size_t t = 0; t < (c.suites.all_checkpoints ? 1 : tasks.size()); ++t)  // checkpoints have one config
    for (const auto& fault : tasks[t].faults)
      if (!fault.empty()) log_warning("suites", words(tasks[t].run, ": ", fault));
  return tasks;
}

/// The answer of a run to a suite, written to `output`; its predictions are not kept.
SuiteResult answer_of(const LoadedRun& run, const SuiteAnswers& answers, const Suite& suite, SuiteOptions options,
                      SuiteOutput& output) {
  const auto start = Clock::now();
  options.scoring.progress = suite_progress(suite.name + ", " + run.checkpoint);
  auto result = run_suite(run, suite, options);
  end_progress();
  log_info("suites", words(suite.name, ", ", run.checkpoint, ": ", thousands(result.items.size()), " items in ",
                           duration(std::chrono::duration<double>(Clock::now() - start).count())));
  output.add(answers, result);
  result.items.clear();
  return result;
}

/// Calls `f`; a DataError of it is the fault of a suite for a run, and is told, unless the suite is all that is asked.
template <class F>
void catch_fault(Task& task, size_t suite, const std::string& name, bool is_all, const F& f) {
  try {
    f();
  } catch (const DataError& e) {
    if (is_all) throw;
    end_progress();
    task.faults[suite] = words("cannot answer ", name, ": ", e.what());
    log_warning("suites", words(task.run, ": ", task.faults[suite]));
  }
}

/// The answers of one run. A suite with an item that cannot be scored, such as a text that is too long, is left out:
/// the others are not lost with it. Texts that are too long are told before any is scored.
SuiteAnswers answers_of(Task task, const std::vector<Suite>& suites, const SuiteOptions& options, SuiteOutput& output,
                        bool is_all) {
  const auto run = open_run(task.checkpoint);
  SuiteAnswers answers{.run = task.run, .checkpoint = run.checkpoint, .step = load_state(run.checkpoint, nullptr).step};
  for (size_t s = 0; s < suites.size(); ++s)
    if (task.faults[s].empty())
      catch_fault(task, s, suites[s].name, is_all, [&] { check_fit(run, suites[s], options); });
  for (size_t s = 0; s < suites.size(); ++s) {
    if (task.faults[s].empty())
      catch_fault(task, s, suites[s].name, is_all,
                  [&] { answers.results.push_back(answer_of(run, answers, suites[s], options, output)); });
    if (!task.faults[s].empty()) answers.unanswered.push_back(task.faults[s]);
  }
  return answers;
}

}  // namespace

int evaluate_suites(const EvaluateCommand& c) {
  if (names_babylm(c.suites)) return evaluate_babylm(c);
  const auto suites = read_suites(c.suites);
  check_options(c.suites, suites);
  const auto options = options_of(c.suites);
  const auto tasks = tasks_of(c, suites, options);
  SuiteOutput output(c.suites.out);
  std::vector<SuiteAnswers> answers;
  bool any = false;
  for (const auto& task : tasks) {
    answers.push_back(answers_of(task, suites, options, output, tasks.size() * suites.size() == 1));
    any = any || !answers.back().results.empty();
  }
  require<DataError>(any, "no run has answered a suite; the warnings above say why");
  output.finish(c, answers);
  return 0;
}

}  // namespace cloze
