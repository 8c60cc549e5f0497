#pragma once
// What a run is judged by while it trains.
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/evaluate.h"

namespace cloze {

struct PretrainReport;
struct Training;

/// Measures the network of a run, by which its best step is chosen: held-out losses, or the scores of a task. When it
/// measures, and what follows from that, is a matter of HeldOutEvaluation (train/callbacks/held_out.h).
class Validation {
 public:
  Validation() = default;
  Validation(const Validation&) = delete;
  Validation& operator=(const Validation&) = delete;
  virtual ~Validation() = default;

  /// Says before the first step what it measures.
  virtual void announce(const Training&) const {}
  /// Measures the network, with the weights that it has now. Throws Interrupted after a signal.
  virtual void measure(Training& training) = 0;

  // What was measured last.
  /// The losses; empty: nothing could be measured.
  const std::vector<HeldOut>& losses() const { return losses_; }
  /// Their weighted sum; NaN without any.
  double loss() const;
  /// What the best step has the least of; NaN: it is undefined.
  virtual double cost() const { return loss(); }
  /// What the log says after the losses.
  virtual std::string text() const { return ""; }
  /// Adds to a row of metrics.jsonl what it knows besides the losses.
  virtual void add_to(nlohmann::json& /*row*/) const {}
  /// What it chose besides the step, as fields of state.json (TrainState::chosen).
  virtual nlohmann::json chosen() const { return nlohmann::json::object(); }
  /// A loss far above that of guessing says that the run has diverged.
  virtual bool shows_divergence() const { return true; }
  /// The content of held_out.json. `protocol`: how it was measured.
  virtual std::string file(const Training& training, const std::string& protocol) const;
  /// Adds to what a finished run says of itself. `best_cost`: of the best step; NaN: there is none.
  virtual void conclude(double /*best_cost*/, PretrainReport&) const {}

 protected:
  std::vector<HeldOut> losses_{};
};

/// The losses of evaluation.objectives on the held-out text.
class HeldOutLosses final : public Validation {
 public:
  explicit HeldOutLosses(const Training& training);
  void announce(const Training& training) const override;
  void measure(Training& training) override;
  std::string file(const Training& training, const std::string& protocol) const override;
  void conclude(double best_cost, PretrainReport& report) const override;

 private:
  const std::vector<Measure> measures_;
};

}  // namespace cloze
