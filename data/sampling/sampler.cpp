#include "data/sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cloze {

namespace {

constexpr uint64_t min_rest = 8;

}  // namespace

Sampler::Sampler(const TokenStore& store, const SamplerOptions& options, const Rng& rng)
    : store_(store),
      options_(options),
      order_key_(rng.key("order")),
      half_key_(rng.key("half")),
      chunks_(cut(rng.key("short"))) {
  require<DataError>(!chunks_.empty(), "the text gives no sequence; prepare more text");
  if (!makes_pairs()) return;
  const auto has_two = [&](const Chunk& chunk) {
    return std::min(sentence_end(chunk.first), chunk.first + options_.length) < chunk.first + chunk.tokens;
  };
  divisible_ = static_cast<uint64_t>(std::stable_partition(chunks_.begin(), chunks_.end(), has_two) - chunks_.begin());
  // (single + 2 halved) / (all + halved) = the requested share.
  const auto all = static_cast<double>(chunks_.size());
  const double single = all - static_cast<double>(divisible_);
  const double halved = (options_.random_next_prob * all - single) / (2 - options_.random_next_prob);
  halved_ = std::min(divisible_, static_cast<uint64_t>(std::llround(std::max(0.0, halved))));
}

double Sampler::random_next_rate() const {
  if (!makes_pairs()) return 0;
  return static_cast<double>(chunks_.size() - divisible_ + 2 * halved_) / static_cast<double>(size());
}

/// The end of the sentence of a token.
uint64_t Sampler::sentence_end(uint64_t token) const { return store_.first_token(store_.sentence_of(token) + 1); }

/// The tokens that chunk `number` is to have, in a few of them fewer than a row has room for.
uint64_t Sampler::target_length(uint64_t short_key, uint64_t number) const {
  Stream stream(short_key, 0, number);
  const bool is_short = options_.short_seq_prob > 0 && options_.length > 2 && stream.bernoulli(options_.short_seq_prob);
  return is_short ? 2 + stream.below(options_.length - 1) : options_.length;
}

std::vector<Sampler::Chunk> Sampler::cut(uint64_t short_key) {
  const auto packing = options_.packing;
  const bool by_tokens = packing == Packing::document || packing == Packing::full;
  const bool across = packing == Packing::full || packing == Packing::full_sentences;
  const bool fits = packing == Packing::doc_sentences || packing == Packing::full_sentences;
  std::vector<Chunk> chunks;
  uint64_t at = 0, document = 0, sentence = 0;
  while (at < store_.num_tokens()) {
    const uint64_t target = target_length(short_key, chunks.size()), first = at;
    uint64_t filled = 0, units = 0;  // positions, separators included; sentences, or runs of one document
    for (bool full = false; !full && at < store_.num_tokens(); ++units) {
      const uint64_t document_end = store_.document_token(document + 1);
      const uint64_t gap = units > 0 && at == store_.document_token(document) ? 1 : 0;
      uint64_t end = document_end;
      if (by_tokens) {
        if (filled + gap >= target) break;
        end = std::min(document_end, at + target - filled - gap);
        const uint64_t rest = document_end - end;
        if (!across && rest > 0 && rest < min_rest) end -= std::min(min_rest - rest, (end - at) / 2);
      } else if (packing != Packing::whole) {
        while (store_.first_token(sentence + 1) <= at) ++sentence;
        end = std::min(store_.first_token(sentence + 1), at + options_.length);
        if (fits && units > 0 && filled + gap + end - at > target) break;
      }
      filled += gap + end - at;
      at = end;
      if (at == document_end) ++document;
      const bool ends = at == document_end && !across;
      if (packing == Packing::two_sentences)
        full = ends || units == 1;
      else
        full = ends || filled >= target || (by_tokens && !across);
    }
    chunks.push_back(
        {.first = first, .tokens = static_cast<uint32_t>(at - first), .target = static_cast<uint32_t>(target)});
  }
  return chunks;
}

/// Finds the sentences of a chunk for pairs, and takes half 1 or 2 of them if it is split; 0 = all.
void Sampler::take_sentences(Example& example, uint64_t half) const {
  auto& span = example.spans.front();
  auto& cuts = example.cuts;
  const uint64_t end = span.first + span.count;
  for (uint64_t at = span.first;;) {
    const uint64_t next = std::min(sentence_end(at), at + options_.length);
    if (next <= at || next >= end) break;  // offsets that are lost lead back
    at = next;
    cuts.push_back(at - span.first);
  }
  example.random_next = half > 0 || cuts.empty();
  if (half == 0 || cuts.empty()) return;  // of a chunk of several sentences there is a cut, unless offsets are lost
  const uint64_t chunk = example.item % chunks_.size();
  const uint64_t chosen = Stream(half_key_, example.epoch, chunk).below(cuts.size());
  const uint64_t offset = cuts[chosen];
  if (half == 1) {
    span.count = offset;
    cuts.resize(chosen);
    return;
  }
  span = {span.first + offset, span.count - offset};
  cuts.erase(cuts.begin(), cuts.begin() + static_cast<int64_t>(chosen) + 1);
  for (auto& cut : cuts) cut -= offset;
}

void Sampler::sample(uint64_t index, Example& example) const {
  const uint64_t epoch = index / size();
  example.epoch = options_.versions > 0 ? epoch % options_.versions : epoch;
  example.spans.clear();
  example.cuts.clear();
  example.random_next = false;
  // Numbers of an epoch: two for each split chunk, one for each of the others.
  const uint64_t number = Permutation(size(), mix(order_key_, epoch))(index % size());
  const uint64_t half = number < 2 * halved_ ? 1 + number % 2 : 0;
  uint64_t drawn = half > 0 ? number / 2 : number - halved_;
  if (halved_ > 0 && drawn < divisible_) drawn = Permutation(divisible_, mix(half_key_, example.epoch))(drawn);
  const Chunk& chunk = chunks_[drawn];
  example.item = drawn + (half == 2 ? chunks_.size() : 0);
  example.document = store_.document_of(chunk.first);
  example.first_document = 0;
  example.documents = store_.num_documents();
  if (makes_pairs()) {
    example.spans.push_back({chunk.first, chunk.tokens});
    example.target_length = chunk.target;
    take_sentences(example, half);
    return;
  }
  uint64_t document = example.document;
  for (uint64_t at = chunk.first, end = at + chunk.tokens; at < end && document < store_.num_documents(); ++document) {
    const uint64_t stop = std::min(end, store_.document_token(document + 1));
    if (stop < at) break;  // offsets that are lost lead back
    example.spans.push_back({at, stop - at});
    at = stop;
  }
  example.target_length = std::min<uint64_t>(chunk.tokens + example.spans.size() - 1, options_.length);
}

}  // namespace cloze
