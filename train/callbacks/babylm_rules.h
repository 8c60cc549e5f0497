#pragma once
// What the rules of the BabyLM Challenge say to a run that keeps its checkpoints.
#include <string>
#include <vector>

#include "train/training.h"

namespace cloze {

/// Whether a run keeps the checkpoints of the challenge: checkpoint.at_words: babylm.
bool follows_babylm(const RunConfig& config);

/// What the rules forbid about a text of `text_words` words that is read `epochs` times, a sentence each; empty:
/// nothing. Half a percent is left to texts that are a little smaller than their track's.
std::vector<std::string> broken_babylm_rules(uint64_t text_words, double epochs);

/// The passes over the text that the budget allows; infinite where only its end will tell.
double planned_epochs(const Training& training);

/// Warns, once a process, of the rules that the run breaks by its text, by its budget, or, where that does not say how
/// often it reads the text, by what it has read.
class BabylmRules final : public Callback {
 public:
  void begin(Training& training) override { warn(training); }
  void after_step(Training& training) override { warn(training); }

 private:
  void warn(const Training& training);
  bool warned_ = false;
};

}  // namespace cloze
