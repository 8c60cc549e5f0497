#include "train/callbacks/milestones.h"

#include "core/log.h"
#include "run/checkpoints/milestones.h"
#include "train/callbacks/babylm_rules.h"

namespace cloze {

void Milestones::restore(Training& training, const SavedStep& saved) {
  words_ = saved.state.words < 0 ? usage(training).words : saved.state.words;
  at_words_ = saved.state.at_words;
}

void Milestones::note_due(const Training& training, bool at_end) {
  if (at_end) return;
  const double read = usage(training).words;
  at_words_ = reached(training.config.checkpoint.at_words, words_, read);
  words_ = read;
}

void Milestones::after_step(Training& training) {
  if (at_words_.empty()) return;
  checkpoints_.save_step(training, /*must=*/true);  // the next step cannot make up for it
  std::string names;
  for (const int64_t number : at_words_) names += (names.empty() ? "" : ", ") + revision_of(number);
  end_progress();
  log_info("train", concat("step ", training.progress.step, ": ", thousands(static_cast<uint64_t>(words_)),
                           " words read; kept as ", names));
}

void Milestones::save(TrainState& state) const {
  state.words = words_;
  state.at_words = at_words_;
}

int64_t Milestones::ahead(const Training& training) const {
  const auto text_words = static_cast<double>(training.store.train_words().value_or(0));
  return static_cast<int64_t>(
      reached(training.config.checkpoint.at_words, words_, planned_epochs(training) * text_words).size());
}

}  // namespace cloze
