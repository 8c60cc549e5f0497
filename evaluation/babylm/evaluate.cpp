#include "evaluation/babylm/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/log.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/ranking_scores.h"
#include "inference/scoring/form_rules.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The groups of paradigms in reports: fields of BLiMP, splits of entity tracking.
std::string phenomenon_of(const BabylmItem& item, BabylmFormat format) {
  if (format == BabylmFormat::blimp) return item.groups[0].second;
  if (format != BabylmFormat::entity_tracking) return "";
  return item.uid.substr(0, item.uid.find_last_of('_', item.uid.find_last_of('_') - 1));
}

Passage passage_of(const BabylmCandidate& candidate) {
  const auto before = candidate.sentence.size() - candidate.completion.size();
  return {.left = candidate.sentence.substr(0, before), .scored = candidate.completion};
}

/// The items as suites rank them.
std::vector<RankingItem> ranking_items(const BabylmTask& task) {
  std::map<std::string, int64_t> numbers;
  std::vector<RankingItem> items;
  for (const auto& item : task.items) {
    auto& one = items.emplace_back(RankingItem{.name = concat(item.uid, "/", numbers[item.uid]++),
                                               .paradigm = item.uid,
                                               .phenomenon = phenomenon_of(item, task.dataset.format)});
    for (const auto& candidate : item.candidates) one.candidates.push_back(passage_of(candidate));
    if (task.dataset.format != BabylmFormat::wug) continue;
    one.preference = item.ratio;
    if (item.ratio <= 0.5) one.answer = item.ratio < 0.5 ? std::optional<size_t>(1) : std::nullopt;
  }
  return items;
}

std::vector<BabylmCandidate> candidates_of(const BabylmTask& task) {
  std::vector<BabylmCandidate> all;
  for (const auto& item : task.items) all.insert(all.end(), item.candidates.begin(), item.candidates.end());
  return all;
}

/// Sums of all candidates, item by item.
std::vector<std::vector<float>> by_item(const BabylmTask& task, const std::vector<float>& sums) {
  std::vector<std::vector<float>> candidates;
  auto at = sums.begin();
  for (const auto& item : task.items) {
    const auto end = at + static_cast<std::ptrdiff_t>(item.candidates.size());
    candidates.emplace_back(at, end);
    at = end;
  }
  return candidates;
}

/// What a report says of a score: a fraction, of wug the correlation; none for one that it lacks.
std::optional<double> reported(const BabylmReport& report, BabylmFormat format, const Score& score) {
  const bool correlated = format == BabylmFormat::wug;
  if (score.metric != (correlated ? "spearman" : "accuracy")) return {};
  const double scale = correlated ? 1 : 100;
  if (score.level == SuiteLevel::suite)
    return std::isnan(report.average) ? std::nullopt : std::optional(report.average / scale);
  for (const auto& section : report.sections)
    for (const auto& [group, value] : section.scores)
      if (group == score.group) return value / scale;
  return {};
}

/// What the published program adds up.
ScoringForm official_form(BabylmBackend backend) {
  return backend == BabylmBackend::causal || backend == BabylmBackend::enc_dec_prefix ? ScoringForm::likelihood
                                                                                      : ScoringForm::pll;
}

/// The options with `form` where none is asked for and the run answers it.
SuiteOptions with_form(const LoadedRun& run, ScoringForm form, const SuiteOptions& options) {
  if (options.scoring.form || !scoring_fault(run.config, form).empty()) return options;
  auto wanted = options;
  wanted.scoring.form = form;
  return wanted;
}

bool is_encoder_decoder(const LoadedRun& run) { return backbone_of(run.config.model).is_encoder_decoder(); }

/// The options by which candidates are compared. Encoder-decoders answer several forms: without a backend they have
/// that of enc_dec_prefix.
SuiteOptions ranking_options(const LoadedRun& run, std::optional<BabylmBackend> backend, const SuiteOptions& options) {
  if (!is_encoder_decoder(run)) return options;
  return with_form(run, official_form(backend.value_or(BabylmBackend::enc_dec_prefix)), options);
}

std::string unofficial_note(const LoadedRun& run) { return "no official number: " + no_official_backend(run); }

