#include "objectives/gap_sentences/noise.h"

#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "objectives/draws.h"

namespace cloze {

namespace {

/// Rounded down with a tolerance: 100 * 0.29 must not become 28.
int64_t floor_fraction(int64_t n, double fraction) {
  return static_cast<int64_t>(std::floor(static_cast<double>(n) * fraction + 1e-9));
}

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
        number_at[at] = static_cast<uint32_t>(out.total.size());
        id_at[at] = id;
        out.total.push_back(0);
        here.push_back(0);
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

/// How sentences are scored.
struct Scoring {
  bool one_by_one = false;  ///< each together with those chosen before it, else independently
  bool unique = false;      ///< a repeated token counts once
};

/// Marks the `wanted` principal sentences, those with the highest ROUGE-1 F1 against the rest of the text.
void choose_principal(std::span<const std::vector<int64_t>> sentences, int64_t wanted, const Scoring& scoring,
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
      sum += scoring.unique ? (left > count) - (before > 0 && left > 0)
                            : std::min(before + count, left - count) - std::min(before, left);
    }
    return sum;
  };
  std::vector<std::pair<int64_t, size_t>> scores;
  for (int64_t taken = 0; taken < wanted;) {
    scores.clear();
    for (size_t s = 0; s < sentences.size(); ++s)
      if (!gap[s] && !sentences[s].empty()) scores.emplace_back(gain(s), s);
    const int64_t take = scoring.one_by_one ? 1 : wanted;
    std::partial_sort(scores.begin(), scores.begin() + take, scores.end(), std::greater<>());
    for (int64_t k = 0; k < take; ++k, ++taken) {
      const size_t s = scores[static_cast<size_t>(k)].second;
      gap[s] = 1;
      for (size_t g = counts.first[s]; g < counts.first[s + 1]; ++g) {
        const auto [token, number] = counts.grams[g];
        chosen[token] += number;
        rest[token] -= number;
      }
    }
  }
}

/// Marks the sentences that become gaps, of those that have tokens (`filled`).
void choose_gaps(std::span<const std::vector<int64_t>> sentences, std::vector<uint32_t> filled, int64_t wanted,
                 SentenceChoice choose, Stream& stream, std::vector<uint8_t>& gap) {
  switch (choose) {
    case SentenceChoice::random:
      partial_shuffle(filled, static_cast<size_t>(wanted), stream);
      [[fallthrough]];
    case SentenceChoice::lead:
      for (int64_t k = 0; k < wanted; ++k) gap[filled[static_cast<size_t>(k)]] = 1;
      break;
    case SentenceChoice::ind_orig:
      choose_principal(sentences, wanted, {}, gap);
      break;
    case SentenceChoice::ind_uniq:
      choose_principal(sentences, wanted, {.unique = true}, gap);
      break;
    case SentenceChoice::seq_orig:
      choose_principal(sentences, wanted, {.one_by_one = true}, gap);
      break;
    case SentenceChoice::seq_uniq:
      choose_principal(sentences, wanted, {.one_by_one = true, .unique = true}, gap);
      break;
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
  const int64_t wanted = std::min(count, std::max<int64_t>(1, floor_fraction(count, gap_ratio)));
  std::vector<uint8_t> gap(sentences.size());
  choose_gaps(sentences, std::move(filled), wanted, choose, stream, gap);
  SourceTarget out;
  out.source.reserve(tokens + 2), out.target.reserve(tokens + 1);
  for (size_t s = 0; s < sentences.size(); ++s) {
    auto& side = gap[s] ? out.target : out.source;
    side.insert(side.end(), sentences[s].begin(), sentences[s].end());
    if (gap[s]) out.source.push_back(mask1);
  }
  end_both(out, eos);
  return out;
}

}  // namespace cloze
