#include "inference/generation/search_rules.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/kernels/kernels.h"

namespace cloze {

namespace {

constexpr float lowest = ScoreRules::lowest;

const kernels::Scores& score_kernels() { return kernels::table().scores; }

}  // namespace

void check(const SearchConfig& c) {
  const auto at_least = [](const char* name, int64_t value, int64_t minimum) {
    require<ConfigError>(value >= minimum, name, " is ", value, "; give ", minimum, " or more");
  };
  at_least("max_new_tokens", c.max_new_tokens, 1);
  at_least("min_new_tokens", c.min_new_tokens, 0);
  at_least("min_length", c.min_length, 0);
  at_least("num_beams", c.num_beams, 1);
  at_least("num_beam_groups", c.num_beam_groups, 1);
  at_least("num_return_sequences", c.num_return_sequences, 1);
  at_least("top_k", c.top_k, 0);
  at_least("no_repeat_ngram_size", c.no_repeat_ngram_size, 0);
  at_least("eos_token_id", c.eos_token_id, -1);
  at_least("pad_token_id", c.pad_token_id, 0);
  at_least("forced_bos_token_id", c.forced_bos_token_id, -1);
  at_least("forced_eos_token_id", c.forced_eos_token_id, -1);
  at_least("prompt_ignore_length", c.prompt_ignore_length, 0);
  require<ConfigError>(c.min_new_tokens <= c.max_new_tokens, "min_new_tokens is ", c.min_new_tokens,
                       ", but max_new_tokens is ", c.max_new_tokens, "; lower the one or raise the other");
  require<ConfigError>(c.max_new_tokens <= 1 << 20 && c.num_beams <= 4096 && c.num_return_sequences <= 1 << 16,
                       "max_new_tokens ", c.max_new_tokens, ", num_beams ", c.num_beams, " and num_return_sequences ",
                       c.num_return_sequences, " must be at most 1048576, 4096 and 65536; lower them");
  require<ConfigError>(std::isfinite(c.length_penalty), "length_penalty is ", c.length_penalty,
                       "; give a finite number");
  require<ConfigError>(c.repetition_penalty > 0 && std::isfinite(c.repetition_penalty), "repetition_penalty is ",
                       c.repetition_penalty, "; give a number above 0 (1 changes nothing)");
  require<ConfigError>(c.top_p >= 0 && c.top_p <= 1, "top_p is ", c.top_p,
                       "; give a number from 0 to 1 (1 keeps everything)");
  require<ConfigError>(c.typical_p > 0 && c.typical_p <= 1, "typical_p is ", c.typical_p,
                       "; give a number above 0 and up to 1 (1 keeps everything)");
  require<ConfigError>(c.num_beams % c.num_beam_groups == 0, "num_beams is ", c.num_beams, ", which ",
                       c.num_beam_groups, " groups cannot share; make num_beams a multiple of num_beam_groups");
  require<ConfigError>(c.diversity_penalty >= 0 && std::isfinite(c.diversity_penalty), "diversity_penalty is ",
                       c.diversity_penalty, "; give 0 or more");
  if (c.num_beam_groups > 1)
    require<ConfigError>(c.diversity_penalty > 0, "num_beam_groups is ", c.num_beam_groups,
                         " and diversity_penalty 0, so that all groups would find the same; set diversity_penalty");
  else
    require<ConfigError>(c.diversity_penalty == 0, "diversity_penalty is ", c.diversity_penalty,
                         ", but there is one group of beams; set num_beam_groups");
  if (c.do_sample) {
    require<ConfigError>(c.num_beams == 1, "do_sample does not go with num_beams ", c.num_beams,
                         "; set num_beams to 1, or leave do_sample out");
    require<ConfigError>(c.temperature > 0 && std::isfinite(c.temperature), "temperature is ", c.temperature,
                         "; give a number above 0, or leave do_sample out for the likeliest token");
  } else if (c.num_beams == 1) {
    require<ConfigError>(c.num_return_sequences == 1, "num_return_sequences is ", c.num_return_sequences,
                         ", but greedy search finds one; set do_sample, or num_beams to ", c.num_return_sequences);
  } else {
    require<ConfigError>(c.num_return_sequences <= c.num_beams, "num_return_sequences is ", c.num_return_sequences,
                         ", but num_beams ", c.num_beams, "; raise num_beams or lower num_return_sequences");
  }
}

void check_ids(const SearchConfig& c, int64_t vocab) {
  for (const auto& [name, id] : {std::pair{"eos_token_id", c.eos_token_id},
                                 {"pad_token_id", c.pad_token_id},
                                 {"forced_bos_token_id", c.forced_bos_token_id},
                                 {"forced_eos_token_id", c.forced_eos_token_id}})
    require<ConfigError>(id < vocab, name, " is ", id, ", but the model has ", vocab, " tokens; give an id below that");
}

ScoreRules::ScoreRules(const SearchConfig& config, int64_t vocab, int64_t prompt)
    : c_(config), vocab_(vocab), prompt_(prompt), scores_(static_cast<size_t>(vocab)) {
  if (c_.repetition_penalty != 1) seen_.resize(static_cast<size_t>(vocab));
}

float* ScoreRules::logits(const float* raw, const int64_t* ids, int64_t length) {
  std::copy_n(raw, vocab_, scores_.data());
  apply(ids, length);
  return scores_.data();
}

const float* ScoreRules::log_probs(const float* raw, const int64_t* ids, int64_t length, const int64_t* taken,
                                   int64_t n) {
  const auto [max, log] = score_kernels().log_sum(vocab_, raw);
  require(!std::isnan(log) && max != lowest, not_finite);
  float* x = scores_.data();
  score_kernels().minus(vocab_, raw, max, log, x);  // in this order: max + log may round the log away
  for (int64_t j = 0; j < n; ++j)
    if (std::find(taken, taken + j, taken[j]) == taken + j)
      x[taken[j]] -=
          static_cast<float>(c_.diversity_penalty) * static_cast<float>(std::count(taken + j, taken + n, taken[j]));
  apply(ids, length);
  return x;
}

void ScoreRules::apply(const int64_t* ids, int64_t length) {
  float* x = scores_.data();
  if (c_.repetition_penalty != 1) {
    ++stamp_;
    const auto penalty = static_cast<float>(c_.repetition_penalty);
    for (int64_t i = c_.prompt_ignore_length; i < length; ++i) {
      if (!known(ids[i]) || seen_[static_cast<size_t>(ids[i])] == stamp_) continue;
      seen_[static_cast<size_t>(ids[i])] = stamp_;
      float& s = x[ids[i]];
      s = s < 0 ? s * penalty : s / penalty;
    }
  }
  if (const int64_t n = c_.no_repeat_ngram_size; n > 0)
    for (int64_t i = 0; i + n <= length; ++i)
      if (known(ids[i + n - 1]) && std::equal(ids + i, ids + i + n - 1, ids + length - n + 1))
        x[ids[i + n - 1]] = banned;
  const int64_t min_length = c_.min_new_tokens > 0 ? prompt_ + c_.min_new_tokens : c_.min_length;
  if (c_.eos_token_id >= 0 && length < min_length) x[c_.eos_token_id] = banned;
  if (c_.forced_bos_token_id >= 0 && length == 1) only(c_.forced_bos_token_id);
  if (c_.forced_eos_token_id >= 0 && length == prompt_ + c_.max_new_tokens - 1) only(c_.forced_eos_token_id);
}

void ScoreRules::only(int64_t id) {
  std::fill(scores_.begin(), scores_.end(), banned);
  scores_[static_cast<size_t>(id)] = 0;
}

const std::vector<TokenSampler::Kept>& TokenSampler::keep(float* x) {
  if (c_.temperature != 1)
    for (int64_t i = 0; i < vocab_; ++i) x[i] /= static_cast<float>(c_.temperature);
  const float threshold =
      c_.top_k > 0 && c_.top_k < vocab_ ? std::max(lowest, kth_of(x)) : lowest;  // ties with the last one are kept
  weigh(x, threshold);
  require(total_ > 0, "every token is forbidden; lower no_repeat_ngram_size");
  // All tokens below this weight together have less than 1 - top_p of the mass: they are dropped before sorting.
  const auto floor =
      static_cast<float>(c_.top_p < 1 ? (1 - c_.top_p) * total_ / static_cast<double>(vocab_) * (1 - 1e-6) : 0);
  kept_.clear();
  for (int64_t i = 0; i < vocab_; ++i)
    if (const float w = weights_[static_cast<size_t>(i)]; x[i] >= threshold && w >= floor)
      kept_.push_back({static_cast<int32_t>(i), x[i], w, -x[i]});
  if (c_.top_p < 1) cut(c_.top_p, false);
  if (c_.typical_p < 1) {
    const double log = max_ + std::log(total_);
    double entropy = 0;
    for (const auto& k : kept_) entropy -= double{k.weight} / total_ * (double{k.score} - log);
    for (auto& k : kept_) k.key = static_cast<float>(std::abs(log - double{k.score} - entropy));
    cut(c_.typical_p, true);
  }
  return kept_;
}

const TokenSampler::Kept& TokenSampler::draw(double u) const {
  double left = u * total_;
  for (const auto& k : kept_)
    if ((left -= double{k.weight}) < 0) return k;
  return kept_.back();
}

/// The top_k-th largest score of a row.
float TokenSampler::kth_of(const float* x) {
  const auto size = static_cast<size_t>(c_.top_k);
  heap_.assign(x, x + size);  // the largest so far, with their minimum in front
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  for (int64_t i = c_.top_k; i < vocab_ && (i = score_kernels().next_above(x, i, vocab_, 0, heap_.front())) < vocab_;
       ++i) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.back() = x[i];
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  return heap_.front();
}

/// Sets the weights of the row: e^(x - max), 0 below `threshold`.
void TokenSampler::weigh(const float* x, float threshold) {
  const float max = score_kernels().largest(vocab_, x);
  max_ = double{max};
  total_ = score_kernels().weights(vocab_, x, threshold, max, weights_.data());
  require(!std::isnan(total_), ScoreRules::not_finite);
}

/// Keeps the tokens of the smallest keys until they reach the probability `mass`, at least one; with `ties`, also
/// tokens with the same key as the last one.
void TokenSampler::cut(double mass, bool ties) {
  const auto less = [](const Kept& a, const Kept& b) { return a.key != b.key ? a.key < b.key : a.id < b.id; };
  auto from = kept_.begin(), to = kept_.end();  // bounds of the cut, halved until sorting is cheap
  double before = 0;
  while (to - from > 32) {
    const auto middle = from + (to - from) / 2;
    std::nth_element(from, middle, to, less);
    double sum = before;
    for (auto k = from; k != middle; ++k) sum += double{k->weight};
    if (sum < mass * total_) {
      from = middle;
      before = sum;
    } else
      to = middle;
  }
  std::sort(from, to, less);
  for (; from != to && (from == kept_.begin() || before < mass * total_); ++from) before += double{from->weight};
  if (ties) from = std::partition(from, kept_.end(), [key = (from - 1)->key](const Kept& k) { return k.key == key; });
  kept_.erase(from, kept_.end());
  std::sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.id < b.id; });
  total_ = 0;
  for (const auto& k : kept_) total_ += double{k.weight};
}

}  // namespace cloze
