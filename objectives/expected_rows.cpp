#include "objectives/limits.h"

#include <algorithm>

#include "models/backbone_config.h"
#include "models/stack_parts.h"

namespace cloze {

std::vector<RowSizes> expected_rows(const ObjectiveSetting& in) {
  std::vector<RowSizes> rows{
      {.count = static_cast<double>(in.batch_size), .length = static_cast<double>(in.data.max_seq_length)}};
  if (in.objectives.empty()) rows[0].read = rows[0].length;
  for (const auto& objective : in.objectives) as_kind(objective).expect(in, rows);
  for (auto& row : rows) row.read = std::min(row.length, row.read);
  return rows;
}

void expect_source_target(double fraction, const ObjectiveSetting& in, std::vector<RowSizes>& rows) {
  const auto& model = in.backbone();
  for (auto& row : rows) {
    row.read = row.length;
    if (model.is_encoder_decoder()) {
      row.target_length = row.predicted = fraction * row.length;
      continue;
    }
    row.predicted = row.length * fraction / (1 + fraction);
    if (part_of<PrefixAttention>(in.model).prefix_lm) row.prefix = row.length - row.predicted;
  }
}

}  // namespace cloze
