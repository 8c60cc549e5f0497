#include "objectives/segment_pairs.h"

#include <algorithm>

namespace cloze {

namespace {

/// Whole sentences from a random position of another document of the same text, until there are `wanted` tokens or the
/// document ends. From another text of a mixture, the pair would be known by what the texts are about.
Span random_segment(const TokenStore& store, const Example& own, uint64_t wanted, Stream& stream) {
  uint64_t document = own.first_document + stream.below(own.documents - 1);
  if (document >= own.document) ++document;
  const uint64_t first = store.first_sentence(document), last = store.first_sentence(document + 1);
  uint64_t sentence = first + stream.below(last - first);
  const uint64_t start = store.first_token(sentence);
  while (++sentence < last && store.first_token(sentence) - start < wanted) {
  }
  return {start, store.first_token(sentence) - start};
}

/// Drops tokens from the longer segment, at either end with equal probability, until both fit.
void truncate(Span& a, Span& b, uint64_t budget, Stream& stream) {
  uint64_t coins = 0;
  int left = 0;
  while (a.count + b.count > budget) {
    Span& longer = a.count > b.count ? a : b;
    if (left == 0) {
      coins = stream.bits64();
      left = 64;
    }
    longer.first += coins & 1;
    --longer.count;
    coins >>= 1;
    --left;
  }
}

}  // namespace

std::optional<SegmentPairRule> segment_pair_rule(const Objectives& objectives, RowPacking packing) {
  const bool single = packing == RowPacking::sentence_pair;
  if (const auto shares = pairs_of(objectives))
    return SegmentPairRule{
        .random_next_prob = shares->random_next, .swap_prob = shares->swapped, .single_sentences = single};
  if (is_pair(packing)) return SegmentPairRule{.single_sentences = single};
  return std::nullopt;
}

SegmentPair make_segment_pair(const SegmentPairRule& rule, const TokenStore& store, const Example& example,
                              uint64_t budget, Stream stream) {
  const Span text = example.spans.front();
  SegmentPair pair;
  if (example.random_next) {
    const bool has_room = example.target_length > text.count && !rule.single_sentences;
    const uint64_t wanted = has_room ? example.target_length - text.count : 1;
    pair = {.a = text, .b = random_segment(store, example, wanted, stream), .label = 1, .forced = true};
  } else {
    const uint64_t split = example.cuts[stream.below(example.cuts.size())];
    pair = {.a = {text.first, split}, .b = {text.first + split, text.count - split}};
    if (rule.swap_prob > 0 && stream.bernoulli(rule.swap_prob)) {
      std::swap(pair.a, pair.b);
      pair.label = 1;
    }
  }
  truncate(pair.a, pair.b, budget, stream);
  return pair;
}

}  // namespace cloze