/// What the official number is by, where that is not what the Scorer adds up; else empty.
std::string official_note(BabylmBackend backend, ScoringForm form) {
  const auto by = concat("the official number is by backend ", name_of(backend), ": ");
  if (backend == BabylmBackend::enc_dec_mask)
    return by + "mask form (pll), whose decoder reads the bos and the mask token alone";
  if (backend == BabylmBackend::enc_dec_prefix)
    return by + "prefix form (likelihood), whose decoder reads the bos and the mask token before the completion";
  return form == official_form(backend) ? "" : by + name_of(official_form(backend));
}

/// The sums of the published program: from these scores where they are what it adds up, else from rows of its own.
std::vector<float> official_sums(const LoadedRun& run, const BabylmTask& task, BabylmBackend backend,
                                 const std::vector<Passage>& passages, const std::vector<PassageScore>& scores,
                                 ScoringForm form, const ScoringOptions& options) {
  if (!adds_up_scores(backend, form)) return babylm_sums(run, candidates_of(task), backend, options);
  std::vector<float> sums;
  for (size_t i = 0; i < scores.size(); ++i) sums.push_back(babylm_sum(passages[i], scores[i]));
  return sums;
}

SuiteResult task_result(const LoadedRun& run, const BabylmTask& task, std::optional<BabylmBackend> backend,
                        const SuiteOptions& options, const std::vector<ResultsFolder>& zero_shots) {
  const Scorer scorer(run, options.scoring);
  std::vector<Passage> passages;
  for (const auto& item : task.items)
    for (const auto& candidate : item.candidates) passages.push_back(passage_of(candidate));
  const auto scores = scorer.score(passages);
  std::vector<std::vector<float>> sums;
  if (backend) {
    sums = by_item(task, official_sums(run, task, *backend, passages, scores, scorer.form(), options.scoring));
    const auto report = babylm_report(task.dataset, task.items, sums);
    for (const auto& folder : zero_shots) write_report(folder, task.dataset, report);
  }
  auto result = babylm_result(task, scores, sums, options.normalisation);
  result.scored_by = scorer.description();
  const auto note = backend ? official_note(*backend, scorer.form()) : unofficial_note(run);
  if (!note.empty()) result.notes.push_back(note);
  return result;
}

/// Throws DataError with the first item that has a text which is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const Scorer& scorer, const BabylmTask& task,
               std::optional<BabylmBackend> backend) {
  const auto items = ranking_items(task);
  for (size_t i = 0; i < items.size(); ++i) {
    try {
      scorer.check_fit(items[i].candidates);
      if (backend) check_babylm_fit(run, task.items[i].candidates, *backend);
    } catch (const DataError& e) {
      fail<DataError>("item ", items[i].name, ": ", e.what());
    }
  }
}

/// Marks the scores as those of a run that the published program cannot answer.
void mark_unofficial(SuiteResult& result) {
  for (auto& score : result.scores) score.official = std::numeric_limits<double>::quiet_NaN();
}

SuiteResult reading_times_result(const LoadedRun& run, const ReadingSuite& suite, std::optional<BabylmBackend> backend,
                                 const SuiteOptions& options, const std::vector<ResultsFolder>& zero_shots) {
  const auto of_words = surprisal_options(run, options);
  if (!backend) {
    const auto fault = reason_unsupported(run.config, suite, of_words);
    require<DataError>(fault.empty(), fault);
    auto result = run_suite(run, suite, of_words);
    result.suite = "reading";
    mark_unofficial(result);
    result.notes.push_back(unofficial_note(run));
    return result;
  }
  const auto official = babylm_reading_surprisals(run, suite, *backend);
  for (const auto& folder : zero_shots)
    if (official) write_reading(folder, suite, *official);
  auto result = reading_result(suite, reading_surprisals(run, suite, of_words.scoring), official);
  result.suite = "reading";
  result.scored_by = concat("surprisal of words by backend ", name_of(*backend));
  return result;
}

bool holds_files(const fs::path& folder) { return fs::is_directory(folder) && !fs::is_empty(folder); }

/// The first of these folders that has a suite.
template <class Read>
auto first_suite(const fs::path& part, std::initializer_list<const char*> folders, const Read& read) {
  decltype(read(std::string())) suite;
  for (const auto* folder : folders)
    if (!suite && holds_files(part / folder)) suite = read((part / folder).string());
  return suite;
}

}  // namespace

