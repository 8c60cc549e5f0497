#include "evaluation/suites/driver.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "evaluation/suites/suite.h"
#include "run/checkpoints/milestones.h"
#include "run/config/load_config.h"
#include "run/folder.h"
#include "run/run_files.h"
#include "run/run_tokenizer.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

}  // namespace

void evaluate_tasks(std::span<const SuiteTask> tasks,
                    const std::function<void(size_t, const std::exception&)>& failed) {
  const auto succeeds = [&](size_t number, const std::function<void()>& part) {
    try {
      part();
      return true;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& e) {
      end_progress();
      failed(number, e);
      return false;
    }
  };
  std::vector<size_t> fitting;
  for (size_t i = 0; i < tasks.size(); ++i)
    if (!tasks[i].check || succeeds(i, tasks[i].check)) fitting.push_back(i);
  for (const auto i : fitting) succeeds(i, tasks[i].evaluate);
}

void log_result_of(const char* room, const LoadedRun& run, const SuiteResult& result, Clock::time_point start) {
  end_progress();
  log_info(room, concat(result.suite, ", ", run.checkpoint, ": ", thousands(result.items.size()), " items in ",
                        duration(seconds_since(start))));
}

std::function<void(int64_t, int64_t)> suite_progress(const std::string& what) {
  return [what, start = Clock::now(), last = Clock::now()](int64_t done, int64_t all) mutable {
    if (seconds_since(last) < 0.2) return;
    last = Clock::now();
    log_progress({.fields = {"[suites]  " + what,
                             concat(thousands(static_cast<uint64_t>(done)), " of ",
                                    thousands(static_cast<uint64_t>(all)), " texts"),
                             duration(seconds_since(start))},
                  .fraction = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : -1},
                 false);
  };
}

SuiteOptions options_of(const SuiteRequest& request) {
  return {.scoring = {.form = request.form,
                      .stride = request.stride.value_or(0),
                      .cache = request.cache,
                      .precision = request.precision.value_or(Precision::fp32)},
          .normalisation = request.normalisation.value_or(Normalisation::sum),
          .layer = request.layer,
          .pooling = request.pooling.value_or(Pooling::mean)};
}

SuiteOutput::SuiteOutput(const std::string& folder) {
  if (folder.empty()) return;
  staged_.emplace(folder);
  predictions_.open(staged_->path() + "/predictions.jsonl", std::ios::binary);
}

void SuiteOutput::add(const CheckpointResults& checkpoint, const SuiteResult& result) {
  if (!staged_) return;
  predictions_ << prediction_lines(checkpoint, result);
  check();
}

void SuiteOutput::check() const {
  require<Error>(!predictions_.fail(), staged_->path(), "/predictions.jsonl: cannot be written (", system_reason(),
                 ")");
}

void SuiteOutput::commit(std::span<const CheckpointResults> all, std::span<const Table> tables,
                         std::span<const std::string> notes) {
  if (!staged_) return;
  predictions_.close();
  check();
  std::string markdown, latex, list, comments;
  for (const auto& table : tables) {
    markdown += to_markdown(table) + "\n";
    latex += (latex.empty() ? "" : "\n") + to_latex(table);
  }
  for (const auto& note : notes) {
    list += "- " + escaped_markdown(note) + "\n";
    comments += "% " + in_one_line(note) + "\n";
  }
  write_atomic(staged_->path() + "/results.jsonl", results_lines(all));
  write_atomic(staged_->path() + "/table.md", markdown + list);
  write_atomic(staged_->path() + "/table.tex", latex + comments);
  staged_->commit();
}

