#include "objectives/pairs.h"

#include <algorithm>

namespace cloze {

namespace {

/// Whole sentences from a random place of another document, until `wanted` tokens are there or the document ends.
Span random_segment(const TokenStore& store, uint64_t own_document, uint64_t wanted, Stream& stream) {
  const uint64_t others = store.num_documents() - 1;
  uint64_t document = others == 0 ? own_document : stream.below(others);
  if (others > 0 && document >= own_document) ++document;
  const uint64_t first = store.first_sentence(document), last = store.first_sentence(document + 1);
  uint64_t sentence = first + stream.below(last - first);
  const uint64_t start = store.first_token(sentence);
  while (++sentence < last && store.first_token(sentence) - start < wanted) {}
  return {start, store.first_token(sentence) - start};
}

/// Drops tokens from the longer segment, at either end with equal chance, until both fit.
void cut(Span& a, Span& b, uint64_t budget, Stream& stream) {
  uint64_t coins = 0;
  int left = 0;
  while (a.count + b.count > budget) {
    Span& longer = a.count > b.count ? a : b;
    if (left == 0) coins = stream.bits64(), left = 64;
    longer.first += coins & 1;
    --longer.count;
    coins >>= 1;
    --left;
  }
}

}  // namespace

Pair arrange_pair(const PairRule& rule, const TokenStore& store, const Example& example, uint64_t budget, Stream stream) {
  const Span whole = example.spans.front();
  // Sentences of the piece up to the target: `cuts` are the starts of all but the first.
  const auto& cuts = example.cuts;
  const auto beyond = std::lower_bound(cuts.begin(), cuts.end(), example.target_length);
  const uint64_t inner = static_cast<uint64_t>(beyond - cuts.begin());
  const uint64_t end = beyond == cuts.end() ? whole.count : *beyond;   // the sentence that reaches the target is kept whole
  const uint64_t sentences = inner + 1;
  const uint64_t chosen = sentences >= 2 ? stream.below(sentences - 1) : 0;
  const uint64_t split = sentences >= 2 ? cuts[chosen] : end;
  Pair pair{.a = {whole.first, split}, .b = {whole.first + split, end - split}};
  if (rule.single_sentences && sentences >= 2) {
    const uint64_t start = chosen == 0 ? 0 : cuts[chosen - 1], stop = chosen + 1 < inner ? cuts[chosen + 1] : end;
    pair = {.a = {whole.first + start, split - start}, .b = {whole.first + split, stop - split}};
  }
  if (sentences == 1 || (rule.random_next_prob > 0 && stream.bernoulli(rule.random_next_prob))) {
    const uint64_t wanted = example.target_length > split && !rule.single_sentences ? example.target_length - split : 1;
    pair.b = random_segment(store, example.document, wanted, stream);
    pair.label = 1, pair.forced = sentences == 1;
  } else if (rule.swap_prob > 0 && stream.bernoulli(rule.swap_prob)) {
    std::swap(pair.a, pair.b);
    pair.label = 1;
  }
  cut(pair.a, pair.b, budget, stream);
  return pair;
}

}  // namespace cloze
