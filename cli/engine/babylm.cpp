// `evaluate --suite babylm`.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "babylm/evaluate.h"
#include "cli/engine/parts.h"
#include "cli/engine/suite_output.h"
#include "core/log.h"
#include "run/config_io.h"
#include "run/load_config.h"
#include "run/milestones.h"
#include "run/run_tokenizer.h"
#include "scoring/form_rules.h"
#include "suites/babylm.h"
#include "suites/find_suite.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// A checkpoint, and the revisions of the model that it is.
struct Revisions {
  std::string run;  ///< as the user names it
  std::string checkpoint;
  std::vector<std::string> names;            ///< `main`, or `chck_7M`
  std::optional<CheckpointChoice> choice{};  ///< by which it was found; none: the run keeps it
  std::string fault{};                       ///< why its run cannot be read or scored; empty: it can
  bool is_unread = false;                    ///< the run cannot be read
};

/// The checkpoints that a run keeps by words, each with its names. Throws ConfigError for a run without any.
std::vector<Revisions> revisions_of(const std::string& run) {
  std::vector<Revisions> found;
  for (const auto& [words_read, checkpoint] : all_milestones_of(run_directory_of(run))) {
    if (found.empty() || found.back().checkpoint != checkpoint)
      found.push_back({.run = run, .checkpoint = checkpoint, .names = {}});
    found.back().names.push_back(revision_of(words_read));
  }
  if (!found.empty())
    for (const auto& step_folder : steps_without_state(run_directory_of(run)))
      found.push_back({.run = run, .checkpoint = step_folder, .names = {}});
  require<ConfigError>(!found.empty(), run,
                       ": keeps no checkpoints by words, which are the revisions that BabyLM asks for; train it with "
                       "checkpoint.at_words=babylm, or leave out --all-checkpoints");
  return found;
}

std::vector<Revisions> checkpoints_of(const EvaluateCommand& c) {
  if (c.suites.all_checkpoints) return revisions_of(c.runs[0]);
  std::vector<Revisions> found;
  for (const auto& run : c.runs)
    found.push_back({.run = run, .checkpoint = asked_checkpoint(c, run), .names = {"main"}, .choice = c.checkpoint});
  return found;
}

/// The backend of the command, or that of the run; none: the published program cannot score it.
std::optional<BabylmBackend> backend_of(const SuitesCommand& c, const LoadedRun& run) {
  return c.backend ? c.backend : official_backend(run);
}

/// Why a run cannot be scored, by the backend of the command or in a form; empty if it can.
std::string fault_of(const SuitesCommand& c, const LoadedRun& run) {
  const auto fault = c.backend ? babylm_fault(run, *c.backend) : "";
  return fault.empty() ? scoring_fault(run.config, c.form) : fault;
}

/// The config and the tokenizer of a run, without its weights. Throws an Error for those that cannot be read.
LoadedRun described(const Revisions& one) {
  const auto folder = run_directory_of(one.checkpoint);
  LoadedRun run;
  run.config = decode<RunConfig>(load_run_config(folder + "/run.yaml"));
  if (!fs::exists(folder + "/tokenizer")) fail<CheckpointError>(one.run, ": ", no_tokenizer(folder));
  run.tokenizer = Tokenizer::open(folder + "/tokenizer");
  return run;
}

/// Asks each run whether it can be scored, by the backend of the command if there is one, before weights are read. One
/// of several that cannot be read or scored is told, and the others are answered. Throws ConfigError where none can be
/// scored.
void check_runs(const EvaluateCommand& command, std::vector<Revisions>& checkpoints) {
  std::map<std::string, const Revisions*> known;  // by run
  std::string first;                              // of the runs that cannot be scored
  for (auto& one : checkpoints) {
    const auto [of_run, is_new] = known.emplace(one.run, &one);
    if (!is_new) {
      one.fault = of_run->second->fault;
      one.is_unread = of_run->second->is_unread;
      continue;
    }
    try {
      const auto fault = fault_of(command.suites, described(one));
      if (fault.empty()) continue;
      one.fault = words("cannot answer ", command.suites.names[0], ": ", fault);
      if (first.empty()) first = words(one.run, ": ", fault);
    } catch (const Error& e) {
      if (command.runs.size() == 1) throw;
      one.fault = words("cannot be read: ", e.what());
      one.is_unread = true;
    }
    if (command.runs.size() > 1) log_warning("babylm", words(one.run, ": ", one.fault));
  }
  const bool any = std::ranges::any_of(checkpoints, [](const auto& one) { return one.fault.empty(); });
  require<ConfigError>(any || first.empty(), first);
}

std::string model_of(const std::string& run) { return babylm_model_name(run_directory_of(run)); }

