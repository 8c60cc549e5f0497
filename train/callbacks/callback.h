#pragma once
// What is due in the course of a training.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "run/run.h"

namespace cloze {

struct PretrainReport;
struct Training;

/// The checkpoint that a process goes on from.
struct SavedStep {
  std::string folder;
  TrainState state;
  bool is_branch = false;  ///< it belongs to the run that this one branches from
};

/// Something that is done before, between and after the steps of a training, with all that it remembers from one time
/// to the next. The callbacks of a run are called in the order of Training::callbacks. A callback throws Interrupted
/// where a signal ends what it does; what it had noted as due is then part of the checkpoint that ends the process.
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;

  /// Takes its part of a checkpoint.
  virtual void restore(Training&, const SavedStep&) {}
  /// Before the first step of this process; what was due at the checkpoint is made up for.
  virtual void begin(Training&) {}
  /// Counts the step that was made, Training::last, and notes what it makes due, with `at_end` what is due after the
  /// last step; does none of it. All callbacks note before one acts, so that a checkpoint which one of them saves knows
  /// what the others have to do.
  virtual void note_due(const Training&, bool /*at_end*/) {}
  /// Does what is due after a step.
  virtual void after_step(Training&) {}
  /// Does what is due after the last step.
  virtual void finish(Training&) {}
  /// Adds to what a finished run says of itself.
  virtual void conclude(const Training&, PretrainReport&) {}
  /// Fills in its part of a checkpoint.
  virtual void save(TrainState&) const {}
  /// Hears of an event (docs/hooks.md).
  virtual void hear(const nlohmann::json& /*event*/) {}
};

}  // namespace cloze
