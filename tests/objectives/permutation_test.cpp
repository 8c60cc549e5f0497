#include "models/families/bert.h"
#include "objectives/plm/permutation.h"

#include <map>
#include <numeric>
#include <set>

#include "objectives/collator.h"
#include "objectives/network.h"
#include "tests/objectives/draws.h"
#include "tests/objectives/small_xlnet.h"
#include "tests/objectives/store.h"
#include "tests/support/close_to.h"

using namespace cloze;
using Flags = std::vector<uint8_t>;

namespace {

/// Rows of `length` tokens with [SEP] and [CLS] at their end, and orders drawn by XLNet's rules.
Batch some_batch(int64_t rows, int64_t length, uint64_t seed) {
  const PlmRules rules{.num_predict = 7, .reuse_len = length / 2, .perm_size = 6};
  Batch batch;
  batch.input_ids = at::arange(rows * length, at::kLong).mul(11).remainder(25).add(6).view({rows, length});
  batch.input_ids.narrow(1, length - 2, 1).fill_(4);
  batch.input_ids.narrow(1, length - 1, 1).fill_(3);
  batch.token_type_ids = at::zeros_like(batch.input_ids);
  batch.visible = at::empty({rows, length, length}, at::kBool);
  batch.target_positions = at::full({rows, 7}, -1, at::kLong);
  std::vector<uint8_t> functional(static_cast<size_t>(length)), starts(static_cast<size_t>(length), 1);
  functional[static_cast<size_t>(length - 2)] = functional[static_cast<size_t>(length - 1)] = 1;
  std::vector<int64_t> positions, labels;
  for (int64_t b = 0; b < rows; ++b) {
    PlmExample example;
    auto stream = Rng(seed).stream("plm", 0, static_cast<uint64_t>(b));
    plm(functional, starts, rules, stream, example);
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j)
        batch.visible[b][i][j] = example.sees(static_cast<size_t>(i), static_cast<size_t>(j));
    for (size_t n = 0; n < example.targets.size(); ++n) {
      batch.target_positions[b][static_cast<int64_t>(n)] = example.targets[n];
      positions.push_back(7 * b + static_cast<int64_t>(n));
      labels.push_back(batch.input_ids[b][example.targets[n]].item<int64_t>());
    }
  }
  batch.positions = at::tensor(positions, at::kLong);
  batch.labels = at::tensor(labels, at::kLong);
  return batch;
}

}  // namespace

TEST_CASE("predicted spans match a simulation of the published rules", "[objectives][plm]") {
  // 256 tokens, three of four start a word, 43 targets. Means of 20000 draws of a separate implementation of the rules.
  Mean runs, runs_at_words, front, back;
  const PlmRules rules;
  for (uint64_t item = 0; item < 8000; ++item) {
    auto stream = stream_of(item);
    const auto starts = random_starts(256, 0.25, stream);
    const auto masked = plm_spans(starts, 43, rules, stream);
    REQUIRE(std::count(masked.begin(), masked.end(), 1) == 43);
    int all = 0, words = 0;
    for (size_t i = 0; i < 256; ++i) {
      if (!masked[i] || (i > 0 && masked[i - 1])) continue;
      ++all;
      words += starts[i];
    }
    runs.add(all);
    runs_at_words.add(words);
    front.add(static_cast<double>(std::count(masked.begin(), masked.begin() + 64, 1)));
    back.add(static_cast<double>(std::count(masked.end() - 64, masked.end(), 1)));
  }
  CHECK(std::abs(runs.mean() - 22.575) < 6 * runs.error());
  CHECK(std::abs(runs_at_words.mean() - 20.773) < 6 * runs_at_words.error());
  CHECK(std::abs(front.mean() - 10.836) < 6 * front.error());
  CHECK(std::abs(back.mean() - 10.551) < 6 * back.error());
}

