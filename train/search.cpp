#include "train/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/kernels/kernels.h"
#include "core/random.h"

namespace cloze {

namespace {

constexpr float banned = -std::numeric_limits<float>::infinity();
constexpr float lowest = std::numeric_limits<float>::lowest();
// A beam that has no score yet. Not -inf: sums with it round to it, and which of such beams goes on is part of the result.
constexpr float unborn = -1e9F;

const kernels::Scores& over() { return kernels::table().scores; }

// ---- the rules between the model's scores and the choice ----

struct Candidate {
  float score;
  int64_t beam, token;
};

/// The best `n` of what was offered, best first; of equal ones the first offered.
class Best {
 public:
  void begin(int64_t n) {
    most_ = static_cast<size_t>(n);
    list_.clear();
    list_.reserve(most_ + 1);
  }
  /// Takes the scores [vocab] of the tokens after `beam`, each added to `base`.
  void offer(const float* scores, int64_t vocab, float base, int64_t beam) {
    int64_t token = 0;
    for (; token < vocab && list_.size() < most_; ++token) insert({scores[token] + base, beam, token});
    for (token = next(scores, token, vocab, base); token < vocab; token = next(scores, token + 1, vocab, base)) insert({scores[token] + base, beam, token});
  }
  const std::vector<Candidate>& list() const { return list_; }

 private:
  int64_t next(const float* scores, int64_t token, int64_t vocab, float base) const { return token < vocab ? over().next_above(scores, token, vocab, base, list_.back().score) : vocab; }
  void insert(const Candidate& c) {
    if (list_.size() == most_) list_.pop_back();
    list_.insert(std::upper_bound(list_.begin(), list_.end(), c, [](const auto& a, const auto& b) { return a.score > b.score; }), c);
  }
  size_t most_ = 0;
  std::vector<Candidate> list_;
};

/// What each row has read, prompt included.
struct History {
  int64_t rows, length, room;
  std::vector<int64_t> ids, before;   ///< [rows, room]

  History(const std::vector<std::vector<int64_t>>& prompts, int64_t per_prompt, int64_t new_tokens)
      : rows(static_cast<int64_t>(prompts.size()) * per_prompt), length(static_cast<int64_t>(prompts[0].size())), room(length + new_tokens),
        ids(static_cast<size_t>(rows * room)) {
    for (int64_t row = 0; row < rows; ++row) std::copy_n(prompts[static_cast<size_t>(row / per_prompt)].begin(), length, ids.begin() + row * room);
  }
  const int64_t* row(int64_t i) const { return ids.data() + i * room; }
  /// Each row becomes that of its origin (empty: its own) and its token.
  void append(const std::vector<int64_t>& tokens, const std::vector<int64_t>& origins) {
    if (!origins.empty()) {
      before = ids;
      for (int64_t i = 0; i < rows; ++i) std::copy_n(before.begin() + origins[static_cast<size_t>(i)] * room, length, ids.begin() + i * room);
    }
    for (int64_t i = 0; i < rows; ++i) ids[static_cast<size_t>(i * room + length)] = tokens[static_cast<size_t>(i)];
    ++length;
  }
};

/// One row's scores after the rules, in a buffer that is made once.
class Rules {
 public:
  Rules(const SearchConfig& config, int64_t vocab, int64_t prompt)
      : c_(config), vocab_(vocab), prompt_(prompt), scores_(static_cast<size_t>(vocab)) {
    if (c_.repetition_penalty != 1) seen_.resize(static_cast<size_t>(vocab));
  }

  /// The logits after the rules.
  float* logits(const float* given, const int64_t* ids, int64_t length) {
    std::copy_n(given, vocab_, scores_.data());
    apply(ids, length);
    return scores_.data();
  }

  /// The log-probabilities after the rules, which do not sum to 1 any more; `taken` [n] are the tokens of the groups before.
  const float* log_probs(const float* given, const int64_t* ids, int64_t length, const int64_t* taken = nullptr, int64_t n = 0) {
    const auto [max, log] = over().log_sum(vocab_, given);
    require(!std::isnan(log) && max != lowest, not_numbers);
    float* x = scores_.data();
    over().minus(vocab_, given, max, log, x);   // in this order: max + log may round the log away
    for (int64_t j = 0; j < n; ++j)
      if (std::find(taken, taken + j, taken[j]) == taken + j)
        x[taken[j]] -= static_cast<float>(c_.diversity_penalty) * static_cast<float>(std::count(taken + j, taken + n, taken[j]));
    apply(ids, length);
    return x;
  }

