#include "core/contains.h"
#include "objectives/plm/permutation.h"

#include <map>
#include <set>

#include "objectives/collator.h"
#include "objectives/plm/plm.h"
#include "tests/objectives/draws.h"
#include "tests/objectives/small_xlnet.h"
#include "tests/objectives/store.h"
#include "tests/support/close_to.h"

using namespace cloze;

namespace {

/// The ids of a whole running text.
Ids all_ids(const RunningText& text) {
  Ids ids(text.size());
  text.read(0, text.size(), ids.data());
  return ids;
}

Ids part_of(const Ids& ids, uint64_t first, uint64_t count) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(first), ids.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

constexpr int64_t kLength = 24, kReuse = 9;

XlnetConfig with_mems(bool bi_data) {
  auto model = small_xlnet();
  model.mem_len = 13;
  model.reuse_len = kReuse;
  model.bi_data = bi_data;
  model.vocab_size = 200;
  return model;
}

DataConfig full_rows(RowPacking packing) {
  DataConfig data;
  data.max_seq_length = kLength;
  data.short_seq_prob = 0;
  data.packing = packing;
  return data;
}

}  // namespace

TEST_CASE("rows that carry mems start where the mems of the previous step end, half of them reversed",
          "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 60);
  const auto& special = store.tokenizer().special();
  const bool bi = GENERATE(false, true);
  const auto packing = GENERATE(RowPacking::full, RowPacking::segment_pair);
  const int64_t batch_size = 4, accumulation = 2, rows = batch_size * accumulation;
  const Collator collator(store, {PlmConfig{}}, full_rows(packing), Rng(1), "train", with_mems(bi),
                          {batch_size, accumulation});
  const Collator other(store, {PlmConfig{}}, full_rows(packing), Rng(1), "train", with_mems(bi),
                       {batch_size, accumulation});
  auto whole = all_ids(RunningText(store, special.sep, false));
  const uint64_t chunks = (whole.size() - kLength) / kReuse + 1,
                 steps = chunks / static_cast<uint64_t>(bi ? rows / 2 : rows);
  REQUIRE(collator.size() == steps * static_cast<uint64_t>(rows));
  const auto batch_at = [&](uint64_t step, uint64_t micro) {
    return collator.batch((step * accumulation + micro) * batch_size, batch_size);
  };
  std::set<std::pair<bool, int64_t>> begun;  // start offsets of rows, in either direction
  for (uint64_t micro = 0; micro < accumulation; ++micro) {
    std::vector<Ids> read(batch_size);  // the tokens that go into each row's mems
    for (uint64_t step = 0; step < steps; ++step) {
      const auto batch = batch_at(step, micro);
      CHECK(batch.continues == (step > 0));
      CHECK_FALSE(batch.attention_mask.defined());
      CHECK(batch.input_ids.size(1) == kLength);
      for (int64_t row = 0; row < batch_size; ++row) {
        const auto ids = row_of(batch, row);
        read[static_cast<size_t>(row)].insert(read[static_cast<size_t>(row)].end(), ids.begin(), ids.begin() + kReuse);
        CHECK(ids[kLength - 1] == special.cls);
        CHECK(ids[kLength - 2] == special.sep);
      }
    }
    for (int64_t row = 0; row < batch_size; ++row) {
      const bool backward = bi && row >= batch_size / 2;
      auto text = whole;
      if (backward) std::reverse(text.begin(), text.end());
      const auto& got = read[static_cast<size_t>(row)];
      const auto found = std::search(text.begin(), text.end(), got.begin(), got.end());
      REQUIRE(found != text.end());  // one contiguous part, reversed in the second half
      begun.insert({backward, found - text.begin()});
    }
  }
  CHECK(begun.size() == static_cast<size_t>(rows));  // no two rows of a direction read the same part
  // The next epoch reads the same parts with other orders; a batch is a function of its index, independent of earlier
  // calls.
  const auto again = batch_at(steps, 1), first = batch_at(0, 1);
  CHECK_FALSE(again.continues);
  for (int64_t row = 0; row < batch_size; ++row)
    CHECK(part_of(row_of(again, row), 0, kReuse) == part_of(row_of(first, row), 0, kReuse));
  CHECK_FALSE(at::equal(again.visible, first.visible));
  const auto late = other.batch(7 * batch_size, batch_size), early = collator.batch(7 * batch_size, batch_size);
  CHECK(at::equal(late.input_ids, early.input_ids));
  CHECK(at::equal(late.visible, early.visible));
  CHECK(at::equal(late.target_positions, early.target_positions));
}