/// Throws ConfigError for two runs whose results would stand in one folder.
void check_names(const std::vector<Revisions>& checkpoints) {
  std::map<std::pair<std::string, std::string>, std::string> runs;  // by model and revision
  for (const auto& one : checkpoints)
    for (const auto& name : one.names) {
      const auto [other, is_new] = runs.emplace(std::pair(model_of(one.run), name), one.run);
      require<ConfigError>(is_new || other->second == one.run, other->second, " and ", one.run,
                           " would both write results of the model ", model_of(one.run),
                           "; evaluate them one by one, each with --results of its own");
    }
}

void log_missing(const BabylmData& data) {
  for (const auto& folder : data.missing)
    log_warning("babylm",
                words(folder, ": is not there, so its task is left out; docs/babylm.md says where it is from"));
}

/// Fills in the surprisals of a checkpoint, with those of the published program where it has others. What it has of
/// masked models are the Scorer's in fp32, and these are not computed twice.
void add_surprisals(CheckpointSurprisals& checkpoint, const LoadedRun& run, const AcquisitionSuite& suite,
                    std::optional<BabylmBackend> backend, const SuiteOptions& options) {
  const auto fault = fault_of(run.config, suite, options);
  require<ConfigError>(fault.empty(), fault);
  std::vector<double> official;
  if (backend) official = babylm_acquisition_surprisals(run, suite, *backend, options.scoring);
  const auto form = options.scoring.form.value_or(default_form(run.config));
  const bool is_masked = backend == BabylmBackend::mlm || backend == BabylmBackend::mntp;
  if (is_masked && form == ScoringForm::pll) {
    checkpoint.surprisals = std::move(official);
    return;
  }
  checkpoint.surprisals = acquisition_surprisals(run, suite, options.scoring);
  if (backend) checkpoint.official = std::move(official);
}

/// Ages of acquisition over the checkpoints that a run keeps by words; none for a run without those.
std::optional<SuiteResult> acquisition_of(const std::string& run, const AcquisitionSuite& suite,
                                          const SuitesCommand& c) {
  std::vector<CheckpointSurprisals> checkpoints;
  std::optional<BabylmBackend> backend;
  double chance = 0;
  for (const auto& [words_read, step_folder] : all_milestones_of(run_directory_of(run))) {
    const auto opened = open_whole(step_folder);
    backend = backend_of(c, opened);
    chance = std::log(static_cast<double>(opened.tokenizer.size()));
    auto options = surprisal_options(opened, options_of(c));
    options.scoring.takes_stride = false;
    options.scoring.progress = suite_progress("ages of acquisition, " + step_folder);
    auto& one = checkpoints.emplace_back(CheckpointSurprisals{
        .name = revision_of(words_read), .words = static_cast<double>(words_read), .surprisals = {}});
    add_surprisals(one, opened, suite, backend, options);
    end_progress();
  }
  if (checkpoints.empty()) {
    log_warning("babylm", words(run, ": keeps no checkpoints by words, so it has no ages of acquisition"));
    return {};
  }
  const auto model = model_of(run);
  if (backend) write_acquisition(zero_shot_folder(c.results, model, "main", *backend), model, suite, checkpoints);
  if (suite.ages.empty() || checkpoints.size() < 3) return {};
  auto result = acquisition_result(suite, checkpoints, chance);
  result.suite = "AoA_word";
  result.scored_by = "ages at which surprisals of words fall" +
                     (backend ? words(", the official number by backend ", name_of(*backend)) : std::string());
  if (!backend)
    for (auto& figure : result.figures) figure.official = std::numeric_limits<double>::quiet_NaN();
  return result;
}

/// Adds the ages of acquisition of a run. One that cannot be told, for a text that is too long or a checkpoint that
/// cannot be read, is left out.
void add_acquisition(SuiteAnswers& answers, const AcquisitionSuite& suite, const SuitesCommand& c) {
  try {
    if (auto ages = acquisition_of(answers.run, suite, c)) answers.results.push_back(std::move(*ages));
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& e) {
    end_progress();
    answers.unanswered.push_back(words("cannot answer AoA_word: ", e.what()));
    log_warning("babylm", words(answers.run, ": ", answers.unanswered.back()));
  }
}

