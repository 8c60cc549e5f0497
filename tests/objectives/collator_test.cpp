#include "objectives/collator.h"

#include <array>
#include <numeric>
#include <random>

#include "objectives/rtd/rtd.h"
#include "objectives/segment_pairs.h"
#include "objectives/nsp_sop/nsp_sop.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

DataConfig data_of(int64_t length, double short_prob = 0, RowPacking packing = RowPacking::document) {
  DataConfig data;
  data.max_seq_length = length;
  data.short_seq_prob = short_prob;
  data.packing = packing;
  return data;
}

bool same(const Tensor& a, const Tensor& b) { return a.defined() == b.defined() && (!a.defined() || at::equal(a, b)); }

}  // namespace

TEST_CASE("a batch is a function of seed and sequence numbers, not of earlier calls", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Objectives objectives{MlmConfig{}, NspConfig{}};
  const Collator a(store, objectives, data_of(32, 0.1), Rng(5), "train"),
      b(store, objectives, data_of(32, 0.1), Rng(5), "train");
  b.batch(90, 3);
  const auto x = a.batch(40, 4), y = b.batch(40, 4);
  CHECK(same(x.input_ids, y.input_ids));
  CHECK(same(x.positions, y.positions));
  CHECK(same(x.pair_label, y.pair_label));
  const Collator other(store, objectives, data_of(32, 0.1), Rng(6), "train"),
      valid(store, objectives, data_of(32, 0.1), Rng(5), "valid");
  CHECK_FALSE(same(x.input_ids, other.batch(40, 4).input_ids));
  CHECK_FALSE(same(x.input_ids, valid.batch(40, 4).input_ids));
}

TEST_CASE("a sentence pair is two consecutive sentences, with and without a pair objective", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto whole = [&](const Span& span) {
    return store.first_token(store.sentence_of(span.first)) == span.first &&
           span.first + span.count == store.first_token(store.sentence_of(span.first) + 1);
  };
  for (const double random_next_prob : {0.0, 0.5}) {
    const Sampler sampler(
        store, {.packing = Packing::two_sentences, .length = 29, .random_next_prob = random_next_prob}, Rng(1));
    for (uint64_t i = 0; i < sampler.size(); ++i) {
      Example example;
      sampler.sample(i, example);
      const auto pair = make_segment_pair({.single_sentences = true}, store, example, 1000, Stream(1, 0, i));
      CHECK(whole(pair.a));
      CHECK(whole(pair.b));
      CHECK(pair.label == example.random_next);
      if (pair.label == 0) CHECK(pair.a.first + pair.a.count == pair.b.first);
    }
  }
  for (const auto packing : {RowPacking::sentence_pair, RowPacking::segment_pair}) {  // rows are pairs also without nsp
    const auto batch = Collator(store, {MlmConfig{}}, data_of(32, 0, packing), Rng(5), "train").batch(0, 16);
    CHECK(batch.token_type_ids.max().item<int64_t>() == 1);
  }
  const auto sentences =
      Collator(store, {MlmConfig{}}, data_of(32, 0, RowPacking::full_sentences), Rng(5), "train").batch(0, 16);
  CHECK(sentences.token_type_ids.max().item<int64_t>() == 0);
}

