// `cloze evaluate --suite babylm`.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "core/log.h"
#include "evaluation/babylm/evaluate.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/suite.h"
#include "inference/scoring/form_rules.h"
#include "run/checkpoints/checksums.h"
#include "run/checkpoints/milestones.h"
#include "run/config/load_config.h"
#include "run/run_tokenizer.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The checkpoints that a run keeps by words, each with its names. Throws ConfigError for a run without any.
std::vector<SuiteTarget> kept_targets(const std::string& run) {
  std::vector<SuiteTarget> targets;
  for (const auto& [words_read, checkpoint] : all_milestones_of(run_directory_of(run))) {
    if (targets.empty() || targets.back().checkpoint != checkpoint)
      targets.push_back({.run = run, .checkpoint = checkpoint, .revisions = std::vector<std::string>{}});
    targets.back().revisions->push_back(revision_of(words_read));
  }
  require<ConfigError>(!targets.empty(), run,
                       ": keeps no checkpoints by words, which are the revisions that BabyLM asks for; train it with "
                       "checkpoint.at_words=babylm, or leave out --all-checkpoints");
  for (const auto& step_folder : steps_without_state(run_directory_of(run)))
    targets.push_back({.run = run, .checkpoint = step_folder, .revisions = std::vector<std::string>{}});
  return targets;
}

std::vector<SuiteTarget> targets_of(const RunSelection& selection) {
  if (selection.all_checkpoints) return kept_targets(selection.runs[0]);
  auto targets = chosen_targets(selection);
  for (auto& target : targets) target.revisions = {"main"};
  return targets;
}

/// The backend of the request, or that of the run; none: the published program cannot score it.
std::optional<BabylmBackend> backend_of(const SuiteRequest& request, const LoadedRun& run) {
  return request.backend ? request.backend : official_backend(run);
}

/// Why a run cannot be scored, by the backend of the request or in a form; empty if it can. Its weights are not read.
/// Throws CheckpointError for a run without a tokenizer.
std::string request_fault(const SuiteRequest& request, const std::string& name, const std::string& folder,
                          const RunConfig& config) {
  if (!fs::exists(folder + "/tokenizer")) fail<CheckpointError>(name, ": ", no_tokenizer(folder));
  LoadedRun run;
  run.config = config;
  run.tokenizer = Tokenizer::open(folder + "/tokenizer");
  const auto fault = request.backend ? babylm_fault(run, *request.backend) : "";
  return fault.empty() ? scoring_fault(config, request.form) : fault;
}

std::string model_of(const std::string& run) { return babylm_model_name(run_directory_of(run)); }

/// Throws ConfigError for two runs whose results would stand in one folder.
void check_names(const std::vector<SuiteTarget>& targets) {
  std::map<std::pair<std::string, std::string>, std::string> runs;  // by model and revision
  for (const auto& one : targets)
    for (const auto& name : *one.revisions) {
      const auto [other, is_new] = runs.emplace(std::pair(model_of(one.run), name), one.run);
      require<ConfigError>(is_new || other->second == one.run, other->second, " and ", one.run,
                           " would both write results of the model ", model_of(one.run),
                           "; evaluate them one by one, each with --results of its own");
    }
}

void log_missing(const BabylmData& data) {
  for (const auto& folder : data.missing)
    log_warning("babylm",
                concat(folder, ": is not there, so its task is left out; docs/babylm.md says where it is from"));
}