void SuiteOutput::finish(const RunSelection& selection, bool paradigms, std::span<const CheckpointResults> all,
                         std::span<const SuiteComparison> compared) {
  const bool of_checkpoints = selection.all_checkpoints;
  const auto usual = of_checkpoints ? SuiteDetail::suites : SuiteDetail::phenomena;
  const auto detail = paradigms ? SuiteDetail::paradigms : usual;
  std::vector<Table> tables{of_checkpoints ? table_of_checkpoints(all, detail) : table_of_runs(all, detail)};
  const auto names = short_names(all);
  if (!compared.empty()) tables.push_back(table_of(compared, names[0], names[1]));
  auto notes = notes_of(all);
  const auto brackets = note_of_brackets(all, detail);
  const bool has_columns_of_official = all.size() == 1 && !of_checkpoints;
  if (!brackets.empty() && !has_columns_of_official) notes.insert(notes.begin(), brackets);
  commit(all, tables, notes);
  if (selection.json) {
    json runs = json::array();
    for (const auto& one : all) runs.push_back(to_json(one));
    json document{{"runs", runs}};
    for (const auto& one : compared) document["comparisons"].push_back(to_json(one));
    print_data(json_text(document) + "\n");
    return;
  }
  constexpr size_t terminal = 80;
  const auto columns = static_cast<int64_t>(terminal_columns(STDOUT_FILENO, 0));
  print_text(
      to_text(of_checkpoints ? table_of_checkpoints(all, detail, terminal) : table_of_runs(all, detail, terminal)) +
      "\n");
  if (!compared.empty())
    print_text((columns > 0 ? to_text(tables[1], static_cast<size_t>(columns)) : to_text(tables[1])) + "\n");
  for (const auto& note : notes)
    print_text(columns > 0 ? wrapped("", readable(note), columns, 2) : readable(note) + "\n");
}

