#include "objectives/masking.h"

#include <algorithm>
#include <cmath>

namespace cloze {

Vocabulary::Vocabulary(const Tokenizer& tokenizer) : size(tokenizer.size()), special(tokenizer.special()) {
  for (int64_t id = 0; id < size; ++id) {
    is_special.push_back(tokenizer.is_special(id));
    starts_word.push_back(tokenizer.starts_word(id));
  }
}

Masker::Masker(const MlmConfig& config, const Vocabulary& vocabulary) : config_(config), vocabulary_(vocabulary) {}

void Masker::find_units(const int64_t* ids, int64_t length) {
  const bool words = config_.unit == "word";
  units_.clear();
  for (int64_t i = 0; i < length; ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    if (vocabulary_.is_special[id]) continue;
    // A piece joins the word before it only when that word is right beside it: not across a separator.
    if (words && !vocabulary_.starts_word[id] && !units_.empty() && units_.back().first + units_.back().count == i)
      ++units_.back().count;
    else
      units_.push_back({static_cast<uint32_t>(i), 1});
  }
}

void Masker::choose(int64_t length, Stream& stream) {
  chosen_.assign(length, 0);
  const auto take = [&](const Unit& unit) { std::fill_n(chosen_.begin() + unit.first, unit.count, uint8_t{1}); };
  if (config_.count == "bernoulli") {
    for (const auto& unit : units_)
      if (stream.bernoulli(config_.mlm_probability)) take(unit);
    return;
  }
  int64_t candidates = 0;
  for (const auto& unit : units_) candidates += unit.count;
  const double share = config_.mlm_probability * static_cast<double>(config_.count_special ? length : candidates);
  int64_t wanted = config_.count == "rounded" ? std::max<int64_t>(1, std::llrint(share))   // half to even
                                              : static_cast<int64_t>(share + stream.uniform());
  if (config_.mlm_probability == 0) wanted = 0;
  if (config_.max_predictions_per_seq > 0) wanted = std::min(wanted, config_.max_predictions_per_seq);
  // A walk over the units in random order; one that would overshoot is passed over.
  for (size_t i = 0; i < units_.size() && wanted > 0; ++i) {
    std::swap(units_[i], units_[i + stream.below(units_.size() - i)]);
    if (units_[i].count > wanted) continue;
    take(units_[i]);
    wanted -= units_[i].count;
  }
}

int64_t Masker::random_token(Stream& stream) const {
  for (;;) {
    const auto id = static_cast<int64_t>(stream.below(vocabulary_.size));
    if (config_.random_from == "vocabulary" || !vocabulary_.is_special[id]) return id;
  }
}

void Masker::corrupt(int64_t* ids, int64_t length, int64_t offset, Stream stream, std::vector<int64_t>& positions,
                     std::vector<int64_t>& labels) {
  find_units(ids, length);
  choose(length, stream);
  const bool per_word = config_.draw_per == "word";
  double draw = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (!chosen_[i]) continue;
    const bool continues = per_word && i > 0 && chosen_[i - 1] && !vocabulary_.starts_word[ids[i]];
    if (!continues) draw = stream.bits() * 0x1p-32;
    positions.push_back(offset + i);
    labels.push_back(ids[i]);
    if (draw < config_.mask_prob)
      ids[i] = vocabulary_.special.mask;
    else if (draw < config_.mask_prob + config_.random_prob)
      ids[i] = random_token(stream);
  }
}

}  // namespace cloze
