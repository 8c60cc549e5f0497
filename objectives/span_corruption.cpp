#include <cmath>

#include "core/error.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

struct SpanCorruptionRows final : CorruptedRows {
  SpanCorruptionRows(const SpanCorruptionConfig& c, const RowContext& context) : CorruptedRows(context), config(c) {
    const auto count = static_cast<int64_t>(sentinels().size());
    require<ConfigError>(
        !uses_sentinels(c.corruption) || count > 0,
        "span_corruption marks what is missing by <extra_id_0>, <extra_id_1>, ..., which the tokenizer of ",
        data_.tokens, " does not have; prepare the text with --sentinels 100");
    if (c.corruption != Corruption::spans) return;
    const auto tokens = static_cast<int64_t>(length());
    const auto spans = noise_count(tokens, c.noise_density, c.mean_noise_span_length).spans;
    require<ConfigError>(spans <= count, "a text of ", tokens, " tokens has ", spans,
                         " hidden spans, the tokenizer of ", data_.tokens, " ", count,
                         " sentinels; prepare the text with --sentinels ", spans,
                         ", shorten data.max_seq_length, or lengthen the spans");
  }

  const std::vector<int64_t>& sentinels() const { return store_.tokenizer().sentinels(); }

  int64_t longest_text(int64_t most) const override {
    if (config.corruption != Corruption::spans) return most - 1;
    return raw_length(most, config.noise_density, config.mean_noise_span_length);
  }

  Sides expected(int64_t tokens) const override {
    const auto n = static_cast<double>(tokens);
    const double noise = config.noise_density * n;
    switch (config.corruption) {
      case Corruption::spans: {
        const auto count = noise_count(tokens, config.noise_density, config.mean_noise_span_length);
        return {static_cast<double>(tokens - count.tokens + count.spans + 1),
                static_cast<double>(count.tokens + count.spans + 1)};
      }
      case Corruption::iid: {
        const double variance = noise * (1 - config.noise_density);  // of the hidden tokens; so many runs are there too
        const double runs = std::min(static_cast<double>(sentinels().size()), variance + 3 * std::sqrt(variance));
        return {std::min(n + 1, n - noise + runs + 1), std::min(n + 2, noise + runs + 1)};
      }
      case Corruption::drop:
      case Corruption::prefix_lm:
        return {n + 1, model_.is_encoder_decoder() ? n : 1};  // each token stands on one side
      case Corruption::mass:
      case Corruption::bert:
      case Corruption::deshuffle:
        return {n + 1, n + 1};
    }
    return {n + 1, n + 1};
  }

  void make(Stream& stream, SourceTarget& row, Infilled*) override {
    const auto& tokens = text_.tokens;
    const auto n = static_cast<int64_t>(tokens.size());
    const double density = config.noise_density;
    switch (config.corruption) {
      case Corruption::spans:
        return mark(random_spans(n, density, config.mean_noise_span_length, stream), row);
      case Corruption::iid: {
        auto noise = iid_mask(n, density, stream);
        limit_runs(noise, sentinels().size());
        return mark(noise, row);
      }
      case Corruption::drop: {
        const auto noise = iid_mask(n, density, stream);
        row = drop_tokens(tokens, noise, eos_);
        row.target_tokens = drop_tokens(text_.numbers, noise, -1).target;
        return;
      }
      case Corruption::mass:
        row = mass(tokens, iid_mask(n, density, stream), ids_, eos_);
        break;
      case Corruption::bert: {
        const auto noise = iid_mask(n, density, stream);
        row = bert_style(tokens, noise, 0.1, ids_, eos_, stream);
        break;
      }
      case Corruption::deshuffle:
        row = deshuffle(tokens, eos_, stream);
        break;
      case Corruption::prefix_lm:
        row = prefix_lm(tokens, eos_, stream);
        break;
    }
    // The whole text, or its end.
    const auto labels = static_cast<std::ptrdiff_t>(row.target.size() - 1);
    row.target_tokens.assign(text_.numbers.end() - labels, text_.numbers.end());
    row.target_tokens.push_back(-1);
    const bool one_line = config.corruption == Corruption::prefix_lm && !model_.is_encoder_decoder();
    if (one_line) row.source.pop_back();  // the text goes on in it
  }

  /// Hides `noise` behind sentinels. The same of numbers instead of ids says where each id of the target is from.
  void mark(const std::vector<bool>& noise, SourceTarget& row) const {
    row = span_corruption(text_.tokens, noise, sentinels(), eos_);
    const std::vector<int64_t> no_number(sentinels().size(), -1);
    row.target_tokens = span_corruption(text_.numbers, noise, no_number, -1).target;
  }

  const SpanCorruptionConfig& config;
};

}  // namespace

std::unique_ptr<GenerativeRows> make_rows(const SpanCorruptionConfig& config, const RowContext& context) {
  return std::make_unique<SpanCorruptionRows>(config, context);
}

}  // namespace cloze
