#include "train/callbacks/babylm_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/log.h"
#include "core/spelling.h"

namespace cloze {

bool follows_babylm(const RunConfig& config) { return config.checkpoint.at_words == babylm::checkpoint_words(); }

std::vector<std::string> broken_babylm_rules(uint64_t text_words, double epochs) {
  constexpr double tolerance = 1.005;
  std::vector<std::string> broken;
  const auto text = static_cast<double>(text_words);
  if (text > tolerance * static_cast<double>(babylm::strict_words))
    broken.push_back(concat("the text has ", thousands(text_words),
                            " words, and BabyLM allows 10 M (strict-small) or 100 M (strict); prepare less of it"));
  const bool is_small = text <= tolerance * static_cast<double>(babylm::strict_small_words);
  const auto track = static_cast<double>(is_small ? babylm::strict_small_words : babylm::strict_words);
  // As many words as a track allows are more than ten epochs of a text that is smaller than the track's.
  const bool fills_track = track <= tolerance * text;
  const std::string by_words = is_small ? ", or words: 100M" : ", or words: 1000M";
  if (epochs > tolerance * babylm::max_epochs)
    broken.push_back(concat("the text is read ", shortest(std::round(100 * epochs) / 100), " times (",
                            thousands(static_cast<uint64_t>(epochs * text)), " words), and BabyLM allows ",
                            shortest(babylm::max_epochs), " epochs, up to ", is_small ? "100 M" : "1000 M",
                            " words; set train.budget to epochs: 10", fills_track ? by_words : ""));
  return broken;
}

double planned_epochs(const Training& training) {
  const auto& train = training.config.train;
  double planned = std::numeric_limits<double>::infinity();
  const auto limit = [&](double epochs) {
    if (epochs > 0) planned = std::min(planned, epochs);
  };
  const auto text_words = static_cast<double>(training.store.train_words().value_or(0));
  limit(train.budget.epochs);
  if (text_words > 0) limit(static_cast<double>(train.budget.words) / text_words);
  const auto rows = static_cast<double>(train.batch_size * train.accumulation);
  if (train.phases.empty())
    limit(static_cast<double>(train.budget.steps) * rows / static_cast<double>(training.collator.size()));
  return planned;
}

void BabylmRules::warn(const Training& training) {
  if (warned_ || !follows_babylm(training.config)) return;
  const double planned = planned_epochs(training);
  uint64_t text_words = 0;
  for (const auto& part : training.store.parts()) text_words += part.text.train_words().value_or(0);
  if (text_words == 0) return;
  const auto read = static_cast<double>(training.store.train_words().value_or(0)) / static_cast<double>(text_words);
  const auto broken =
      broken_babylm_rules(text_words, read * (std::isfinite(planned) ? planned : usage(training).epochs));
  if (broken.empty()) return;
  warned_ = true;
  end_progress();
  for (const auto& sentence : broken) log_warning("train", sentence);
}

}  // namespace cloze
