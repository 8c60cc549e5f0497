#include "data/sampling/running_text.h"

#include <algorithm>
#include <ranges>

namespace cloze {

uint64_t RunningText::document_at(uint64_t position) const {
  // Document d starts at position document_token(d) + d.
  const auto all = std::views::iota(uint64_t{0}, store_.num_documents());
  return static_cast<uint64_t>(
             std::ranges::partition_point(all, [&](uint64_t d) { return store_.document_token(d) + d <= position; }) -
             all.begin()) -
         1;
}

void RunningText::read(uint64_t first, uint64_t count, int64_t* out) const {
  uint64_t at = backward_ ? size() - first - count : first;
  const uint64_t end = at + count;
  auto* next = out;
  for (uint64_t document = document_at(at); at < end; ++document) {
    const uint64_t token = at - document, tokens = std::min(store_.document_token(document + 1) - token, end - at);
    store_.read(token, tokens, next);
    next += tokens;
    at += tokens;
    if (at < end) {
      *next++ = separator_;
      ++at;
    }
  }
  if (backward_) std::reverse(out, out + count);
}

Span RunningText::sentence(uint64_t position) const {
  const uint64_t at = backward_ ? size() - 1 - position : position, document = document_at(at), token = at - document;
  Span span{at, 1};
  if (token < store_.document_token(document + 1)) {
    const uint64_t sentence = store_.sentence_of(token), first = store_.first_token(sentence);
    span = {first + document, store_.first_token(sentence + 1) - first};
  }
  return backward_ ? Span{size() - span.first - span.count, span.count} : span;
}

RunningOrder::Location RunningOrder::at(uint64_t sequence) const {
  if (batch_size == 0)
    return {sequence / chunks, Permutation(chunks, mix(shuffle_key, sequence / chunks))(sequence % chunks), false};
  const uint64_t rows = batch_size * accumulation, step = sequence / rows, batch = sequence % rows / batch_size,
                 row = sequence % batch_size;
  const uint64_t wide = bidirectional ? batch_size / 2 : batch_size, part = batch * wide + row % wide;
  return {step / steps(), part * steps() + step % steps(), step % steps() > 0};
}

}  // namespace cloze
