#include "objectives/permutation.h"

#include <map>
#include <set>

#include "objectives/collator.h"
#include "tests/objectives/draws.h"
#include "tests/objectives/small_xlnet.h"
#include "tests/objectives/store.h"
#include "tests/support/close_to.h"

using namespace cloze;

namespace {

/// All places of a running text.
Ids everything(const RunningText& text) {
  Ids ids(text.size());
  text.read(0, text.size(), ids.data());
  return ids;
}

Ids part_of(const Ids& ids, uint64_t first, uint64_t count) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(first), ids.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

constexpr int64_t kLength = 24, kReuse = 9;

XlnetConfig remembering(bool bi_data) {
  auto model = small_xlnet();
  model.mem_len = 13, model.reuse_len = kReuse, model.bi_data = bi_data, model.vocab_size = 200;
  return model;
}

DataConfig unpadded(RowPacking packing) {
  DataConfig data;
  data.max_seq_length = kLength, data.short_seq_prob = 0, data.packing = packing;
  return data;
}

}  // namespace

TEST_CASE("rows that carry a memory begin where the memory of the step before ends, half of them backwards",
          "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 60);
  const auto& special = store.tokenizer().special();
  const bool bi = GENERATE(false, true);
  const auto packing = GENERATE(RowPacking::full, RowPacking::segment_pair);
  const int64_t batch_size = 4, accumulation = 2, rows = batch_size * accumulation;
  const Collator collator(store, {PlmConfig{}}, unpadded(packing), Rng(1), "train", remembering(bi),
                          {batch_size, accumulation});
  const Collator other(store, {PlmConfig{}}, unpadded(packing), Rng(1), "train", remembering(bi),
                       {batch_size, accumulation});
  auto whole = everything(RunningText(store, special.sep, false));
  const uint64_t pieces = (whole.size() - kLength) / kReuse + 1,
                 steps = pieces / static_cast<uint64_t>(bi ? rows / 2 : rows);
  REQUIRE(collator.size() == steps * static_cast<uint64_t>(rows));
  const auto batch_at = [&](uint64_t step, uint64_t micro) {
    return collator.batch((step * accumulation + micro) * batch_size, batch_size);
  };
  std::set<std::pair<bool, int64_t>> begun;  // where rows start, in either direction
  for (uint64_t micro = 0; micro < accumulation; ++micro) {
    std::vector<Ids> read(batch_size);  // what each row puts into its memory
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
      REQUIRE(found != text.end());  // one contiguous part, from right to left in the second half
      begun.insert({backward, found - text.begin()});
    }
  }
  CHECK(begun.size() == static_cast<size_t>(rows));  // no two rows of a direction read one part
  // The next epoch reads the same parts with other orders; a batch is a function of its number, wherever and whenever
  // it is made.
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

TEST_CASE("a row of one text reads on behind what it puts into the memory", "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 60);
  const Collator collator(store, {PlmConfig{}}, unpadded(RowPacking::full), Rng(1), "train", remembering(true), {4, 1});
  for (uint64_t step = 0; step < 5; ++step) {
    const auto now = collator.batch(4 * step, 4), next = collator.batch(4 * step + 4, 4);
    for (int64_t row = 0; row < 4; ++row)
      CHECK(part_of(row_of(now, row), kReuse, kLength - 2 - kReuse) ==
            part_of(row_of(next, row), 0, kLength - 2 - kReuse));
    CHECK(now.token_type_ids.narrow(1, 0, kLength - 1).eq(0).all().item<bool>());
  }
}

TEST_CASE("two segments stand behind the reused part as [SEP] and segment ids say, and special tokens are no targets",
          "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 60);
  const auto& special = store.tokenizer().special();
  const int64_t reused = GENERATE(int64_t{0}, kReuse);
  auto model = remembering(false);
  if (reused == 0) model.mem_len = model.reuse_len = 0;  // rows come shuffled, and begin with A
  PlmConfig plm;
  plm.num_predict = kLength;  // all that may be
  const Collator collator(store, {plm}, unpadded(RowPacking::segment_pair), Rng(1), "train", model, {4, 1});
  const auto whole = everything(RunningText(store, special.sep, false));
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
      // The reused part and A are one piece of the text; so is B.
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
        if (const auto place = batch.target_positions[row][k].item<int64_t>(); place >= 0)
          targets.push_back(ids[static_cast<size_t>(place)]);
      const auto words =
          std::count_if(ids.begin(), ids.end(), [&](int64_t id) { return id != special.sep && id != special.cls; });
      CHECK(static_cast<int64_t>(targets.size()) == words);
    }
  }
  CHECK(follows > n / 5);
  CHECK(follows < n / 2);  // half of them less those that were cut between A and B
  CHECK(starts.size() > 50);
}

