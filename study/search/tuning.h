#pragma once
// The searches of a study for values of each arm's own, the same for every arm, on seeds of their own: for the keys
// under `tune:`, and under `tasks: {tune: ...}` for those of the fine-tunings of each arm on each task.
#include <optional>
#include <span>

#include "core/report/table.h"
#include "study/execution/runs.h"

namespace cloze {

/// One combination of values on one arm.
struct Candidate {
  KeyValues keys{};
  Summary value{};     ///< of the metric over the runs of the search; of fine-tunings that of the valid part, in points
                       ///< where it is no error
  int64_t failed = 0;  ///< runs without a finite value, which rank last
};

/// The search of one arm, or of one arm on one task.
struct ArmTuning {
  std::string arm{}, task{};
  StudyMetric by{};                     ///< that it chose by
  std::vector<Candidate> candidates{};  ///< in the order of the lists
  size_t best = 0;
  int64_t tries = 0;        ///< runs that could begin, since the runs that they go on from had ended
  bool is_of_test = false;  ///< the valid part is the test part
  const Candidate& chosen() const { return candidates[best]; }
  bool has_choice() const { return chosen().value.count > 0; }
};

/// A finished search. Every arm has the same candidates.
struct Tuning {
  std::vector<ArmTuning> arms{};  ///< by arm, then task
  std::vector<int64_t> seeds{};
  int64_t runs = 0;
  Usage used{};                          ///< by all of them
  int64_t sequences = 0, documents = 0;  ///< of the held-out text, by which it chose
  std::vector<std::string> notes{};      ///< a sentence for each fine-tuning that was changed on its way
  std::string lacks{};  ///< what is missing to choose: a new try of an arm whose runs have all failed; else empty
  /// The values that were found for an arm; none where none of its runs could be fine-tuned on the task.
  KeyValues best_keys(const std::string& arm, const std::string& task = "") const;
};

/// The first seed of a search, which no comparison reaches by counting from 1.
inline constexpr int64_t first_tuning_seed = 100'001;

/// Every arm with every combination of values, those of one arm together. Throws ConfigError for a key without at least
/// two values. `list` is the name of the list in messages.
std::vector<Arm> searched_arms(const std::vector<Arm>& arms, const AnyKeys& tune, const std::string& list);

/// The best candidate: the fewest failures, then the best mean, then the first.
size_t best_candidate(const std::vector<Candidate>& candidates, const StudyMetric& by);

/// The plan of the search for the keys under `tune:`, an ordinary plan of arms times combinations. Throws ConfigError
/// for a key without at least two values, seeds of the comparison and a budget without a step.
Plan tuning_plan(const StudyConfig& study, const std::string& file, const std::string& folder,
                 const std::vector<Arm>& arms);

/// What that search found, the best by the mean held-out loss over its seeds and the first of equals; none until it is
/// settled.
std::optional<Tuning> read_tuning(const Plan& tuning, const std::vector<Arm>& arms);

/// What the search of a plan of fine-tunings found (study/search/task_plan.h); none until it is settled. Throws
/// DataError for a damaged summary of a fine-tuning.
std::optional<Tuning> read_task_tuning(const Plan& tuning);

/// The values tried, with what they reached, by arm.
Table tuning_table(const Tuning& tuning);

/// What a reader has to know: what it cost, what was chosen, what lies at the edge of its values, what ties.
std::vector<std::string> tuning_notes(const Tuning& tuning);
std::vector<std::string> task_tuning_notes(const Tuning& tuning);

/// What was chosen on a task: `on sst2: token: optimizer.learning_rate: 3e-4; word: optimizer.learning_rate: 1e-3`.
std::string chosen_words(const Tuning& tuning, const std::string& task);

/// `no learning rate was tuned: low ran with 0.1; high ran with 0.2, then 0.1`, of the arms whose learning rate was
/// not; else empty. trained   the plans of the stages of training, in their order
std::string untuned_words(std::span<const Plan> trained);

}  // namespace cloze
