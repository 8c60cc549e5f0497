#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "core/error.h"

namespace cloze {

namespace {

constexpr uint64_t shortest_piece = 8;

/// Pieces of `length` that a document of `tokens` gives.
uint64_t pieces_in(uint64_t tokens, uint64_t length) {
  const uint64_t whole = tokens / length, rest = tokens % length;
  return whole + (rest >= std::min(shortest_piece, length) || whole == 0 ? 1 : 0);
}

/// The last document whose first place, `place(document)`, is not behind `at`.
template <class F>
uint64_t last_document(uint64_t documents, uint64_t at, const F& place) {
  const auto all = std::views::iota(uint64_t{0}, documents);
  return static_cast<uint64_t>(std::ranges::partition_point(all, [&](uint64_t d) { return place(d) <= at; }) - all.begin()) - 1;
}

}  // namespace

Sampler::Sampler(const TokenStore& store, Packing packing, uint64_t length, double short_seq_prob, const Rng& rng)
    : store_(store), packing_(packing), length_(length), short_seq_prob_(short_seq_prob), order_key_(rng.key("order")), short_key_(rng.key("short")) {
  const uint64_t documents = store.num_documents();
  if (packing == Packing::full) {
    size_ = documents == 0 ? 0 : (store.num_tokens() + documents - 1 + length - 1) / length;   // one place between two documents
    require<DataError>(size_ > 0, "the text has no sequence to give; prepare more text");
    return;
  }
  if (packing == Packing::doc_sentences || packing == Packing::full_sentences) {
    const bool across = packing == Packing::full_sentences;
    uint64_t filled = 0;
    for (uint64_t d = 0; d < documents; ++d)
      for (uint64_t sentence = store.first_sentence(d), end = store.first_sentence(d + 1); sentence < end; ++sentence) {
        const bool opens = sentence == store.first_sentence(d);
        const uint64_t tokens = store.first_token(sentence + 1) - store.first_token(sentence), gap = opens && filled > 0 ? 1 : 0;   // a separator
        if (filled == 0 || (opens && !across) || filled + gap + tokens > length) first_sentence_.push_back(sentence), filled = tokens;
        else filled += gap + tokens;
      }
    size_ = first_sentence_.size();
    first_sentence_.push_back(store.first_sentence(documents));
    require<DataError>(size_ > 0, "the text has no sequence to give; prepare more text");
    return;
  }
  pieces_before_.resize(documents + 1);
  for (uint64_t d = 0; d < documents; ++d) {
    const uint64_t tokens = store.document_token(d + 1) - store.document_token(d);
    pieces_before_[d + 1] = pieces_before_[d] + (packing == Packing::whole ? 1 : pieces_in(tokens, length));
  }
  size_ = pieces_before_.back();
  require<DataError>(size_ > 0, "the text has no sequence to give; prepare more text");
}

uint64_t Sampler::size() const { return size_; }

/// Tokens that a row of it has, about; of a pair those of its longer side.
uint64_t Sampler::length_of(const Example& example) const {
  uint64_t tokens = 0;
  for (const auto& span : example.spans) tokens += span.count;
  if (packing_ != Packing::whole) return std::min(tokens, example.target_length);
  const uint64_t source = store_.first_token(store_.first_sentence(example.document) + 1) - example.spans.front().first;
  return std::min(length_, std::max(source, tokens - source));
}

std::vector<uint64_t> Sampler::by_length(uint64_t first, uint64_t count, uint64_t batch_size, uint64_t accumulation) const {
  std::vector<uint64_t> order;
  if (accumulation < 2 || packing_ == Packing::full) {   // a step is a batch, or all are of one length
    order.resize(count);
    std::iota(order.begin(), order.end(), first);
    return order;
  }
  const uint64_t together = batch_size * accumulation;
  std::vector<std::pair<uint64_t, uint64_t>> sorted(together);   // length, sequence
  Example example;
  for (uint64_t place = first; place < first + count; ++place) {
    const uint64_t step = place / together, begin = step * together;
    if (order.empty() || place == begin) {
      for (uint64_t i = 0; i < together; ++i) sample(begin + i, example), sorted[i] = {length_of(example), begin + i};
      std::ranges::sort(sorted);
    }
    const uint64_t batch = Permutation(accumulation, mix(order_key_, ~step))((place - begin) / batch_size);   // a part of a step is a fair sample of it
    order.push_back(sorted[batch * batch_size + place % batch_size].second);
  }
  return order;
}

void Sampler::take_sentences(Example& example) const {
  const uint64_t from = first_sentence_[example.item], to = first_sentence_[example.item + 1];
  uint64_t at = store_.first_token(from), low = last_document(store_.num_documents(), at, [&](uint64_t d) { return store_.document_token(d); });
  example.document = low;
  for (const uint64_t end = store_.first_token(to); at < end; ++low) {
    const uint64_t stop = std::min(end, store_.document_token(low + 1));
    example.spans.push_back({at, stop - at});
    at = stop;
  }
}

void Sampler::sample(uint64_t index, Example& example) const {
  example.epoch = index / size_;
  example.item = Permutation(size_, mix(order_key_, example.epoch))(index % size_);
  example.spans.clear();
  example.cuts.clear();
  uint64_t available = 0;
  if (!first_sentence_.empty()) {
    take_sentences(example);
    available = example.spans.size() - 1;
    for (const auto& span : example.spans) available += span.count;
    available = std::min(available, length_);
  } else if (packing_ == Packing::full) {
    // Document d starts at place document_token(d) + d of a text in which a separator follows every document but the last.
    uint64_t at = example.item * length_;
    const uint64_t end = std::min(at + length_, store_.num_tokens() + store_.num_documents() - 1);
    available = end - at;
    const uint64_t low = last_document(store_.num_documents(), at, [&](uint64_t d) { return store_.document_token(d) + d; });
    example.document = low;
    for (uint64_t document = low; at < end; ++document) {
      const uint64_t first = at - document, stop = store_.document_token(document + 1);
      const uint64_t count = std::min(stop - std::min(first, stop), end - at);
      if (count > 0) example.spans.push_back({first, count});
      at += count + 1;
      if (count == 0) available -= 1;   // the piece begins with a separator, which is not needed there
    }
    if (example.spans.empty()) example.spans.push_back({store_.document_token(low + 1) - 1, 1}), available = 1;
  } else {
    const auto document = static_cast<uint64_t>(std::upper_bound(pieces_before_.begin(), pieces_before_.end(), example.item) - pieces_before_.begin()) - 1;
    example.document = document;
    const uint64_t first = store_.document_token(document), end = store_.document_token(document + 1);
    const uint64_t piece = example.item - pieces_before_[document], pieces = pieces_before_[document + 1] - pieces_before_[document];
    const uint64_t begin = first + piece * length_;
    const bool last = piece + 1 == pieces;
    const uint64_t stop = last ? end : std::min(end, begin + length_);
    if (packing_ == Packing::whole) {
      example.spans.push_back({first, end - first});
    } else if (packing_ == Packing::document) {
      example.spans.push_back({begin, std::min(stop - begin, length_)});
    } else {
      // The sentences whose first token lies in [begin, stop); a sentence longer than that is cut where it lies.
      const auto start_of = [&](uint64_t token) {
        const uint64_t sentence = store_.sentence_of(token);
        return store_.first_token(sentence) == token ? sentence : sentence + 1;
      };
      const uint64_t from = start_of(begin), to = last ? store_.first_sentence(document + 1) : start_of(stop);
      if (from == to) {
        example.spans.push_back({begin, stop - begin});
      } else {
        const uint64_t start = store_.first_token(from);
        example.spans.push_back({start, store_.first_token(to) - start});
        for (uint64_t sentence = from + 1; sentence < to; ++sentence) example.cuts.push_back(store_.first_token(sentence) - start);
      }
    }
    available = std::min(example.spans.front().count, length_);
  }
  example.target_length = packing_ == Packing::sentences ? length_ : available;
  if (short_seq_prob_ > 0 && packing_ != Packing::whole) {
    Stream stream(short_key_, example.epoch, example.item);
    if (stream.bernoulli(short_seq_prob_)) {
      const uint64_t most = std::max<uint64_t>(2, example.target_length);
      example.target_length = 2 + stream.below(most - 1);
    }
  }
}

}  // namespace cloze