TEST_CASE("segments are split and cut as the published code does, one token at a time", "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 30);
  for (const bool backward : {false, true}) {
    const RunningText text(store, 3, backward);
    Mean elsewhere, place;
    std::map<uint64_t, int> chosen;  // of the cuts of one place
    for (uint64_t item = 0; item < 4000; ++item) {
      auto stream = stream_of(item, "pairs");
      const uint64_t budget = item % 2 ? 21 : 2 + stream.below(40),
                     first = item % 2 ? 40 : stream.below(text.size() - budget + 1);
      const auto pair = running_pair(text, first, budget, stream);
      // Where sentences end behind `first`, until `budget` is reached.
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
      if (!pair.forced) elsewhere.add(static_cast<double>(pair.label));
      if (pair.label == 1) {
        place.add(static_cast<double>(pair.b.first) / static_cast<double>(text.size()));
        continue;
      }
      REQUIRE(std::find(cuts.begin(), cuts.end(), pair.b.first) != cuts.end());
      if (item % 2) ++chosen[pair.b.first];
      uint64_t a = pair.b.first - first, b = end - pair.b.first;
      while (a + b > budget) --(a > b ? a : b);
      REQUIRE(pair.a.count == a);
      REQUIRE(pair.b.count == b);
    }
    CHECK(std::abs(elsewhere.mean() - 0.5) < 5 * elsewhere.error());
    CHECK(std::abs(place.mean() - 0.5) < 0.05);  // anywhere in the text
    double drawn = 0;
    for (const auto& [cut, times] : chosen) drawn += times;
    REQUIRE(chosen.size() >= 2);
    check_uniform(chosen, chosen.size(), drawn);
  }
}

TEST_CASE(
    "a token of the text that a target does not see changes nothing for it, neither directly nor through the memory",
    "[objectives][plm]") {
  at::NoGradGuard no_grad;
  TempDir dir;
  const auto store = tiny_store(dir, 200);
  const auto model = remembering(true);
  const auto network = network_of(model);
  const Collator collator(store, {PlmConfig{}}, unpadded(RowPacking::full), Rng(1), "train", model, {2, 1});
  const auto first = collator.batch(2, 2), second = collator.batch(4, 2);
  REQUIRE(second.continues);
  // Place p of a row of the first step is place p - kReuse of the second: a token is changed wherever it stands.
  const auto run = [&](int64_t changed) {
    auto before = first, now = second;
    before.input_ids = first.input_ids.clone(), now.input_ids = second.input_ids.clone();
    if (changed >= 0 && changed < kLength - 2) before.input_ids.select(1, changed).fill_(6);
    if (changed >= kReuse && changed - kReuse < kLength - 2) now.input_ids.select(1, changed - kReuse).fill_(6);
    std::vector<Tensor> memories, unread;
    network->losses(before, 0, &memories);
    return network->backbone->hidden({.input_ids = now.input_ids,
                                      .token_type_ids = now.token_type_ids,
                                      .visible = now.visible,
                                      .target_positions = now.target_positions,
                                      .backward = now.backward,
                                      .memories = memories,
                                      .new_memories = &unread});
  };
  const auto usual = run(-1);
  int64_t reached = 0, through_memory = 0;
  for (int64_t changed = 0; changed < kLength - 2 + kReuse; ++changed) {
    const auto moved = (run(changed) - usual).abs().amax(-1);  // [B, N]
    const int64_t place = changed - kReuse;                    // in the second step
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t n = 0; n < second.target_positions.size(1); ++n) {
        const auto target = second.target_positions[row][n].item<int64_t>();
        if (target < 0) continue;
        const double change = moved[row][n].item<double>();
        INFO("token " << place << ", target " << target);
        if (place == target || (target < kReuse && place >= kReuse))
          CHECK(change == 0);  // its own, and the second part for the first
        else if (place >= 0 && !second.visible[row][target][place].item<bool>())
          CHECK(change == 0);
        else
          reached += change > 1e-6, through_memory += place < 0 && change > 1e-6;
      }
  }
  CHECK(reached > 60);
  CHECK(through_memory > 30);
}

TEST_CASE("texts that are too short for a row, or for the rows of a step, are refused in words", "[objectives][plm]") {
  TempDir dir;
  const auto store = tiny_store(dir, 4);
  auto data = unpadded(RowPacking::full);
  const auto places = store.num_tokens() + store.num_documents() - 1, pieces = (places - kLength) / kReuse + 1;
  CHECK_THROWS_WITH(Collator(store, {PlmConfig{}}, data, Rng(1), "train", remembering(true), {64, 2}),
                    "the train text has " + std::to_string(pieces) +
                        " pieces of model.reuse_len 9 tokens, too few for the 64 rows of a step that go through it "
                        "side by side; prepare more text, or lower train.batch_size or train.accumulation");
  CHECK(Collator(store, {PlmConfig{}}, data, Rng(1), "valid", remembering(true)).size() ==
        pieces);  // held-out text is read without memory
  data.max_seq_length = 100000;
  CHECK_THROWS_WITH(Collator(store, {PlmConfig{}}, data, Rng(1), "train", remembering(true), {2, 1}),
                    "the train text has " + std::to_string(places) +
                        " tokens and separators, a row of plm is data.max_seq_length 100000 long; prepare more text, "
                        "or train with shorter rows");
}
