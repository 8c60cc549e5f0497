#include <cmath>

#include "objectives/generative_rows.h"

namespace cloze {

namespace {

struct DenoisingRows final : CorruptedRows {
  DenoisingRows(const DenoisingConfig& c, const RowContext& context) : CorruptedRows(context), config(c) {}

  Sides expected(int64_t tokens) const override {
    const auto n = static_cast<double>(tokens);
    double more = 0;  // tokens of the source than of the text
    if (config.mask_length == MaskLength::span_poisson) {
      const double hidden = config.mask_ratio * n, drawn = hidden / config.poisson_lambda;
      const double of_none = std::exp(-config.poisson_lambda);
      const double masks = config.replace_length == 1    ? drawn * (1 - of_none)
                           : config.replace_length == -1 ? hidden
                                                         : 0;
      const double variance = drawn * of_none + of_none * of_none * drawn / config.poisson_lambda;
      more = std::max(0.0, masks - hidden + drawn * of_none + 3 * std::sqrt(variance));
    }
    return {n + more + std::ceil(config.insert_ratio * (n + more + 2)) + 1, n + 1};
  }

  void make(Stream& stream, SourceTarget& row, Infilled* infilled) override {
    row.target = text_.tokens;
    row.target.push_back(eos_);
    row.target.insert(row.target.begin(), vocabulary_.special.cls);  // the noise keeps both ends where they are
    word_starts.assign(row.target.size(), 1);
    for (size_t i = 0; i < row.target.size(); ++i)
      word_starts[i] = vocabulary_.starts_word[static_cast<size_t>(row.target[i])];
    row.source = bart_noise(row.target, word_starts, text_.sentence_lengths, config, ids_, stream, infilled);
    for (auto* side : {&row.source, &row.target}) side->erase(side->begin());
    row.target_tokens = text_.numbers;
    row.target_tokens.push_back(-1);
  }

  const DenoisingConfig& config;
  std::vector<uint8_t> word_starts;
};

}  // namespace

std::unique_ptr<GenerativeRows> make_rows(const DenoisingConfig& config, const RowContext& context) {
  return std::make_unique<DenoisingRows>(config, context);
}

}  // namespace cloze
