#include <algorithm>
#include <numeric>

#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// Random ids are neither special tokens at the start of the vocabulary nor sentinels at its end.
NoiseIds noise_ids(const TokenProperties& vocabulary, const std::vector<int64_t>& sentinels) {
  NoiseIds ids{.mask = vocabulary.special.mask, .vocabulary = vocabulary.size, .first_random = 0};
  if (!sentinels.empty() && sentinels.back() > vocabulary.size / 2)
    ids.vocabulary = std::min(sentinels.back(), sentinels.front());
  while (ids.first_random + 1 < ids.vocabulary && vocabulary.is_special[static_cast<size_t>(ids.first_random)])
    ++ids.first_random;
  return ids;
}

}  // namespace

SourceTargetBuilder::SourceTargetBuilder(const RowContext& context)
    : in_(context),
      eos_(context.vocabulary.special.sep),
      ids_(noise_ids(context.vocabulary, context.store.tokenizer().sentinels())) {}

Packing SourceTargetBuilder::packing() const { return packing_of(in_.data.packing); }

ExampleText SourceTargetBuilder::read_text(const Example& example) const {
  const auto& store = in_.store;
  ExampleText text;
  auto& [tokens, offsets, sentence_lengths] = text;
  uint64_t left = example.target_length;
  for (const auto& span : example.spans) {
    if (left == 0) break;
    if (!tokens.empty()) {
      offsets.push_back(-1);
      tokens.push_back(eos_);
      --left;  // a separator takes the position that the sampler left free
      if (!sentence_lengths.empty()) ++sentence_lengths.back();
    }
    const uint64_t count = std::min(span.count, left), at = tokens.size();
    tokens.resize(at + count);
    store.read(span.first, count, tokens.data() + at);
    offsets.resize(at + count);
    std::iota(offsets.begin() + static_cast<std::ptrdiff_t>(at), offsets.end(), static_cast<int64_t>(span.first));
    for (uint64_t token = span.first, sentence = store.sentence_of(span.first); token < span.first + count;
         ++sentence) {
      const uint64_t end = std::min(store.first_token(sentence + 1), span.first + count);
      sentence_lengths.push_back(static_cast<int64_t>(end - token));
      token = end;
    }
    left -= count;
  }
  in_.check_ids(tokens.data(), tokens.size());
  return text;
}

void SourceTargetBuilder::add_bos_and_truncate(SourceTarget& row) const {
  const auto max_length = static_cast<size_t>(in_.data.max_seq_length - begins());
  const auto bos = in_.vocabulary.special.cls;
  for (auto* side : {&row.source, &row.target}) {
    if (side->size() > max_length) {
      side->resize(max_length);
      side->back() = eos_;
    }
    if (begins()) side->insert(side->begin(), bos);
  }
  auto& offsets = row.target_offsets;
  if (offsets.size() > max_length) {
    offsets.resize(max_length);
    offsets.back() = -1;
  }
  if (begins()) offsets.insert(offsets.begin(), -1);
  // A decoder-only model reads both concatenated; the last token is a label only.
  const auto room = static_cast<size_t>(in_.data.max_seq_length) + 1;
  if (model().is_encoder_decoder() || row.source.size() + row.target.size() <= room) return;
  const auto last = row.source.back();  // its end token, if it has one
  row.source.resize(std::min(row.source.size(), std::max(room / 2, room - std::min(room, row.target.size()))));
  if (last == eos_) row.source.back() = eos_;
  row.target.resize(std::min(row.target.size(), room - row.source.size()));
  row.target.back() = eos_;
  offsets.resize(row.target.size());
  offsets.back() = -1;
}

double CorruptionBuilder::total_length(const Lengths& lengths) const {
  return model().is_encoder_decoder() ? std::max(lengths.source, lengths.target) : lengths.source + lengths.target;
}

bool CorruptionBuilder::fits(double length) const {
  const int64_t max_length = in_.data.max_seq_length;
  return length <= static_cast<double>(model().is_encoder_decoder()
                                           ? max_length - begins()
                                           : max_length + 1 - 2 * begins());  // the last label is no input
}

uint64_t CorruptionBuilder::length() const {
  int64_t tokens = max_text_length(in_.data.max_seq_length - begins());
  while (tokens > 1 && !fits(total_length(expected_lengths(tokens)))) --tokens;
  return static_cast<uint64_t>(std::max<int64_t>(1, tokens));
}

void CorruptionBuilder::shorten(ExampleText& text, double length) const {
  auto& [tokens, offsets, sentence_lengths] = text;
  const auto kept_fraction = static_cast<double>(in_.data.max_seq_length) / length;
  auto kept =
      std::clamp<size_t>(static_cast<size_t>(kept_fraction * static_cast<double>(tokens.size())), 1, tokens.size() - 1);
  size_t sentences = 0, complete = 0;  // of the kept text
  while (sentences < sentence_lengths.size() && complete + static_cast<size_t>(sentence_lengths[sentences]) <= kept)
    complete += static_cast<size_t>(sentence_lengths[sentences++]);
  if (keeps_sentences() && complete > 0) kept = complete;
  tokens.resize(kept);
  offsets.resize(kept);
  sentence_lengths.resize(sentences);
  if (kept > complete) sentence_lengths.push_back(static_cast<int64_t>(kept - complete));
}

SourceTarget CorruptionBuilder::build(const Example& example, Stream stream, RowDraws& drawn) const {
  auto text = read_text(example);
  const auto separators = static_cast<int64_t>(example.spans.size()) - 1;
  for (;;) {
    auto row = corrupt(text, stream, drawn);
    const auto length = total_length({static_cast<double>(row.source.size()), static_cast<double>(row.target.size())});
    if (fits(length) || text.tokens.size() < 2) {
      drawn.used_tokens = static_cast<int64_t>(text.tokens.size()) - separators;
      add_bos_and_truncate(row);
      return row;
    }
    shorten(text, length);  // the noise inserted more than expected
  }
}

}  // namespace cloze
