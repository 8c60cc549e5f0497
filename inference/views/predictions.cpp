#include "inference/views/predictions.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cloze {

namespace {

/// A range of whole numbers, by which tokens are grouped.
struct Range {
  int64_t low = 0, high = 0;
  auto operator<=>(const Range&) const = default;
};

/// The range that holds `value` among 0, 1, and those that begin at powers of `base`.
Range range_of(int64_t value, int64_t base) {
  if (value < 2) return {value, value};
  int64_t low = 2;
  for (int64_t high = base; high <= value; high *= base) low = high;
  int64_t high = base;
  while (high <= value) high *= base;
  return {low, high - 1};
}

std::string name_of_range(const Range& range) {
  return range.low == range.high ? concat(range.low) : concat(range.low, " to ", range.high);
}

template <class Key>
std::vector<TokenGroup> grouped(const std::vector<SeenToken>& tokens, const Key& range_of_token) {
  std::map<Range, TokenGroup> groups;
  for (const auto& token : tokens) {
    auto& group = groups[range_of_token(token)];
    ++group.count;
    group.loss += token.loss;
    group.accuracy += token.right;
  }
  std::vector<TokenGroup> token_groups;
  for (auto& [range, group] : groups) {
    group.name = name_of_range(range);
    group.loss /= static_cast<double>(group.count);
    group.accuracy /= static_cast<double>(group.count);
    token_groups.push_back(std::move(group));
  }
  return token_groups;
}

}  // namespace

std::vector<SeenToken> predict_tokens(const LoadedRun& run, std::span<const std::string> texts,
                                      ScoringOptions options) {
  options.ranks = true;
  std::vector<Passage> passages;
  for (const auto& text : texts) passages.push_back({.left = {}, .scored = text, .right = {}});
  std::vector<SeenToken> tokens;
  for (const auto& score : Scorer(run, options).score(passages))
    for (size_t i = 0; i < score.tokens.size(); ++i) {
      const auto& token = score.tokens[i];
      tokens.push_back({.id = token.id,
                        .position = static_cast<int64_t>(i),
                        .loss = -token.log_probability,
                        .confidence = std::exp(token.best),
                        .right = token.rank == 1});
    }
  return tokens;
}

std::vector<TextLosses> losses_of_texts(const Tokenizer& tokenizer, const std::vector<SeenToken>& tokens, size_t most) {
  std::vector<TextLosses> texts;
  for (const auto& token : tokens) {
    if (token.position == 0) {
      if (texts.size() == most) break;
      texts.emplace_back();
    }
    texts.back().pieces.push_back(tokenizer.readable_piece(token.id));
    texts.back().losses.push_back(token.loss);
  }
  return texts;
}

std::vector<TokenGroup> by_position(const std::vector<SeenToken>& tokens) {
  return grouped(tokens, [](const SeenToken& token) { return range_of(token.position, 2); });
}

std::vector<TokenGroup> by_frequency(const std::vector<SeenToken>& tokens, std::span<const uint64_t> counts) {
  std::map<int64_t, int64_t> occurrences;
  for (const auto& token : tokens) {
    const auto id = static_cast<size_t>(token.id);
    if (counts.empty())
      ++occurrences[token.id];
    else
      occurrences[token.id] = id < counts.size() ? static_cast<int64_t>(counts[id]) : 0;
  }
  return grouped(tokens, [&](const SeenToken& token) { return range_of(occurrences[token.id], 10); });
}

Calibration calibration_of(const std::vector<SeenToken>& tokens, int64_t bins) {
  std::vector<CalibrationBin> all(static_cast<size_t>(bins));
  const auto width = 1 / static_cast<double>(bins);
  for (const auto& token : tokens) {
    const auto place = std::ceil(token.confidence * static_cast<double>(bins)) - 1;
    auto& bin = all[static_cast<size_t>(std::clamp<double>(place, 0, static_cast<double>(bins - 1)))];
    ++bin.count;
    bin.confidence += token.confidence;
    bin.accuracy += token.right;
  }
  Calibration calibration{.bins = {}, .count = static_cast<int64_t>(tokens.size())};
  for (size_t i = 0; i < all.size(); ++i) {
    auto& bin = all[i];
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    bin.low = static_cast<double>(i) * width;
    bin.high = bin.low + width;
    bin.confidence /= count;
    bin.accuracy /= count;
    calibration.error += count / static_cast<double>(tokens.size()) * std::abs(bin.accuracy - bin.confidence);
    calibration.bins.push_back(bin);
  }
  return calibration;
}

}  // namespace cloze
