#pragma once
// What a study is going to do: its arms, and one run for each arm and seed, every mistake told before the first of
// them.
#include <string>
#include <utility>
#include <vector>

#include "study/config.h"

namespace cloze {

/// An arm with everything that sets it apart from the base.
struct Arm {
  std::string name;                                      ///< of a sweep with its values: `wide, hidden_size=256`
  std::vector<std::pair<std::string, ConfigNode>> keys;  ///< dotted paths, in the order in which they are laid over
};

/// One run of a study.
struct PlannedRun {
  std::string arm;
  int64_t seed = 0;
  std::string folder{};  ///< of the run, within that of the study: `runs/wide/seed-1`
  RunConfig config{};
  std::string fingerprint{};  ///< of everything that makes its numbers: config, text, tokenizer
};

struct Plan {
  std::string file{};    ///< the study file
  std::string folder{};  ///< of the study
  StudyConfig study{};
  std::vector<Arm> arms{};  ///< the baseline first
  std::vector<int64_t> seeds{};
  std::vector<PlannedRun> runs{};  ///< by seed, then arm, so that pairs end together
};

/// The plan of a study file. `folder` empty: studies/NAME. Throws ConfigError with the locations of all mistakes that
/// one reading can find.
Plan make_plan(const std::string& file, const std::string& folder = "");

/// Seeds as a study names them: a number of them, or a list.
std::vector<int64_t> seeds_of(const std::vector<int64_t>& named);

/// Arms of a study: those it names, each with what it takes from another, times every combination of the sweep.
/// Throws ConfigError.
std::vector<Arm> arms_of(const StudyConfig& study);

}  // namespace cloze