namespace {

/// The checkpoint of a run that is evaluated; of several runs one that cannot be chosen is the run itself.
std::string requested_checkpoint(const RunSelection& selection, const std::string& run) {
  try {
    return chosen_checkpoint(run, selection.checkpoint);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error&) {
    if (selection.runs.size() == 1) throw;
    return run;
  }
}

/// A target, and what is known of it from its config.
struct PlannedTarget {
  SuiteTarget target;
  std::string unread{};               ///< why its config cannot be read; empty: it can
  std::vector<std::string> faults{};  ///< of each job, `cannot answer pairs: ...`; empty: none
};

/// Results as they come in.
struct SuiteProgress {
  const SuitePlan& plan;
  SuiteOutput output;
  std::vector<CheckpointResults> results{};
  std::map<std::string, std::string>
      text_errors{};                 ///< by run, tokenizer and job, why its texts do not fit; empty: they do
  std::set<std::string> warnings{};  ///< that were given
  bool has_failed = false;
};

/// Calls `read`; the message of an Error of it, which is logged. An Error passes where nothing else is evaluated.
template <class Read>
std::string fault_of_reading(const SuitePlan& plan, const std::string& run, const std::string& what, bool is_only,
                             const Read& read) {
  try {
    read();
    return "";
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& e) {
    if (is_only) throw;
    end_progress();
    const auto fault = concat(what, ": ", e.what());
    log_warning(plan.room, concat(run, ": ", fault));
    return fault;
  }
}

/// What is known of each target from its run's config. Throws ConfigError where none can be evaluated on any job.
std::vector<PlannedTarget> planned_targets(const SuitePlan& plan) {
  std::vector<PlannedTarget> planned;
  std::map<std::string, size_t> known;  // the first target of each run
  std::string first;
  bool any = false;
  for (const auto& target : plan.targets) {
    const auto [run, is_new] = known.emplace(target.run, planned.size());
    auto& one = planned.emplace_back(is_new ? PlannedTarget{target} : planned[run->second]);
    one.target = target;
    if (!is_new) continue;
    one.unread = fault_of_reading(plan, target.run, "cannot be read", plan.selection.runs.size() == 1, [&] {
      const auto folder = run_directory_of(target.checkpoint);
      const auto config = decode<RunConfig>(load_run_config(folder + "/run.yaml"));
      for (const auto& job : plan.jobs) {
        const auto reason = job.fault(target.run, folder, config);
        one.faults.push_back(reason.empty() ? "" : concat("cannot answer ", job.name, ": ", reason));
        any = any || reason.empty();
        if (first.empty() && !reason.empty())
          first = concat(target.run, ": ", plan.is_composite ? reason : one.faults.back());
      }
    });
  }
  require<DataError>(any || !first.empty(), "no run can be read; the warnings above say why");
  require<ConfigError>(any, first);
  for (size_t i = 0; i < planned.size(); ++i)
    for (const auto& fault : planned[i].faults)
      if (!fault.empty() && known.at(planned[i].target.run) == i)
        log_warning(plan.room, concat(planned[i].target.run, ": ", fault));
  return planned;
}

/// The results of a checkpoint before there are any, with the progress that its state has.
CheckpointResults blank_results(const SuiteTarget& target, const LoadedRun& run) {
  const auto& state = run.state;
  CheckpointResults blank{.run = target.run, .checkpoint = run.checkpoint, .step = state.step};
  if (state.words > 0) blank.words = std::llround(state.words);
  for (const auto milestone : state.at_words) blank.revisions.push_back(revision_of(milestone));
  if (target.revisions) blank.revisions = *target.revisions;
  return blank;
}

/// Those of a checkpoint that is not read: `fault`, and the step in the name of its folder.
CheckpointResults unread_results(const SuiteTarget& target, const std::string& fault) {
  const auto folder = file_name(target.checkpoint);
  return {.run = target.run,
          .checkpoint = target.checkpoint,
          .step = is_step_name(folder) ? step_of_folder(folder) : 0,
          .skipped = {fault}};
}

LoadedRun open_target(const SuitePlan& plan, const SuiteTarget& target) {
  if (plan.selection.all_checkpoints) return open_intact(target.checkpoint);
  const auto checkpoint = [&] {
    return was_removed(target.checkpoint) ? requested_checkpoint(plan.selection, target.run) : target.checkpoint;
  };
  return read_checkpoint(checkpoint, open_intact);
}

/// Throws DataError for a job with a text that is too long, which is found once for a run and its tokenizer: all
/// checkpoints of a run cut texts alike.
void check_texts(SuiteProgress& progress, const SuiteTarget& target, size_t job, const LoadedRun& run) {
  const auto& check = progress.plan.jobs[job].check;
  if (!check) return;
  const auto fingerprint = run.has_tokenizer ? run.tokenizer.fingerprint() : "";
  const auto [known, is_new] = progress.text_errors.emplace(concat(target.run, "\n", fingerprint, "\n", job), "");
  require<DataError>(known->second.empty(), known->second);
  if (!is_new) return;
  try {
    check(run);
  } catch (const Error& e) {
    known->second = e.what();
    throw;
  }
}

/// Adds the results of one run to the last entry of `progress`.
void evaluate_jobs(SuiteProgress& progress, PlannedTarget& planned, const LoadedRun& run) {
  const auto& plan = progress.plan;
  auto& checkpoint = progress.results.back();
  std::vector<SuiteTask> tasks;
  std::vector<size_t> jobs;  // of the tasks
  for (size_t j = 0; j < plan.jobs.size(); ++j) {
    if (!planned.faults[j].empty()) continue;
    jobs.push_back(j);
    tasks.push_back({.check = [&, j] { check_texts(progress, planned.target, j, run); },
                     .evaluate =
                         [&, j] {
                           const auto before = checkpoint.skipped.size();
                           for (auto& result : plan.jobs[j].evaluate(run, planned.target, checkpoint.skipped)) {
                             progress.output.add(checkpoint, result);
                             result.items = {};  // they are written
                             if (!plan.is_of_two_runs()) result.proportions.clear();
                             checkpoint.results.push_back(std::move(result));
                           }
                           progress.has_failed = progress.has_failed || checkpoint.skipped.size() > before;
                         }});
  }
  evaluate_tasks(tasks, [&](size_t task, const std::exception& e) {
    const bool is_only = plan.targets.size() * plan.jobs.size() == 1;
    if (is_only || dynamic_cast<const Error*>(&e) == nullptr) throw;
    auto& fault = planned.faults[jobs[task]];
    fault = concat("cannot answer ", plan.jobs[jobs[task]].name, ": ", e.what());
    const auto warning = concat(planned.target.run, ": ", fault);
    if (progress.warnings.insert(warning).second) log_warning(plan.room, warning);
    progress.has_failed = true;
  });
  for (const auto& fault : planned.faults)
    if (!fault.empty()) checkpoint.skipped.push_back(fault);
}

void evaluate_target(SuiteProgress& progress, PlannedTarget planned) {
  const auto& plan = progress.plan;
  const auto& target = planned.target;
  const bool of_checkpoints = plan.selection.all_checkpoints;
  if (plan.is_composite && planned.unread.empty() && !planned.faults[0].empty()) {
    progress.results.push_back(unread_results(target, planned.faults[0]));
    return;
  }
  LoadedRun run;
  bool is_gone = false;
  auto unread = planned.unread;
  const auto what = (of_checkpoints ? file_name(target.checkpoint) + " " : "") + "cannot be read";
  if (unread.empty())
    unread = fault_of_reading(plan, target.run, what, plan.targets.size() == 1, [&] {
      try {
        run = open_target(plan, target);
      } catch (const std::exception&) {
        is_gone = of_checkpoints && was_removed(target.checkpoint);
        if (!is_gone) throw;
      }
    });
  if (is_gone) return log_info(plan.room, target.checkpoint + ": the run has removed it meanwhile; it is left out");
  if (!unread.empty()) {
    auto& found = progress.results.emplace_back(unread_results(target, unread));
    if (planned.unread.empty() && target.revisions) found.revisions = *target.revisions;
    progress.has_failed = true;
    return;
  }
  progress.results.push_back(blank_results(target, run));
  evaluate_jobs(progress, planned, run);
}

}  // namespace

