#pragma once
// The checkpoints of a run: restored when a process begins to train it, saved while it trains.
#include <optional>
#include <string>
#include <vector>

#include "train/training.h"

namespace cloze {

/// Saves a checkpoint each checkpoint.every steps, where another callback or the end of the process asks for one, and
/// after the last step; removes old ones.
class Checkpoints final : public Callback {
 public:
  void begin(Training& training) override;
  void note_due(const Training& training, bool at_end) override;
  void after_step(Training& training) override;
  void finish(Training& training) override { save_step(training, /*must=*/true); }
  void save(TrainState& state) const override { state.moments_reset_at = moments_reset_at_; }

  /// Continues from a checkpoint: progress, weights, moments, mems, and what every callback remembers. `rows_differ`:
  /// config or data changed, so that rows may not continue the previous ones. Throws CheckpointError.
  void restore_all(Training& training, const std::string& checkpoint, bool is_branch, bool rows_differ);
  /// The checkpoint that this process goes on from, if it has one.
  const std::optional<TrainState>& restored() const { return restored_; }
  /// Saves a checkpoint of this step, unless that has been saved. A failure ends the run only if `must`, or where the
  /// folder of the run is no longer at its place.
  void save_step(Training& training, bool must);
  /// The step of the newest checkpoint, if nothing has happened since; else -1.
  int64_t saved_at() const { return saved_at_; }
  /// What a checkpoint holds has changed: that of this step is to be saved again.
  void forget_saved() { saved_at_ = -1; }

 private:
  TrainState state_of(Training& training) const;

  std::optional<TrainState> restored_{};
  int64_t saved_at_ = -1;
  int64_t moments_reset_at_ = 0;  ///< step
  bool due_ = false;
};

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

/// Throws Error if the disk has no room for the checkpoints of this run and `milestones` more.
void check_disk(const Training& training, int64_t milestones);

}  // namespace cloze
