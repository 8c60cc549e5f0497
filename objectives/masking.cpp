#include "objectives/masking.h"

#include <algorithm>
#include <cmath>

namespace cloze {

Vocabulary::Vocabulary(const Tokenizer& tokenizer, const std::vector<uint64_t>& counts)
    : size(tokenizer.size()), special(tokenizer.special()) {
  uint64_t sum = 0;
  for (int64_t id = 0; id < size; ++id) {
    is_special.push_back(tokenizer.is_special(id));
    starts_word.push_back(tokenizer.starts_word(id));
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

Masker::Masker(const Masking& config, const Vocabulary& vocabulary)
    : config_(config), share_(config.mlm_probability), vocabulary_(vocabulary) {
  const bool spans = config.unit != MaskingUnit::ngram;
  double sum = 0;
  for (int64_t n = 1; n <= (spans ? config.max_span_length : config.max_ngram); ++n)
    lengths_.push_back(sum +=
                       spans ? std::pow(1 - config.span_p, static_cast<double>(n - 1)) : 1 / static_cast<double>(n));
}

void Masker::find_units(const int64_t* ids, int64_t length, Stream& stream, std::vector<int64_t>* drawn) {
  const bool token_spans = config_.unit == MaskingUnit::token_span,
             words = config_.unit != MaskingUnit::token && !token_spans;
  int64_t span_left = 0;  // tokens missing from the current span
  begins_.assign(static_cast<size_t>(length), 0);
  units_.clear();
  for (int64_t i = 0; i < length; ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    const bool special = vocabulary_.is_special[id] != 0;
    if (special && !config_.mask_special) continue;
    // A continuation joins the preceding word only if they are adjacent: not across a separator.
    if (words && !special && !vocabulary_.starts_word[id] && !units_.empty() &&
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
    begins_[static_cast<size_t>(i)] = 1;
    units_.push_back({static_cast<uint32_t>(i), 1});
  }
}

void Masker::choose(int64_t length, Stream& stream, std::vector<int64_t>* drawn) {
  chosen_.assign(length, 0);
  if (config_.count == CountRule::bernoulli &&
      (config_.unit == MaskingUnit::token || config_.unit == MaskingUnit::word)) {
    for (const auto& unit : units_)
      if (stream.bernoulli(share_)) std::fill_n(chosen_.begin() + unit.first, unit.count, uint8_t{1});
    return;
  }
  int64_t candidates = 0;
  for (const auto& unit : units_) candidates += unit.count;
  const double share = share_ * static_cast<double>(config_.count_special ? length : candidates);
  int64_t wanted = config_.count == CountRule::rounded ? std::max<int64_t>(1, std::llrint(share))  // half to even
                   : config_.count == CountRule::ceil  ? static_cast<int64_t>(std::ceil(share - 1e-9))
                                                       : static_cast<int64_t>(share + stream.uniform());
  if (share_ == 0) wanted = 0;
  if (config_.max_predictions_per_seq > 0) wanted = std::min(wanted, config_.max_predictions_per_seq);
  wanted = std::min(wanted, candidates);
  if (config_.unit == MaskingUnit::span)
    choose_spans(wanted, stream, drawn);
  else if (config_.unit == MaskingUnit::ngram)
    choose_ngrams(wanted, stream, drawn);
  else if (config_.unit == MaskingUnit::token_span)
    choose_token_spans(wanted, stream);
  else
    choose_units(wanted, stream);
}

/// Units in random order; one that would exceed the number of wanted tokens is skipped.
void Masker::choose_units(int64_t wanted, Stream& stream) {
  for (size_t i = 0; i < units_.size() && wanted > 0; ++i) {
    std::swap(units_[i], units_[i + stream.below(units_.size() - i)]);
    if (units_[i].count > wanted) continue;
    std::fill_n(chosen_.begin() + units_[i].first, units_[i].count, uint8_t{1});
    wanted -= units_[i].count;
  }
}

/// Spans in random order, the last one truncated at `wanted` tokens. Source: gpt_bert_masking.
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
/// overlaps words already chosen is skipped. Source: google-research/albert, create_masked_lm_predictions.
void Masker::choose_ngrams(int64_t wanted, Stream& stream, std::vector<int64_t>* drawn) {
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
}

/// Spans of words around random tokens until exactly `wanted` tokens are chosen. Source: Joshi et al. 2020, section 3.1
/// (arXiv 1907.10529); facebookresearch/SpanBERT, data/masking.py.
void Masker::choose_spans(int64_t wanted, Stream& stream, std::vector<int64_t>* drawn) {
  unit_of_.assign(chosen_.size(), UINT32_MAX);
  uint64_t begin = UINT64_MAX, end = 0;
  for (uint32_t u = 0; u < units_.size(); ++u) {
    std::fill_n(unit_of_.begin() + units_[u].first, units_[u].count, u);
    begin = std::min<uint64_t>(begin, units_[u].first), end = units_[u].first + units_[u].count;
  }
  while (wanted > 0) {
    const uint64_t anchor = begin + stream.below(end - begin);
    if (unit_of_[anchor] == UINT32_MAX || chosen_[anchor]) continue;
    const int64_t words = draw_length(stream, drawn);
    size_t at = units_[unit_of_[anchor]].first;
    for (int64_t w = 0; w < words && wanted > 0 && at < chosen_.size() && unit_of_[at] != UINT32_MAX; ++w) {
      const auto& word = units_[unit_of_[at]];
      for (uint32_t k = 0; k < word.count && wanted > 0; ++k)
        if (!chosen_[word.first + k]) chosen_[word.first + k] = 1, --wanted;
      at = word.first + word.count;
    }
  }
}

int64_t Masker::random_token(Stream& stream) const {
  if (config_.random_from == RandomFrom::unigram && !vocabulary_.cumulative_counts.empty()) {
    const auto& counts = vocabulary_.cumulative_counts;
    return std::upper_bound(counts.begin(), counts.end(), stream.below(counts.back())) - counts.begin();
  }
  for (;;) {
    const auto id = static_cast<int64_t>(stream.below(vocabulary_.size));
    if (config_.random_from == RandomFrom::vocabulary || !vocabulary_.is_special[id]) return id;
  }
}

void Masker::corrupt(int64_t* ids, int64_t length, int64_t offset, Stream stream, std::vector<int64_t>& positions,
                     std::vector<int64_t>& labels, std::vector<int64_t>* drawn) {
  find_units(ids, length, stream, drawn);
  choose(length, stream, drawn);
  const bool per_word = config_.draw_per == DrawPer::word, per_span = config_.draw_per == DrawPer::span;
  const auto goes_on = [&](int64_t i) {  // in the span of the token before it
    return per_span && !(config_.unit == MaskingUnit::token_span && begins_[static_cast<size_t>(i)]);
  };
  double draw = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (!chosen_[i]) continue;
    const bool continues = i > 0 && chosen_[i - 1] && (goes_on(i) || (per_word && !vocabulary_.starts_word[ids[i]]));
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
