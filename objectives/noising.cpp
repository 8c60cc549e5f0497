#include "objectives/noising.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "objectives/draws.h"

namespace cloze {

namespace {

/// Rounding with a tolerance: 10 * 0.3 must not be rounded up, nor 100 * 0.29 down.
int64_t ceil_share(int64_t n, double share) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(n) * share - 1e-9));
}
int64_t floor_share(int64_t n, double share) {
  return static_cast<int64_t>(std::floor(static_cast<double>(n) * share + 1e-9));
}

/// Marks a uniformly random subset of k of n elements with k draws. Source: Floyd in Bentley and Floyd 1987, "A sample
/// of brilliance".
void mark_subset(std::vector<uint8_t>& marks, int64_t n, int64_t k, Stream& stream) {
  marks.assign(static_cast<size_t>(n), 0);
  for (int64_t j = n - k; j < n; ++j) {
    const uint64_t at = stream.below(static_cast<uint64_t>(j) + 1);
    marks[marks[at] ? static_cast<size_t>(j) : at] = 1;
  }
}

int64_t random_id(const NoiseIds& ids, Stream& stream) {
  const int64_t first = std::min(ids.first_random, ids.vocabulary - 1);
  return first + static_cast<int64_t>(stream.below(static_cast<uint64_t>(ids.vocabulary - first)));
}

void same_length(size_t tokens, size_t flags, const char* name) {
  require<ShapeError>(tokens == flags, "A text of ", tokens, " tokens got ", flags, " entries of `", name,
                      "`; it needs one for each token.");
}

void check_ids(const NoiseIds& ids) {
  require<ConfigError>(ids.vocabulary > 0, "Random ids need a vocabulary, but NoiseIds::vocabulary is ", ids.vocabulary,
                       "; set it to the size of the vocabulary.");
}

SourceTarget with_text(std::span<const int64_t> tokens, int64_t eos) {
  SourceTarget out;
  out.source.reserve(tokens.size() + 1), out.target.reserve(tokens.size() + 1);
  out.target.assign(tokens.begin(), tokens.end());
  out.target.push_back(eos);
  return out;
}

}  // namespace

// ---- T5

NoiseCount noise_count(int64_t length, double density, double mean_length) {
  if (length < 2) return {0, 0};
  const int64_t noise =
      std::clamp<int64_t>(std::llrint(static_cast<double>(length) * density), 1, length - 1);  // half to even
  return {noise, std::clamp<int64_t>(std::llrint(static_cast<double>(noise) / mean_length), 1,
                                     std::min(noise, length - noise))};
}

std::vector<bool> random_spans(int64_t length, double density, double mean_length, Stream& stream) {
  std::vector<bool> mask(static_cast<size_t>(std::max<int64_t>(length, 0)));
  if (length < 2) return mask;
  const auto [noise, spans] = noise_count(length, density, mean_length);
  const int64_t kept = length - noise;
  // Marks are ends of runs: spans - 1 of the gaps between two tokens of a kind.
  std::vector<uint8_t> kept_ends, noise_ends;
  mark_subset(noise_ends, noise - 1, spans - 1, stream);
  mark_subset(kept_ends, kept - 1, spans - 1, stream);
  noise_ends.push_back(1), kept_ends.push_back(1);
  size_t at = 0, k = 0, n = 0;
  while (at < mask.size()) {
    for (bool end = false; !end; ++at) end = kept_ends[k++] != 0;
    for (bool end = false; !end; ++at) mask[at] = true, end = noise_ends[n++] != 0;
  }
  return mask;
}

std::vector<bool> iid_mask(int64_t length, double density, Stream& stream) {
  std::vector<bool> mask(static_cast<size_t>(std::max<int64_t>(length, 0)));
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = stream.bernoulli(density);
  return mask;
}

void limit_runs(std::vector<bool>& noise, size_t max_runs) {
  size_t runs[2] = {0, 0};  // of kept tokens, of noise
  for (size_t i = 0; i < noise.size(); ++i) {
    if (i > 0 && noise[i] == noise[i - 1]) continue;
    if (noise[i] && (runs[1] >= max_runs || runs[0] >= max_runs))
      noise[i] = false;  // the kept run after it would need one too
    if (i == 0 || noise[i] != noise[i - 1]) ++runs[noise[i] ? 1 : 0];
  }
}

