#pragma once
// Whether the runs of a report can be compared.
#include "study/report.h"

namespace cloze {

/// Throws DataError where the finished runs differ in held-out text, tokenizer, form of the evaluation or budget.
void check_comparable(const StudyReport& report);

}  // namespace cloze
