#pragma once
// Evaluation suites: files of questions to a pretrained model, the scores of its answers, and what these cost.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "evaluation/suites/acquisition.h"
#include "evaluation/suites/analogies.h"
#include "evaluation/suites/facts.h"
#include "evaluation/suites/ranking.h"
#include "evaluation/suites/reading.h"
#include "evaluation/suites/similarity.h"
#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"
#include "inference/scoring/scorer.h"
#include "run/run.h"

namespace cloze {

/// A suite, read and checked. Each kind has a header with its struct, `read_KIND(files)`, which returns none for files
/// of another kind, `reason_unsupported(config, suite, options)`, why a run cannot be evaluated on it, `check_fit(run,
/// suite, options)` and `run_suite(run, suite, options)`.
using SuiteItems = std::variant<RankingSuite, FactSuite, ReadingSuite, AcquisitionSuite, SimilaritySuite, AnalogySuite>;
struct Suite {
  std::string name;  ///< of its file or folder, without extensions
  std::string path;
  SuiteItems items;
};

/// The folder of suites that are called by name: $CLOZE_SUITES, else `suites`.
std::string suites_folder();

/// The file or folder of a suite: `name` itself if there is one, else the entry of suites_folder() of that name, with
/// or without endings such as `.jsonl.xz`. Throws ConfigError with the nearest name for a suite that is not there.
/// `option`: where it is named, for the message.
std::string find_suite(const std::string& name, const std::string& option = "--suite");

/// Whether a folder is laid out as BabyLM's evaluation data, which is no suite but holds many: it has `full_eval` or
/// `fast_eval`.
bool is_babylm_data(const std::string& folder);

/// The suite in a file or a folder; its kind is known by its fields. `.xz` and `.gz` are read as they are. Throws
/// DataError with the place of what is damaged, doubled, empty or unknown.
Suite open_suite(const std::string& path);

/// Throws ConfigError, which begins with `option`, for a suite that is there already, or has the name of another.
void require_new(const Suite& suite, std::span<const Suite> others, const std::string& option);

/// Whether a suite is answered by embeddings; others are by scores.
bool is_of_embeddings(const Suite& suite);

/// The metrics of the scores that a run gives for the whole suite while it trains.
std::vector<std::string> suite_metrics(const Suite& suite);

/// Why a run cannot answer a suite, as a sentence; empty if it can.
std::string suite_fault(const RunConfig& config, const Suite& suite, const SuiteOptions& options);

/// Throws DataError for a text that is longer than the model, before anything is computed: of facts for their
/// relation's longest object.
void check_fit(const LoadedRun& run, const Suite& suite, const SuiteOptions& options);

/// The scores and predictions of a run. Throws ConfigError by suite_fault.
SuiteResult run_suite(const LoadedRun& run, const Suite& suite, const SuiteOptions& options);

/// What one evaluation of a whole suite costs.
struct SuiteCost {
  double flops = 0;  ///< of forward passes
  double seconds = 0;
};

/// Numbers of a sample of items, sorted: as many as `count`, evenly spread over their sizes, so that few of them stand
/// for all. `sizes` [N]: of all items.
std::vector<size_t> spread_sample(const std::vector<double>& sizes, size_t count);

/// Times answers to a sample of the items and to a quarter of it in turns, for about `seconds` together; the middle
/// times count. What does not depend on the number of items, such as packing weights, counts once. Throws ConfigError
/// by suite_fault.
SuiteCost suite_cost(const LoadedRun& run, const Suite& suite, const SuiteOptions& options, double seconds);

}  // namespace cloze
