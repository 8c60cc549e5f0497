#include "objectives/denoising/noise.h"

#include <cmath>
#include <numeric>

#include "objectives/draws.h"

namespace cloze {

namespace {

/// Rounded up with a tolerance: 10 * 0.3 must not become 4.
int64_t ceil_fraction(int64_t n, double fraction) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(n) * fraction - 1e-9));
}

}  // namespace

void permute_sentences(std::vector<int64_t>& tokens, std::vector<uint8_t>& word_starts,
                       std::span<const int64_t> lengths, double fraction, Stream& stream) {
  require_one_per_token(tokens.size(), word_starts.size(), "word_starts");
  if (tokens.size() < 3 || lengths.size() < 2 || fraction <= 0) return;
  std::vector<size_t> first{1}, order(lengths.size());
  first.reserve(lengths.size() + 1);
  for (const int64_t length : lengths)
    first.push_back(first.back() + static_cast<size_t>(std::max<int64_t>(length, 0)));
  require<DataError>(first.back() < tokens.size(), "A text of ", tokens.size() - 2, " tokens got sentences of ",
                     first.back() - 1, " tokens in all; count sentences without <s> and </s>.");
  std::iota(order.begin(), order.end(), size_t{0});
  auto some = order;
  const auto k = std::min(some.size(), static_cast<size_t>(ceil_fraction(static_cast<int64_t>(some.size()), fraction)));
  partial_shuffle(some, k, stream);
  // `some` is in random order: its sentences go, in that order, to the chosen positions in ascending order.
  some.resize(k);
  auto positions = some;
  std::sort(positions.begin(), positions.end());
  for (size_t i = 0; i < k; ++i) order[positions[i]] = some[i];
  std::vector<int64_t> moved;
  std::vector<uint8_t> moved_starts;
  moved.reserve(first.back());
  moved_starts.reserve(first.back());
  const auto offset = [](size_t at) { return static_cast<std::ptrdiff_t>(at); };
  for (const size_t s : order) {
    moved.insert(moved.end(), tokens.begin() + offset(first[s]), tokens.begin() + offset(first[s + 1]));
    moved_starts.insert(moved_starts.end(), word_starts.begin() + offset(first[s]),
                        word_starts.begin() + offset(first[s + 1]));
  }
  std::copy(moved.begin(), moved.end(), tokens.begin() + 1);
  std::copy(moved_starts.begin(), moved_starts.end(), word_starts.begin() + 1);
}

namespace {

/// Span lengths in words that add up to `budget`: Poisson draws, the last one truncated. Zeros are only counted.
struct Spans {
  std::vector<int64_t> words{};
  int64_t empty = 0;
};

Spans poisson_spans(int64_t budget, double lambda, Stream& stream, std::vector<int64_t>* drawn) {
  require<ConfigError>(lambda >= 0.1 && lambda <= 100, "`poisson_lambda` is ", lambda,
                       "; give a mean length from 0.1 to 100 words.");
  // Cumulative probabilities of 0, 1, ... up to the first below 1e-7 after the mode, as there.
  std::vector<double> cumulative;
  double p = std::exp(-lambda), sum = 0;
  for (int64_t k = 0; k < 512; p *= lambda / static_cast<double>(++k)) {
    cumulative.push_back(sum += p);
    if (p < 1e-7 && static_cast<double>(k) > lambda) break;
  }
  Spans spans;
  for (int64_t left = budget; left > 0;) {
    const auto length =
        std::upper_bound(cumulative.begin(), cumulative.end(), stream.uniform() * sum) - cumulative.begin();
    const int64_t words = std::min<int64_t>({length, static_cast<int64_t>(cumulative.size()) - 1, left});
    if (drawn) drawn->push_back(length);
    left -= words;
    if (words == 0)
      ++spans.empty;
    else
      spans.words.push_back(words);
  }
  return spans;
}

Spans draw_spans(const BartNoise& rules, int64_t budget, Stream& stream, std::vector<int64_t>* drawn) {
  switch (rules.mask_length) {
    case MaskLength::subword:
    case MaskLength::word:
      return {.words = std::vector<int64_t>(static_cast<size_t>(budget), 1)};
    case MaskLength::span_poisson:
      return poisson_spans(budget, rules.poisson_lambda, stream, drawn);
  }
  return {};
}

/// What becomes of a token.
enum class WordEdit : uint8_t { kept, replaced, deleted };

/// Replaces or deletes `words_at[i]` words from each token i on. From right to left, so that of overlapping spans the
/// one that starts further left wins, as there. `starts_word` [n].
std::vector<WordEdit> mask_words(std::vector<int64_t>& tokens, const std::vector<uint8_t>& starts_word,
                                 const std::vector<int64_t>& words_at, const BartNoise& rules, const NoiseIds& ids,
                                 Stream& stream) {
  const size_t n = tokens.size();
  std::vector<WordEdit> edits(n, WordEdit::kept);
  for (size_t i = n - 2; i > 0; --i) {
    if (words_at[i] == 0) continue;
    const bool random = stream.bernoulli(rules.random_ratio);
    int64_t left = words_at[i];
    for (size_t j = i; j + 1 < n; ++j) {
      if (starts_word[j]) {
        if (left == 0) break;
        --left;
      }
      const bool is_deleted = rules.replace_length == 0 || (rules.replace_length == 1 && j != i);
      edits[j] = is_deleted ? WordEdit::deleted : WordEdit::replaced;
      if (!is_deleted) tokens[j] = random ? random_id(ids, stream) : ids.mask;
    }
  }
  return edits;
}

void remove_deleted(std::vector<int64_t>& tokens, const std::vector<WordEdit>& edits) {
  size_t length = 0;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (edits[i] != WordEdit::deleted) tokens[length++] = tokens[i];
  tokens.resize(length);
}

}  // namespace