namespace {

struct Lengths {
  int64_t tokens, inputs, targets;
};

Lengths lengths_of(int64_t tokens, double density, double mean_length) {
  const auto [noise, spans] = noise_count(tokens, density, mean_length);
  return {tokens, tokens - noise + spans + 1, noise + spans + 1};
}

Lengths longest_text(int64_t inputs_length, double density, double mean_length) {
  // At density 1 a source is never full, and the loop would not end.
  require<ConfigError>(density >= 0 && density < 1 && mean_length >= 1, "Span corruption got a noise density of ",
                       density, " and a mean span length of ", mean_length,
                       "; the density must be in [0, 1), the length at least 1.");
  auto found = lengths_of(std::max<int64_t>(inputs_length - 1, 0), density, mean_length);
  for (auto next = found; next.inputs <= inputs_length; next = lengths_of(next.tokens + 1, density, mean_length))
    found = next;
  // Both sides get the same round length.
  if (density == 0.5 && found.targets > found.inputs) --found.tokens, --found.targets;
  return found;
}

}  // namespace

int64_t raw_length(int64_t inputs_length, double density, double mean_length) {
  return longest_text(inputs_length, density, mean_length).tokens;
}
int64_t targets_length(int64_t inputs_length, double density, double mean_length) {
  return longest_text(inputs_length, density, mean_length).targets;
}

SourceTarget span_corruption(std::span<const int64_t> tokens, const std::vector<bool>& noise,
                             std::span<const int64_t> sentinels, int64_t eos) {
  same_length(tokens.size(), noise.size(), "noise");
  SourceTarget out;
  out.source.reserve(tokens.size() + 1), out.target.reserve(tokens.size() + 1);
  size_t used[2] = {0, 0};  // number of sentinels in the target, in the source
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_noise = noise[i];
    (is_noise ? out.target : out.source).push_back(tokens[i]);
    if (i > 0 && noise[i - 1] == is_noise) continue;
    const size_t k = used[is_noise]++;
    if (k >= sentinels.size()) {
      size_t runs = noise[0] == is_noise;
      for (size_t j = 1; j < noise.size(); ++j) runs += noise[j] == is_noise && noise[j - 1] != is_noise;
      fail<DataError>("A text of ", tokens.size(), " tokens has ", runs,
                      is_noise ? " noise spans" : " spans between noise", " but the vocabulary has ", sentinels.size(),
                      " sentinels (<extra_id_0>, ...); add sentinels to the tokenizer, shorten the sequences, lower "
                      "the noise density or lengthen the spans.");
    }
    (is_noise ? out.source : out.target).push_back(sentinels[k]);
  }
  out.source.push_back(eos), out.target.push_back(eos);
  return out;
}

SourceTarget drop_tokens(std::span<const int64_t> tokens, const std::vector<bool>& noise, int64_t eos) {
  same_length(tokens.size(), noise.size(), "noise");
  SourceTarget out;
  out.source.reserve(tokens.size() + 1);
  for (size_t i = 0; i < tokens.size(); ++i) (noise[i] ? out.target : out.source).push_back(tokens[i]);
  out.source.push_back(eos), out.target.push_back(eos);
  return out;
}

SourceTarget mass(std::span<const int64_t> tokens, const std::vector<bool>& noise, const NoiseIds& ids, int64_t eos) {
  same_length(tokens.size(), noise.size(), "noise");
  auto out = with_text(tokens, eos);
  for (size_t i = 0; i < tokens.size(); ++i) out.source.push_back(noise[i] ? ids.mask : tokens[i]);
  out.source.push_back(eos);
  return out;
}

SourceTarget bert_style(std::span<const int64_t> tokens, const std::vector<bool>& noise, double random_ratio,
                        const NoiseIds& ids, int64_t eos, Stream& stream) {
  same_length(tokens.size(), noise.size(), "noise");
  check_ids(ids);
  auto out = with_text(tokens, eos);
  for (size_t i = 0; i < tokens.size(); ++i)
    out.source.push_back(!noise[i] ? tokens[i] : stream.bernoulli(random_ratio) ? random_id(ids, stream) : ids.mask);
  out.source.push_back(eos);
  return out;
}

