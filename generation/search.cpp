#include "generation/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/kernels/kernels.h"
#include "core/random.h"
#include "generation/search_rules.h"

namespace cloze {

namespace {

// The score of a beam that does not exist yet. Not -inf: sums with it round to it, and the order of such beams affects
// the result.
constexpr float no_score = -1e9F;

const kernels::Scores& score_kernels() { return kernels::table().scores; }

struct Candidate {
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
  const std::vector<Candidate>& list() const { return list_; }

 private:
  int64_t next(const float* scores, int64_t token, int64_t vocab, float base) const {
    return token < vocab ? score_kernels().next_above(scores, token, vocab, base, list_.back().score) : vocab;
  }
  void insert(const Candidate& c) {
    if (list_.size() == capacity_) list_.pop_back();
    list_.insert(
        std::upper_bound(list_.begin(), list_.end(), c, [](const auto& a, const auto& b) { return a.score > b.score; }),
        c);
  }
  size_t capacity_ = 0;
  std::vector<Candidate> list_;
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

using Prompts = std::vector<std::vector<int64_t>>;
using Results = std::vector<std::vector<GeneratedIds>>;

/// The last prompt token of every row.
std::vector<int64_t> last_tokens(const Prompts& prompts, int64_t per_prompt) {
  std::vector<int64_t> tokens;
  for (const auto& prompt : prompts) tokens.insert(tokens.end(), static_cast<size_t>(per_prompt), prompt.back());
  return tokens;
}

Results greedy_or_sample(NextTokenModel& model, const Prompts& prompts, const SearchConfig& c,
                         const std::function<void(int64_t)>& emit, const std::vector<uint64_t>& numbers) {
  const int64_t vocab = model.vocab(), per_prompt = rows_of_prompt(c);
  History history(prompts, per_prompt, c.max_new_tokens);
  ScoreRules rules(c, vocab, history.length);
  TokenSampler sampler(c, vocab);
  const Rng rng(c.seed);
  auto tokens = last_tokens(prompts, per_prompt);
  std::vector<char> ended(tokens.size());
  std::vector<double> scores(tokens.size());
  for (int64_t position = 0; position < c.max_new_tokens && std::count(ended.begin(), ended.end(), 0) > 0; ++position) {
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
        auto stream = rng.stream("sample", numbers.empty() ? prompt : numbers[prompt],
                                 sequence << 32 | static_cast<uint64_t>(position));
        const auto& chosen = sampler.draw(stream.uniform());
        tokens[r] = chosen.id;
        scores[r] += std::log(double{chosen.weight} / sampler.total());
      } else {
        const auto [max, log] = score_kernels().log_sum(vocab, x);
        require(!std::isnan(log), ScoreRules::not_finite);
        const bool any = max != ScoreRules::lowest;  // all tokens forbidden: token 0, as transformers' argmax
        tokens[r] = any ? std::find(x, x + vocab, max) - x : 0;
        scores[r] += any ? -double{log} : double{ScoreRules::banned};
      }
      ended[r] = tokens[r] == c.eos_token_id;
    }
    history.append(tokens, {});
    if (emit && history.rows == 1) emit(tokens[0]);
  }
  Results out(prompts.size());
  for (int64_t row = 0; row < history.rows; ++row)
    out[static_cast<size_t>(row / per_prompt)].push_back(
        {{history.row(row), history.row(row) + history.length}, scores[static_cast<size_t>(row)]});
  return out;
}

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

/// The ids of `row`, followed by `token`.
std::vector<int64_t> extended(const History& history, int64_t row, int64_t token) {
  std::vector<int64_t> ids(history.row(row), history.row(row) + history.length);
  ids.push_back(token);
  return ids;
}

Results beam_search(NextTokenModel& model, const Prompts& prompts, const SearchConfig& c) {
  struct Hypothesis {
    float score = no_score;
    bool finished = false;
    std::vector<int64_t> ids;
  };
  struct Beams {
    std::vector<float> scores;     ///< of the running beams, best first
    std::vector<Hypothesis> best;  ///< finished beams, best first; unused entries have no_score
    bool done = false;
  };
  const int64_t vocab = model.vocab(), k = c.num_beams;
  const auto num_beams = static_cast<size_t>(k);
  const bool early = c.early_stopping == "true", never = c.early_stopping == "never";
  History history(prompts, k, c.max_new_tokens);
  const int64_t prompt_length = history.length;
  ScoreRules rules(c, vocab, prompt_length);
  Feed feed(prompts, k);
  TopCandidates best;
  std::vector<Beams> all(prompts.size());
  for (size_t p = 0; p < all.size(); ++p) {
    all[p].scores.assign(num_beams, no_score);  // all rows are equal at first: only one may continue
    all[p].scores[0] = 0;
    all[p].best.assign(num_beams, {no_score, false, prompts[p]});
  }
  for (int64_t generated = 1; generated <= c.max_new_tokens; ++generated) {
    const bool last = generated == c.max_new_tokens;
    const auto norm = static_cast<float>(std::pow(static_cast<double>(generated), c.length_penalty));
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
      best.begin(2 * k);  // twice the number of beams, since each may end
      for (int64_t j = 0; j < k; ++j)
        best.offer(rules.log_probs(logits + (first + j) * vocab, history.row(first + j), history.length), vocab,
                   scores[static_cast<size_t>(j)], j);
      const auto& found = best.list();
      const auto ends = [&](size_t i) { return last || found[i].token == c.eos_token_id; };

      // An end counts only among the first k candidates; the others are there so that k beams can continue. Ties go to
      // the finished beam.
      const auto merged_score = [&](size_t i) {
        if (i < num_beams) return std::pair{finished[i].score, finished[i].finished};
        i -= num_beams;
        const bool counts = ends(i) && i < num_beams;
        return std::pair{found[i].score / norm + (counts ? 0.0F : no_score), counts};
      };
      std::vector<Hypothesis> next;
      for (const auto i : best_first(merged_score, num_beams + found.size(), k)) {
        const auto [score, counts] = merged_score(i);
        if (i < num_beams)
          next.push_back(std::move(finished[i]));
        else
          next.push_back(
              {score, counts, extended(history, first + found[i - num_beams].beam, found[i - num_beams].token)});
      }
      finished = std::move(next);

      const auto running_score = [&](size_t i) { return found[i].score + (ends(i) ? no_score : 0.0F); };
      const auto running = best_first(running_score, found.size(), k);
      for (size_t j = 0; j < num_beams; ++j) {
        scores[j] = running_score(running[j]);
        feed.set(first + static_cast<int64_t>(j), found[running[j]].token, first + found[running[j]].beam);
      }

      // Can a running beam still score better than the worst finished one?
      const auto full = [](const Hypothesis& h) { return h.finished; };
      const double length = static_cast<double>(never && c.length_penalty > 0 ? c.max_new_tokens : generated);
      const float best_possible = scores[0] / static_cast<float>(std::pow(length, c.length_penalty));
      const bool any_finished = std::any_of(finished.begin(), finished.end(), full),
                 all_finished = std::all_of(finished.begin(), finished.end(), full);
      const bool improvable =
          (any_finished && best_possible > finished.back().score) || (!all_finished && best_possible > no_score);
      done = !improvable || (early && all_finished);
      open = open || !done;
    }
    if (!open) break;
    feed.end();
    history.append(feed.tokens, feed.origins);
  }
  // transformers pads with eos if the padding id is 0, since it takes 0 for "none".
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
    std::vector<int64_t> ids;  ///< without eos
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
  bool finished(double best_sum, int64_t generated, const SearchConfig& c, size_t size) const {
    if (list.size() < size) return false;
    if (c.early_stopping == "true") return true;
    const int64_t length = c.early_stopping == "never" && c.length_penalty > 0 ? c.max_new_tokens : generated;
    return worst >= best_sum / std::pow(static_cast<double>(length), c.length_penalty);
  }
};