TEST_CASE("rows are [CLS] A [SEP] B [SEP] and padding, with matching segment ids and mask", "[objectives]") {
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

TEST_CASE("labels are the original tokens at the predicted positions", "[objectives]") {
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

TEST_CASE("a row of a mixture is masked exactly as by its drawn masking alone", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  MlmConfig mlm;
  mlm.mixture.resize(3);
  mlm.mixture[0].unit = MaskingUnit::word;
  mlm.mixture[0].share = 5;
  mlm.mixture[1].unit = MaskingUnit::span;
  mlm.mixture[1].count = CountRule::ceil;
  mlm.mixture[1].mlm_probability = 0.4;
  mlm.mixture[1].share = 3;
  mlm.mixture[2].count = CountRule::bernoulli;
  mlm.mixture[2].share = 2;
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
    const auto one =
        Collator(store, {alone}, data_of(24), Rng(5), "train").batch(7 + static_cast<uint64_t>(row), 1, &drawn);
    const int64_t n = one.input_ids.size(1);
    CHECK(at::equal(batch.input_ids[row].narrow(0, 0, n), one.input_ids[0]));
    CHECK(drawn[0].lengths == draws[static_cast<size_t>(row)].lengths);
    CHECK(drawn[0].lengths.empty() == (which != 1));
    std::vector<RowDraws> single;
    CHECK(at::equal(mixed.batch(7 + static_cast<uint64_t>(row), 1, &single).positions, one.positions));
    CHECK(single[0].masking == which);
  }
  for (size_t k = 0; k < 3; ++k) CHECK(std::abs(static_cast<double>(seen[k]) - 300 * mlm.mixture[k].share / 10) < 40);
}

TEST_CASE("half of the segment pairs have B from another document, and the label says which", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, {.packing = Packing::sentences, .length = 29, .random_next_prob = 0.5}, Rng(1));
  Example example;
  double random = 0;
  const uint64_t sequences = 10 * sampler.size();
  for (uint64_t i = 0; i < sequences; ++i) {
    sampler.sample(i, example);
    const auto pair = make_segment_pair({}, store, example, 29, Rng(2).stream("pair", example.epoch, example.item));
    REQUIRE(pair.a.count >= 1);
    REQUIRE(pair.b.count >= 1);
    REQUIRE(pair.a.count + pair.b.count <= 29);
    REQUIRE(store.document_of(pair.a.first) == example.document);
    REQUIRE(store.document_of(pair.b.first + pair.b.count - 1) == store.document_of(pair.b.first));
    const bool elsewhere = store.document_of(pair.b.first) != example.document;
    REQUIRE(elsewhere == (pair.label == 1));
    if (!elsewhere) REQUIRE(pair.b.first >= pair.a.first + pair.a.count);
    random += static_cast<double>(pair.label);
  }
  CHECK(std::abs(random / static_cast<double>(sequences) - 0.5) <= 1.0 / static_cast<double>(sampler.size()));
}

TEST_CASE("segment pairs cover as much text, and fill their rows as well, as those of BERT's code", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir, 400, 60);
  MlmConfig none;
  none.mlm_probability = 0;
  constexpr int64_t budget = 61;
  const Collator collator(store, {none, NspConfig{}}, data_of(budget + 3, 0.1), Rng(5), "train");
  const auto sequences = static_cast<int64_t>(collator.size());
  std::vector<RowDraws> draws;
  const auto batch = collator.batch(0, sequences, &draws);
  double text = 0, read = 0;
  for (const auto& row : draws) {
    text += static_cast<double>(row.example_tokens);
    read += static_cast<double>(row.used_tokens);
  }
  CHECK(text == static_cast<double>(store.num_tokens()));
  const double full = static_cast<double>(batch.tokens) / static_cast<double>(sequences * (budget + 3));
  const double random = batch.pair_label.sum().item<double>() / static_cast<double>(sequences);

  // google-research/bert, create_pretraining_data.py, simulated with lengths only.
  std::mt19937_64 engine(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  const auto coin = [&](double p) { return std::bernoulli_distribution(p)(engine); };
  const auto sentence = [&](uint64_t s) {
    return static_cast<int64_t>(store.first_token(s + 1) - store.first_token(s));
  };
  double reference_read = 0, reference_tokens = 0, rows = 0, reference_random = 0;
  for (uint64_t d = 0; d < store.num_documents(); ++d) {
    const int64_t target = coin(0.1) ? draw(2, budget) : budget;
    const auto begin = static_cast<int64_t>(store.first_sentence(d)),
               end = static_cast<int64_t>(store.first_sentence(d + 1));
    std::vector<int64_t> chunk;
    for (int64_t i = begin; i < end; ++i) {
      chunk.push_back(sentence(static_cast<uint64_t>(i)));
      if (i + 1 < end && std::accumulate(chunk.begin(), chunk.end(), int64_t{0}) < target) continue;
      const auto n = static_cast<int64_t>(chunk.size()), split = n >= 2 ? draw(1, n - 1) : 1;
      int64_t a = std::accumulate(chunk.begin(), chunk.begin() + split, int64_t{0}), b = 0;
      const bool elsewhere = n == 1 || coin(0.5);
      if (elsewhere) {
        auto other = static_cast<uint64_t>(draw(0, static_cast<int64_t>(store.num_documents()) - 2));
        other += other >= d;
        auto s = static_cast<uint64_t>(draw(static_cast<int64_t>(store.first_sentence(other)),
                                            static_cast<int64_t>(store.first_sentence(other + 1)) - 1));
        for (; s < store.first_sentence(other + 1) && (b == 0 || b < target - a); ++s) b += sentence(s);
        i -= n - split;
      } else {
        b = std::accumulate(chunk.begin() + split, chunk.end(), int64_t{0});
      }
      while (a + b > budget) --(a > b ? a : b);
      reference_read += static_cast<double>(a + (elsewhere ? 0 : b));
      reference_tokens += static_cast<double>(a + b + 3);
      reference_random += elsewhere;
      ++rows;
      chunk.clear();
    }
  }
  const double reference_full = reference_tokens / (rows * (budget + 3));
  const auto all = static_cast<double>(store.num_tokens());
  CAPTURE(read / all, reference_read / all, full, reference_full, random, reference_random / rows);
  CHECK(read / all > reference_read / all - 0.01);
  CHECK(full > reference_full - 0.01);
  CHECK(std::abs(random - 0.5) <= std::abs(reference_random / rows - 0.5));
}

