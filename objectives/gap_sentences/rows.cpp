#include <algorithm>

#include "objectives/gap_sentences/noise.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

struct GapSentencesBuilder final : CorruptionBuilder {
  GapSentencesBuilder(const GapSentencesConfig& c, const RowContext& context) : CorruptionBuilder(context), config(c) {}

  /// Gap sentences are whole sentences.
  Packing packing() const override {
    return in_.data.packing == RowPacking::full ? Packing::full : Packing::doc_sentences;
  }
  bool keeps_sentences() const override { return true; }

  Lengths expected_lengths(int64_t tokens) const override {
    const auto n = static_cast<double>(tokens);
    if (model().is_encoder_decoder()) return {n + 1, n + 1};
    const double sentence = static_cast<double>(in_.store.num_tokens()) /
                            static_cast<double>(std::max<uint64_t>(1, in_.store.num_sentences()));
    // The source has one mask for each target sentence.
    return {n + 1, 1 + std::max(1.0, config.gap_sentences_ratio * n / sentence)};
  }

  SourceTarget corrupt(const ExampleText& text, Stream& stream, RowDraws&) const override {
    const auto mask = in_.vocabulary.special.sentence_mask;
    std::vector<std::vector<int64_t>> sentences;
    auto at = text.tokens.begin();
    for (const auto length : text.sentence_lengths) {
      sentences.emplace_back(at, at + length);
      at += length;
    }
    auto row = gap_sentences(sentences, config.gap_sentences_ratio, config.choose, mask, eos_, stream);
    // A sentence is in the target if the source has the mask at its position; no text contains the mask.
    size_t in_source = 0, in_text = 0;
    for (const auto& sentence : sentences) {
      const bool is_gap = !sentence.empty() && row.source[in_source] == mask;
      const auto from = text.offsets.begin() + static_cast<std::ptrdiff_t>(in_text);
      if (is_gap)
        row.target_offsets.insert(row.target_offsets.end(), from, from + static_cast<std::ptrdiff_t>(sentence.size()));
      in_source += is_gap ? 1 : sentence.size();
      in_text += sentence.size();
    }
    row.target_offsets.push_back(-1);
    return row;
  }

  const GapSentencesConfig& config;
};

}  // namespace

std::unique_ptr<SourceTargetBuilder> make_builder(const GapSentencesConfig& config, const RowContext& context) {
  return std::make_unique<GapSentencesBuilder>(config, context);
}

}  // namespace cloze
