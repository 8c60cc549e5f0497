#include <cmath>

#include "core/error.h"
#include "objectives/generative_rows.h"
#include "objectives/span_corruption/span_corruption.h"
#include "objectives/span_corruption/noise.h"

namespace cloze {

namespace {

struct SpanCorruptionBuilder final : CorruptionBuilder {
  SpanCorruptionBuilder(const SpanCorruptionConfig& c, const RowContext& context)
      : CorruptionBuilder(context), config(c) {
    const auto count = static_cast<int64_t>(sentinels().size());
    require<ConfigError>(placeholder_of(c.corruption) != Placeholder::sentinel || count > 0,
                         "span_corruption needs the sentinels <extra_id_0>, <extra_id_1>, ..., which the tokenizer of ",
                         in_.data.tokens, " does not have; prepare the text with --sentinels 100");
    if (c.corruption != Corruption::spans) return;
    const auto tokens = static_cast<int64_t>(length());
    const auto spans = noise_count(tokens, c.noise_density, c.mean_noise_span_length).spans;
    require<ConfigError>(spans <= count, "a text of ", tokens, " tokens has ", spans,
                         " noise spans, but the tokenizer of ", in_.data.tokens, " has ", count,
                         " sentinels; prepare the text with --sentinels ", spans,
                         ", shorten data.max_seq_length, or lengthen the spans");
  }

  const std::vector<int64_t>& sentinels() const { return in_.store.tokenizer().sentinels(); }

  int64_t max_text_length(int64_t max_length) const override {
    if (config.corruption != Corruption::spans) return max_length - 1;
    return raw_length(max_length, config.noise_density, config.mean_noise_span_length);
  }

  Lengths expected_lengths(int64_t tokens) const override {
    const auto n = static_cast<double>(tokens);
    const double noise = config.noise_density * n;
    switch (config.corruption) {
      case Corruption::spans: {
        const auto count = noise_count(tokens, config.noise_density, config.mean_noise_span_length);
        return {static_cast<double>(tokens - count.tokens + count.spans + 1),
                static_cast<double>(count.tokens + count.spans + 1)};
      }
      case Corruption::iid: {
        const double variance =
            noise * (1 - config.noise_density);  // of the number of noise tokens, and the mean number of runs
        const double runs = std::min(static_cast<double>(sentinels().size()), variance + 3 * std::sqrt(variance));
        return {std::min(n + 1, n - noise + runs + 1), std::min(n + 2, noise + runs + 1)};
      }
      case Corruption::drop:
      case Corruption::prefix_lm:
        return {n + 1, model().is_encoder_decoder() ? n : 1};  // each token is on one side
      case Corruption::mass:
      case Corruption::bert:
      case Corruption::deshuffle:
        return {n + 1, n + 1};
    }
    return {n + 1, n + 1};
  }

  SourceTarget corrupt(const ExampleText& text, Stream& stream, RowDraws&) const override {
    const auto& tokens = text.tokens;
    const auto n = static_cast<int64_t>(tokens.size());
    const double density = config.noise_density;
    switch (config.corruption) {
      case Corruption::spans:
        return replace_spans(text, random_spans(n, density, config.mean_noise_span_length, stream));
      case Corruption::iid: {
        auto noise = iid_mask(n, density, stream);
        limit_runs(noise, sentinels().size());
        return replace_spans(text, noise);
      }
      case Corruption::drop: {
        const auto noise = iid_mask(n, density, stream);
        auto row = drop_tokens(tokens, noise, eos_);
        row.target_offsets = drop_tokens(text.offsets, noise, -1).target;
        return row;
      }
      case Corruption::mass:
        return with_offsets(mass(tokens, iid_mask(n, density, stream), ids_, eos_), text);
      case Corruption::bert: {
        const auto noise = iid_mask(n, density, stream);
        return with_offsets(bert_style(tokens, noise, 0.1, ids_, eos_, stream), text);
      }
      case Corruption::deshuffle:
        return with_offsets(deshuffle(tokens, eos_, stream), text);
      case Corruption::prefix_lm: {
        auto row = with_offsets(prefix_lm(tokens, eos_, stream), text);
        if (!model().is_encoder_decoder()) row.source.pop_back();  // the target continues it without an end token
        return row;
      }
    }
    return {};
  }

  /// A row whose target is the whole text, or its end.
  static SourceTarget with_offsets(SourceTarget row, const ExampleText& text) {
    const auto labels = static_cast<std::ptrdiff_t>(row.target.size() - 1);
    row.target_offsets.assign(text.offsets.end() - labels, text.offsets.end());
    row.target_offsets.push_back(-1);
    return row;
  }

  /// Replaces the noise spans by sentinels. Done with offsets instead of ids, it gives the offset of each target id.
  SourceTarget replace_spans(const ExampleText& text, const std::vector<bool>& noise) const {
    auto row = span_corruption(text.tokens, noise, sentinels(), eos_);
    const std::vector<int64_t> no_offset(sentinels().size(), -1);
    row.target_offsets = span_corruption(text.offsets, noise, no_offset, -1).target;
    return row;
  }

  const SpanCorruptionConfig& config;
};

}  // namespace

std::unique_ptr<SourceTargetBuilder> make_builder(const SpanCorruptionConfig& config, const RowContext& context) {
  return std::make_unique<SpanCorruptionBuilder>(config, context);
}

}  // namespace cloze
