#pragma once
// Scores of a task as tables, JSON and pictures.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/report/table.h"
#include "tasks/scores/scores.h"

namespace cloze {

/// {"task", "metrics": [{"metric", "value", "low", "high", "count", "reason"?, "floors"?}], "per_label": [...],
/// "confusion": {"labels", "counts"} or null}. What is undefined is null.
nlohmann::ordered_json to_json(const std::string& task, const TaskScores& scores);

/// {"figures": [{"metric", "difference", "low", "high"}], "only_first", "only_second", "mcnemar"}
nlohmann::ordered_json to_json(const PairedScores& compared);

/// The scores, the labels and, of at most 12 labels, the confusion; for to_text, to_markdown and to_latex.
std::vector<Table> tables_of(const std::string& task, const TaskScores& scores);
Table table_of(const PairedScores& compared);

/// The confusion as an SVG file: a square for each pair of labels, darker the larger its share of the gold label.
std::string confusion_svg(const std::string& title, const Confusion& confusion);

}  // namespace cloze
