#pragma once
// Inputs for the tests of XLNet.
#include "models/families/backbone.h"
#include "tests/support/catch.h"
#include "tests/support/small.h"

namespace cloze {

inline Tensor flags(at::IntArrayRef sizes, int64_t step) {
  int64_t n = 1;
  for (const auto s : sizes) n *= s;
  return at::arange(n, at::kLong).mul(step).remainder(11).lt(6).view(sizes);
}

/// All inputs of XLNet: two rows of 7 tokens, segments, a padded row, an attention mask of an order, up to three
/// targets, mems of length 3.
inline Inputs all_inputs(int64_t layers = 2) {
  Inputs in{.input_ids = some_ids(2, 7)};
  in.attention_mask = at::ones({2, 7}, at::kBool);
  in.attention_mask[1].narrow(0, 5, 2).fill_(false);
  in.token_type_ids = at::tensor({0, 0, 0, 1, 1, 1, 2, 0, 1, 1, 2, 0, 0, 0}, at::kLong).view({2, 7});
  in.visible = flags({2, 7, 7}, 5);
  in.target_positions = at::tensor({1, 4, 6, 3, 0, -1}, at::kLong).view({2, 3});
  for (int64_t i = 0; i < layers; ++i) in.mems.push_back(numbers({2, 3, 12}, 0.1 + static_cast<double>(i)));
  return in;
}

}  // namespace cloze