TEST_CASE("the number of predicted tokens is exact, even if no token starts a word or all are targets",
          "[objectives][plm]") {
  auto stream = stream_of(0);
  for (const int64_t goal : {-1, 0, 1, 5, 20, 30}) {
    const auto masked = plm_spans(Flags(20, 0), goal, {}, stream);
    CHECK(std::count(masked.begin(), masked.end(), 1) == std::clamp<int64_t>(goal, 0, 20));
  }
  CHECK(plm_spans(Flags{}, 5, {}, stream).empty());
  CHECK_THROWS_AS(plm_spans(Flags(20, 1), 5, PlmRules{.max_ngram = 0}, stream), ConfigError);
  CHECK_THROWS_AS(plm_spans(Flags(20, 1), 5, PlmRules{.mask_beta = 0}, stream), ConfigError);
  const auto tight = plm_spans(Flags(20, 1), 5, PlmRules{.mask_beta = 100}, stream);  // contexts under one token
  CHECK(std::count(tight.begin(), tight.end(), 1) == 5);
}

TEST_CASE("a span that would reach the end of its part is dropped", "[objectives][plm]") {
  int last = 0;
  for (uint64_t item = 0; item < 400; ++item) {
    auto stream = stream_of(item);
    last += plm_spans(Flags{0, 1}, 1, PlmRules{.mask_alpha = 1, .max_ngram = 1},
                      stream)[1];  // the only word start is the last token: a random single token instead
  }
  CHECK(std::abs(last - 200) < 45);
}

namespace {

/// Number of targets into whose query their own token leaks, in four layers of two streams. Query i and content i
/// attend to content j of the layer below unless blocked(i, j); content i also attends to itself.
template <class Blocked>
int leaks(size_t n, const Ids& targets, const Blocked& blocked) {
  std::vector<std::vector<bool>> content(n, std::vector<bool>(n));
  for (size_t i = 0; i < n; ++i) content[i][i] = true;
  std::set<int64_t> leaked;
  for (int layer = 0; layer < 4; ++layer) {
    auto next = content;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        for (size_t k = 0; k < n && !blocked(i, j); ++k)
          if (content[j][k]) next[i][k] = true;
    for (const auto t : targets)
      for (size_t j = 0; j < n; ++j)
        if (!blocked(static_cast<size_t>(t), j) && content[j][static_cast<size_t>(t)]) leaked.insert(t);
    content = next;
  }
  return static_cast<int>(leaked.size());
}

/// 16 tokens, 2 of them functional, 5 of the others predicted.
void choose_tokens(Stream& stream, Flags& masked, Flags& functional) {
  masked.assign(16, 0);
  functional.assign(16, 0);
  const auto set = [&](Flags& flags, int count) {
    while (count > 0) {
      const auto i = stream.below(16);
      if (!masked[i] && !functional[i]) flags[i] = 1, --count;
    }
  };
  set(functional, 2);
  set(masked, 5);
}

}  // namespace

TEST_CASE("no target's own token leaks into its query in any layer; with Hugging Face's rule it would",
          "[objectives][plm]") {
  int own = 0, huggingface = 0;
  for (uint64_t item = 0; item < 300; ++item) {
    auto stream = stream_of(item);
    Flags masked, functional;
    choose_tokens(stream, masked, functional);
    PlmExample example;
    local_permutation(masked, functional, item % 3 == 0 ? 5 : 16, stream, example);
    REQUIRE(example.targets.size() == 5);
    own += leaks(16, example.targets, [&](size_t i, size_t j) { return !example.sees(i, j); }) > 0;
    // not sees(i, j) = rank[i] <= rank[j] and j is predicted; all but plain tokens have ranks.
    std::vector<int64_t> rank(16);
    std::iota(rank.begin(), rank.end(), 0);
    for (size_t i = 0; i < 16; ++i) std::swap(rank[i], rank[i + stream.below(16 - i)]);
    for (size_t i = 0; i < 16; ++i)
      if (!masked[i] && !functional[i]) rank[i] = -1;
    huggingface += leaks(16, example.targets, [&](size_t i, size_t j) { return rank[i] <= rank[j] && masked[j]; }) > 0;
  }
  CHECK(own == 0);
  CHECK(huggingface > 250);
}

