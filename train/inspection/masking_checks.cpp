#include "train/inspection/masking_checks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "objectives/masking_config.h"

namespace cloze {

using nlohmann::json;

MaskingCounts& operator+=(MaskingCounts& all, const MaskingCounts& c) {
  all.sequences += c.sequences;
  all.tokens += c.tokens;
  all.candidates += c.candidates;
  all.predicted += c.predicted;
  all.special_predicted += c.special_predicted;
  all.unknown += c.unknown;
  all.empty += c.empty;
  all.masked += c.masked;
  all.random += c.random;
  all.kept += c.kept;
  all.wanted += c.wanted;
  return all;
}

json masking_facts(const MaskingCounts& c) {
  return {{"sequences", c.sequences},
          {"tokens", c.tokens},
          {"special_tokens_predicted", c.special_predicted},
          {"sequences_without_prediction", c.empty},
          {"predicted_share", fraction(c.predicted, c.tokens)},
          {"predicted_share_of_candidates", fraction(c.predicted, c.candidates)}};
}

json mask_split_of(const MaskingCounts& c) {
  const int64_t draws = c.masked + c.random + c.kept;
  return {
      {"mask", fraction(c.masked, draws)}, {"random", fraction(c.random, draws)}, {"keep", fraction(c.kept, draws)}};
}

namespace {

/// Probabilities [n], P(0) = 0, proportional to the weights of 1, 2, ...
std::vector<double> normalised(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> p{0};
  for (const double weight : weights) p.push_back(weight / sum);
  return p;
}

/// The numbers of predictions that the rules allow in a row.
struct CountBounds {
  int64_t min = 0, max = 0;
};

CountBounds bounds_of(CountRule count, double wanted) {
  const auto down = static_cast<int64_t>(wanted);
  const int64_t up = std::llround(std::ceil(wanted - 1e-9));
  const auto rounded = std::max<int64_t>(1, std::llrint(wanted));
  switch (count) {
    case CountRule::rounded:
      return {rounded, rounded};
    case CountRule::ceil:
      return {up, up};
    case CountRule::stochastic:
      return {down, down + 1};
    case CountRule::bernoulli:
      break;
  }
  return {};
}

/// A unit that would exceed the number of predictions is skipped, so that fewer are allowed; but not none, since one
/// that is longer than all of them is cut.
bool skips_units(MaskingUnit unit) {
  switch (unit) {
    case MaskingUnit::word:
    case MaskingUnit::ngram:
      return true;
    case MaskingUnit::token:
    case MaskingUnit::span:
    case MaskingUnit::token_span:
      return false;
  }
  return false;
}

/// The tokens of a row that may be chosen.
struct Candidates {
  int64_t length = 0, tokens = 0;
  double squares = 0;  ///< of the numbers of tokens in each word
};

/// Every candidate independently.
void expect_bernoulli(MaskingCounts& c, const Masking& m, const Candidates& row) {
  const double p = m.mlm_probability, tokens = static_cast<double>(row.tokens);
  c.expected += p * tokens;
  c.variance += p * (1 - p) * (m.unit == MaskingUnit::word ? row.squares : tokens);
}

/// Rounded up with the probability of the fraction.
void expect_stochastic(MaskingCounts& c, double wanted, int64_t candidates) {
  const bool all = wanted >= static_cast<double>(candidates);
  const double over = wanted - std::floor(wanted);
  c.expected += all ? static_cast<double>(candidates) : wanted;
  c.variance += all ? 0 : over * (1 - over);
}

double wanted_rate(const Masking& m, const Candidates& row) {
  return m.mlm_probability * static_cast<double>(m.count_special ? row.length : row.tokens);
}

/// The numbers of tokens that a row may want, whatever its units allow.
CountBounds wanted_in(const Masking& m, const Candidates& row) {
  auto [min, max] = bounds_of(m.count, wanted_rate(m, row));
  if (m.mlm_probability == 0) min = max = 0;
  if (m.max_predictions_per_seq > 0) {
    min = std::min(min, m.max_predictions_per_seq);
    max = std::min(max, m.max_predictions_per_seq);
  }
  return {std::min(min, row.tokens), std::min(max, row.tokens)};
}

/// Checks the number of predictions of one row against the rule.
void check_count(MaskingCounts& c, const Masking& m, const Candidates& row, int64_t predicted) {
  if (m.count == CountRule::bernoulli) return expect_bernoulli(c, m, row);
  if (m.count == CountRule::stochastic) expect_stochastic(c, wanted_rate(m, row), row.tokens);
  auto [min, max] = wanted_in(m, row);
  c.wanted += std::clamp(wanted_rate(m, row), static_cast<double>(min), static_cast<double>(max));
  if (skips_units(m.unit)) min = std::min<int64_t>(min, 1);
  c.wrong_counts += predicted < min || predicted > max;
}

/// The words of a row, counted token by token.
struct CountedWords {
  int64_t chosen = 0;                     ///< words with a predicted token
  double squares = 0;                     ///< of the numbers of candidates in each word
  std::vector<int64_t> split_lengths{};   ///< of words that are predicted in part
  int64_t candidates = 0, predicted = 0;  ///< tokens of the current word

