#include "objectives/collator.h"

#include <array>

#include "objectives/pairs.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

DataConfig data_of(int64_t length, double short_prob = 0, const std::string& packing = "document") {
  DataConfig data;
  data.max_seq_length = length, data.short_seq_prob = short_prob, data.packing = packing;
  return data;
}

bool same(const Tensor& a, const Tensor& b) { return a.defined() == b.defined() && (!a.defined() || at::equal(a, b)); }

}  // namespace

TEST_CASE("a batch is a function of seed and sequence numbers, whatever is asked first", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Objectives objectives{MlmConfig{}, NspConfig{}};
  const Collator a(store, objectives, data_of(32, 0.1), Rng(5), "train"), b(store, objectives, data_of(32, 0.1), Rng(5), "train");
  b.batch(90, 3);
  const auto x = a.batch(40, 4), y = b.batch(40, 4);
  CHECK(same(x.input_ids, y.input_ids));
  CHECK(same(x.positions, y.positions));
  CHECK(same(x.pair_label, y.pair_label));
  const Collator other(store, objectives, data_of(32, 0.1), Rng(6), "train"), valid(store, objectives, data_of(32, 0.1), Rng(5), "valid");
  CHECK_FALSE(same(x.input_ids, other.batch(40, 4).input_ids));
  CHECK_FALSE(same(x.input_ids, valid.batch(40, 4).input_ids));
}

TEST_CASE("a pair of sentences is two that follow each other, with and without a pair objective", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, Packing::sentences, 29, 0, Rng(1));
  const auto whole = [&](const Span& span) { return store.first_token(store.sentence_of(span.first)) == span.first && span.first + span.count == store.first_token(store.sentence_of(span.first) + 1); };
  int pairs = 0, random = 0;
  for (uint64_t i = 0; i < sampler.size(); ++i) {
    Example example;
    sampler.sample(i, example);
    if (example.cuts.empty()) continue;
    const auto plain = arrange_pair({.single_sentences = true}, store, example, 1000, Stream(1, 0, i));
    CHECK(plain.label == 0);
    CHECK(whole(plain.a));
    CHECK(whole(plain.b));
    CHECK(plain.a.first + plain.a.count == plain.b.first);
    const auto nsp = arrange_pair({.random_next_prob = 0.5, .single_sentences = true}, store, example, 1000, Stream(1, 0, i));
    CHECK(whole(nsp.a));
    CHECK(whole(nsp.b));
    ++pairs, random += nsp.label == 1;
  }
  REQUIRE(pairs > 50);
  CHECK(std::abs(random - 0.5 * pairs) < 4.5 * std::sqrt(0.25 * pairs));
  for (const std::string packing : {"sentence_pair", "segment_pair"}) {   // without nsp the rows are pairs all the same
    const auto batch = Collator(store, {MlmConfig{}}, data_of(32, 0, packing), Rng(5), "train").batch(0, 16);
    CHECK(batch.token_type_ids.max().item<int64_t>() == 1);
  }
  const auto sentences = Collator(store, {MlmConfig{}}, data_of(32, 0, "full_sentences"), Rng(5), "train").batch(0, 16);
  CHECK(sentences.token_type_ids.max().item<int64_t>() == 0);
}

TEST_CASE("rows are [CLS] A [SEP] B [SEP], then padding; segments and mask say so", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto special = store.tokenizer().special();
  MlmConfig none;
  none.mlm_probability = 0;
  const Collator collator(store, {none, NspConfig{}}, data_of(32), Rng(5), "train");
  const auto batch = collator.batch(0, 64);
  const auto ids = batch.input_ids.accessor<int64_t, 2>(), types = batch.token_type_ids.accessor<int64_t, 2>();
  int64_t real = 0;
  for (int64_t row = 0; row < 64; ++row) {
    int64_t n = batch.input_ids.size(1), separators = 0;
    if (batch.attention_mask.defined()) n = batch.attention_mask[row].sum().item<int64_t>();
    real += n;
    CHECK(n <= 32);
    CHECK(ids[row][0] == special.cls);
    CHECK(ids[row][n - 1] == special.sep);
    for (int64_t i = 0; i < n; ++i) {
      CHECK(types[row][i] == (separators > 0 ? 1 : 0));
      separators += ids[row][i] == special.sep;
    }
    CHECK(separators == 2);
    for (int64_t i = n; i < batch.input_ids.size(1); ++i) CHECK(ids[row][i] == special.pad);
  }
  CHECK(batch.tokens == real);
  CHECK(batch.positions.numel() == 0);
}

TEST_CASE("labels are the tokens that stood at the predicted places", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  MlmConfig none, some;
  none.mlm_probability = 0;
  const auto clean = Collator(store, {none}, data_of(24), Rng(5), "train").batch(3, 16);
  const auto masked = Collator(store, {some}, data_of(24), Rng(5), "train").batch(3, 16);
  REQUIRE(masked.positions.numel() > 16);
  CHECK(at::equal(clean.input_ids.flatten().index_select(0, masked.positions), masked.labels));
  auto restored = masked.input_ids.clone().flatten();
  restored.index_copy_(0, masked.positions, masked.labels);
  CHECK(at::equal(restored, clean.input_ids.flatten()));
}