SourceTarget deshuffle(std::span<const int64_t> tokens, int64_t eos, Stream& stream) {
  auto out = with_text(tokens, eos);
  out.source.assign(tokens.begin(), tokens.end());
  partial_shuffle(out.source, out.source.size(), stream);
  out.source.push_back(eos);
  return out;
}

SourceTarget prefix_lm(std::span<const int64_t> tokens, int64_t eos, Stream& stream) {
  const auto cut =
      tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() < 2 ? 0 : 1 + stream.below(tokens.size() - 1));
  SourceTarget out{{tokens.begin(), cut}, {cut, tokens.end()}};
  out.source.push_back(eos), out.target.push_back(eos);
  return out;
}

// ---- BART

void permute_sentences(std::vector<int64_t>& tokens, std::vector<uint8_t>& word_starts,
                       std::span<const int64_t> lengths, double share, Stream& stream) {
  same_length(tokens.size(), word_starts.size(), "word_starts");
  if (tokens.size() < 3 || lengths.size() < 2 || share <= 0) return;
  std::vector<size_t> first{1}, order(lengths.size());
  first.reserve(lengths.size() + 1);
  for (const int64_t length : lengths)
    first.push_back(first.back() + static_cast<size_t>(std::max<int64_t>(length, 0)));
  require<DataError>(first.back() < tokens.size(), "A text of ", tokens.size() - 2, " tokens got sentences of ",
                     first.back() - 1, " tokens in all; count sentences without <s> and </s>.");
  std::iota(order.begin(), order.end(), size_t{0});
  auto some = order;
  const auto k = std::min(some.size(), static_cast<size_t>(ceil_share(static_cast<int64_t>(some.size()), share)));
  partial_shuffle(some, k, stream);
  // `some` is in random order: its sentences go, in that order, to the chosen positions in ascending order.
  some.resize(k);
  auto positions = some;
  std::sort(positions.begin(), positions.end());
  for (size_t i = 0; i < k; ++i) order[positions[i]] = some[i];
  std::vector<int64_t> moved;
  std::vector<uint8_t> moved_starts;
  moved.reserve(first.back()), moved_starts.reserve(first.back());
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
  std::vector<int64_t> words;
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
    const auto found =
        std::upper_bound(cumulative.begin(), cumulative.end(), stream.uniform() * sum) - cumulative.begin();
    const int64_t words = std::min<int64_t>({found, static_cast<int64_t>(cumulative.size()) - 1, left});
    if (drawn) drawn->push_back(found);
    if (words == 0)
      ++spans.empty;
    else
      spans.words.push_back(words), left -= words;
  }
  return spans;
}

}  // namespace