TEST_CASE("nothing leaks in both parts together, and the first does not attend to the second", "[objectives][plm]") {
  PlmExample example;
  for (uint64_t item = 0; item < 200; ++item) {
    auto stream = stream_of(item);
    const size_t n = stream.below(40);
    auto starts = random_starts(n, 0.25, stream), functional = random_starts(n, 0.9, stream);
    const PlmRules rules{.num_predict = static_cast<int64_t>(stream.below(20)),
                         .reuse_len = static_cast<int64_t>(stream.below(25)),
                         .perm_size = static_cast<int64_t>(stream.below(20))};
    plm(functional, starts, rules, stream, example);
    const auto split = std::min<size_t>(n, static_cast<size_t>(rules.reuse_len));
    REQUIRE(example.query_rank.size() == n);
    REQUIRE(std::is_sorted(example.targets.begin(), example.targets.end()));
    for (const auto t : example.targets) REQUIRE(!functional[static_cast<size_t>(t)]);
    REQUIRE(leaks(n, example.targets, [&](size_t i, size_t j) { return !example.sees(i, j); }) == 0);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if ((i < split) != (j < split)) REQUIRE(example.sees(i, j) == (i >= split));
  }
}

TEST_CASE("a token does not see another where self_rank[i] <= rank[j] and j is not plain", "[objectives][plm]") {
  for (uint64_t item = 0; item < 100; ++item) {
    auto stream = stream_of(item);
    Flags masked, functional;
    choose_tokens(stream, masked, functional);
    if (item % 2) masked[5] = functional[5] = 1;  // a functional token that is chosen stays functional
    PlmExample example;
    auto copy = stream;
    local_permutation(masked, functional, 0, stream, example);
    // The order, drawn with the same random numbers.
    std::vector<int64_t> rank(16);
    std::iota(rank.begin(), rank.end(), 0);
    for (size_t i = 0; i < 16; ++i) std::swap(rank[i], rank[i + copy.below(16 - i)]);
    Ids targets;
    for (size_t i = 0; i < 16; ++i) {
      const bool target = masked[i] && !functional[i], plain = !masked[i] && !functional[i];
      if (target) targets.push_back(static_cast<int64_t>(i));
      const int64_t self = plain ? 0 : target ? rank[i] : rank[i] + 1;
      for (size_t j = 0; j < 16; ++j) REQUIRE(example.sees(i, j) != (self <= rank[j] && (masked[j] || functional[j])));
    }
    REQUIRE(example.targets == targets);
  }
}

TEST_CASE("targets have one random order, and chunks follow each other", "[objectives][plm]") {
  std::map<int64_t, int> first;
  for (uint64_t item = 0; item < 4000; ++item) {
    auto stream = stream_of(item);
    PlmExample example;
    local_permutation(Flags(8, 1), Flags(8, 0), 4, stream, example);
    std::vector<int> visible;
    for (size_t i = 0; i < 8; ++i) {
      int others = 0;
      for (size_t j = 0; j < 8; ++j) others += example.sees(i, j);
      visible.push_back(others);
      if (others == 0) ++first[static_cast<int64_t>(i)];
    }
    for (size_t i = 0; i < 4; ++i) REQUIRE(visible[i + 4] == visible[i] + 4);  // the same permutation in every chunk
    std::sort(visible.begin(), visible.end());
    REQUIRE(visible == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  }
  check_uniform(first, 4, 4000);
}

TEST_CASE("in the two halves of 512 tokens 43 and 42 are predicted", "[objectives][plm]") {
  auto stream = stream_of(0);
  PlmExample example;
  plm(Flags(512, 0), Flags(512, 1), {}, stream, example);
  REQUIRE(example.targets.size() == 85);
  CHECK(std::count_if(example.targets.begin(), example.targets.end(), [](int64_t t) { return t < 256; }) == 43);
  plm(Flags(100, 0), Flags(100, 1), {}, stream, example);  // ends in the first part
  CHECK(example.targets.size() == 85);
  plm(Flags{}, Flags{}, {}, stream, example);
  CHECK(example.targets.empty());
  CHECK(example.key_rank.empty());
}

TEST_CASE("permutation language modelling accepts every length and any flags", "[objectives][plm]") {
  PlmExample example;
  for (uint64_t item = 0; item < 3000; ++item) {
    auto stream = stream_of(item, "any");
    const auto starts = random_starts(stream.below(9), stream.uniform(), stream);
    plm(starts, starts, PlmRules{.num_predict = static_cast<int64_t>(stream.below(8)), .reuse_len = 4, .perm_size = 3},
        stream, example);
    REQUIRE(example.key_rank.size() == starts.size());
  }
}

TEST_CASE("the prediction of a target does not depend on its own token, for orders drawn by XLNet's rules",
          "[objectives][plm]") {
  at::NoGradGuard no_grad;
  const auto network = network_of(small_xlnet());
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const auto batch = some_batch(2, 18, seed);
    const auto run = [&](const Tensor& ids) {
      return network->backbone->hidden({.input_ids = ids,
                                        .token_type_ids = batch.token_type_ids,
                                        .visible = batch.visible,
                                        .target_positions = batch.target_positions});
    };
    const auto before = run(batch.input_ids);
    int64_t moved = 0;
    for (int64_t position = 0; position < 18; ++position) {
      auto ids = batch.input_ids.clone();
      ids.select(1, position).fill_(5);
      const auto change = (run(ids) - before).abs().amax(-1);  // [B, N]
      const auto own = batch.target_positions.eq(position);
      CHECK(change.masked_select(own).sum().item<double>() == 0);
      moved += change.gt(1e-4).sum().item<int64_t>();
    }
    CHECK(moved > 50);  // other predictions do
  }
}

