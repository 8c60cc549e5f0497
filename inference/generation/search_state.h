#pragma once
// What the searches share: the ids of their rows, the best continuations, what the model is fed next.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "inference/generation/search.h"
#include "inference/generation/search_rules.h"

namespace cloze {

using Prompts = std::vector<std::vector<int64_t>>;
using Results = std::vector<std::vector<GeneratedIds>>;

/// The score of a beam that does not exist yet. Not -inf: sums with it round to it, and the order of such beams affects
/// the result.
inline constexpr float no_score = -1e9F;

/// A token after a beam.
struct Continuation {
  float score;
  int64_t beam, token;
};

/// The best `n` of the offered candidates, best first; ties in the order in which they were offered.
class TopCandidates {
 public:
  void begin(int64_t n) {
    capacity_ = static_cast<size_t>(n);
    list_.clear();
    list_.reserve(capacity_ + 1);
  }
  /// Offers the tokens after `beam`, with their scores [vocab] added to `base`.
  void offer(const float* scores, int64_t vocab, float base, int64_t beam) {
    int64_t token = 0;
    for (; token < vocab && list_.size() < capacity_; ++token) insert({scores[token] + base, beam, token});
    for (token = next(scores, token, vocab, base); token < vocab; token = next(scores, token + 1, vocab, base))
      insert({scores[token] + base, beam, token});
  }
  const std::vector<Continuation>& list() const { return list_; }

 private:
  /// The first token from `token` on that is better than the worst of the list, or vocab.
  int64_t next(const float* scores, int64_t token, int64_t vocab, float base) const;
  void insert(const Continuation& c) {
    if (list_.size() == capacity_) list_.pop_back();
    list_.insert(
        std::upper_bound(list_.begin(), list_.end(), c, [](const auto& a, const auto& b) { return a.score > b.score; }),
        c);
  }
  size_t capacity_ = 0;
  std::vector<Continuation> list_;
};

/// The ids of each row: prompt and generated tokens.
struct History {
  int64_t rows, length, capacity;
  std::vector<int64_t> ids, before;  ///< [rows, capacity]

  History(const std::vector<std::vector<int64_t>>& prompts, int64_t per_prompt, int64_t new_tokens)
      : rows(static_cast<int64_t>(prompts.size()) * per_prompt),
        length(static_cast<int64_t>(prompts[0].size())),
        capacity(length + new_tokens),
        ids(static_cast<size_t>(rows * capacity)) {
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(prompts[static_cast<size_t>(row / per_prompt)].begin(), length, ids.begin() + row * capacity);
  }
  const int64_t* row(int64_t i) const { return ids.data() + i * capacity; }
  /// Each row becomes its origin row (empty: itself) followed by its token.
  void append(const std::vector<int64_t>& tokens, const std::vector<int64_t>& origins) {
    if (!origins.empty()) {
      before = ids;
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(before.begin() + origins[static_cast<size_t>(i)] * capacity, length, ids.begin() + i * capacity);
    }
    for (int64_t i = 0; i < rows; ++i) ids[static_cast<size_t>(i * capacity + length)] = tokens[static_cast<size_t>(i)];
    ++length;
  }
};

/// The last prompt token of every row.
std::vector<int64_t> last_tokens(const Prompts& prompts, int64_t per_prompt);

/// The chosen tokens for the model's next step. `origins` is left empty if every row continues itself, so that the
/// model need not reorder its cache.
struct Feed {
  std::vector<int64_t> tokens, origins;
  Feed(const Prompts& prompts, int64_t per_prompt) : tokens(last_tokens(prompts, per_prompt)) {}
  /// Each row continues itself unless set() changes that.
  void begin() {
    origins.resize(tokens.size());
    std::iota(origins.begin(), origins.end(), 0);
  }
  void set(int64_t row, int64_t token, int64_t origin) {
    tokens[static_cast<size_t>(row)] = token;
    origins[static_cast<size_t>(row)] = origin;
  }
  void end() {
    for (size_t i = 0; i < origins.size(); ++i)
      if (origins[i] != static_cast<int64_t>(i)) return;
    origins.clear();
  }
};

/// Indices 0 ... n-1 by descending score, ties in their order; only the first `count`.
template <class Scores>
std::vector<size_t> best_first(const Scores& scores, size_t n, int64_t count) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores(a) > scores(b); });
  order.resize(std::min(n, static_cast<size_t>(count)));
  return order;
}

/// The searches of search(); see there. Prompts of one length, settings that were checked.
Results greedy_or_sample(NextTokenModel& model, const Prompts& prompts, const SearchConfig& config,
                         const std::function<void(int64_t)>& emit, const std::vector<uint64_t>& numbers);
Results beam_search(NextTokenModel& model, const Prompts& prompts, const SearchConfig& config);
Results diverse_beam_search(NextTokenModel& model, const Prompts& prompts, const SearchConfig& config);

}  // namespace cloze
