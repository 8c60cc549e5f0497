#include "objectives/collator.h"
#include "objectives/noising.h"
#include "objectives/objective.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"

using namespace cloze;

namespace {

XlnetConfig small() {
  XlnetConfig c;
  c.vocab_size = 31, c.hidden_size = 16, c.num_hidden_layers = 3, c.num_attention_heads = 4, c.intermediate_size = 20;
  return c;
}

/// Rows of `length` tokens with [SEP] and [CLS] at their end, orders drawn by XLNet's rules.
Batch some_batch(int64_t rows, int64_t length, uint64_t seed) {
  const PlmRules rules{.num_predict = 7, .reuse_len = length / 2, .perm_size = 6};
  Batch batch;
  batch.input_ids = at::arange(rows * length, at::kLong).mul(11).remainder(25).add(6).view({rows, length});
  batch.input_ids.narrow(1, length - 2, 1).fill_(4), batch.input_ids.narrow(1, length - 1, 1).fill_(3);
  batch.token_type_ids = at::zeros_like(batch.input_ids);
  batch.visible = at::empty({rows, length, length}, at::kBool);
  batch.target_places = at::full({rows, 7}, -1, at::kLong);
  std::vector<uint8_t> functional(static_cast<size_t>(length)), starts(static_cast<size_t>(length), 1);
  functional[static_cast<size_t>(length - 2)] = functional[static_cast<size_t>(length - 1)] = 1;
  std::vector<int64_t> positions, labels;
  for (int64_t b = 0; b < rows; ++b) {
    PlmExample example;
    auto stream = Rng(seed).stream("plm", 0, static_cast<uint64_t>(b));
    plm(functional, starts, rules, stream, example);
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j) batch.visible[b][i][j] = !example.blocked(static_cast<size_t>(i), static_cast<size_t>(j));
    for (size_t n = 0; n < example.targets.size(); ++n) {
      batch.target_places[b][static_cast<int64_t>(n)] = example.targets[n];
      positions.push_back(7 * b + static_cast<int64_t>(n)), labels.push_back(batch.input_ids[b][example.targets[n]].item<int64_t>());
    }
  }
  batch.positions = at::tensor(positions, at::kLong), batch.labels = at::tensor(labels, at::kLong);
  return batch;
}

std::shared_ptr<Network> make(const EncoderConfig& c) {
  XlnetConfig model;
  static_cast<EncoderConfig&>(model) = c;
  auto network = std::make_shared<Network>(model, Objectives{PlmConfig{}});
  initialize(collect_params(*network), 0.3, false, Rng(1));
  network->eval();
  return network;
}

}  // namespace

TEST_CASE("no target ever learns its own token, in the orders that XLNet draws", "[objectives][plm]") {
  at::NoGradGuard no_grad;
  const auto network = make(small());
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const auto batch = some_batch(2, 18, seed);
    const auto run = [&](const Tensor& ids) { return network->backbone->hidden({.input_ids = ids, .token_type_ids = batch.token_type_ids, .visible = batch.visible, .target_places = batch.target_places}); };
    const auto before = run(batch.input_ids);
    int64_t moved = 0;
    for (int64_t place = 0; place < 18; ++place) {
      auto ids = batch.input_ids.clone();
      ids.select(1, place).fill_(5);
      const auto change = (run(ids) - before).abs().amax(-1);   // [B, N]
      const auto own = batch.target_places.eq(place);
      CHECK(change.masked_select(own).sum().item<double>() == 0);
      moved += change.gt(1e-4).sum().item<int64_t>();
    }
    CHECK(moved > 50);   // others do learn of it
  }
}

