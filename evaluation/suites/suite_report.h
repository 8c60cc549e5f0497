#pragma once
// The scores of runs on suites, as tables and as JSON.
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/report/table.h"
#include "evaluation/suites/statistics.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

/// A run, or one of its checkpoints, with its results.
struct CheckpointResults {
  std::string run;         ///< as the user names it
  std::string checkpoint;  ///< its step folder
  int64_t step = 0;
  std::optional<int64_t> words{};        ///< read until then; none: not recorded
  std::vector<std::string> revisions{};  ///< that the checkpoint is: `main`, `chck_7M`
  std::vector<SuiteResult> results{};
  std::vector<std::string> skipped{};  ///< suites without a result, with the reason, a sentence each
};

/// How narrow the groups of a table are.
enum class SuiteDetail {
  suites,     ///< the scores of whole suites
  phenomena,  ///< and of phenomena, or of paradigms where a suite has no phenomena
  paradigms   ///< all
};

/// One row for each score. A single run has columns for its interval, the official score, ties and items, where there
/// are any; several have a column each, with an official score that differs in brackets, and intervals where the table
/// is no wider than `columns` with them.
Table table_of_runs(std::span<const CheckpointResults> answers, SuiteDetail detail,
                    size_t columns = std::numeric_limits<size_t>::max());

/// One row for each checkpoint, with its words and its revisions where they are known, and a column for each score;
/// where that is wider than a terminal of 80 columns, and the other way round is narrower, a row for each score and a
/// column for each checkpoint. Intervals stand where the table is no wider than `columns` with them.
Table table_of_checkpoints(std::span<const CheckpointResults> answers, SuiteDetail detail,
                           size_t columns = std::numeric_limits<size_t>::max());

/// What tells the paths of runs apart: without the first and the last parts that all of them have.
std::vector<std::string> short_names(std::span<const CheckpointResults> answers);

/// What the numbers in brackets are in a table of several runs or of checkpoints; empty if it has none.
std::string note_of_brackets(std::span<const CheckpointResults> answers, SuiteDetail detail);

/// How each suite was scored, what a reader must know of its scores, and which a run cannot answer: a sentence each.
std::vector<std::string> notes_of(std::span<const CheckpointResults> answers);

/// {"level", "group", "metric", "value", "low", "high", "official", "count", "ties"}, without those that a score
/// lacks.
nlohmann::json to_json(const Score& score);
/// {"run", "checkpoint", "step", "words", "revisions", "suites": [{"suite", "scored_by", "figures", "notes"}],
/// "unanswered"}, without words and revisions that are not known. A value that is none is null.
nlohmann::json to_json(const CheckpointResults& answers);
/// One line for each score, with its run, checkpoint and suite: the content of results.jsonl.
std::string results_lines(std::span<const CheckpointResults> answers);
/// One line for each item of a result, with its run and suite: a part of predictions.jsonl.
std::string prediction_lines(const CheckpointResults& answers, const SuiteResult& result);

/// The shares of two runs on one suite, over the items that both have.
struct SuiteComparison {
  std::string suite, metric;
  Score first, second;               ///< as each run has them alone
  double difference = 0;             ///< first less second
  std::optional<Bounds> interval{};  ///< of the difference, 95 %; none for a single item
  int64_t items = 0;
  int64_t only_first = 0, only_second = 0;  ///< items that one alone has right; a tie is not right
  double mcnemar = 1;                       ///< two-sided p over items
  double holm = 1;                          ///< that p, corrected for the number of suites
};

/// The comparisons of the suites that both have a share of, in the order of the first. The interval is that of
/// clustered_mean over the suite's clusters, and nowhere narrower than that over single items, since few clusters may
/// be alike by chance.
std::vector<SuiteComparison> compare_runs(const CheckpointResults& first, const CheckpointResults& second);

/// One row for each suite.
Table table_of(std::span<const SuiteComparison> compared, const std::string& first, const std::string& second);
/// {"suite", "metric", "first", "second": {"value", "low", "high"}, "difference", "low", "high", "items", "only_first",
/// "only_second", "mcnemar", "mcnemar_holm"}
nlohmann::json to_json(const SuiteComparison& compared);

}  // namespace cloze