void text_infilling(std::vector<int64_t>& tokens, std::span<const uint8_t> word_starts, const BartNoise& rules,
                    const NoiseIds& ids, Stream& stream, Infilled* infilled) {
  const bool subword = rules.mask_length == MaskLength::subword,
             poisson = rules.mask_length == MaskLength::span_poisson;
  require<ConfigError>(rules.replace_length >= -1 && rules.replace_length <= 1, "`replace_length` is ",
                       rules.replace_length, "; give -1, 0 or 1.");
  check_ids(ids);
  same_length(tokens.size(), word_starts.size(), "word_starts");
  const size_t n = tokens.size();
  if (n < 3) return;
  std::vector<uint32_t> starts;
  starts.reserve(n);
  for (size_t i = 1; i + 1 < n; ++i)
    if (subword || word_starts[i]) starts.push_back(static_cast<uint32_t>(i));
  const auto words = static_cast<int64_t>(starts.size());
  const int64_t budget = std::min(words, ceil_share(words, rules.mask_ratio));
  if (budget <= 0) return;
  auto spans = poisson ? poisson_spans(budget, rules.poisson_lambda, stream, infilled ? &infilled->words : nullptr)
                       : Spans{std::vector<int64_t>(static_cast<size_t>(budget), 1)};
  partial_shuffle(starts, spans.words.size(), stream);
  std::vector<int64_t> words_at(n);
  for (size_t s = 0; s < spans.words.size(); ++s) words_at[starts[s]] = spans.words[s];
  // From right to left, so that of overlapping spans the one that starts further left wins, as there.
  enum Fate : uint8_t { kept, replaced, deleted };
  std::vector<Fate> fate(n, kept);
  for (size_t i = n - 2; i > 0; --i) {
    if (words_at[i] == 0) continue;
    const bool random = stream.bernoulli(rules.random_ratio);
    int64_t left = words_at[i];
    for (size_t j = i; j + 1 < n; ++j) {
      if (subword || word_starts[j]) {
        if (left == 0) break;
        --left;
      }
      fate[j] = rules.replace_length == 0 || (rules.replace_length == 1 && j != i) ? deleted : replaced;
      if (fate[j] == replaced) tokens[j] = random ? random_id(ids, stream) : ids.mask;
    }
  }
  if (infilled) infilled->corrupted = static_cast<int64_t>(n) - std::count(fate.begin(), fate.end(), kept);
  size_t length = 0;
  for (size_t i = 0; i < n; ++i)
    if (fate[i] != deleted) tokens[length++] = tokens[i];
  tokens.resize(length);
  insert_tokens(tokens, spans.empty, rules.random_ratio, ids, stream);
}