TEST_CASE("a row of a mixture is masked as the masking that it drew masks it alone", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  MlmConfig mlm;
  mlm.mixture.resize(3);
  mlm.mixture[0].unit = "word", mlm.mixture[0].share = 5;
  mlm.mixture[1].unit = "span", mlm.mixture[1].count = "ceil", mlm.mixture[1].mlm_probability = 0.4, mlm.mixture[1].share = 3;
  mlm.mixture[2].count = "bernoulli", mlm.mixture[2].share = 2;
  RtdConfig rtd;
  rtd.mlm = mlm;
  const Objectives objectives = GENERATE(0, 1) == 0 ? Objectives{mlm} : Objectives{rtd};
  const Collator mixed(store, objectives, data_of(24), Rng(5), "train");
  std::vector<RowDraws> draws;
  const auto batch = mixed.batch(7, 300, &draws);
  std::array<int64_t, 3> seen{};
  REQUIRE(draws.size() == 300);
  for (int64_t row = 0; row < 300; ++row) {
    const auto which = draws[static_cast<size_t>(row)].masking;
    ++seen[which];
    MlmConfig alone;
    static_cast<Masking&>(alone) = mlm.mixture[which];
    std::vector<RowDraws> drawn;
    const auto one = Collator(store, {alone}, data_of(24), Rng(5), "train").batch(7 + static_cast<uint64_t>(row), 1, &drawn);
    const int64_t n = one.input_ids.size(1);
    CHECK(at::equal(batch.input_ids[row].narrow(0, 0, n), one.input_ids[0]));
    CHECK(drawn[0].lengths == draws[static_cast<size_t>(row)].lengths);
    CHECK(drawn[0].lengths.empty() == (which != 1));
    std::vector<RowDraws> by_itself;
    CHECK(at::equal(mixed.batch(7 + static_cast<uint64_t>(row), 1, &by_itself).positions, one.positions));
    CHECK(by_itself[0].masking == which);
  }
  for (size_t k = 0; k < 3; ++k) CHECK(std::abs(static_cast<double>(seen[k]) - 300 * mlm.mixture[k].share / 10) < 40);
}

TEST_CASE("half of the pairs have a second segment from another document, and the label says which", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const PairRule rule{.random_next_prob = 0.5};
  const Sampler sampler(store, Packing::sentences, 29, 0, Rng(1));
  Example example;
  int64_t random = 0, pairs = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    sampler.sample(i, example);
    const auto pair = arrange_pair(rule, store, example, 29, Rng(2).stream("pair", example.epoch, example.item));
    REQUIRE(pair.a.count >= 1);
    REQUIRE(pair.b.count >= 1);
    REQUIRE(pair.a.count + pair.b.count <= 29);
    REQUIRE(store.document_of(pair.a.first) == example.document);
    REQUIRE(store.document_of(pair.b.first + pair.b.count - 1) == store.document_of(pair.b.first));
    const bool elsewhere = store.document_of(pair.b.first) != example.document;
    REQUIRE(elsewhere == (pair.label == 1));
    if (!elsewhere) REQUIRE(pair.b.first >= pair.a.first + pair.a.count);
    if (example.cuts.empty()) {
      REQUIRE(pair.label == 1);   // one sentence has nothing to be followed by
    } else {
      ++pairs, random += pair.label;
    }
  }
  CHECK(std::abs(random - pairs * 0.5) < 4.5 * std::sqrt(pairs * 0.25));
}

TEST_CASE("sentence order prediction swaps half of the pairs, and the label says which", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, Packing::sentences, 29, 0, Rng(1));
  Example example;
  int64_t swapped = 0, pairs = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    sampler.sample(i, example);
    const auto pair = arrange_pair({.swap_prob = 0.5}, store, example, 29, Rng(2).stream("pair", example.epoch, example.item));
    if (example.cuts.empty()) {
      REQUIRE(pair.label == 1);   // one sentence has nothing to change places with
      continue;
    }
    REQUIRE(store.document_of(pair.a.first) == store.document_of(pair.b.first));
    REQUIRE((pair.b.first < pair.a.first) == (pair.label == 1));
    ++pairs, swapped += pair.label;
  }
  CHECK(std::abs(swapped - pairs * 0.5) < 4.5 * std::sqrt(pairs * 0.25));
}

TEST_CASE("full packing fills every row and puts a separator between documents", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  MlmConfig none;
  none.mlm_probability = 0;
  const Collator collator(store, {none}, data_of(40, 0, "full"), Rng(5), "train");
  const auto batch = collator.batch(0, 32);
  CHECK(batch.input_ids.size(1) == 40);
  CHECK(batch.tokens >= 31 * 40);   // only the last piece of the text may be short
}

TEST_CASE("pairs of a single document are refused in words", "[objectives]") {
  TempDir dir;
  PrepareOptions options;
  options.tokenizer = dir.write("vocab.txt", tiny_vocabulary(20));
  options.inputs = {dir.write("one.txt", "w1q w2q w3q.\nw4q w5q.\nw6q w7q.\nw8q w9q.\n")}, options.out = dir / "one", options.format = "lines", options.held_out = 0, options.threads = 1;
  prepare(options);
  const TokenStore store(dir / "one", "train");
  REQUIRE(store.num_documents() == 1);
  const std::string reason = "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the text has one; separate documents by a blank line, remove that objective, or choose another packing";
  CHECK_THROWS_WITH(Collator(store, {NspConfig{}}, data_of(32), Rng(1), "train"), reason);
  CHECK_THROWS_WITH(Collator(store, {MlmConfig{}}, data_of(32, 0, "sentence_pair"), Rng(1), "train"), reason);
  CHECK(Collator(store, {MlmConfig{}}, data_of(32), Rng(1), "train").size() > 0);
  // Held out, a B of the same document would be called random.
  const std::string held_out = "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the held-out text has one; prepare the text again with more of it held out (--held-out, --valid), or remove that objective";
  CHECK_THROWS_WITH(Collator(store, {NspConfig{}}, data_of(32), Rng(1), "valid"), held_out);
  CHECK(Collator(store, {MlmConfig{}}, data_of(32), Rng(1), "valid").size() > 0);
}