std::vector<SuiteTarget> chosen_targets(const RunSelection& selection) {
  std::vector<SuiteTarget> targets;
  for (const auto& run : selection.runs)
    targets.push_back({.run = run, .checkpoint = requested_checkpoint(selection, run)});
  return targets;
}

std::vector<SuiteTarget> checkpoint_targets(const std::string& run) {
  std::vector<SuiteTarget> targets;
  for (const auto& checkpoint : all_checkpoints_of(run)) targets.push_back({.run = run, .checkpoint = checkpoint});
  return targets;
}

int evaluate(const SuitePlan& proposed) {
  auto plan = proposed;
  const auto first = planned_targets(plan);
  SuiteProgress progress{.plan = plan, .output = SuiteOutput(plan.request.out)};
  for (const auto& one : first) evaluate_target(progress, one);
  const bool of_checkpoints = plan.selection.all_checkpoints && !plan.is_composite;
  // A run that trains may have removed all of them meanwhile.
  for (int looks = 1; of_checkpoints && progress.results.empty() && looks < most_looks; ++looks) {
    plan.targets = checkpoint_targets(plan.selection.runs[0]);
    for (const auto& one : planned_targets(plan)) evaluate_target(progress, one);
  }
  const bool any = std::ranges::any_of(progress.results, [](const auto& one) { return !one.results.empty(); });
  require<DataError>(any || (plan.is_composite && !progress.has_failed), plan.nothing);
  if (plan.conclude) plan.conclude(progress.results, progress.output);
  std::vector<SuiteComparison> compared;
  if (plan.is_of_two_runs()) compared = compare_runs(progress.results.at(0), progress.results.at(1));
  progress.output.finish(plan.selection, plan.request.paradigms, progress.results, compared);
  return progress.has_failed ? 1 : 0;
}

namespace {

/// The suites of a request, cut down as it says.
std::vector<Suite> requested_suites(const SuiteRequest& request) {
  std::vector<Suite> suites;
  for (const auto& name : request.names) {
    auto suite = open_suite(find_suite(name));
    require_new(suite, suites, "--suite");
    auto* ranking = std::get_if<RankingSuite>(&suite.items);
    require<ConfigError>(
        ranking != nullptr || (request.keep.empty() && request.limit == 0), "--suite ", suite.path,
        ": --limit and --keep cut minimal pairs and completions, and it is of another kind; leave them out");
    if (!request.keep.empty()) keep_named(*ranking, request.keep);
    if (request.limit > 0) keep_first(*ranking, request.limit);
    suites.push_back(std::move(suite));
  }
  return suites;
}

/// Throws ConfigError for an option that none of the suites uses.
void check_options(const SuiteRequest& request, const std::vector<Suite>& suites) {
  const auto ranks = [](const Suite& suite) { return std::holds_alternative<RankingSuite>(suite.items); };
  const bool of_embeddings = std::ranges::any_of(suites, is_of_embeddings),
             of_scores = !std::ranges::all_of(suites, is_of_embeddings),
             of_candidates = std::ranges::any_of(suites, ranks);
  const auto check = [](bool is_given, bool is_used, const char* option, const char* of) {
    require<ConfigError>(!is_given || is_used, option, " is of ", of,
                         ", and no suite that is asked for is one of these; leave it out");
  };
  constexpr const char* embeddings = "suites of embeddings, which are similarities and analogies";
  check(request.layer.has_value(), of_embeddings, "--layer", embeddings);
  check(request.pooling.has_value(), of_embeddings, "--pooling", embeddings);
  constexpr const char* scores = "suites of scores, which are all but similarities and analogies";
  check(request.form.has_value(), of_scores, "--as", scores);
  check(request.stride.has_value(), of_scores, "--stride", scores);
  check(request.precision.has_value(), of_scores, "--precision", scores);
  check(!request.cache.empty(), of_scores, "--cache", scores);
  check(request.normalisation.has_value(), of_candidates, "--normalise", "minimal pairs and completions");
}

/// The surprisals of words at the checkpoints of a run, in their order.
struct SurprisalCurves {
  std::vector<CheckpointSurprisals> checkpoints{};
  double chance = 0;  ///< the surprisal before training