TEST_CASE("the plm loss is the cross entropy of the targets, with the tied embedding and a trained bias",
          "[objectives][plm]") {
  const auto network = network_of(small_xlnet());
  FlatParameters flat(collect_params(*network), at::kCPU);
  const auto batch = some_batch(2, 18, 1);
  std::vector<Tensor> mems;
  const auto parts = network->losses(batch, 0, &mems);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].name == "plm");
  CHECK(parts[0].count == batch.positions.numel());
  CHECK(parts[0].count >= 8);
  CHECK(mems.size() == 3);
  CHECK(mems[0].sizes() == at::IntArrayRef({2, 18, 16}));
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
  const auto outputs = network->outputs({.input_ids = batch.input_ids,
                                         .token_type_ids = batch.token_type_ids,
                                         .visible = batch.visible,
                                         .target_positions = batch.target_positions});
  CHECK(outputs[0].second.sizes() == at::IntArrayRef({2, 7, 16}));
  const auto logits = outputs[1].second.flatten(0, 1).index_select(0, batch.positions).to(at::kDouble);
  CHECK(outputs[1].first == "logits");
  CHECK(error_of(outputs[1].second,
                 at::matmul(outputs[0].second, network->backbone->token_embedding().value().t()) + bias) < 1e-5);
  const auto wanted = -at::log_softmax(logits, -1).gather(1, batch.labels.unsqueeze(1)).sum();
  CHECK(parts[0].sum.item<double>() == Approx(wanted.item<double>()).epsilon(1e-5));
}

TEST_CASE("a batch carries its mems to the next segment", "[objectives][plm]") {
  const auto network = network_of(small_xlnet());
  auto batch = some_batch(2, 18, 1);
  std::vector<Tensor> mems;
  const auto without_mems = network->losses(batch, 0, &mems)[0].sum.item<double>();
  batch.mems = mems;
  CHECK(batch.tensors().size() == Batch().tensors().size() + batch.mems.size());  // moved to a device with the rest
  const auto with_mems = network->losses(batch, 0, &mems)[0].sum.item<double>();
  CHECK(mems[0].size(1) == 36);
  CHECK(std::abs(without_mems - with_mems) > 1e-3);
}

TEST_CASE("plm without xlnet, and xlnet without plm, are rejected with a message", "[objectives][plm]") {
  BertConfig bert;
  bert.vocab_size = 31;
  CHECK_THROWS_WITH(Network(bert, {default_objective<PlmConfig>()}),
                    "objective 'plm' needs a query stream, which model.architecture encoder does not have; choose "
                    "model kind: xlnet");
  CHECK_THROWS_WITH(Network(small_xlnet(), {default_objective<ClmConfig>()}),
                    "objective 'clm' does not support model.architecture two_stream, which predicts from its query "
                    "stream; choose objective kind: plm");
}

