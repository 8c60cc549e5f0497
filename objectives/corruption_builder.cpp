#include <algorithm>

#include "objectives/generative_rows.h"

namespace cloze {

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
  const auto share = static_cast<double>(in_.data.max_seq_length) / length;
  auto kept = std::clamp<size_t>(static_cast<size_t>(share * static_cast<double>(tokens.size())), 1, tokens.size() - 1);
  size_t sentences = 0, whole = 0;  // of the kept text
  while (sentences < sentence_lengths.size() && whole + static_cast<size_t>(sentence_lengths[sentences]) <= kept)
    whole += static_cast<size_t>(sentence_lengths[sentences++]);
  if (keeps_sentences() && whole > 0) kept = whole;
  tokens.resize(kept);
  offsets.resize(kept);
  sentence_lengths.resize(sentences);
  if (kept > whole) sentence_lengths.push_back(static_cast<int64_t>(kept - whole));
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
