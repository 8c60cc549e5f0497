#pragma once
// Random search over the keys under `space:`, with or without successive halving. Sources: Bergstra and Bengio 2012;
// Jamieson and Talwalkar 2016 (arXiv 1502.07943), algorithm 1; Li et al. 2018 (arXiv 1603.06560), inner loop of
// algorithm 1.
#include "study/search/stages.h"

namespace cloze {

/// One rung of successive halving; a search without it has one.
struct Rung {
  int64_t trials = 0;
  double used = 0;    ///< share of the total budget that one run has had at its end
  double budget = 0;  ///< share of the total budget that the runs of the rung get
};

/// The rungs of `trials` trials: rung i has trials / halving^i of them, each with halving^i times the budget of the
/// first, so that all together use the total exactly.
///
/// seeds      runs of each trial
/// continued  a run of a later rung goes on from its checkpoint, so that it pays for the difference alone
/// Throws ConfigError for fewer trials than `halving`.
/// Differs: Jamieson and Talwalkar halve and give every rung the same share; here runs that start anew do so to within
/// the rounding of trials, and runs that go on spend less on later rungs.
std::vector<Rung> rungs_of(int64_t trials, int64_t halving, int64_t seeds, bool continued);

/// The keys of trial number `draw`, each by its own stream of `seed`. Throws ConfigError for a key without a list or a
/// distribution.
KeyValues draw_trial(const AnyKeys& space, uint64_t seed, uint64_t draw);

/// The rungs of a search; those whose trials are not decided yet wait without runs. Throws ConfigError.
Stages search_stages(const StudyConfig& study, const std::string& file, const std::string& folder);

}  // namespace cloze