/// Fills in the surprisals of a checkpoint, with those of the published program where it has others. What it has of
/// masked models are the Scorer's in fp32, and these are not computed twice.
void add_surprisals(CheckpointSurprisals& checkpoint, const LoadedRun& run, const AcquisitionSuite& suite,
                    std::optional<BabylmBackend> backend, const SuiteOptions& options) {
  const auto fault = reason_unsupported(run.config, suite, options);
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

/// Ages of acquisition over the checkpoints that a run keeps by words; none for a run without those. `weights`: of the
/// checkpoint whose results they stand beside.
std::optional<SuiteResult> acquisition_of(const std::string& run, const AcquisitionSuite& suite, const SuiteRequest& c,
                                          RevisionWeights weights) {
  std::vector<CheckpointSurprisals> checkpoints;
  std::optional<BabylmBackend> backend;
  double chance = 0;
  for (const auto& [words_read, step_folder] : all_milestones_of(run_directory_of(run))) {
    const auto opened = open_intact(step_folder);
    backend = backend_of(c, opened);
    weights[revision_of(words_read)] = weights_fingerprint(step_folder);
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
    log_warning("babylm", concat(run, ": keeps no checkpoints by words, so it has no ages of acquisition"));
    return {};
  }
  const auto model = model_of(run);
  if (backend)
    write_acquisition({zero_shot_folder(c.results, model, "main", *backend), weights}, model, suite, checkpoints);
  if (suite.ages.empty() || checkpoints.size() < 3) return {};
  auto result = acquisition_result(suite, checkpoints, chance);
  result.suite = "AoA_word";
  result.scored_by = "ages at which surprisals of words fall" +
                     (backend ? concat(", the official number by backend ", name_of(*backend)) : std::string());
  if (!backend)
    for (auto& score : result.scores) score.official = std::numeric_limits<double>::quiet_NaN();
  return result;
}

/// The results of one checkpoint; `with_ages`: and the ages of acquisition of its run, which are left out where a text
/// is too long or a checkpoint cannot be read.
std::vector<SuiteResult> results_of(const LoadedRun& run, const SuiteTarget& target, const BabylmData& data,
                                    const SuiteRequest& c, bool with_ages, std::vector<std::string>& skipped) {
  const auto backend = backend_of(c, run);
  auto options = options_of(c);
  options.scoring.takes_stride = false;
  options.scoring.progress = suite_progress("babylm, " + run.checkpoint);
  const auto weights = weights_fingerprint(run.checkpoint);
  std::vector<ResultsFolder> folders;
  for (const auto& name : *target.revisions)
    if (backend)
      folders.push_back({zero_shot_folder(c.results, model_of(target.run), name, *backend), {{name, weights}}});
  auto results = evaluate_babylm(run, data, backend, options, folders, skipped);
  end_progress();
  const SuiteTask ages{.evaluate = [&] {
    if (auto result = acquisition_of(target.run, *data.acquisition, c, {{"main", weights}}))
      results.push_back(std::move(*result));
  }};
  const std::span<const SuiteTask> of_run(&ages, with_ages && data.acquisition ? 1 : 0);
  evaluate_tasks(of_run, [&](size_t, const std::exception& e) {
    if (dynamic_cast<const Error*>(&e) == nullptr) throw;
    skipped.push_back(concat("cannot answer AoA_word: ", e.what()));
    log_warning("babylm", concat(target.run, ": ", skipped.back()));
  });
  if (!results.empty())
    for (const auto& folder : folders) log_info("babylm", concat(folder.path, ": predictions and reports"));
  return results;
}

/// A folder of the suites that are called by name.
std::string folder_by_name(const std::string& name) { return (fs::path(suites_folder()) / name).string(); }

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

void check(const SuiteRequest& c) {
  require<ConfigError>(c.names.size() == 1, "--suite ", listed(c.names),
                       ": that of BabyLM stands alone; evaluate other suites in a command of their own");
  require<ConfigError>(c.limit == 0 && c.keep.empty() && !c.layer && !c.pooling, "--suite ", c.names[0],
                       " answers all items of BabyLM's tasks, none by embeddings; leave out --limit, --keep, "
                       "--layer and --pooling");
  require<ConfigError>(!c.stride && !c.precision, "--suite ", c.names[0],
                       " is answered as by the published program of BabyLM, in fp32 and without windows; leave out "
                       "--stride and --precision");
}

}  // namespace

bool names_babylm_data(const std::string& name) {
  if (name == "babylm" || is_babylm_data(name)) return true;
  std::error_code ignored;
  return !fs::exists(name, ignored) && is_babylm_data(folder_by_name(name));
}

int evaluate_babylm(const RunSelection& selection, const SuiteRequest& named) {
  auto request = named;
  check(request);
  if (request.results.empty()) request.results = "results";
  const auto data = read_babylm_data(data_folder(request.names[0]), request.fast);
  log_missing(data);
  SuitePlan plan{.room = "babylm", .selection = selection, .request = request, .targets = {}, .jobs = {}};
  plan.targets = targets_of(selection);
  check_names(plan.targets);
  plan.is_composite = true;
  plan.nothing = "no task of BabyLM was evaluated; the warnings above say why";
  const auto fault = [&](const std::string& name, const std::string& folder, const RunConfig& config) {
    return request_fault(request, name, folder, config);
  };
  const auto results = [&](const LoadedRun& run, const SuiteTarget& target, std::vector<std::string>& skipped) {
    return results_of(run, target, data, request, !selection.all_checkpoints, skipped);
  };
  plan.jobs = {{.name = request.names[0], .fault = fault, .evaluate = results}};
  return evaluate(plan);
}

}  // namespace cloze