TEST_CASE("a row without segment pairs continues after the tokens that go into the mems", "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 60);
  const Collator collator(store, {PlmConfig{}}, full_rows(RowPacking::full), Rng(1), "train", with_mems(true), {4, 1});
  for (uint64_t step = 0; step < 5; ++step) {
    const auto now = collator.batch(4 * step, 4), next = collator.batch(4 * step + 4, 4);
    for (int64_t row = 0; row < 4; ++row)
      CHECK(part_of(row_of(now, row), kReuse, kLength - 2 - kReuse) ==
            part_of(row_of(next, row), 0, kLength - 2 - kReuse));
    CHECK(now.token_type_ids.narrow(1, 0, kLength - 1).eq(0).all().item<bool>());
  }
}

TEST_CASE("a segment pair follows the reused part, with [SEP] and segment ids, and special tokens are no targets",
          "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 60);
  const auto& special = store.tokenizer().special();
  const int64_t reused = GENERATE(int64_t{0}, kReuse);
  auto model = with_mems(false);
  if (reused == 0) model.mem_len = model.reuse_len = 0;  // rows are shuffled, and start with A
  PlmConfig plm;
  plm.num_predict = kLength;  // all that are allowed
  const Collator collator(store, {plm}, full_rows(RowPacking::segment_pair), Rng(1), "train", model, {4, 1});
  const auto whole = all_ids(RunningText(store, special.sep, false));
  int64_t follows = 0, n = 0;
  std::set<Ids> starts;
  for (uint64_t first = 0; first < 400; first += 4) {
    const auto batch = collator.batch(first, 4);
    CHECK_FALSE(batch.attention_mask.defined());
    for (int64_t row = 0; row < 4; ++row, ++n) {
      const auto ids = row_of(batch, row);
      const auto types = batch.token_type_ids[row].contiguous();
      Ids segments(types.data_ptr<int64_t>(), types.data_ptr<int64_t>() + kLength);
      REQUIRE(std::is_sorted(segments.begin(), segments.end()));
      const auto second = std::find(segments.begin(), segments.end(), 1) - segments.begin();
      REQUIRE(std::count(segments.begin(), segments.end(), 2) == 1);
      REQUIRE(second > reused + 1);   // A is not empty
      REQUIRE(second < kLength - 2);  // nor is B
      CHECK(ids[static_cast<size_t>(second) - 1] == special.sep);
      CHECK(ids[kLength - 2] == special.sep);
      CHECK(ids[kLength - 1] == special.cls);
      // The reused part and A are contiguous in the text; so is B.
      const auto a = part_of(ids, 0, static_cast<uint64_t>(second - 1)),
                 b = part_of(ids, static_cast<uint64_t>(second), static_cast<uint64_t>(kLength - 2 - second));
      CHECK(std::search(whole.begin(), whole.end(), a.begin(), a.end()) != whole.end());
      CHECK(std::search(whole.begin(), whole.end(), b.begin(), b.end()) != whole.end());
      auto both = a;
      both.insert(both.end(), b.begin(), b.end());
      follows += std::search(whole.begin(), whole.end(), both.begin(), both.end()) != whole.end();
      starts.insert(part_of(ids, 0, 5));
      Ids targets;
      for (int64_t k = 0; k < batch.target_positions.size(1); ++k)
        if (const auto target = batch.target_positions[row][k].item<int64_t>(); target >= 0)
          targets.push_back(ids[static_cast<size_t>(target)]);
      const auto words =
          std::count_if(ids.begin(), ids.end(), [&](int64_t id) { return id != special.sep && id != special.cls; });
      CHECK(static_cast<int64_t>(targets.size()) == words);
    }
  }
  CHECK(follows > n / 5);
  CHECK(follows < n / 2);  // half, less those truncated between A and B
  CHECK(starts.size() > 50);
}

