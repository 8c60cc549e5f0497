#pragma once
// A small XLNet, and the ids of rows of a batch.
#include "models/families/xlnet.h"
#include "objectives/network.h"
#include "tests/support/catch.h"

using Ids = std::vector<int64_t>;

inline cloze::XlnetConfig small_xlnet() {
  cloze::XlnetConfig c;
  c.vocab_size = 31, c.hidden_size = 16, c.num_hidden_layers = 3, c.num_attention_heads = 4, c.intermediate_size = 20;
  return c;
}

inline std::shared_ptr<cloze::Network> network_of(const cloze::XlnetConfig& model) {
  auto network =
      std::make_shared<cloze::Network>(model, cloze::Objectives{cloze::default_objective<cloze::PlmConfig>()});
  cloze::initialize(cloze::collect_params(*network), 0.3, false, cloze::Rng(1));
  network->eval();
  return network;
}

inline Ids row_of(const cloze::Batch& batch, int64_t row) {
  const auto ids = batch.input_ids[row].contiguous();
  return {ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel()};
}
