#include <algorithm>

#include "core/text.h"
#include "objectives/constraints.h"
#include "objectives/mlm/mlm.h"

namespace cloze {

std::vector<MaskingPart> MlmConfig::maskings() const {
  if (mixture.empty()) return {{*this, 1}};
  auto parts = mixture;
  double sum = 0;
  for (const auto& part : parts) sum += part.share;
  for (auto& part : parts) part.share /= sum;
  return parts;
}

std::string MlmConfig::prediction() const {
  const auto parts = maskings();
  if (parts.size() == 1) return masking_words(parts.front());
  std::string text;
  for (const auto& part : parts)
    text += concat(text.empty() ? "" : "; ", "in ", in_percent(part.share), " of the rows ", masking_words(part));
  return text;
}

void MlmConfig::expect(const ObjectiveSetting&, std::vector<RowSizes>& rows) const { expect_masks(maskings(), rows); }

void MlmConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  check_maskings(kind, in, constraints);
  require_bidirectional(kind, in, constraints);
  constraints.forbid(any_that(in.objectives, &ObjectiveKind::replaces_tokens),
                     "rtd does its own masking (rtd.mlm) and cannot be combined with mlm; remove mlm");
}

void MlmConfig::check_maskings(const std::string& name, const ObjectiveSetting& in, Constraints& constraints) const {
  check_static_masking(name, *this, maskings(), constraints);
  if (mixture.empty()) return check_masking(name, *this, in, constraints);
  for (size_t i = 0; i < mixture.size(); ++i) check_masking(concat(name, ".mixture.", i), mixture[i], in, constraints);
  const bool empty = std::all_of(mixture.begin(), mixture.end(), [](const auto& part) { return part.share == 0; });
  constraints.forbid(empty, name, ".mixture: the shares sum to 0; give at least one masking a `share` above 0");
}

}  // namespace cloze
