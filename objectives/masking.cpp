#include "objectives/masking.h"

#include <algorithm>
#include <cmath>

#include "objectives/masking_config.h"

namespace cloze {

TokenProperties::TokenProperties(const Tokenizer& tokenizer, const std::vector<uint64_t>& counts)
    : size(tokenizer.size()), special(tokenizer.special()), words(tokenizer) {
  uint64_t sum = 0;
  for (int64_t id = 0; id < size; ++id) {
    is_special.push_back(tokenizer.is_special(id));
    if (!counts.empty()) cumulative_counts.push_back(sum += counts[static_cast<size_t>(id)]);
  }
}

size_t draw_masking(const std::vector<MaskingPart>& maskings, Stream stream) {
  double left = stream.uniform();
  size_t drawn = 0;
  for (size_t i = 0; i < maskings.size() && left >= 0; left -= maskings[i++].share)
    if (maskings[i].share > 0) drawn = i;  // the last one also absorbs rounding errors
  return drawn;
}

std::vector<double> length_weights(const Masking& config) {
  std::vector<double> weights;
  switch (config.unit) {
    case MaskingUnit::token:
    case MaskingUnit::word:
      break;
    case MaskingUnit::ngram:
      for (int64_t n = 1; n <= config.max_ngram; ++n) weights.push_back(1 / static_cast<double>(n));
      break;
    case MaskingUnit::span:
    case MaskingUnit::token_span:
      for (int64_t n = 1; n <= config.max_span_length; ++n)
        weights.push_back(std::pow(1 - config.span_p, static_cast<double>(n - 1)));
      break;
  }
  return weights;
}

Masker::Masker(const Masking& config, const TokenProperties& vocabulary)
    : config_(config), rate_(config.mlm_probability), vocabulary_(vocabulary) {
  double sum = 0;
  for (const double weight : length_weights(config)) lengths_.push_back(sum += weight);
}

void Masker::find_units(std::span<const int64_t> ids, Stream& stream, std::vector<int64_t>* drawn) {
  const auto length = static_cast<int64_t>(ids.size());
  const bool token_spans = config_.unit == MaskingUnit::token_span, words = is_of_words(config_.unit);
  int64_t span_left = 0;  // tokens missing from the current span
  begins_.assign(static_cast<size_t>(length), 0);
  units_.clear();
  for (int64_t i = 0; i < length; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool special = vocabulary_.is_special[static_cast<size_t>(ids[at])] != 0;
    if (special && !config_.mask_special) continue;
    // A continuation joins the preceding word only if they are adjacent: not across a separator.
    if (words && !special && !vocabulary_.words.begins(ids, at) && !units_.empty() &&
        units_.back().first + units_.back().count == i) {
      ++units_.back().count;
      continue;
    }
    const bool follows = !units_.empty() && units_.back().first + units_.back().count == i;
    if (token_spans && follows && span_left > 0) {
      ++units_.back().count;
      --span_left;
      continue;
    }
    if (token_spans) span_left = draw_length(stream, drawn) - 1;
    begins_[at] = 1;
    units_.push_back({static_cast<uint32_t>(i), 1});
  }
}

void Masker::choose(int64_t length, Stream& stream, std::vector<int64_t>* drawn) {
  chosen_.assign(length, 0);
  if (config_.count == CountRule::bernoulli) return choose_independently(stream);
  const int64_t wanted = wanted_tokens(length, stream);
  switch (config_.unit) {
    case MaskingUnit::token:
    case MaskingUnit::word:
      return choose_units(wanted, stream);
    case MaskingUnit::ngram:
      return choose_ngrams(wanted, stream, drawn);
    case MaskingUnit::span:
      return choose_spans(wanted, stream, drawn);
    case MaskingUnit::token_span:
      return choose_token_spans(wanted, stream);
  }
}

int64_t Masker::wanted_tokens(int64_t length, Stream& stream) const {
  int64_t candidates = 0;
  for (const auto& unit : units_) candidates += unit.count;
  const double expected = rate_ * static_cast<double>(config_.count_special ? length : candidates);
  int64_t wanted = 0;
  switch (config_.count) {
    case CountRule::rounded:
      wanted = std::max<int64_t>(1, std::llrint(expected));  // half to even
      break;
    case CountRule::ceil:
      wanted = static_cast<int64_t>(std::ceil(expected - 1e-9));
      break;
    case CountRule::stochastic:
      wanted = static_cast<int64_t>(expected + stream.uniform());
      break;
    case CountRule::bernoulli:  // not counted
      break;
  }
  if (rate_ == 0) wanted = 0;
  if (config_.max_predictions_per_seq > 0) wanted = std::min(wanted, config_.max_predictions_per_seq);
  return std::min(wanted, candidates);
}

/// Every unit with the same probability.
void Masker::choose_independently(Stream& stream) {
  for (const auto& unit : units_)
    if (stream.bernoulli(rate_)) std::fill_n(chosen_.begin() + unit.first, unit.count, uint8_t{1});
}

/// Units in random order; one that would exceed the number of wanted tokens is skipped. Source: google-research/bert,
/// create_pretraining_data.py. Differs: cut_long_unit.
void Masker::choose_units(int64_t wanted, Stream& stream) {
  const int64_t budget = wanted;
  for (size_t i = 0; i < units_.size() && wanted > 0; ++i) {
    std::swap(units_[i], units_[i + stream.below(units_.size() - i)]);
    if (units_[i].count > wanted) continue;
    std::fill_n(chosen_.begin() + units_[i].first, units_[i].count, uint8_t{1});
    wanted -= units_[i].count;
  }
  cut_long_unit(budget, wanted, stream);
}

/// Takes `left` tokens in a row from one of the units that are longer than the whole `budget`, none if there is no such
/// unit. Differs: the published code never predicts such units, so that rows of them have no predictions.
void Masker::cut_long_unit(int64_t budget, int64_t left, Stream& stream) {
  if (left <= 0) return;
  const auto is_long = [&](const Unit& unit) { return unit.count > budget; };
  const auto count = std::count_if(units_.begin(), units_.end(), is_long);
  if (count == 0) return;
  auto skipped = stream.below(static_cast<uint64_t>(count));
  const auto& unit =
      *std::find_if(units_.begin(), units_.end(), [&](const Unit& one) { return is_long(one) && skipped-- == 0; });
  const auto first = unit.first + stream.below(unit.count - static_cast<uint64_t>(left) + 1);
  std::fill_n(chosen_.begin() + static_cast<int64_t>(first), left, uint8_t{1});
}

/// Spans in random order, the last one truncated at `wanted` tokens. Source: that of gpt-bert.
void Masker::choose_token_spans(int64_t wanted, Stream& stream) {
  for (size_t i = 0; i < units_.size() && wanted > 0; ++i) {
    std::swap(units_[i], units_[i + stream.below(units_.size() - i)]);
    const auto count = std::min<int64_t>(units_[i].count, wanted);
    std::fill_n(chosen_.begin() + units_[i].first, count, uint8_t{1});
    wanted -= count;
  }
}

int64_t Masker::draw_length(Stream& stream, std::vector<int64_t>* drawn) const {
  const double draw = stream.uniform() * lengths_.back();
  const int64_t words = 1 + (std::upper_bound(lengths_.begin(), lengths_.end(), draw) - lengths_.begin());
  if (drawn) drawn->push_back(words);
  return words;
}

/// n words from each start, in random order; fewer if n would exceed the number of wanted tokens. An n-gram that
/// overlaps words already chosen is skipped. Source: google-research/albert, create_masked_lm_predictions. Differs:
/// cut_long_unit.
void Masker::choose_ngrams(int64_t wanted, Stream& stream, std::vector<int64_t>* drawn) {
  const int64_t budget = wanted;
  order_.resize(units_.size());
  for (uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
  for (size_t i = 0; i < order_.size() && wanted > 0; ++i) {
    std::swap(order_[i], order_[i + stream.below(order_.size() - i)]);
    const size_t first = order_[i];
    size_t last = std::min(first + static_cast<size_t>(draw_length(stream, drawn)), units_.size());
    int64_t tokens = 0;
    for (size_t k = first; k < last; ++k) tokens += units_[k].count;
    while (last > first && tokens > wanted) tokens -= units_[--last].count;
    const auto is_chosen = [&](const Unit& unit) { return chosen_[unit.first] != 0; };
    const auto begin = units_.begin() + static_cast<int64_t>(first);
    const auto end = units_.begin() + static_cast<int64_t>(last);
    if (std::any_of(begin, end, is_chosen)) continue;
    for (auto unit = begin; unit != end; ++unit) std::fill_n(chosen_.begin() + unit->first, unit->count, uint8_t{1});
    wanted -= tokens;
  }
  cut_long_unit(budget, wanted, stream);
}

/// Spans of words around random tokens until exactly `wanted` tokens are chosen. Source: Joshi et al. 2020, section 3.1
/// (arXiv 1907.10529); facebookresearch/SpanBERT, data/masking.py.
void Masker::choose_spans(int64_t wanted, Stream& stream, std::vector<int64_t>* drawn) {
  unit_of_.assign(chosen_.size(), UINT32_MAX);
  uint64_t begin = UINT64_MAX, end = 0;
  for (uint32_t u = 0; u < units_.size(); ++u) {
    std::fill_n(unit_of_.begin() + units_[u].first, units_[u].count, u);
    begin = std::min<uint64_t>(begin, units_[u].first);
    end = units_[u].first + units_[u].count;
  }
  while (wanted > 0) {
    const uint64_t anchor = begin + stream.below(end - begin);
    if (unit_of_[anchor] == UINT32_MAX || chosen_[anchor]) continue;
    const int64_t words = draw_length(stream, drawn);
    size_t at = units_[unit_of_[anchor]].first;
    for (int64_t w = 0; w < words && wanted > 0 && at < chosen_.size() && unit_of_[at] != UINT32_MAX; ++w) {
      const auto& word = units_[unit_of_[at]];
      for (uint32_t k = 0; k < word.count && wanted > 0; ++k)
        if (!chosen_[word.first + k]) {
          chosen_[word.first + k] = 1;
          --wanted;
        }
      at = word.first + word.count;
    }
  }
}

int64_t Masker::random_token(Stream& stream) const {
  const auto any = [&] { return static_cast<int64_t>(stream.below(static_cast<uint64_t>(vocabulary_.size))); };
  const auto any_word = [&] {
    auto id = any();
    while (vocabulary_.is_special[static_cast<size_t>(id)]) id = any();
    return id;
  };
  switch (config_.random_from) {
    case RandomFrom::vocabulary:
      return any();
    case RandomFrom::words:
      return any_word();
    case RandomFrom::unigram: {
      const auto& counts = vocabulary_.cumulative_counts;
      if (counts.empty()) return any_word();
      return std::upper_bound(counts.begin(), counts.end(), stream.below(counts.back())) - counts.begin();
    }
  }
  return any();
}

bool Masker::shares_draw(std::span<const int64_t> ids, int64_t i) const {
  if (i == 0 || !chosen_[static_cast<size_t>(i - 1)]) return false;
  switch (config_.draw_per) {
    case DrawPer::token:
      return false;
    case DrawPer::word:
      return !vocabulary_.words.begins(ids, static_cast<size_t>(i));
    case DrawPer::span:
      return config_.unit != MaskingUnit::token_span || !begins_[static_cast<size_t>(i)];
  }
  return false;
}

void Masker::corrupt(int64_t* ids, int64_t length, int64_t offset, Stream stream, std::vector<int64_t>& positions,
                     std::vector<int64_t>& labels, std::vector<int64_t>* drawn) {
  const std::span<const int64_t> row(ids, static_cast<size_t>(length));
  find_units(row, stream, drawn);
  choose(length, stream, drawn);
  double draw = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (!chosen_[i]) continue;
    if (!shares_draw(row, i)) draw = stream.bits() * 0x1p-32;
    positions.push_back(offset + i);
    labels.push_back(ids[i]);
    if (draw < config_.mask_prob)
      ids[i] = vocabulary_.special.mask;
    else if (draw < config_.mask_prob + config_.random_prob)
      ids[i] = random_token(stream);
  }
}

}  // namespace cloze