  static constexpr const char* not_numbers = "the model's scores are not finite numbers; its weights are damaged or its training diverged, so use another checkpoint";

 private:
  bool known(int64_t id) const { return id >= 0 && id < vocab_; }   // an embedding may have more rows than the head

  void apply(const int64_t* ids, int64_t length) {
    float* x = scores_.data();
    if (c_.repetition_penalty != 1) {
      ++stamp_;
      const auto penalty = static_cast<float>(c_.repetition_penalty);
      for (int64_t i = 0; i < length; ++i) {
        if (!known(ids[i]) || seen_[static_cast<size_t>(ids[i])] == stamp_) continue;
        seen_[static_cast<size_t>(ids[i])] = stamp_;
        float& s = x[ids[i]];
        s = s < 0 ? s * penalty : s / penalty;
      }
    }
    if (const int64_t n = c_.no_repeat_ngram_size; n > 0)
      for (int64_t i = 0; i + n <= length; ++i)
        if (known(ids[i + n - 1]) && std::equal(ids + i, ids + i + n - 1, ids + length - n + 1)) x[ids[i + n - 1]] = banned;
    const int64_t least = c_.min_new_tokens > 0 ? prompt_ + c_.min_new_tokens : c_.min_length;
    if (c_.eos_token_id >= 0 && length < least) x[c_.eos_token_id] = banned;
    if (c_.forced_bos_token_id >= 0 && length == 1) only(c_.forced_bos_token_id);
    if (c_.forced_eos_token_id >= 0 && length == prompt_ + c_.max_new_tokens - 1) only(c_.forced_eos_token_id);
  }
  void only(int64_t id) {
    std::fill(scores_.begin(), scores_.end(), banned);
    scores_[static_cast<size_t>(id)] = 0;
  }

  const SearchConfig& c_;
  int64_t vocab_, prompt_;
  std::vector<float> scores_;
  std::vector<uint64_t> seen_;
  uint64_t stamp_ = 0;
};

/// The tokens that sampling may draw, in buffers that are made once.
class Sampler {
 public:
  struct Kept {
    int32_t id;
    float score, weight, key;   ///< weight: probability but for a factor; key: place in an order
  };

  Sampler(const SearchConfig& config, int64_t vocab) : c_(config), vocab_(vocab), weights_(static_cast<size_t>(vocab)) {}

