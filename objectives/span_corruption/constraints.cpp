#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "objectives/constraints.h"
#include "objectives/span_corruption/span_corruption.h"

namespace cloze {

namespace {

struct Lengths {
  int64_t tokens, inputs, targets;
};

Lengths lengths_of(int64_t tokens, double density, double mean_length) {
  const auto [noise, spans] = noise_count(tokens, density, mean_length);
  return {tokens, tokens - noise + spans + 1, noise + spans + 1};
}

Lengths longest_text(int64_t inputs_length, double density, double mean_length) {
  // At density 1 a source is never full, and the loop would not end.
  require<ConfigError>(density >= 0 && density < 1 && mean_length >= 1, "Span corruption got a noise density of ",
                       density, " and a mean span length of ", mean_length,
                       "; the density must be in [0, 1), the length at least 1.");
  auto lengths = lengths_of(std::max<int64_t>(inputs_length - 1, 0), density, mean_length);
  for (auto next = lengths; next.inputs <= inputs_length; next = lengths_of(next.tokens + 1, density, mean_length))
    lengths = next;
  // Both sides get the same round length.
  if (density == 0.5 && lengths.targets > lengths.inputs) {
    --lengths.tokens;
    --lengths.targets;
  }
  return lengths;
}

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

NoiseCount noise_count(int64_t length, double density, double mean_length) {
  if (length < 2) return {0, 0};
  const int64_t noise =
      std::clamp<int64_t>(std::llrint(static_cast<double>(length) * density), 1, length - 1);  // half to even
  return {noise, std::clamp<int64_t>(std::llrint(static_cast<double>(noise) / mean_length), 1,
                                     std::min(noise, length - noise))};
}

int64_t raw_length(int64_t inputs_length, double density, double mean_length) {
  return longest_text(inputs_length, density, mean_length).tokens;
}
int64_t targets_length(int64_t inputs_length, double density, double mean_length) {
  return longest_text(inputs_length, density, mean_length).targets;
}

std::string SpanCorruptionConfig::prediction() const {
  const auto amount = in_percent(noise_density) + " of the tokens";
  switch (corruption) {
    case Corruption::spans:
      return concat(amount, ", in spans of ", shortest(mean_noise_span_length), " on average, each behind a sentinel");
    case Corruption::iid:
      return amount + ", each behind a sentinel";
    case Corruption::drop:
      return amount + ", which the source lacks";
    case Corruption::mass:
      return "the whole text, where " + amount + " are masked";
    case Corruption::bert:
      return "the whole text, where " + amount + " are masked, a tenth of them by random tokens";
    case Corruption::deshuffle:
      return "the text, whose tokens come in random order";
    case Corruption::prefix_lm:
      return "the rest of a text from its start";
  }
  return "";
}

void SpanCorruptionConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  require_generative(kind, *this, in, constraints);
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