void text_infilling(std::vector<int64_t>& tokens, std::span<const uint8_t> word_starts, const BartNoise& rules,
                    const NoiseIds& ids, Stream& stream, Infilled* infilled) {
  require<ConfigError>(rules.replace_length >= -1 && rules.replace_length <= 1, "`replace_length` is ",
                       rules.replace_length, "; give -1, 0 or 1.");
  require_vocabulary(ids);
  require_one_per_token(tokens.size(), word_starts.size(), "word_starts");
  const size_t n = tokens.size();
  if (n < 3) return;
  std::vector<uint8_t> starts_word(word_starts.begin(), word_starts.end());
  if (rules.mask_length == MaskLength::subword) std::fill(starts_word.begin(), starts_word.end(), uint8_t{1});
  std::vector<uint32_t> starts;
  starts.reserve(n);
  for (size_t i = 1; i + 1 < n; ++i)
    if (starts_word[i]) starts.push_back(static_cast<uint32_t>(i));
  const auto words = static_cast<int64_t>(starts.size());
  const int64_t budget = std::min(words, ceil_fraction(words, rules.mask_ratio));
  if (budget <= 0) return;
  const auto spans = draw_spans(rules, budget, stream, infilled ? &infilled->words : nullptr);
  partial_shuffle(starts, spans.words.size(), stream);
  std::vector<int64_t> words_at(n);
  for (size_t s = 0; s < spans.words.size(); ++s) words_at[starts[s]] = spans.words[s];
  const auto edits = mask_words(tokens, starts_word, words_at, rules, ids, stream);
  if (infilled) infilled->corrupted = static_cast<int64_t>(n) - std::count(edits.begin(), edits.end(), WordEdit::kept);
  remove_deleted(tokens, edits);
  insert_tokens(tokens, spans.empty, rules.random_ratio, ids, stream);
}

void insert_tokens(std::vector<int64_t>& tokens, int64_t count, double random_ratio, const NoiseIds& ids,
                   Stream& stream) {
  if (tokens.size() < 2 || count <= 0) return;
  require_vocabulary(ids);
  std::vector<uint8_t> added;
  mark_subset(added, static_cast<int64_t>(tokens.size()) - 2 + count, count, stream);
  std::vector<int64_t> out{tokens.front()};
  out.reserve(tokens.size() + static_cast<size_t>(count));
  auto random_left = static_cast<uint64_t>(std::min(count, ceil_fraction(count, random_ratio)));
  auto left = static_cast<uint64_t>(count);
  auto old = tokens.begin() + 1;
  for (const uint8_t is_new : added) {
    if (!is_new) {
      out.push_back(*old++);
      continue;
    }
    const bool random =
        random_left > 0 && stream.below(left) < random_left;  // every subset of the new tokens is equally likely
    out.push_back(random ? random_id(ids, stream) : ids.mask);
    random_left -= random;
    --left;
  }
  out.push_back(tokens.back());
  tokens.swap(out);
}

void rotate_document(std::vector<int64_t>& tokens, Stream& stream) {
  if (tokens.size() < 3) return;
  const auto offset = static_cast<std::ptrdiff_t>(1 + stream.below(tokens.size() - 1));
  std::rotate(tokens.begin() + 1, tokens.begin() + offset, tokens.end() - 1);
}

std::vector<int64_t> bart_noise(std::span<const int64_t> tokens, std::span<const uint8_t> word_starts,
                                std::span<const int64_t> sentence_lengths, const BartNoise& rules, const NoiseIds& ids,
                                Stream& stream, Infilled* infilled) {
  std::vector<int64_t> source(tokens.begin(), tokens.end());
  std::vector<uint8_t> starts(word_starts.begin(), word_starts.end());
  permute_sentences(source, starts, sentence_lengths, rules.permute_sentences, stream);
  text_infilling(source, starts, rules, ids, stream, infilled);
  insert_tokens(source, ceil_fraction(static_cast<int64_t>(source.size()), rules.insert_ratio), rules.random_ratio, ids,
                stream);
  if (stream.bernoulli(rules.rotate_prob)) rotate_document(source, stream);
  return source;
}

}  // namespace cloze