  /// The tokens kept of the processed logits [vocab], by id. Throws Error for a row without an allowed token.
  const std::vector<Kept>& keep(float* x) {
    if (c_.temperature != 1)
      for (int64_t i = 0; i < vocab_; ++i) x[i] /= static_cast<float>(c_.temperature);
    const float least = c_.top_k > 0 && c_.top_k < vocab_ ? std::max(lowest, kth_of(x)) : lowest;   // ties with the last one stay
    weigh(x, least);
    require(total_ > 0, "every token is forbidden; lower no_repeat_ngram_size");
    // All tokens below this weight together hold less than 1 - top_p: they go without being put in order.
    const auto floor = static_cast<float>(c_.top_p < 1 ? (1 - c_.top_p) * total_ / static_cast<double>(vocab_) * (1 - 1e-6) : 0);
    kept_.clear();
    for (int64_t i = 0; i < vocab_; ++i)
      if (const float w = weights_[static_cast<size_t>(i)]; x[i] >= least && w >= floor) kept_.push_back({static_cast<int32_t>(i), x[i], w, -x[i]});
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
  /// The sum of the weights of what was kept.
  double total() const { return total_; }

  /// The token at `u` in [0, 1) of the cumulated weights.
  const Kept& draw(double u) const {
    double left = u * total_;
    for (const auto& k : kept_)
      if ((left -= double{k.weight}) < 0) return k;
    return kept_.back();
  }

 private:
  /// The top_k-th largest number of a row.
  float kth_of(const float* x) {
    const auto most = static_cast<size_t>(c_.top_k);
    heap_.assign(x, x + most);   // the largest so far, the least of them in front
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    for (int64_t i = c_.top_k; i < vocab_ && (i = over().next_above(x, i, vocab_, 0, heap_.front())) < vocab_; ++i) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.back() = x[i];
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    return heap_.front();
  }

  /// Sets the weights of the row: e^(x - max), 0 below `least`.
  void weigh(const float* x, float least) {
    const float max = over().largest(vocab_, x);
    max_ = double{max};
    total_ = over().weights(vocab_, x, least, max, weights_.data());
    require(!std::isnan(total_), Rules::not_numbers);
  }

  /// Keeps only those of the smallest keys, as long as those before hold less than `mass`; at least one; `ties` with the last key too.
  void cut(double mass, bool ties) {
    const auto less = [](const Kept& a, const Kept& b) { return a.key != b.key ? a.key < b.key : a.id < b.id; };
    auto from = kept_.begin(), to = kept_.end();   // the place of the cut lies between; halved until a sort is cheap
    double before = 0;
    while (to - from > 32) {
      const auto middle = from + (to - from) / 2;
      std::nth_element(from, middle, to, less);
      double sum = before;
      for (auto k = from; k != middle; ++k) sum += double{k->weight};
      if (sum < mass * total_) from = middle, before = sum;
      else to = middle;
    }
    std::sort(from, to, less);
    for (; from != to && (from == kept_.begin() || before < mass * total_); ++from) before += double{from->weight};
    if (ties) from = std::partition(from, kept_.end(), [key = (from - 1)->key](const Kept& k) { return k.key == key; });
    kept_.erase(from, kept_.end());
    std::sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.id < b.id; });
    total_ = 0;
    for (const auto& k : kept_) total_ += double{k.weight};
  }

  const SearchConfig& c_;
  int64_t vocab_;
  std::vector<float> weights_, heap_;
  std::vector<Kept> kept_;
  double max_ = 0, total_ = 0;
};

// ---- the searches ----

using Prompts = std::vector<std::vector<int64_t>>;
using Results = std::vector<std::vector<Generated>>;

/// The last token of every row.
std::vector<int64_t> last_tokens(const Prompts& prompts, int64_t per_prompt) {
  std::vector<int64_t> tokens;
  for (const auto& prompt : prompts) tokens.insert(tokens.end(), static_cast<size_t>(per_prompt), prompt.back());
  return tokens;
}

Results follow(NextToken& model, const Prompts& prompts, const SearchConfig& c, const std::function<void(int64_t)>& emit,
    const std::vector<uint64_t>& numbers) {
  const int64_t vocab = model.vocab(), per_prompt = rows_of_prompt(c);
  History history(prompts, per_prompt, c.max_new_tokens);
  Rules rules(c, vocab, history.length);
  Sampler sampler(c, vocab);
  const Rng rng(c.seed);
  auto tokens = last_tokens(prompts, per_prompt);
  std::vector<char> ended(tokens.size());
  std::vector<double> scores(tokens.size());
  for (int64_t place = 0; place < c.max_new_tokens && std::count(ended.begin(), ended.end(), 0) > 0; ++place) {
    const float* logits = model.step(tokens, {});
    for (int64_t row = 0; row < history.rows; ++row) {
      const auto r = static_cast<size_t>(row);
      if (ended[r]) {
        tokens[r] = c.pad_token_id;
        continue;
      }
      float* x = rules.logits(logits + row * vocab, history.row(row), history.length);
      if (c.do_sample) {
        sampler.keep(x);
        const auto prompt = static_cast<uint64_t>(row / per_prompt), sequence = static_cast<uint64_t>(row % per_prompt);
        auto stream = rng.stream("sample", numbers.empty() ? prompt : numbers[prompt], sequence << 32 | static_cast<uint64_t>(place));
        const auto& chosen = sampler.draw(stream.uniform());
        tokens[r] = chosen.id;
        scores[r] += std::log(double{chosen.weight} / sampler.total());
      } else {
        const auto [max, log] = over().log_sum(vocab, x);
        require(!std::isnan(log), Rules::not_numbers);
        const bool any = max != lowest;   // none allowed: token 0, as transformers' argmax has it
        tokens[r] = any ? std::find(x, x + vocab, max) - x : 0;
        scores[r] += any ? -double{log} : double{banned};
      }
      ended[r] = tokens[r] == c.eos_token_id;
    }
    history.append(tokens, {});
    if (emit && history.rows == 1) emit(tokens[0]);
  }
  Results out(prompts.size());
  for (int64_t row = 0; row < history.rows; ++row)
    out[static_cast<size_t>(row / per_prompt)].push_back({{history.row(row), history.row(row) + history.length}, scores[static_cast<size_t>(row)]});
  return out;
}

/// Feeds the chosen tokens back: `origins` counts as empty where every row goes on from itself, so that the model need not move anything.
struct Feed {
  std::vector<int64_t> tokens, origins;
  Feed(const Prompts& prompts, int64_t per_prompt) : tokens(last_tokens(prompts, per_prompt)) {}
  /// Each row from itself until told otherwise.
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

/// Numbers 0 ... n-1 of `scores`, best first, equal ones in their order; only the first `most`.
template <class Scores>
std::vector<size_t> best_first(const Scores& scores, size_t n, int64_t most) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores(a) > scores(b); });
  order.resize(std::min(n, static_cast<size_t>(most)));
  return order;
}

