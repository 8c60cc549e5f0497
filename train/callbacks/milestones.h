#pragma once
// The checkpoints that a run keeps for the number of words that it has read.
#include <vector>

#include "train/callbacks/checkpoints.h"
#include "train/training.h"

namespace cloze {

/// Counts the words read, and saves the checkpoint of a step that reached numbers of checkpoint.at_words
/// (run/checkpoints/milestones.h).
class Milestones final : public Callback {
 public:
  explicit Milestones(Checkpoints& checkpoints) : checkpoints_(checkpoints) {}

  void restore(Training& training, const SavedStep& saved) override;
  void note_due(const Training& training, bool at_end) override;
  void after_step(Training& training) override;
  void save(TrainState& state) const override;

  /// The numbers of checkpoint.at_words that the run has not reached and can, as far as its budget says.
  int64_t ahead(const Training& training) const;

 private:
  Checkpoints& checkpoints_;
  double words_ = 0;
  std::vector<int64_t> at_words_{};  ///< that the last step reached
};

}  // namespace cloze