/// The answers of one checkpoint.
SuiteAnswers answers_of(const Revisions& one, const BabylmData& data, const SuitesCommand& c, SuiteOutput& output) {
  const auto run =
      one.choice && was_removed(one.checkpoint) ? open_chosen(one.run, *one.choice) : open_whole(one.checkpoint);
  const auto backend = backend_of(c, run);
  auto options = options_of(c);
  options.scoring.takes_stride = false;
  options.scoring.progress = suite_progress("babylm, " + run.checkpoint);
  std::vector<std::string> folders;
  for (const auto& name : one.names)
    if (backend) folders.push_back(zero_shot_folder(c.results, model_of(one.run), name, *backend));
  auto answers = blank_answers(one.run, run);
  answers.revisions = one.names;
  answers.results = evaluate_babylm(run, data, backend, options, folders, answers.unanswered);
  end_progress();
  if (data.acquisition && !c.all_checkpoints) add_acquisition(answers, *data.acquisition, c);
  for (auto& result : answers.results) {
    output.add(answers, result);
    result.items = {};
  }
  if (!answers.results.empty())
    for (const auto& folder : folders) log_info("babylm", words(folder, ": predictions and reports"));
  return answers;
}

/// As answers_of; a checkpoint that cannot be read or scored is told, so that others are not lost with it.
SuiteAnswers answers_or_fault(const Revisions& one, const BabylmData& data, const SuitesCommand& c,
                              SuiteOutput& output) {
  if (!one.fault.empty()) return unread_answers(one.run, one.checkpoint, one.fault);
  try {
    return answers_of(one, data, c, output);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& e) {
    end_progress();
    auto answers = unread_answers(one.run, one.checkpoint,
                                  words(fs::path(one.checkpoint).filename().string(), " cannot be read: ", e.what()));
    answers.revisions = one.names;
    log_warning("babylm", words(one.run, ": ", answers.unanswered[0]));
    return answers;
  }
}

/// A folder of the suites that are called by name.
std::string folder_by_name(const std::string& name) { return (fs::path(suites_folder()) / name).string(); }

/// Whether a --suite is BabyLM's evaluation data: `babylm`, a folder of it, or its name among the suites.
bool is_of_babylm(const std::string& name) {
  if (name == "babylm" || is_babylm_data(name)) return true;
  std::error_code ignored;
  return !fs::exists(name, ignored) && is_babylm_data(folder_by_name(name));
}

/// The evaluation data of a name. Throws ConfigError for `babylm` where that is not there.
std::string data_folder(const std::string& name) {
  if (is_babylm_data(name)) return name;
  const auto folder = folder_by_name(name);
  require<ConfigError>(
      is_babylm_data(folder), folder,
      ": is not BabyLM's evaluation data, a folder with `full_eval` or `fast_eval` in it; put it there, "
      "or name it with --suite (docs/babylm.md says where it is from)");
  return folder;
}

void check(const SuitesCommand& c) {
  const auto of_babylm = std::find_if(c.names.begin(), c.names.end(), is_of_babylm);
  require<ConfigError>(c.names.size() == 1, "--suite ", *of_babylm,
                       " of BabyLM stands alone; answer other suites in a command of their own");
  require<ConfigError>(c.limit == 0 && c.keep.empty() && !c.layer && !c.pooling, "--suite ", c.names[0],
                       " answers all items of BabyLM's tasks, none by embeddings; leave out --limit, --keep, "
                       "--layer and --pooling");
  require<ConfigError>(!c.stride && !c.precision, "--suite ", c.names[0],
                       " is answered as by the published program of BabyLM, in fp32 and without windows; leave out "
                       "--stride and --precision");
}

}  // namespace

bool names_babylm(const SuitesCommand& c) {
  const bool any = std::any_of(c.names.begin(), c.names.end(), is_of_babylm);
  require<ConfigError>(any || (!c.fast && !c.backend && c.results.empty()),
                       "--fast, --backend and --results are of --suite babylm; leave them out");
  return any;
}

int evaluate_babylm(const EvaluateCommand& c) {
  auto command = c;
  auto& suites = command.suites;
  check(suites);
  if (suites.results.empty()) suites.results = "results";
  const auto folder = data_folder(suites.names[0]);
  const auto data = read_babylm_data(folder, suites.fast);
  log_missing(data);
  auto checkpoints = checkpoints_of(command);
  check_runs(command, checkpoints);
  check_names(checkpoints);
  SuiteOutput output(suites.out);
  std::vector<SuiteAnswers> answers;
  bool any = false, all = true;
  for (const auto& one : checkpoints) {
    answers.push_back(checkpoints.size() == 1 ? answers_of(one, data, suites, output)
                                              : answers_or_fault(one, data, suites, output));
    any = any || !answers.back().results.empty();
    const bool is_asked = one.fault.empty() || one.is_unread;  // a run that cannot be scored is no failure
    all = all && (!is_asked || answers.back().unanswered.empty());
  }
  require<DataError>(any || all, "no task of BabyLM was answered; the warnings above say why");
  output.finish(command, answers);
  return all ? 0 : 1;
}

}  // namespace cloze