/// The n-th row and `token` after it.
std::vector<int64_t> extended(const History& history, int64_t row, int64_t token) {
  std::vector<int64_t> ids(history.row(row), history.row(row) + history.length);
  ids.push_back(token);
  return ids;
}

Results beam(NextToken& model, const Prompts& prompts, const SearchConfig& c) {
  struct Hypothesis {
    float score = unborn;
    bool finished = false;
    std::vector<int64_t> ids;
  };
  struct Beams {
    std::vector<float> scores;      ///< of the running ones, best first
    std::vector<Hypothesis> best;   ///< finished ones, best first; places not yet taken are unborn
    bool done = false;
  };
  const int64_t vocab = model.vocab(), k = c.num_beams;
  const auto kk = static_cast<size_t>(k);
  const bool early = c.early_stopping == "true", never = c.early_stopping == "never";
  History history(prompts, k, c.max_new_tokens);
  const int64_t prompt_length = history.length;
  Rules rules(c, vocab, prompt_length);
  Feed feed(prompts, k);
  Best best;
  std::vector<Beams> all(prompts.size());
  for (size_t p = 0; p < all.size(); ++p) {
    all[p].scores.assign(kk, unborn);   // all rows are the same at first: only one may go on
    all[p].scores[0] = 0;
    all[p].best.assign(kk, {unborn, false, prompts[p]});
  }
  for (int64_t made = 1; made <= c.max_new_tokens; ++made) {
    const bool last = made == c.max_new_tokens;
    const auto norm = static_cast<float>(std::pow(static_cast<double>(made), c.length_penalty));
    const float* logits = model.step(feed.tokens, feed.origins);
    feed.begin();
    bool open = false;
    for (size_t p = 0; p < all.size(); ++p) {
      auto& [scores, finished, done] = all[p];
      const int64_t first = static_cast<int64_t>(p) * k;
      if (done) {
        for (int64_t j = 0; j < k; ++j) feed.set(first + j, c.pad_token_id, first + j);
        continue;
      }
      best.begin(2 * k);   // as many again as there are beams, since each may end
      for (int64_t j = 0; j < k; ++j)
        best.offer(rules.log_probs(logits + (first + j) * vocab, history.row(first + j), history.length), vocab, scores[static_cast<size_t>(j)], j);
      const auto& found = best.list();
      const auto ends = [&](size_t i) { return last || found[i].token == c.eos_token_id; };

      // Only an end among the first k counts; the others are there so that k beams can go on. Of equal scores a finished one goes first.
      const auto merged_score = [&](size_t i) {
        if (i < kk) return std::pair{finished[i].score, finished[i].finished};
        i -= kk;
        const bool counts = ends(i) && i < kk;
        return std::pair{found[i].score / norm + (counts ? 0.0F : unborn), counts};
      };
      std::vector<Hypothesis> next;
      for (const auto i : best_first(merged_score, kk + found.size(), k)) {
        const auto [score, counts] = merged_score(i);
        if (i < kk) next.push_back(std::move(finished[i]));
        else next.push_back({score, counts, extended(history, first + found[i - kk].beam, found[i - kk].token)});
      }
      finished = std::move(next);

      const auto running_score = [&](size_t i) { return found[i].score + (ends(i) ? unborn : 0.0F); };
      const auto running = best_first(running_score, found.size(), k);
      for (size_t j = 0; j < kk; ++j) {
        scores[j] = running_score(running[j]);
        feed.set(first + static_cast<int64_t>(j), found[running[j]].token, first + found[running[j]].beam);
      }

      // Can a running beam still become better than the worst finished one?
      const auto full = [](const Hypothesis& h) { return h.finished; };
      const double length = static_cast<double>(never && c.length_penalty > 0 ? c.max_new_tokens : made);
      const float hope = scores[0] / static_cast<float>(std::pow(length, c.length_penalty));
      const bool taken = std::any_of(finished.begin(), finished.end(), full), whole = std::all_of(finished.begin(), finished.end(), full);
      const bool improvable = (taken && hope > finished.back().score) || (!whole && hope > unborn);
      done = !improvable || (early && whole);
      open = open || !done;
    }
    if (!open) break;
    feed.end();
    history.append(feed.tokens, feed.origins);
  }
  // transformers fills up with eos where the padding id is 0, since it reads that as "none".
  const int64_t fill = c.pad_token_id == 0 && c.eos_token_id >= 0 ? c.eos_token_id : c.pad_token_id;
  size_t longest = 0;
  const auto returned = static_cast<size_t>(c.num_return_sequences);
  for (const auto& beams : all)
    for (size_t i = 0; i < returned; ++i) longest = std::max(longest, beams.best[i].ids.size());
  Results out(prompts.size());
  for (size_t p = 0; p < all.size(); ++p)
    for (size_t i = 0; i < returned; ++i) {
      auto& h = all[p].best[i];
      h.ids.resize(longest, fill);
      out[p].push_back({std::move(h.ids), double{h.score}});
    }
  return out;
}

