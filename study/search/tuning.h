#pragma once
// The search for each arm's own values of the keys under `tune:`, the same for every arm, on seeds of its own.
#include <optional>
#include <span>

#include "core/report/table.h"
#include "study/execution/runs.h"

namespace cloze {

/// One combination of values on one arm.
struct Candidate {
  std::vector<std::pair<std::string, ConfigNode>> keys{};
  Summary loss{};      ///< of the metric over the runs of the search
  int64_t failed = 0;  ///< runs without a finite value, which rank last
};

/// The search of one arm.
struct ArmTuning {
  std::string arm;
  std::vector<Candidate> candidates{};  ///< in the order of the lists
  size_t best = 0;
};

/// A finished search. Every arm has the same candidates.
struct Tuning {
  std::vector<ArmTuning> arms{};
  StudyMetric by{};
  std::vector<int64_t> seeds{};
  int64_t runs = 0, tokens = 0;  ///< what it cost
  double seconds = 0;
  int64_t sequences = 0, documents = 0;  ///< of the held-out text, by which it chose
  std::string lacks{};  ///< what is missing to choose: a new try of an arm whose runs have all failed; else empty
};

/// The first seed of a search, which no comparison reaches by counting from 1.
inline constexpr int64_t first_tuning_seed = 100'001;

/// Every arm with every combination of values, those of one arm together. Throws ConfigError for a key without at least
/// two values. `list` is the name of the list in messages.
std::vector<Arm> searched_arms(const std::vector<Arm>& arms, const AnyKeys& tune, const std::string& list);

/// The best candidate: the fewest failures, then the best mean, then the first.
size_t best_candidate(const std::vector<Candidate>& candidates, const StudyMetric& by);

/// `optimizer.learning_rate: 3e-4, train.batch_size: 16`
std::string keys_text(const std::vector<std::pair<std::string, ConfigNode>>& keys);

/// What lies at the edge of its values, what ties and what failed in the search of one arm, which its name opens.
std::vector<std::string> candidate_notes(const ArmTuning& arm);

/// The plan of the search, an ordinary plan of arms times combinations. Throws ConfigError for a key without at least
/// two values, seeds of the comparison and a budget without a step.
Plan tuning_plan(const StudyConfig& study, const std::string& file, const std::string& folder,
                 const std::vector<Arm>& arms);

/// What a search found, the best by the mean held-out loss over its seeds and the first of equals; none until it is
/// settled.
std::optional<Tuning> read_tuning(const Plan& tuning, const std::vector<Arm>& arms);

/// The values tried, with their losses, by arm.
Table tuning_table(const Tuning& tuning);

/// What a reader has to know: what it cost, what lies at the edge of its values, what ties.
std::vector<std::string> tuning_notes(const Tuning& tuning);

/// `no learning rate was tuned: low ran with 0.1; high ran with 0.2, then 0.1`, of the arms whose learning rate was
/// not; else empty. trained   the plans of the stages of training, in their order
std::string untuned_words(std::span<const Plan> trained);

}  // namespace cloze
