#pragma once
// Span corruption.
#include "objectives/kind.h"

namespace cloze {

/// The corruption of the source, and the target.
enum class Corruption { spans, iid, drop, mass, bert, deshuffle, prefix_lm };
constexpr auto choices(Corruption) {
  using enum Corruption;
  return std::array{Choice{spans, "spans", "spans of tokens, each replaced by a sentinel"},
                    Choice{iid, "iid", "single tokens, replaced by sentinels"},
                    Choice{drop, "drop", "single tokens, dropped without sentinels"},
                    Choice{mass, "mass", "masked tokens, the target is the whole text"},
                    Choice{bert, "bert", "the same, with a tenth of the masks random tokens"},
                    Choice{deshuffle, "deshuffle", "all tokens in random order, the target is the text"},
                    Choice{prefix_lm, "prefix_lm", "the source is the start of the text, the target the rest"}};
}

constexpr Placeholder placeholder_of(Corruption corruption) {
  switch (corruption) {
    case Corruption::spans:
    case Corruption::iid:
      return Placeholder::sentinel;
    case Corruption::mass:
    case Corruption::bert:
      return Placeholder::mask;
    case Corruption::drop:
    case Corruption::deshuffle:
    case Corruption::prefix_lm:
      return Placeholder::none;
  }
  return Placeholder::none;
}

/// Span corruption: the encoder reads a text with spans replaced by sentinels, the decoder generates the spans; also
/// the other objectives that the paper compares. Source: Raffel et al. 2020, sections 3.1.4 and 3.3 (arXiv 1910.10683);
/// google-research/text-to-text-transfer-transformer, preprocessors.py.
struct SpanCorruptionConfig final : GenerativeKind<SpanCorruptionConfig> {
  static constexpr const char* kind = "span_corruption";
  std::string like;
  Corruption corruption = Corruption::spans;
  double noise_density = 0.15;
  double mean_noise_span_length = 3;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool draws_lengths() const override { return blank() == Placeholder::sentinel; }
  bool uses_mask() const override { return blank() == Placeholder::mask; }
  Placeholder blank() const override { return placeholder_of(corruption); }
  bool continues_source() const override { return corruption == Corruption::prefix_lm; }
  std::optional<SourceTargetLayout> layout() const override;
  std::vector<ScoringForm> forms(const BackboneConfig& model) const override;
  const char* rate_key() const override { return "noise_density"; }
  /// The same corruption.
  ObjectiveConfig standard_form() const override;
};
template <class V>
void describe(V& v, SpanCorruptionConfig& c) {
  v.like(c, "the corruption of a published implementation",
         {{"t5", {{"corruption", "spans"}, {"noise_density", "0.15"}, {"mean_noise_span_length", "3"}}}});
  describe_next_token(v, c);
  v("corruption", c.corruption, "the corruption");
  v("noise_density", c.noise_density, "share of the tokens that are corrupted; for spans at least one token",
    in_range(0, 1, open_end));
  v("mean_noise_span_length", c.mean_noise_span_length, "corruption spans: mean span length [tokens]",
    in_range(1, 1000));
}

// The lengths of texts with corrupted spans (constraints.cpp). Source: Raffel et al. 2020, section 3.3 (arXiv
// 1910.10683); google-research/text-to-text-transfer-transformer, t5/data/preprocessors.py.

/// Noise tokens and spans of a mask of random_spans (noise.h).
struct NoiseCount {
  int64_t tokens, spans;
};
NoiseCount noise_count(int64_t length, double density, double mean_length);

/// Maximum number of text tokens that span corruption turns into a source of at most `inputs_length` ids, end token
/// included. 512, 0.15, 3: 568. Differs: exact for random_spans (there short texts are counted without a span, and
/// their sources lose its sentinel). Throws ConfigError unless 0 <= density < 1 and mean_length >= 1.
int64_t raw_length(int64_t inputs_length, double density, double mean_length);
/// Length of the target for `raw_length` text tokens, end token included. 512, 0.15, 3: 114.
int64_t targets_length(int64_t inputs_length, double density, double mean_length);

std::unique_ptr<SourceTargetBuilder> make_builder(const SpanCorruptionConfig& config, const RowContext& context);

}  // namespace cloze