BabylmData read_babylm_data(const std::string& folder, bool fast) {
  const auto part = fs::path(folder) / (fast ? "fast_eval" : "full_eval");
  BabylmData data;
  for (const auto& dataset : babylm_datasets(fast)) {
    const auto at = part / dataset.folder;
    if (holds_files(at))
      data.tasks.push_back({dataset, read_babylm_items(at.string(), dataset)});
    else
      data.missing.push_back(at.string());
  }
  data.reading = first_suite(part, {"reading"}, read_reading);
  if (!data.reading) data.missing.push_back((part / "reading").string());
  if (!fast) {
    data.acquisition = first_suite(part, {"cdi_childes", "aoa"}, read_acquisition);
    if (!data.acquisition) data.missing.push_back((part / "cdi_childes").string());
  }
  require<DataError>(!data.tasks.empty() || data.reading || data.acquisition, part.string(),
                     ": has none of BabyLM's tasks; docs/babylm.md says where they come from");
  return data;
}

SuiteOptions surprisal_options(const LoadedRun& run, const SuiteOptions& options) {
  if (is_encoder_decoder(run)) return with_form(run, ScoringForm::likelihood, options);
  const bool judges = usual_form(run.config) == ScoringForm::detection && !babylm_backend(run.config);
  return judges ? with_form(run, ScoringForm::pll, options) : options;
}

SuiteResult babylm_result(const BabylmTask& task, std::span<const PassageScore> scores,
                          const std::vector<std::vector<float>>& sums, Normalisation by) {
  const auto items = ranking_items(task);
  auto ranked = rank_items(items, scores, by);
  for (size_t i = 0; i < sums.size(); ++i) ranked[i].sums = sums[i];
  SuiteResult result{
      .suite = task.dataset.folder, .scored_by = "", .scores = ranking_scores(items, ranked), .items = {}};
  for (size_t i = 0; i < items.size(); ++i) result.items.push_back(to_json(items[i], ranked[i]));
  result.proportions = proportions_of(items, ranked);
  if (sums.empty()) {
    mark_unofficial(result);
    return result;
  }
  const auto report = babylm_report(task.dataset, task.items, sums);
  for (auto& score : result.scores) {
    const auto own = score.official.value_or(score.value);  // without one they agree
    score.official = reported(report, task.dataset.format, score).value_or(own);
  }
  return result;
}

std::vector<SuiteResult> evaluate_babylm(const LoadedRun& run, const BabylmData& data,
                                         std::optional<BabylmBackend> backend, const SuiteOptions& options,
                                         const std::vector<ResultsFolder>& zero_shots,
                                         std::vector<std::string>& skipped) {
  const auto of_tasks = ranking_options(run, backend, options);
  const auto fault = backend ? babylm_fault(run, *backend) : "";
  require<ConfigError>(fault.empty(), run.folder, ": ", fault);
  std::optional<Scorer> scorer;
  if (!data.tasks.empty()) scorer.emplace(run, of_tasks.scoring);
  std::vector<SuiteResult> results;
  std::vector<std::string> names;
  std::vector<SuiteTask> tasks;
  const auto add = [&](const std::string& name, const std::function<void()>& check, const auto& result_of) {
    names.push_back(name);
    tasks.push_back({.check = check, .evaluate = [&results, &run, result_of] {
                       const auto start = std::chrono::steady_clock::now();
                       results.push_back(result_of());
                       log_result_of("babylm", run, results.back(), start);
                     }});
  };
  for (const auto& task : data.tasks)
    add(
        task.dataset.folder, [&] { check_fit(run, *scorer, task, backend); },
        [&] { return task_result(run, task, backend, of_tasks, zero_shots); });
  if (data.reading)
    add("reading", {}, [&] { return reading_times_result(run, *data.reading, backend, options, zero_shots); });
  evaluate_tasks(tasks, [&](size_t task, const std::exception& e) {
    if (dynamic_cast<const DataError*>(&e) == nullptr) throw;
    skipped.push_back(concat("cannot answer ", names[task], ": ", e.what()));
    log_warning("babylm", concat(run.checkpoint, ": ", skipped.back()));
  });
  return results;
}

}  // namespace cloze