  void add(const LoadedRun& run, const SuiteResult& result) {
    const auto& state = run.state;
    const bool has_words = state.words > 0 || state.step == 0;
    if (!has_words) return;  // the checkpoint does not say how many it had read
    auto& one = checkpoints.emplace_back(
        CheckpointSurprisals{.name = file_name(run.checkpoint), .words = std::max(state.words, 0.0), .surprisals = {}});
    for (size_t i = 0; i < result.items.size(); ++i)
      one.surprisals.push_back(result.items[i].at("surprisal").get<double>());
    chance = std::log(static_cast<double>(run.tokenizer.size()));
  }
};

/// Adds the correlation of ages over the checkpoints to the result of the last one; a note where there is none.
void add_ages(const Suite& suite, const AcquisitionSuite& known, const SurprisalCurves& curves,
              std::vector<CheckpointResults>& all, SuiteOutput& output) {
  const auto is_of_suite = [&](const SuiteResult& result) { return result.suite == suite.name; };
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const CheckpointResults& one) {
    return std::ranges::any_of(one.results, is_of_suite);
  });
  if (last == all.rend()) return;
  auto& result = *std::ranges::find_if(last->results, is_of_suite);
  const auto count = curves.checkpoints.size();
  if (count < 3) {
    result.notes.push_back(
        concat("no ages of acquisition, which need 3 checkpoints that record the words they have "
               "read; there are ",
               count));
    return;
  }
  auto ages = acquisition_result(known, curves.checkpoints, curves.chance);
  ages.suite = suite.name;
  output.add(*last, ages);
  for (auto& score : ages.scores) {
    score.official.reset();  // the published program has surprisals of its own
    result.notes.push_back(concat(score.metric, " is that of the ages at which children and the run know ", score.count,
                                  " words, by their surprisals at ", count, " checkpoints",
                                  score.count < 3 ? ", of which a correlation needs 3" : ""));
    result.scores.push_back(score);
  }
}

/// A suite as the driver evaluates it; surprisals of words are kept in `curves`.
SuiteJob job_of(const Suite& suite, const SuiteOptions& options, SurprisalCurves& curves) {
  const auto fault = [&suite, &options](const std::string&, const std::string& folder, const RunConfig& config) {
    return fs::exists(folder + "/tokenizer") ? suite_fault(config, suite, options) : "it " + no_tokenizer(folder);
  };
  const auto evaluate = [&suite, &options, &curves](const LoadedRun& run, const SuiteTarget&,
                                                    std::vector<std::string>&) {
    const auto start = Clock::now();
    auto with_progress = options;
    with_progress.scoring.progress = suite_progress(suite.name + ", " + run.checkpoint);
    std::vector<SuiteResult> results{run_suite(run, suite, with_progress)};
    log_result_of("suites", run, results[0], start);
    if (std::holds_alternative<AcquisitionSuite>(suite.items)) curves.add(run, results[0]);
    return results;
  };
  return {.name = suite.name,
          .fault = fault,
          .check = [&suite, &options](const LoadedRun& run) { check_fit(run, suite, options); },
          .evaluate = evaluate};
}

}  // namespace

int evaluate_suites(const RunSelection& selection, const SuiteRequest& request) {
  const auto suites = requested_suites(request);
  check_options(request, suites);
  const auto options = options_of(request);
  std::vector<SurprisalCurves> curves(suites.size());
  SuitePlan plan{.selection = selection, .request = request, .targets = {}, .jobs = {}};
  plan.targets = selection.all_checkpoints ? checkpoint_targets(selection.runs[0]) : chosen_targets(selection);
  for (size_t s = 0; s < suites.size(); ++s) plan.jobs.push_back(job_of(suites[s], options, curves[s]));
  plan.conclude = [&](std::vector<CheckpointResults>& all, SuiteOutput& output) {
    for (size_t s = 0; s < suites.size() && selection.all_checkpoints; ++s)
      if (const auto* known = std::get_if<AcquisitionSuite>(&suites[s].items); known && !known->ages.empty())
        add_ages(suites[s], *known, curves[s], all, output);
  };
  return evaluate(plan);
}

}  // namespace cloze