TEST_CASE("sentence order prediction swaps half of the pairs, and the label says which", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, {.packing = Packing::sentences, .length = 29}, Rng(1));
  Example example;
  int64_t swapped = 0, pairs = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    sampler.sample(i, example);
    const auto pair =
        make_segment_pair({.swap_prob = 0.5}, store, example, 29, Rng(2).stream("pair", example.epoch, example.item));
    if (example.cuts.empty()) {
      REQUIRE(pair.label == 1);  // a single sentence cannot be swapped
      continue;
    }
    REQUIRE(store.document_of(pair.a.first) == store.document_of(pair.b.first));
    REQUIRE((pair.b.first < pair.a.first) == (pair.label == 1));
    ++pairs;
    swapped += pair.label;
  }
  CHECK(std::abs(swapped - pairs * 0.5) < 4.5 * std::sqrt(pairs * 0.25));
}

TEST_CASE("full packing fills every row and puts a separator between documents", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  MlmConfig none;
  none.mlm_probability = 0;
  const Collator collator(store, {none}, data_of(40, 0, RowPacking::full), Rng(5), "train");
  const auto batch = collator.batch(0, 32);
  CHECK(batch.input_ids.size(1) == 40);
  CHECK(batch.tokens >= 31 * 40);  // only the last row of the text may be short
}

TEST_CASE("segment pairs of a single document are rejected with a message", "[objectives]") {
  TempDir dir;
  PrepareOptions options;
  options.tokenizer = dir.write("vocab.txt", tiny_vocabulary(20));
  options.inputs = {dir.write("one.txt", "w1q w2q w3q.\nw4q w5q.\nw6q w7q.\nw8q w9q.\n")};
  options.out = dir / "one";
  options.format = TextFormat::lines;
  options.held_out = 0;
  options.threads = 1;
  prepare(options);
  const TokenStore store(dir / "one", "train");
  REQUIRE(store.num_documents() == 1);
  const std::string reason =
      "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the text has one; separate "
      "documents by a blank line, remove that objective, or choose another packing";
  CHECK_THROWS_WITH(Collator(store, {NspConfig{}}, data_of(32), Rng(1), "train"), reason);
  CHECK_THROWS_WITH(Collator(store, {MlmConfig{}}, data_of(32, 0, RowPacking::sentence_pair), Rng(1), "train"), reason);
  CHECK(Collator(store, {MlmConfig{}}, data_of(32), Rng(1), "train").size() > 0);
  // In held-out text, a B of the same document would be labelled random.
  const std::string held_out =
      "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the held-out text has one; "
      "prepare the text again with more of it held out (--held-out, --valid), or remove that objective";
  CHECK_THROWS_WITH(Collator(store, {NspConfig{}}, data_of(32), Rng(1), "valid"), held_out);
  CHECK(Collator(store, {MlmConfig{}}, data_of(32), Rng(1), "valid").size() > 0);
}