void insert_tokens(std::vector<int64_t>& tokens, int64_t count, double random_ratio, const NoiseIds& ids,
                   Stream& stream) {
  if (tokens.size() < 2 || count <= 0) return;
  check_ids(ids);
  std::vector<uint8_t> added;
  mark_subset(added, static_cast<int64_t>(tokens.size()) - 2 + count, count, stream);
  std::vector<int64_t> out{tokens.front()};
  out.reserve(tokens.size() + static_cast<size_t>(count));
  auto random_left = static_cast<uint64_t>(std::min(count, ceil_share(count, random_ratio))),
       left = static_cast<uint64_t>(count);
  auto old = tokens.begin() + 1;
  for (const uint8_t is_new : added) {
    if (!is_new) {
      out.push_back(*old++);
      continue;
    }
    const bool random =
        random_left > 0 && stream.below(left) < random_left;  // every subset of the new tokens is equally likely
    out.push_back(random ? random_id(ids, stream) : ids.mask);
    random_left -= random, --left;
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
  insert_tokens(source, ceil_share(static_cast<int64_t>(source.size()), rules.insert_ratio), rules.random_ratio, ids,
                stream);
  if (stream.bernoulli(rules.rotate_prob)) rotate_document(source, stream);
  return source;
}

// ---- PEGASUS

namespace {

/// Token counts of each sentence and of the text; distinct tokens are numbered 0, 1, ... by first occurrence.
struct Grams {
  struct Gram {
    uint32_t token;
    int32_t count;
  };
  std::vector<Gram> grams;     // of all sentences, concatenated
  std::vector<size_t> first;   // [sentences + 1]
  std::vector<int32_t> total;  // [distinct tokens]
};

Grams count_grams(std::span<const std::vector<int64_t>> sentences, size_t tokens) {
  // An open-addressing hash table, at most half full; sorting the ids would take longer than everything below.
  const auto bits = static_cast<int>(std::bit_width(2 * tokens + 1));
  const uint64_t last = (uint64_t{1} << bits) - 1;
  std::vector<int64_t> id_at(last + 1);
  std::vector<uint32_t> number_at(last + 1, UINT32_MAX);
  Grams out;
  out.grams.reserve(tokens);
  std::vector<int32_t> here;
  for (const auto& sentence : sentences) {
    out.first.push_back(out.grams.size());
    for (const int64_t id : sentence) {
      uint64_t at = (static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15) >> (64 - bits);
      while (number_at[at] != UINT32_MAX && id_at[at] != id) at = (at + 1) & last;
      if (number_at[at] == UINT32_MAX) {
        number_at[at] = static_cast<uint32_t>(out.total.size()), id_at[at] = id;
        out.total.push_back(0), here.push_back(0);
      }
      const uint32_t token = number_at[at];
      ++out.total[token];
      if (here[token]++ == 0) out.grams.push_back({token, 0});
    }
    for (size_t g = out.first.back(); g < out.grams.size(); ++g)
      out.grams[g].count = std::exchange(here[out.grams[g].token], 0);
  }
  out.first.push_back(out.grams.size());
  return out;
}

/// Marks the `wanted` principal sentences, those with the highest ROUGE-1 F1 against the rest of the text.
void choose_principal(std::span<const std::vector<int64_t>> sentences, int64_t wanted, bool one_by_one, bool unique,
                      std::vector<uint8_t>& gap) {
  size_t tokens = 0;
  for (const auto& sentence : sentences) tokens += sentence.size();
  const auto counts = count_grams(sentences, tokens);
  auto rest = counts.total;
  std::vector<int32_t> chosen(rest.size());
  // F1 = 2 * overlap / size, where size is that of both sides together. Counting repetitions, it is constant; counting
  // distinct tokens, it is the size of the text plus the overlap. Either way F1 grows with the overlap, so the sentence
  // that adds most overlap has the highest F1.
  const auto gain = [&](size_t s) {
    int64_t sum = 0;
    for (size_t g = counts.first[s]; g < counts.first[s + 1]; ++g) {
      const auto [token, count] = counts.grams[g];
      const int32_t before = chosen[token], left = rest[token];
      sum += unique ? (left > count) - (before > 0 && left > 0)
                    : std::min(before + count, left - count) - std::min(before, left);
    }
    return sum;
  };
  std::vector<std::pair<int64_t, size_t>> scores;
  for (int64_t found = 0; found < wanted;) {
    scores.clear();
    for (size_t s = 0; s < sentences.size(); ++s)
      if (!gap[s] && !sentences[s].empty()) scores.emplace_back(gain(s), s);
    const int64_t take = one_by_one ? 1 : wanted;
    std::partial_sort(scores.begin(), scores.begin() + take, scores.end(), std::greater<>());
    for (int64_t k = 0; k < take; ++k, ++found) {
      const size_t s = scores[static_cast<size_t>(k)].second;
      gap[s] = 1;
      for (size_t g = counts.first[s]; g < counts.first[s + 1]; ++g) {
        const auto [token, number] = counts.grams[g];
        chosen[token] += number, rest[token] -= number;
      }
    }
  }
}

}  // namespace

SourceTarget gap_sentences(std::span<const std::vector<int64_t>> sentences, double gap_ratio, SentenceChoice choose,
                           int64_t mask1, int64_t eos, Stream& stream) {
  size_t tokens = 0;
  std::vector<uint32_t> filled;
  for (size_t s = 0; s < sentences.size(); ++s) {
    tokens += sentences[s].size();
    if (!sentences[s].empty()) filled.push_back(static_cast<uint32_t>(s));
  }
  const auto count = static_cast<int64_t>(filled.size());
  const int64_t wanted = std::min(count, std::max<int64_t>(1, floor_share(count, gap_ratio)));
  std::vector<uint8_t> gap(sentences.size());
  const bool one_by_one = choose == SentenceChoice::seq_orig || choose == SentenceChoice::seq_uniq,
             unique = choose == SentenceChoice::ind_uniq || choose == SentenceChoice::seq_uniq;
  if (choose == SentenceChoice::random || choose == SentenceChoice::lead) {
    if (choose == SentenceChoice::random) partial_shuffle(filled, static_cast<size_t>(wanted), stream);
    for (int64_t k = 0; k < wanted; ++k) gap[filled[static_cast<size_t>(k)]] = 1;
  } else {
    choose_principal(sentences, wanted, one_by_one, unique, gap);
  }
  SourceTarget out;
  out.source.reserve(tokens + 2), out.target.reserve(tokens + 1);
  for (size_t s = 0; s < sentences.size(); ++s) {
    auto& side = gap[s] ? out.target : out.source;
    side.insert(side.end(), sentences[s].begin(), sentences[s].end());
    if (gap[s]) out.source.push_back(mask1);
  }
  out.source.push_back(eos), out.target.push_back(eos);
  return out;
}

}  // namespace cloze