  void end_word() {
    chosen += predicted > 0;
    if (predicted > 0 && predicted < candidates) split_lengths.push_back(candidates);
    squares += static_cast<double>(candidates * candidates);
    candidates = predicted = 0;
  }
};

/// A run of predicted tokens.
struct PredictedRun {
  int64_t tokens = 0, words = 0;  ///< words: that begin in it

  void end(LengthCounts& lengths) {
    if (tokens == 0) return;
    add_to_bin(lengths.runs, tokens);
    add_to_bin(lengths.words, std::max<int64_t>(words, 1));
    tokens = words = 0;
  }
};

/// The tokens of a row before any of them was replaced.
std::vector<int64_t> original_ids(const MaskedRow& row) {
  auto original = row.ids;
  for (size_t i = 0; i < original.size(); ++i)
    if (row.labels[i] != -100) original[i] = row.labels[i];
  return original;
}

/// Words that are predicted in part although they are no longer than the predictions of the row.
int64_t wrongly_split(const Masking& m, const Candidates& row, const std::vector<int64_t>& split_lengths) {
  const auto wanted = m.count == CountRule::bernoulli || !skips_units(m.unit) ? row.tokens : wanted_in(m, row).min;
  return std::count_if(split_lengths.begin(), split_lengths.end(), [&](int64_t n) { return n <= wanted; });
}

/// Checks what a row has of units and lengths against the rule.
void check_units(MaskingCounts& c, const Masking& m, const Candidates& row, const CountedWords& words,
                 const std::vector<int64_t>& drawn) {
  const bool spans = m.unit == MaskingUnit::span;
  if (is_of_words(m.unit))
    c.split_words +=
        std::max<int64_t>(0, wrongly_split(m, row, words.split_lengths) - spans);  // the budget cuts the last
  if (spans || m.unit == MaskingUnit::ngram)
    c.more_than_drawn += words.chosen > std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
}

/// Tests how many tokens are predicted.
template <class Name>
void test_counts(const Masking& m, const MaskingCounts& c, const Name& name, Inspection& inspection) {
  const bool drawn_tokens =
      m.count == CountRule::bernoulli || (m.count == CountRule::stochastic && m.max_predictions_per_seq == 0 &&
                                          m.unit != MaskingUnit::word && m.unit != MaskingUnit::ngram);
  if (drawn_tokens)
    inspection.checks.push_back(
        sum_check(name("predicted tokens"), static_cast<double>(c.predicted), c.expected, c.variance));
  if (m.count == CountRule::bernoulli) return;
  inspection.checks.push_back(strict_check(name(wrong_number_of_predictions), c.wrong_counts));
  inspection.checks.push_back(
      enough_check(name("predicted tokens of those wanted"), static_cast<double>(c.predicted), c.wanted));
}

/// Tests what stands in the place of predicted tokens. A random token may equal the original one, or [MASK]. Drawn by
/// unigram frequency, it equals the original one with unknown probability.
template <class Name>
void test_replacements(const Masking& m, const MaskingCounts& c, int64_t vocabulary_size, const Name& name,
                       Inspection& inspection) {
  const double draws = static_cast<double>(c.masked + c.random + c.kept);
  const auto vocabulary = static_cast<double>(vocabulary_size);
  const double random_is_mask = m.random_from == RandomFrom::vocabulary ? m.random_prob / vocabulary : 0,
               random_is_original = m.random_prob / vocabulary;
  if (draws > 0 && m.random_from == RandomFrom::unigram)
    inspection.checks.push_back(sum_check(name("draws of [MASK]"), static_cast<double>(c.masked), m.mask_prob * draws,
                                          m.mask_prob * (1 - m.mask_prob) * draws));
  else if (draws > 0)
    inspection.checks.push_back(fit_check(
        name("split into mask, random, keep (chi-square)"),
        {static_cast<double>(c.masked), static_cast<double>(c.random), static_cast<double>(c.kept)},
        {(m.mask_prob + random_is_mask) * draws, (m.random_prob - random_is_mask - random_is_original) * draws,
         (1 - m.mask_prob - m.random_prob + random_is_original) * draws}));
}

}  // namespace

std::vector<double> ngram_lengths(int64_t max) {
  std::vector<double> weights;
  for (int64_t n = 1; n <= max; ++n) weights.push_back(1 / static_cast<double>(n));
  return normalised(weights);
}

int64_t count_row(MaskingCounts& c, LengthCounts& lengths, const MaskedRow& row, const Masking* m,
                  const TokenProperties& vocabulary) {
  ++c.sequences;
  const auto length = static_cast<int64_t>(row.ids.size());
  c.tokens += length;
  int64_t candidates = 0, predicted = 0;
  PredictedRun run;
  CountedWords words;
  const auto original = original_ids(row);
  for (size_t i = 0; i < row.ids.size(); ++i) {
    const int64_t text = original[i];
    const bool unknown = text == vocabulary.special.unk,
               special = vocabulary.is_special[static_cast<size_t>(text)] != 0,
               candidate = !special || (m && m->mask_special) || (row.masks_unknown && unknown),
               starts = vocabulary.words.begins(original, i);
    if (starts || special) words.end_word();
    candidates += candidate;
    words.candidates += candidate;
    c.unknown += unknown;
    if (row.labels[i] == -100) {
      run.end(lengths);
      continue;
    }
    ++predicted;
    ++words.predicted;
    c.special_predicted += special;
    // One draw per token, word or run, by draw_per.
    const bool draw =
        !m || m->draw_per == DrawPer::token || run.tokens == 0 || (m->draw_per == DrawPer::word && starts);
    if (draw && row.ids[i] >= 0)
      ++(row.ids[i] == vocabulary.special.mask ? c.masked : row.ids[i] == text ? c.kept : c.random);
    ++run.tokens;
    run.words += starts;
  }
  run.end(lengths);
  words.end_word();
  c.candidates += candidates;
  c.predicted += predicted;
  c.empty += predicted == 0;
  for (const auto n : row.lengths) add_to_bin(lengths.drawn, n);
  if (!m) return predicted;
  const Candidates of_row{length, candidates, words.squares};
  check_count(c, *m, of_row, predicted);
  check_units(c, *m, of_row, words, row.lengths);
  return predicted;
}

void test_masking(const Masking& m, const MaskingCounts& c, LengthCounts& lengths, const TokenProperties& words,
                  Inspection& inspection) {
  const auto name = [&](const char* rule) { return lengths.name.empty() ? rule : lengths.name + ": " + rule; };
  test_counts(m, c, name, inspection);
  test_replacements(m, c, words.size, name, inspection);
  if (!m.mask_special) inspection.checks.push_back(strict_check(name("predicted special tokens"), c.special_predicted));
  if (is_of_words(m.unit)) inspection.checks.push_back(strict_check(name("partly predicted words"), c.split_words));
  const auto fit = [&](const char* rule) {
    fit_lengths(lengths, normalised(length_weights(m)), name(rule), inspection);
  };
  switch (m.unit) {
    case MaskingUnit::token:
    case MaskingUnit::word:
      return;
    case MaskingUnit::token_span:
      lengths.unit = "tokens";
      return fit("drawn span lengths in tokens (chi-square)");
    case MaskingUnit::span:
      fit("drawn span lengths in words (chi-square)");
      break;
    case MaskingUnit::ngram:
      fit("drawn n-gram lengths in words (chi-square)");
      break;
  }
  inspection.checks.push_back(strict_check(name("sequences with more words chosen than drawn"), c.more_than_drawn));
}

void fit_lengths(LengthCounts& lengths, std::vector<double> probabilities, const std::string& name,
                 Inspection& inspection) {
  const double all = std::accumulate(lengths.drawn.begin(), lengths.drawn.end(), 0.0);
  for (auto& n : probabilities) n *= all;
  lengths.expected = std::move(probabilities);
  inspection.checks.push_back(fit_check(name, lengths.drawn, lengths.expected));
}

}  // namespace cloze
