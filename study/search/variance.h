#pragma once
// Which random stream the spread over seeds comes from: runs of every arm with one stream varied alone.
#include "core/report/table.h"
#include "study/execution/runs.h"

namespace cloze {

/// The plan of runs in which one stream has the seed and all others keep the first. Its arms are arms times streams:
/// `low, init`.
Plan split_plan(const Plan& comparison);

/// For each arm the spread with all of its streams varied, with each alone, and the root of the sum of these variances;
/// shares are of that sum.
Table variance_table(const Plan& comparison, const Plan& split);

}  // namespace cloze
