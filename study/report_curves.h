#pragma once
// Curves of arms: means of their runs along training, and differences to the baseline.
#include <map>

#include "study/report.h"

namespace cloze {

/// The curves of the finished runs of an arm, by seed.
using Curves = std::map<int64_t, std::vector<CurvePoint>>;
Curves curves_of(const StudyReport& report, const std::string& arm);

/// Mean and spread at the evaluations that all runs have.
ArmCurve mean_curve(const Curves& curves);

/// Differences of pairs of runs at the evaluations that both arms have.
DifferenceCurve difference_curve(const ArmReport& arm, const Curves& of_arm, const Curves& of_baseline,
                                 const ComparisonRules& rules);

}  // namespace cloze
