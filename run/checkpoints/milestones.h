#pragma once
// The checkpoints that a run keeps for the number of words that it had read: checkpoint.at_words.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cloze {

/// A checkpoint, and the number of checkpoint.at_words that it was the first to reach.
struct Milestone {
  int64_t words = 0;
  std::string checkpoint{};  ///< its step folder
};

/// Those of `at_words` in (before, after], ascending.
std::vector<int64_t> reached(const std::vector<int64_t>& at_words, double before, double after);

/// The numbers of words that a step folder is kept for; none: it has no readable state.json, so they are not known.
std::optional<std::vector<int64_t>> kept_for(const std::string& step_folder);
/// The step folders of a run, in order, whose state.json cannot be read.
std::vector<std::string> steps_without_state(const std::string& run);

/// The milestones of a run directory, by words, whether their checkpoints are intact or not. One checkpoint is several
/// of them where a step read that many words.
std::vector<Milestone> all_milestones_of(const std::string& run);
/// Those whose checkpoints are intact; damaged ones are skipped with a warning.
std::vector<Milestone> milestones_of(const std::string& run);

/// The name of a milestone among the revisions of a model: `chck_7M`, `chck_250k`, `chck_1234`. Source:
/// babylm-org/babylm-eval, strict/evaluation_pipeline/collate_preds.py.
std::string revision_of(int64_t words);

}  // namespace cloze