/// The finished beams of one group.
struct Group {
  struct Hypothesis {
    double score;
    std::vector<int64_t> ids;   ///< without eos
  };
  std::vector<Hypothesis> list;
  double worst = 1e9;
  bool done = false;

  void add(std::vector<int64_t> ids, double sum, int64_t length, const SearchConfig& c, size_t size) {
    const double score = sum / std::pow(static_cast<double>(length), c.length_penalty);
    if (list.size() >= size && !(score > worst)) return;
    list.push_back({score, std::move(ids)});
    const auto less = [](const auto& a, const auto& b) { return a.score < b.score; };
    if (list.size() > size) list.erase(std::min_element(list.begin(), list.end(), less));
    worst = std::min_element(list.begin(), list.end(), less)->score;
  }
  bool finished(double best_sum, int64_t made, const SearchConfig& c, size_t size) const {
    if (list.size() < size) return false;
    if (c.early_stopping == "true") return true;
    const int64_t length = c.early_stopping == "never" && c.length_penalty > 0 ? c.max_new_tokens : made;
    return worst >= best_sum / std::pow(static_cast<double>(length), c.length_penalty);
  }
};

Results diverse(NextToken& model, const Prompts& prompts, const SearchConfig& c) {
  const int64_t vocab = model.vocab(), k = c.num_beams, groups = c.num_beam_groups, size = k / groups;
  History history(prompts, k, c.max_new_tokens);
  const auto prompt_length = static_cast<size_t>(history.length);
  Rules rules(c, vocab, history.length);
  Feed feed(prompts, k);
  Best best;
  std::vector<Group> all(prompts.size() * static_cast<size_t>(groups));
  std::vector<float> scores(prompts.size() * static_cast<size_t>(k), unborn);
  for (size_t i = 0; i < scores.size(); i += static_cast<size_t>(size)) scores[i] = 0;
  for (int64_t made = 1; made <= c.max_new_tokens; ++made) {
    const float* logits = model.step(feed.tokens, feed.origins);
    feed.begin();
    bool open = false;
    for (size_t g = 0; g < all.size(); ++g) {   // group after group of each prompt: the later ones see what the earlier ones took
      auto& group = all[g];
      const int64_t first = static_cast<int64_t>(g) * size, prompt_first = first / k * k;
      if (group.done) {
        for (int64_t j = 0; j < size; ++j) feed.set(first + j, c.pad_token_id, first + j);   // which counts as taken, as in transformers
        continue;
      }
      best.begin(2 * size);
      for (int64_t j = 0; j < size; ++j)
        best.offer(rules.log_probs(logits + (first + j) * vocab, history.row(first + j), history.length, feed.tokens.data() + prompt_first,
            first - prompt_first),
                   vocab, scores[static_cast<size_t>(first + j)], j);
      const auto& found = best.list();
      int64_t running = 0;
      for (size_t i = 0; i < found.size() && running < size; ++i) {
        const int64_t row = first + found[i].beam;
        if (found[i].token == c.eos_token_id) {
          if (i < static_cast<size_t>(size)) group.add({history.row(row), history.row(row) + history.length}, double{found[i].score}, made, c,
              static_cast<size_t>(size));
          continue;
        }
        scores[static_cast<size_t>(first + running)] = found[i].score;
        feed.set(first + running++, found[i].token, row);
      }
      group.done = group.finished(double{found[0].score}, made, c, static_cast<size_t>(size));
      open = open || !group.done;
    }
    feed.end();
    history.append(feed.tokens, feed.origins);
    if (!open) break;
  }
  for (size_t g = 0; g < all.size(); ++g)
    if (!all[g].done)
      for (int64_t j = 0; j < size; ++j) {
        const int64_t row = static_cast<int64_t>(g) * size + j;
        all[g].add({history.row(row), history.row(row) + history.length}, double{scores[static_cast<size_t>(row)]},
                   history.length - static_cast<int64_t>(prompt_length), c, static_cast<size_t>(size));
      }
  Results out(prompts.size());
  size_t longest = 0;
  for (size_t p = 0; p < out.size(); ++p) {
    std::vector<Group::Hypothesis> list;
    for (size_t g = 0; g < static_cast<size_t>(groups); ++g)
      for (auto& h : all[p * static_cast<size_t>(groups) + g].list) list.push_back(std::move(h));
    for (const auto i : best_first([&](size_t j) { return list[j].score; }, list.size(), c.num_return_sequences)) {
      longest = std::max(longest, list[i].ids.size() + 1);
      out[p].push_back({std::move(list[i].ids), double{static_cast<float>(list[i].score)}});
    }
  }
  longest = std::min(longest, prompt_length + static_cast<size_t>(c.max_new_tokens));
  for (auto& list : out)
    for (auto& text : list) {
      if (text.ids.size() < longest) text.ids.push_back(c.eos_token_id);
      text.ids.resize(longest, c.pad_token_id);
    }
  return out;
}

