#pragma once
// A tiny XLNet that carries mems.
#include "models/families/xlnet.h"
#include "objectives/kinds.h"
#include "tests/support/tiny.h"

/// As in the published code: segment pairs after reused tokens, half of the rows backwards.
inline void carry_mems(cloze::RunConfig& config) {
  auto model = tiny_model<cloze::XlnetConfig>();
  model.mem_len = 20;
  model.reuse_len = 12;
  model.bi_data = true;
  config.model = model;
  config.objectives = {cloze::default_objective<cloze::PlmConfig>()};
  config.data.packing = cloze::RowPacking::segment_pair;
  config.data.short_seq_prob = 0;
}
