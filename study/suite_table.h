#pragma once
// What the runs of a report answered to evaluation suites.
#include <optional>
#include <string>

#include "study/report.h"
#include "core/table.h"

namespace cloze {

/// The figures, in the units of `evaluate`, of the suites that runs of every arm answered (evaluation.suites), of each
/// arm with its paired difference to the baseline; p is corrected by Holm over all differences of the table. None where
/// no suite was answered. Throws DataError for a summary.json that is damaged.
std::optional<Table> suite_table(const StudyReport& report);

}  // namespace cloze