/// Throws ConfigError for an id of the settings that the model has no score for.
void check_ids(const SearchConfig& c, int64_t vocab) {
  for (const auto& [name, id] : {std::pair{"eos_token_id", c.eos_token_id}, {"pad_token_id", c.pad_token_id}, {"forced_bos_token_id",
      c.forced_bos_token_id}, {"forced_eos_token_id", c.forced_eos_token_id}})
    require<ConfigError>(id < vocab, name, " is ", id, ", but the model has ", vocab, " tokens; give an id below that");
}

}  // namespace

void check(const SearchConfig& c) {
  const auto at_least = [](const char* name, int64_t value, int64_t least) {
    require<ConfigError>(value >= least, name, " is ", value, "; give ", least, " or more");
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
  require<ConfigError>(c.min_new_tokens <= c.max_new_tokens, "min_new_tokens is ", c.min_new_tokens, ", but max_new_tokens is ", c.max_new_tokens,
      "; lower the one or raise the other");
  require<ConfigError>(c.max_new_tokens <= 1 << 20 && c.num_beams <= 4096 && c.num_return_sequences <= 1 << 16, "max_new_tokens ", c.max_new_tokens, ", num_beams ", c.num_beams, " and num_return_sequences ", c.num_return_sequences,
                       " must be at most 1048576, 4096 and 65536; lower them");
  require<ConfigError>(c.early_stopping == "true" || c.early_stopping == "false" || c.early_stopping == "never", "early_stopping is '",
      c.early_stopping, "'; choose true, false or never");
  require<ConfigError>(std::isfinite(c.length_penalty), "length_penalty is ", c.length_penalty, "; give a finite number");
  require<ConfigError>(c.repetition_penalty > 0 && std::isfinite(c.repetition_penalty), "repetition_penalty is ", c.repetition_penalty,
      "; give a number above 0 (1 changes nothing)");
  require<ConfigError>(c.top_p >= 0 && c.top_p <= 1, "top_p is ", c.top_p, "; give a number from 0 to 1 (1 keeps everything)");
  require<ConfigError>(c.typical_p > 0 && c.typical_p <= 1, "typical_p is ", c.typical_p, "; give a number above 0 and up to 1 (1 keeps everything)");
  require<ConfigError>(c.num_beams % c.num_beam_groups == 0, "num_beams is ", c.num_beams, ", which ", c.num_beam_groups,
      " groups cannot share; make num_beams a multiple of num_beam_groups");
  require<ConfigError>(c.diversity_penalty >= 0 && std::isfinite(c.diversity_penalty), "diversity_penalty is ", c.diversity_penalty, "; give 0 or more");
  if (c.num_beam_groups > 1) require<ConfigError>(c.diversity_penalty > 0, "num_beam_groups is ", c.num_beam_groups,
      " and diversity_penalty 0, so that all groups would find the same; set diversity_penalty");
  else require<ConfigError>(c.diversity_penalty == 0, "diversity_penalty is ", c.diversity_penalty, ", but there is one group of beams; set num_beam_groups");
  if (c.do_sample) {
    require<ConfigError>(c.num_beams == 1, "do_sample does not go with num_beams ", c.num_beams, "; set num_beams to 1, or do_sample to false");
    require<ConfigError>(c.temperature > 0 && std::isfinite(c.temperature), "temperature is ", c.temperature,
        "; give a number above 0, or set do_sample to false for the likeliest token");
  } else if (c.num_beams == 1) {
    require<ConfigError>(c.num_return_sequences == 1, "num_return_sequences is ", c.num_return_sequences,
        ", but greedy search finds one; set do_sample, or num_beams to ", c.num_return_sequences);
  } else {
    require<ConfigError>(c.num_return_sequences <= c.num_beams, "num_return_sequences is ", c.num_return_sequences, ", but num_beams ", c.num_beams,
        "; raise num_beams or lower num_return_sequences");
  }
}

int64_t rows_of_prompt(const SearchConfig& config) { return config.do_sample ? config.num_return_sequences : config.num_beams; }

std::vector<std::vector<Generated>> search(NextToken& model, const std::vector<std::vector<int64_t>>& prompts, const SearchConfig& config,
                                           const std::function<void(int64_t)>& emit, const std::vector<uint64_t>& numbers) {
  check(config);
  check_ids(config, model.vocab());
  if (prompts.empty()) return {};
  for (size_t i = 0; i < prompts.size(); ++i) {
    require<DataError>(!prompts[i].empty(), "prompt ", i, " is empty; begin it with a start token");
    require<ShapeError>(prompts[i].size() == prompts[0].size(), "prompt ", i, " has ", prompts[i].size(), " tokens, the first ", prompts[0].size(),
        "; search prompts of one length together");
  }
  require<ShapeError>(numbers.empty() || numbers.size() == prompts.size(), numbers.size(), " numbers for ", prompts.size(), " prompts; give one for each");
  if (config.num_beams == 1) return follow(model, prompts, config, emit, numbers);
  require<ConfigError>(model.vocab() > 1, "num_beams is ", config.num_beams, ", but the model has one token; set num_beams to 1");
  return config.num_beam_groups > 1 ? diverse(model, prompts, config) : beam(model, prompts, config);
}

std::vector<std::pair<int64_t, double>> distribution(const float* logits, int64_t vocab, const std::vector<int64_t>& ids, int64_t prompt,
    const SearchConfig& config) {
  check(config);
  check_ids(config, vocab);
  Rules rules(config, vocab, prompt);
  Sampler sampler(config, vocab);
  const auto& kept = sampler.keep(rules.logits(logits, ids.data(), static_cast<int64_t>(ids.size())));
  std::vector<std::pair<int64_t, double>> out;
  for (const auto& k : kept) out.emplace_back(k.id, double{k.weight} / sampler.total());
  return out;
}

}  // namespace cloze
