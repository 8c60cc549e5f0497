#pragma once
// Rows of several lengths for a network of `every_family`.
#include "tests/support/families.h"

namespace padded {

constexpr int64_t rows = 4, columns = 13;

inline cloze::Inputs inputs(const cloze::ModelConfig& model) {
  const auto ids = 5 + at::arange(rows * columns, at::kLong).mul(7).remainder(18).view({rows, columns});
  const auto lengths = at::tensor(std::vector<int64_t>{4, 13, 1, 9}).unsqueeze(1);
  const auto mask = at::arange(columns).unsqueeze(0).lt(lengths);
  cloze::Inputs in{.input_ids = ids.masked_fill(mask.logical_not(), 0), .attention_mask = mask};
  if (cloze::backbone_of(model).is_encoder_decoder()) in.decoder_input_ids = ids.narrow(1, 0, 6);
  return in;
}

}  // namespace padded