TEST_CASE("rows of plm keep their text, are padded on the left, and no target attends to itself",
          "[objectives][xlnet]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  DataConfig data;
  data.max_seq_length = 24;
  data.short_seq_prob = 0.3;
  const Collator collator(store, {default_objective<PlmConfig>()}, data, Rng(1), "train", XlnetConfig{});
  const auto& special = store.tokenizer().special();
  int64_t predicted = 0, tokens = 0;
  for (uint64_t first = 0; first < 40; first += 8) {
    const auto batch = collator.batch(first, 8);
    const int64_t width = batch.input_ids.size(1), columns = batch.target_positions.size(1);
    CHECK(width <= 24);
    for (int64_t row = 0; row < 8; ++row) {
      const auto ids = batch.input_ids[row];
      const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width,
                    from = width - length;
      CHECK(ids[width - 1].item<int64_t>() == special.cls);
      CHECK(ids[width - 2].item<int64_t>() == special.sep);
      CHECK(ids.narrow(0, 0, from).eq(special.pad).all().item<bool>());
      CHECK(batch.token_type_ids[row][width - 1].item<int64_t>() == 2);
      CHECK_FALSE(batch.visible[row].narrow(1, 0, from).any().item<bool>());
      for (int64_t k = 0; k < columns; ++k) {
        const auto target = batch.target_positions[row][k].item<int64_t>();
        if (target < 0) continue;
        ++predicted;
        CHECK(target >= from);
        CHECK_FALSE(batch.visible[row][target][target].item<bool>());
      }
      tokens += length;
    }
    const auto rows = batch.positions.div(columns, "floor"),
               at = batch.target_positions.flatten().index_select(0, batch.positions);
    CHECK(at::equal(batch.labels, batch.input_ids.flatten().index_select(0, rows * width + at)));  // the unchanged text
    const auto alone = collator.batch(first + 3, 1);
    const int64_t own = alone.input_ids.size(1);
    CHECK(at::equal(alone.visible[0], batch.visible[3].narrow(0, width - own, own).narrow(1, width - own, own)));
  }
  CHECK(static_cast<double>(predicted) / static_cast<double>(tokens) == Approx(1.0 / 6).margin(0.04));
}

TEST_CASE("the spans of a reversed text mirror those of the original text", "[objectives][plm]") {
  for (uint64_t item = 0; item < 200; ++item) {
    auto stream = stream_of(item);
    auto starts = random_starts(40, 0.4, stream), functional = random_starts(40, 0.95, stream);
    PlmRules rules{.num_predict = 9, .reuse_len = 0};
    PlmExample forwards, backwards;
    auto again = stream;
    plm(functional, starts, rules, stream, forwards);
    std::reverse(starts.begin(), starts.end());
    std::reverse(functional.begin(), functional.end());
    rules.backward = true;
    plm(functional, starts, rules, again, backwards);
    Ids mirrored;
    for (auto t = forwards.targets.rbegin(); t != forwards.targets.rend(); ++t) mirrored.push_back(39 - *t);
    REQUIRE(backwards.targets == mirrored);
  }
}

TEST_CASE(
    "with bi_data every other sequence has its text reversed before [SEP] [CLS], whatever the batch size; all else is "
    "equal",
    "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  DataConfig data;
  data.max_seq_length = 20;
  auto model = small_xlnet();
  const Collator plain(store, {default_objective<PlmConfig>()}, data, Rng(1), "valid", model);
  model.bi_data = true;
  const Collator both(store, {default_objective<PlmConfig>()}, data, Rng(1), "valid", model);
  for (const int64_t count : {1, 4, 5}) {
    const auto a = plain.batch(12, count), b = both.batch(12, count);
    CHECK(a.input_ids.sizes() == b.input_ids.sizes());
    for (int64_t row = 0; row < count; ++row) {
      auto wanted = row_of(a, row);
      const auto padding = std::count(wanted.begin(), wanted.end(), store.tokenizer().special().pad);
      if (row % 2 == 1) std::reverse(wanted.begin() + padding, wanted.end() - 2);
      CHECK(row_of(b, row) == wanted);
      CHECK((b.backward.defined() && b.backward[row].item<bool>()) == (row % 2 == 1));
    }
  }
}
