#pragma once
// The evaluation suites that a run answers while it trains.
#include "train/session.h"

namespace cloze {

/// Opens the suites of evaluation.suites. Throws DataError for a damaged file, ConfigError for a suite that the run
/// cannot answer.
void open_suites(Session& session);

/// Throws DataError for a suite with a text that is longer than the network, which has been made.
void check_suites(const Session& session);

/// Whether answers to the suites are due after the step that was made.
bool suites_are_due(const Session& session);

/// Answers all suites, and writes the figures of each as a row of metrics.jsonl. A step that was answered before the
/// run was resumed is answered again, for its summary, without a row.
void answer_suites(Session& session);

/// {SUITE: {METRIC: {value, low, high, count, ties}, ..., groups: {GROUP: {METRIC: value}}}}: what metrics.jsonl and
/// summary.json say of suites.
nlohmann::json to_json(const std::vector<SuiteResult>& answers);

}  // namespace cloze
