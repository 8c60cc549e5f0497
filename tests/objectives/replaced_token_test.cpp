#include "models/families/electra.h"
#include "objectives/network.h"
#include "objectives/rtd/rtd.h"
#include "tests/support/catch.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

ElectraConfig small_electra() {
  auto c = small<ElectraConfig>();
  c.vocab_size = 31, c.embedding_size = 10, c.hidden_size = 16, c.num_hidden_layers = 1, c.num_attention_heads = 4;
  c.max_position_embeddings = 16, c.hidden_dropout_prob = c.attention_probs_dropout_prob = 0;
  return c;
}

struct Case {
  Batch masked;
  Tensor text;
};

Case electra_batch() {
  const auto text = at::arange(36, at::kLong).mul(7).remainder(26).add(5).view({3, 12});
  Case c{.masked = {}, .text = text};
  c.masked.positions = at::tensor({1, 4, 13, 22, 25, 30}, at::kLong);
  c.masked.labels = text.flatten().index_select(0, c.masked.positions);
  c.masked.input_ids = text.flatten().index_fill(0, c.masked.positions, 4).view({3, 12});
  c.masked.attention_mask = at::ones({3, 12}, at::kBool);
  c.masked.attention_mask[2].narrow(0, 8, 4).fill_(false);
  c.masked.token_type_ids = at::zeros_like(text);
  c.masked.tokens = 32;
  return c;
}

template <class F>
RtdConfig changed(const F& change) {
  RtdConfig config;
  change(config);
  return config;
}

std::shared_ptr<Network> rtd_network(const RtdConfig& config) {
  auto network = std::make_shared<Network>(ModelConfig(small_electra()), Objectives{config});
  initialize(collect_params(*network), 0.3, false, Rng(2));
  return network;
}

}  // namespace

TEST_CASE("masked positions are filled, and replaced tokens are marked", "[objectives][rtd]") {
  const auto source = GENERATE(ReplaceBy::generator, ReplaceBy::uniform);
  const auto network = rtd_network(changed([&](RtdConfig& c) { c.replace_by = source; }));
  const auto c = electra_batch();
  int64_t right = 0, filled = 0;
  for (uint64_t key = 0; key < 40; ++key) {
    Batch batch = c.masked;
    network->objectives[0]->rewrite(batch, key);
    CHECK(at::equal(batch.replaced.ne(0), batch.input_ids.ne(c.text)));
    auto untouched = at::ones({36}, at::kBool);
    untouched.index_fill_(0, batch.positions, false);
    CHECK(at::equal(batch.input_ids.flatten().masked_select(untouched), c.text.flatten().masked_select(untouched)));
    right += 6 - batch.replaced.sum().item<int64_t>();
    filled += 6;
    network->losses(c.masked, key);  // the loss of the generator is picked up
  }
  CHECK(right < filled / 4);  // by chance one in 31
}

TEST_CASE("the same key gives the same samples, another key different ones", "[objectives][rtd]") {
  const auto network = rtd_network({});
  const auto filled = [&](uint64_t key) {
    Batch batch = electra_batch().masked;
    network->objectives[0]->rewrite(batch, key);
    return batch.input_ids;
  };
  CHECK(at::equal(filled(1), filled(1)));
  CHECK_FALSE((at::equal(filled(1), filled(2)) && at::equal(filled(1), filled(3))));
}

TEST_CASE("the loss of replaced token detection is its formula over real tokens, and gives the generator no gradient",
          "[objectives][rtd]") {
  const auto network = rtd_network({});
  FlatParameters flat(collect_params(*network), at::kCPU);
  const auto parts = network->losses(electra_batch().masked, 7);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].name == "generator");
  CHECK(parts[0].count == 6);
  CHECK(parts[1].name == "rtd");
  CHECK(parts[1].count == 32);
  Batch batch = electra_batch().masked;
  network->objectives[0]->rewrite(batch, 7);
  const auto outputs = network->outputs(
      {.input_ids = batch.input_ids, .attention_mask = batch.attention_mask, .token_type_ids = batch.token_type_ids});
  double sum = 0;
  for (int64_t i = 0; i < 36; ++i) {
    if (!batch.attention_mask.flatten()[i].item<bool>()) continue;
    const double x = outputs.back().second.flatten()[i].item<double>(), y = batch.replaced.flatten()[i].item<double>();
    sum += -y * std::log(1 / (1 + std::exp(-x))) - (1 - y) * std::log(1 - 1 / (1 + std::exp(-x)));
  }
  CHECK(parts[1].sum.item<double>() == Approx(sum).epsilon(1e-4));
  parts[1].sum.backward();
  for (const auto& [name, param] : collect_params(*network))
    if (name.rfind("rtd.generator", 0) == 0) CHECK(param.value().grad().abs().sum().item<double>() == 0);
}

TEST_CASE("the loss over masked positions is that of the tokens that were filled", "[objectives][rtd]") {
  const auto all = rtd_network({});
  const auto network = rtd_network(changed([](RtdConfig& c) { c.positions = DiscriminatorPositions::masked; }));
  const auto parts = network->losses(electra_batch().masked, 7);
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].count == 6);
  CHECK(network->parts(electra_batch().masked)[1].count == 6);
  Batch batch = electra_batch().masked;
  all->objectives[0]->rewrite(batch, 7);  // the same weights
  const auto logits = all->outputs({.input_ids = batch.input_ids,
                                    .attention_mask = batch.attention_mask,
                                    .token_type_ids = batch.token_type_ids})
                          .back()
                          .second.flatten()
                          .index_select(0, batch.positions);
  const auto labels = batch.replaced.flatten().index_select(0, batch.positions).to(at::kFloat);
  const auto expected = at::binary_cross_entropy_with_logits(logits, labels, {}, {}, at::Reduction::Sum);
  CHECK(parts[1].sum.item<double>() == Approx(expected.item<double>()).epsilon(1e-4));
  const auto rows = network->row_sizes(electra_batch().masked);
  CHECK(rows[0].read == 2);
  CHECK(network->cost(rows).trained < all->cost(all->row_sizes(electra_batch().masked)).trained);
  network->eval();  // held-out losses are over all tokens
  CHECK(network->losses(electra_batch().masked, 7)[1].count == 32);
}

TEST_CASE("generator and discriminator share the whole embedding, its tables, or nothing", "[objectives][rtd]") {
  const auto count = [](EmbeddingTie tie) {
    int64_t n = 0;
    for (const auto& p : collect_params(*rtd_network(changed([&](RtdConfig& c) { c.tie = tie; }))))
      n += p.name.find("embeddings") != std::string::npos ? p.param.value().numel() : 0;
    return n;
  };
  const int64_t tables = 31 * 10 + 16 * 10, rest = 2 * 10 + 2 * 10;  // words and positions; types and norm
  CHECK(count(EmbeddingTie::all) == tables + rest);
  CHECK(count(EmbeddingTie::tables) == tables + 2 * rest);
  CHECK(count(EmbeddingTie::none) == 2 * tables + 2 * rest);
}