TEST_CASE("segments are split and truncated as in the published code", "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 30);
  for (const bool backward : {false, true}) {
    const RunningText text(store, 3, backward);
    Mean random_next, start;
    std::map<uint64_t, int> chosen;  // of the cuts at one offset
    for (uint64_t item = 0; item < 4000; ++item) {
      auto stream = stream_of(item, "pairs");
      const uint64_t budget = item % 2 ? 21 : 2 + stream.below(40),
                     first = item % 2 ? 40 : stream.below(text.size() - budget + 1);
      const auto pair = running_pair(text, first, budget, stream);
      // The sentence ends after `first`, until `budget` is reached.
      std::vector<uint64_t> cuts;
      uint64_t end = first + 1;
      while (end < text.size() && (text.sentence(end).first != end || end - first < budget)) {
        if (text.sentence(end).first == end) cuts.push_back(end);
        ++end;
      }
      REQUIRE(pair.a.first == first);
      REQUIRE(pair.a.count + pair.b.count == budget);
      REQUIRE(pair.b.count >= 1);
      REQUIRE(pair.b.first + pair.b.count <= text.size());
      REQUIRE(text.sentence(pair.b.first).first == pair.b.first);
      REQUIRE(pair.forced == cuts.empty());
      if (!pair.forced) random_next.add(static_cast<double>(pair.label));
      if (pair.label == 1) {
        start.add(static_cast<double>(pair.b.first) / static_cast<double>(text.size()));
        continue;
      }
      REQUIRE(contains(cuts, pair.b.first));
      if (item % 2) ++chosen[pair.b.first];
      uint64_t a = pair.b.first - first, b = end - pair.b.first;
      while (a + b > budget) --(a > b ? a : b);
      REQUIRE(pair.a.count == a);
      REQUIRE(pair.b.count == b);
    }
    CHECK(std::abs(random_next.mean() - 0.5) < 5 * random_next.error());
    CHECK(std::abs(start.mean() - 0.5) < 0.05);  // anywhere in the text
    double drawn = 0;
    for (const auto& [cut, times] : chosen) drawn += times;
    REQUIRE(chosen.size() >= 2);
    check_uniform(chosen, chosen.size(), drawn);
  }
}

TEST_CASE("a target does not depend on tokens that it may not attend to, neither directly nor through the mems",
          "[objectives][plm]") {
  at::NoGradGuard no_grad;
  TempDir dir;
  const auto store = tiny_store(dir, 200);
  const auto model = with_mems(true);
  const auto network = network_of(model);
  const Collator collator(store, {PlmConfig{}}, full_rows(RowPacking::full), Rng(1), "train", model, {2, 1});
  const auto first = collator.batch(2, 2), second = collator.batch(4, 2);
  REQUIRE(second.continues);
  // Position p of a row in the first step is position p - kReuse in the second: a token is changed in both.
  const auto run = [&](int64_t changed) {
    auto before = first, now = second;
    before.input_ids = first.input_ids.clone();
    now.input_ids = second.input_ids.clone();
    if (changed >= 0 && changed < kLength - 2) before.input_ids.select(1, changed).fill_(6);
    if (changed >= kReuse && changed - kReuse < kLength - 2) now.input_ids.select(1, changed - kReuse).fill_(6);
    std::vector<Tensor> mems, unused;
    network->losses(before, 0, &mems);
    return network->backbone->hidden({.input_ids = now.input_ids,
                                      .token_type_ids = now.token_type_ids,
                                      .visible = now.visible,
                                      .target_positions = now.target_positions,
                                      .backward = now.backward,
                                      .mems = mems,
                                      .new_mems = &unused});
  };
  const auto usual = run(-1);
  int64_t reached = 0, through_mems = 0;
  for (int64_t changed = 0; changed < kLength - 2 + kReuse; ++changed) {
    const auto moved = (run(changed) - usual).abs().amax(-1);  // [B, N]
    const int64_t position = changed - kReuse;                 // in the second step
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t n = 0; n < second.target_positions.size(1); ++n) {
        const auto target = second.target_positions[row][n].item<int64_t>();
        if (target < 0) continue;
        const double change = moved[row][n].item<double>();
        INFO("token " << position << ", target " << target);
        if (position == target || (target < kReuse && position >= kReuse))
          CHECK(change == 0);  // its own token; the second part for the first
        else if (position >= 0 && !second.visible[row][target][position].item<bool>())
          CHECK(change == 0);
        else
          reached += change > 1e-6, through_mems += position < 0 && change > 1e-6;
      }
  }
  CHECK(reached > 60);
  CHECK(through_mems > 30);
}

TEST_CASE("texts that are too short for a row, or for the rows of a step, are rejected with a message",
          "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 4);
  auto data = full_rows(RowPacking::full);
  const auto length = store.num_tokens() + store.num_documents() - 1, chunks = (length - kLength) / kReuse + 1;
  CHECK_THROWS_WITH(Collator(store, {PlmConfig{}}, data, Rng(1), "train", with_mems(true), {64, 2}),
                    "the train text has " + std::to_string(chunks) +
                        " chunks of model.reuse_len 9 tokens, too few for the 64 rows of a step that read it in "
                        "parallel; prepare more text, or lower train.batch_size or train.accumulation");
  CHECK(Collator(store, {PlmConfig{}}, data, Rng(1), "valid", with_mems(true)).size() ==
        chunks);  // held-out text is read without mems
  data.max_seq_length = 100000;
  CHECK_THROWS_WITH(
      Collator(store, {PlmConfig{}}, data, Rng(1), "train", with_mems(true), {2, 1}),
      "the train text has " + std::to_string(length) +
          " tokens and separators, but a row of plm has data.max_seq_length 100000 tokens; prepare more text, "
          "or train with shorter rows");
}
