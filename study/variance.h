#pragma once
// Which random stream the spread over seeds comes from: runs of every arm with one stream varied alone.
#include "core/table.h"
#include "study/runs.h"

namespace cloze {

/// The plan of runs in which one stream has the seed and all others keep the first. Its arms are arms times streams:
/// `low, init`.
Plan split_plan(const Plan& comparison);

/// Interval of the standard deviation of normal draws: (n - 1) s^2 / sigma^2 is chi-square with n - 1 degrees of
/// freedom. Throws DataError for fewer than two draws.
Interval sd_interval(double sd, int64_t count, double confidence);

/// For each arm the spread with all of its streams varied, with each alone, and the root of the sum of these variances;
/// shares are of that sum.
Table variance_table(const Plan& comparison, const Plan& split);

}  // namespace cloze
