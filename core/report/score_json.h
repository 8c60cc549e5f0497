#pragma once
// Scores in metrics.jsonl, summary.json and results of suites, each under its metric.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/report/score.h"

namespace cloze {

/// {"value", "count", "ties", "low", "high"}, the latter where there is an interval. What is undefined is null.
nlohmann::json score_json(const Score& score);

/// The score of a metric that has such fields; undefined for null and for what is none.
Score score_of(const std::string& metric, const nlohmann::json& fields);

}  // namespace cloze