TEST_CASE("permutation language modelling is the cross entropy of its targets under the token table and a trained bias", "[objectives][plm]") {
  const auto network = make(small());
  FlatParameters flat(collect_params(*network), at::kCPU);
  const auto batch = some_batch(2, 18, 1);
  std::vector<Tensor> memories;
  const auto parts = network->losses(batch, 0, &memories);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].name == "plm");
  CHECK(parts[0].count == batch.positions.numel());
  CHECK(parts[0].count >= 8);
  CHECK(memories.size() == 3);
  CHECK(memories[0].sizes() == at::IntArrayRef({2, 18, 16}));
  parts[0].sum.backward();
  Tensor bias;
  for (const auto& p : collect_params(*network)) {
    INFO(p.name);
    CHECK(p.param.value().grad().abs().sum().item<double>() > 0);
    CHECK_FALSE(p.param.fixed());
    if (p.name == "lm.head.bias") bias = p.param.value();
  }
  REQUIRE(bias.defined());
  at::NoGradGuard no_grad;
  const auto outputs = network->outputs({.input_ids = batch.input_ids, .token_type_ids = batch.token_type_ids, .visible = batch.visible, .target_places = batch.target_places});
  CHECK(outputs[0].second.sizes() == at::IntArrayRef({2, 7, 16}));
  const auto logits = outputs[1].second.flatten(0, 1).index_select(0, batch.positions).to(at::kDouble);
  CHECK(outputs[1].first == "logits");
  CHECK(error_of(outputs[1].second, at::matmul(outputs[0].second, network->backbone->token_embedding().value().t()) + bias) < 1e-5);
  const auto wanted = -at::log_softmax(logits, -1).gather(1, batch.labels.unsqueeze(1)).sum();
  CHECK(parts[0].sum.item<double>() == Approx(wanted.item<double>()).epsilon(1e-5));
}

TEST_CASE("a batch carries its memories to the next segment", "[objectives][plm]") {
  const auto network = make(small());
  auto batch = some_batch(2, 18, 1);
  std::vector<Tensor> memories;
  const auto alone = network->losses(batch, 0, &memories)[0].sum.item<double>();
  batch.memories = memories;
  CHECK(batch.tensors().size() == 15);   // moved to a device with the rest
  const auto behind = network->losses(batch, 0, &memories)[0].sum.item<double>();
  CHECK(memories[0].size(1) == 36);
  CHECK(std::abs(alone - behind) > 1e-3);
}

TEST_CASE("plm and xlnet ask for each other in words", "[objectives][plm]") {
  BertConfig bert;
  bert.vocab_size = 31;
  CHECK_THROWS_WITH(Network(bert, {PlmConfig{}}), "objective 'plm' needs a query stream, which xlnet alone has; choose model kind: xlnet");
  CHECK_THROWS_WITH(Network(small(), {ClmConfig{}}), "xlnet predicts by its query stream; choose objective kind: plm");
}

TEST_CASE("rows of permutation language modelling keep their text, are padded on the left, and no target sees itself", "[objectives][xlnet]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  DataConfig data;
  data.max_seq_length = 24, data.short_seq_prob = 0.3;
  const Collator collator(store, {PlmConfig{}}, data, Rng(1), "train", XlnetConfig{});
  const auto& special = store.tokenizer().special();
  int64_t predicted = 0, places = 0;
  for (uint64_t first = 0; first < 40; first += 8) {
    const auto batch = collator.batch(first, 8);
    const int64_t width = batch.input_ids.size(1), columns = batch.target_places.size(1);
    CHECK(width <= 24);
    for (int64_t row = 0; row < 8; ++row) {
      const auto ids = batch.input_ids[row];
      const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width, from = width - length;
      CHECK(ids[width - 1].item<int64_t>() == special.cls);
      CHECK(ids[width - 2].item<int64_t>() == special.sep);
      CHECK(ids.narrow(0, 0, from).eq(special.pad).all().item<bool>());
      CHECK(batch.token_type_ids[row][width - 1].item<int64_t>() == 2);
      CHECK_FALSE(batch.visible[row].narrow(1, 0, from).any().item<bool>());
      for (int64_t k = 0; k < columns; ++k) {
        const auto place = batch.target_places[row][k].item<int64_t>();
        if (place < 0) continue;
        ++predicted;
        CHECK(place >= from);
        CHECK_FALSE(batch.visible[row][place][place].item<bool>());
      }
      places += length;
    }
    const auto rows = batch.positions.div(columns, "floor"), at = batch.target_places.flatten().index_select(0, batch.positions);
    CHECK(at::equal(batch.labels, batch.input_ids.flatten().index_select(0, rows * width + at)));   // the text itself, which stays as it is
    const auto alone = collator.batch(first + 3, 1);
    const int64_t own = alone.input_ids.size(1);
    CHECK(at::equal(alone.visible[0], batch.visible[3].narrow(0, width - own, own).narrow(1, width - own, own)));
  }
  CHECK(static_cast<double>(predicted) / static_cast<double>(places) == Approx(1.0 / 6).margin(0.04));
}
