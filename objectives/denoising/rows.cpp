#include <cmath>

#include "objectives/denoising/noise.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

struct DenoisingBuilder final : CorruptionBuilder {
  DenoisingBuilder(const DenoisingConfig& c, const RowContext& context) : CorruptionBuilder(context), config(c) {}

  Lengths expected_lengths(int64_t tokens) const override {
    const auto n = static_cast<double>(tokens);
    double more = 0;  // source tokens in excess of the text
    if (config.mask_length == MaskLength::span_poisson) {
      const double masked = config.mask_ratio * n, spans = masked / config.poisson_lambda;
      const double p_empty = std::exp(-config.poisson_lambda);
      const double masks = config.replace_length == 1    ? spans * (1 - p_empty)
                           : config.replace_length == -1 ? masked
                                                         : 0;
      const double variance = spans * p_empty + p_empty * p_empty * spans / config.poisson_lambda;
      more = std::max(0.0, masks - masked + spans * p_empty + 3 * std::sqrt(variance));
    }
    return {n + more + std::ceil(config.insert_ratio * (n + more + 2)) + 1, n + 1};
  }

  SourceTarget corrupt(const ExampleText& text, Stream& stream, RowDraws& drawn) const override {
    SourceTarget row{.source = {}, .target = text.tokens, .target_offsets = text.offsets};
    row.target.push_back(eos_);
    row.target.insert(row.target.begin(), in_.vocabulary.special.cls);  // the noise leaves both ends in place
    const auto word_starts = in_.vocabulary.words.of(row.target);
    Infilled infilled;
    row.source = bart_noise(row.target, word_starts, text.sentence_lengths, config, ids_, stream, &infilled);
    drawn.lengths = std::move(infilled.words);
    drawn.corrupted = infilled.corrupted;
    for (auto* side : {&row.source, &row.target}) side->erase(side->begin());
    row.target_offsets.push_back(-1);
    return row;
  }

  const DenoisingConfig& config;
};

}  // namespace

std::unique_ptr<SourceTargetBuilder> make_builder(const DenoisingConfig& config, const RowContext& context) {
  return std::make_unique<DenoisingBuilder>(config, context);
}

}  // namespace cloze
