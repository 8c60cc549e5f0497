#include "core/spelling.h"
#include "core/text.h"
#include "objectives/expected_rows.h"
#include "objectives/span_corruption/lengths.h"
#include "objectives/span_corruption/span_corruption.h"

namespace cloze {

namespace {

/// Target tokens of a text of `length` tokens, as a share of them.
double target_fraction(const SpanCorruptionConfig& c, int64_t length) {
  const auto spans_target = [&] {
    return static_cast<double>(targets_length(length, c.noise_density, c.mean_noise_span_length)) /
           static_cast<double>(length);
  };
  switch (c.corruption) {
    case Corruption::spans:
      return std::min(1.0, spans_target());
    case Corruption::iid:  // the corrupted tokens, and a sentinel for each run of them
      return std::min(1.0, c.noise_density * (2 - c.noise_density));
    case Corruption::drop:
      return c.noise_density;
    case Corruption::mass:
    case Corruption::bert:
    case Corruption::deshuffle:
    case Corruption::prefix_lm:
      return 1;
  }
  return 1;
}

}  // namespace

std::string SpanCorruptionConfig::prediction() const {
  const auto share = in_percent(noise_density) + " of the tokens";
  switch (corruption) {
    case Corruption::spans:
      return concat(share, ", in spans of ", shortest(mean_noise_span_length), " on average, each behind a sentinel");
    case Corruption::iid:
      return share + ", each behind a sentinel";
    case Corruption::drop:
      return share + ", which the source lacks";
    case Corruption::mass:
      return "the whole text, where " + share + " are masked";
    case Corruption::bert:
      return "the whole text, where " + share + " are masked, a tenth of them by random tokens";
    case Corruption::deshuffle:
      return "the text, whose tokens come in random order";
    case Corruption::prefix_lm:
      return "the rest of a text from its start";
  }
  return "";
}

void SpanCorruptionConfig::check(const ObjectiveSetting& in, Limits& limits) const {
  require_generative(kind, *this, in, limits);
}

void SpanCorruptionConfig::expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const {
  expect_source_target(target_fraction(*this, in.data.max_seq_length), in, rows);
}

std::optional<SourceTargetLayout> SpanCorruptionConfig::layout() const {
  using enum SourceTargetLayout::Prefix;
  switch (corruption) {
    case Corruption::spans:
    case Corruption::iid:
      return SourceTargetLayout{.prefix = sentinel};
    case Corruption::mass:
    case Corruption::bert:
      return SourceTargetLayout{.prefix = masks, .target_has_text = true, .one_mask = false};
    case Corruption::drop:
    case Corruption::prefix_lm:
      return SourceTargetLayout{.prefix = source};
    case Corruption::deshuffle:
      return SourceTargetLayout{};
  }
  return {};
}

std::vector<ScoringForm> SpanCorruptionConfig::forms(const BackboneConfig&) const {
  if (corruption == Corruption::deshuffle) return {};  // its source is the text that it predicts
  if (blank() == Placeholder::none) return {ScoringForm::likelihood};
  auto forms = masked_forms();
  forms.push_back(ScoringForm::likelihood);
  return forms;
}

ObjectiveConfig SpanCorruptionConfig::standard_form() const {
  SpanCorruptionConfig standard;
  standard.corruption = corruption;
  return standard;
}

}  // namespace cloze