Results diverse_beam_search(NextTokenModel& model, const Prompts& prompts, const SearchConfig& c) {
  const int64_t vocab = model.vocab(), k = c.num_beams, groups = c.num_beam_groups, size = k / groups;
  History history(prompts, k, c.max_new_tokens);
  const auto prompt_length = static_cast<size_t>(history.length);
  ScoreRules rules(c, vocab, history.length);
  Feed feed(prompts, k);
  TopCandidates best;
  std::vector<Group> all(prompts.size() * static_cast<size_t>(groups));
  std::vector<float> scores(prompts.size() * static_cast<size_t>(k), no_score);
  for (size_t i = 0; i < scores.size(); i += static_cast<size_t>(size)) scores[i] = 0;
  for (int64_t generated = 1; generated <= c.max_new_tokens; ++generated) {
    const float* logits = model.step(feed.tokens, feed.origins);
    feed.begin();
    bool open = false;
    for (size_t g = 0; g < all.size();
         ++g) {  // groups of a prompt in order: later ones are penalised for tokens of earlier ones
      auto& group = all[g];
      const int64_t first = static_cast<int64_t>(g) * size, prompt_first = first / k * k;
      if (group.done) {
        for (int64_t j = 0; j < size; ++j)
          feed.set(first + j, c.pad_token_id, first + j);  // which counts as chosen, as in transformers
        continue;
      }
      best.begin(2 * size);
      for (int64_t j = 0; j < size; ++j)
        best.offer(rules.log_probs(logits + (first + j) * vocab, history.row(first + j), history.length,
                                   feed.tokens.data() + prompt_first, first - prompt_first),
                   vocab, scores[static_cast<size_t>(first + j)], j);
      const auto& found = best.list();
      int64_t running = 0;
      for (size_t i = 0; i < found.size() && running < size; ++i) {
        const int64_t row = first + found[i].beam;
        if (found[i].token == c.eos_token_id) {
          if (i < static_cast<size_t>(size))
            group.add({history.row(row), history.row(row) + history.length}, double{found[i].score}, generated, c,
                      static_cast<size_t>(size));
          continue;
        }
        scores[static_cast<size_t>(first + running)] = found[i].score;
        feed.set(first + running++, found[i].token, row);
      }
      group.done = group.finished(double{found[0].score}, generated, c, static_cast<size_t>(size));
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

}  // namespace

int64_t rows_of_prompt(const SearchConfig& config) {
  return config.do_sample ? config.num_return_sequences : config.num_beams;
}

std::vector<std::vector<GeneratedIds>> search(NextTokenModel& model, const std::vector<std::vector<int64_t>>& prompts,
                                              const SearchConfig& config, const std::function<void(int64_t)>& emit,
                                              const std::vector<uint64_t>& numbers) {
  check(config);
  check_ids(config, model.vocab());
  if (prompts.empty()) return {};
  for (size_t i = 0; i < prompts.size(); ++i) {
    require<DataError>(!prompts[i].empty(), "prompt ", i, " is empty; begin it with a start token");
    require<ShapeError>(prompts[i].size() == prompts[0].size(), "prompt ", i, " has ", prompts[i].size(),
                        " tokens, the first ", prompts[0].size(), "; search prompts of one length together");
  }
  require<ShapeError>(numbers.empty() || numbers.size() == prompts.size(), numbers.size(), " numbers for ",
                      prompts.size(), " prompts; give one for each");
  if (config.num_beams == 1) return greedy_or_sample(model, prompts, config, emit, numbers);
  require<ConfigError>(model.vocab() > 1, "num_beams is ", config.num_beams,
                       ", but the model has one token; set num_beams to 1");
  return config.num_beam_groups > 1 ? diverse_beam_search(model, prompts, config) : beam_search(model, prompts, config);
}

std::vector<std::pair<int64_t, double>> distribution(const float* logits, int64_t vocab,
                                                     const std::vector<int64_t>& ids, int64_t prompt,
                                                     const SearchConfig& config) {
  check(config);
  check_ids(config, vocab);
  ScoreRules rules(config, vocab, prompt);
  TokenSampler sampler(config, vocab);
  const auto& kept = sampler.keep(rules.logits(logits, ids.data(), static_cast<int64_t>(ids.size())));
  std::vector<std::pair<int64_t, double>> out;
  for (const auto& k : kept) out.emplace_back(k.id, double{k.weight} / sampler.total());
  return out;
}

}  // namespace cloze
