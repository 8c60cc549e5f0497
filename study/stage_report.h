#pragma once
// What the stages of a study add to its report: tuning, the split of the variance, the table of a search.
#include "study/report.h"
#include "study/stages.h"

namespace cloze {

/// Adds the tables and notes of tuning, of a split and of probes.
void add_stages(StudyReport& report, const Stages& stages);

/// The report of a study with a `space:`: its trials, and no comparison.
StudyReport search_report(const Stages& stages);

}  // namespace cloze
