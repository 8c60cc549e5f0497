#pragma once
// The figures of runs on suites, as tables and as JSON.
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/table.h"
#include "suites/suite_result.h"

namespace cloze {

/// A run, or one of its checkpoints, with its answers.
struct SuiteAnswers {
  std::string run;         ///< as the user names it
  std::string checkpoint;  ///< its step folder
  int64_t step = 0;
  std::vector<SuiteResult> results{};
  std::vector<std::string> unanswered{};  ///< suites that it cannot answer, with the reason, a sentence each
};

/// How narrow the groups of a table are.
enum class SuiteDetail {
  suites,     ///< the figures of whole suites
  phenomena,  ///< and of phenomena, or of paradigms where a suite has no phenomena
  paradigms   ///< all
};

/// One row for each figure. A single run has columns for its interval, the official figure, ties and items, where there
/// are any; several have a column each, with an official figure that differs in brackets.
Table table_of_runs(std::span<const SuiteAnswers> answers, SuiteDetail detail);

/// One row for each checkpoint, a column for each figure.
Table table_of_checkpoints(std::span<const SuiteAnswers> answers, SuiteDetail detail);

/// How each suite was scored, what a reader must know of its figures, and which a run cannot answer: a sentence each.
std::vector<std::string> notes_of(std::span<const SuiteAnswers> answers);

/// {"level", "group", "metric", "value", "low", "high", "official", "count", "ties"}, without those that a figure
/// lacks.
nlohmann::json to_json(const SuiteFigure& figure);
/// {"run", "checkpoint", "step", "suites": [{"suite", "scored_by", "figures", "notes"}], "unanswered"}
nlohmann::json to_json(const SuiteAnswers& answers);
/// One line for each figure, with its run and suite: the content of results.jsonl.
std::string results_lines(std::span<const SuiteAnswers> answers);
/// One line for each item of a result, with its run and suite: a part of predictions.jsonl.
std::string prediction_lines(const SuiteAnswers& answers, const SuiteResult& result);

}  // namespace cloze
