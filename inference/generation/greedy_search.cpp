// Greedy search, and sampling.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/kernels/kernels.h"
#include "core/random.h"
#include "inference/generation/search_state.h"

namespace cloze {

namespace {

/// Chooses the next token of each row.
class NextTokens {
 public:
  NextTokens(const SearchConfig& config, int64_t vocab, int64_t prompt_length, const std::vector<uint64_t>& numbers)
      : config_(config),
        vocab_(vocab),
        per_prompt_(rows_of_prompt(config)),
        rules_(config, vocab, prompt_length),
        sampler_(config, vocab),
        rng_(config.seed),
        numbers_(numbers) {}
  /// The token of a row with these logits [vocab], `position` tokens after its prompt, and its log-probability.
  std::pair<int64_t, double> choose(const float* logits, const History& history, int64_t row, int64_t position) {
    float* scores = rules_.logits(logits, history.row(row), history.length);
    return config_.do_sample ? draw(scores, row, position) : best(scores);
  }

 private:
  std::pair<int64_t, double> draw(float* scores, int64_t row, int64_t position) {
    sampler_.keep(scores);
    const auto prompt = static_cast<uint64_t>(row / per_prompt_), sequence = static_cast<uint64_t>(row % per_prompt_);
    auto stream = rng_.stream("sample", numbers_.empty() ? prompt : numbers_[prompt],
                              sequence << 32 | static_cast<uint64_t>(position));
    const auto& chosen = sampler_.draw(stream.uniform());
    return {chosen.id, std::log(double{chosen.weight} / sampler_.total())};
  }
  std::pair<int64_t, double> best(const float* scores) const {
    const auto [max, log] = kernels::table().scores.log_sum(vocab_, scores);
    require(!std::isnan(log), ScoreRules::not_finite);
    if (max == ScoreRules::lowest) return {0, ScoreRules::banned};  // all forbidden: as transformers' argmax
    return {std::find(scores, scores + vocab_, max) - scores, -double{log}};
  }

  const SearchConfig& config_;
  int64_t vocab_, per_prompt_;
  ScoreRules rules_;
  TokenSampler sampler_;
  Rng rng_;
  const std::vector<uint64_t>& numbers_;
};

}  // namespace

Results greedy_or_sample(NextTokenModel& model, const Prompts& prompts, const SearchConfig& c,
                         const std::function<void(int64_t)>& emit, const std::vector<uint64_t>& numbers) {
  const int64_t vocab = model.vocab(), per_prompt = rows_of_prompt(c);
  History history(prompts, per_prompt, c.max_new_tokens);
  NextTokens next(c, vocab, history.length, numbers);
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
      const auto [token, score] = next.choose(logits + row * vocab, history, row, position);
      tokens[r] = token;
      scores[r] += score;
      ended[r] = token == c.eos_token_id;
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

}  // namespace cloze
