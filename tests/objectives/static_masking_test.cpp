// Static masking: maskings that return with the epochs.
#include <algorithm>

#include "models/families/electra.h"
#include "models/families/gpt2.h"
#include "objectives/collator.h"
#include "objectives/kinds.h"
#include "objectives/special_tokens.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// What a network reads and predicts in a row: ids, segments, predicted positions and labels, the label of a pair.
using Row = std::vector<int64_t>;
using Rows = std::vector<Row>;

void append(Row& row, const Tensor& values) {
  row.push_back(-1);
  if (!values.defined()) return;
  const auto flat = values.to(at::kLong).flatten().contiguous();
  row.insert(row.end(), flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel());
}

/// The rows of an epoch in the order in which they are read.
Rows epoch(const Collator& collator, uint64_t number) {
  Rows rows;
  for (uint64_t i = 0; i < collator.size(); ++i) {
    const auto batch = collator.batch(number * collator.size() + i, 1);
    Row row;
    for (const auto& part : {batch.input_ids, batch.token_type_ids, batch.positions, batch.labels, batch.pair_label})
      append(row, part);
    rows.push_back(row);
  }
  return rows;
}

Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

DataConfig rows_of(int64_t length) {
  DataConfig data;
  data.max_seq_length = length;
  data.short_seq_prob = 0;
  return data;
}

/// The rows of training steps.
Collator training(const TokenStore& store, const Objectives& objectives, const ModelConfig& model = {}) {
  return {store, objectives, rows_of(32), Rng(5), "train", model, {.batch_size = 1}};
}

MlmConfig static_mlm(int64_t dupe_factor) {
  MlmConfig mlm;
  mlm.dupe_factor = dupe_factor;
  return mlm;
}

}  // namespace

TEST_CASE("the masks of static masking return after dupe_factor epochs, in another order", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto fixed = training(store, {static_mlm(3)});
  std::vector<Rows> read;
  for (uint64_t number = 0; number < 5; ++number) read.push_back(epoch(fixed, number));
  CHECK(sorted(read[3]) == sorted(read[0]));
  CHECK(sorted(read[4]) == sorted(read[1]));
  CHECK(read[3] != read[0]);
  CHECK(sorted(read[1]) != sorted(read[0]));
  CHECK(sorted(read[2]) != sorted(read[0]));
  CHECK(sorted(read[2]) != sorted(read[1]));
}

TEST_CASE("static masking is dynamic masking until its masks return", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto fixed = training(store, {static_mlm(2)}), dynamic = training(store, {MlmConfig{}});
  CHECK(epoch(fixed, 0) == epoch(dynamic, 0));
  CHECK(epoch(fixed, 1) == epoch(dynamic, 1));
  CHECK(sorted(epoch(fixed, 2)) != sorted(epoch(dynamic, 2)));
  CHECK(sorted(epoch(dynamic, 2)) != sorted(epoch(dynamic, 0)));
}

TEST_CASE("under static masking the segments of a pair return with its masks", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  auto without_masks = static_mlm(2);
  without_masks.mlm_probability = 0;
  for (const auto& mlm : {static_mlm(2), without_masks})
    for (const ObjectiveConfig& pairs : {ObjectiveConfig{NspConfig{}}, ObjectiveConfig{SopConfig{}}}) {
      INFO(kind_of(pairs) << ", mlm_probability " << mlm.mlm_probability);
      const auto collator = training(store, {mlm, pairs});
      const auto first = sorted(epoch(collator, 0));
      CHECK(first != sorted(epoch(collator, 1)));
      CHECK(first == sorted(epoch(collator, 2)));
    }
}

TEST_CASE("mixtures, the generator of rtd and mntp have static masking too", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  auto mixed = static_mlm(2);
  mixed.mixture.resize(2);
  mixed.mixture[1].mlm_probability = 0.5;
  RtdConfig rtd;
  rtd.mlm.dupe_factor = 2;
  MntpConfig mntp;
  mntp.initial_mlm_probability = 0;
  mntp.dupe_factor = 2;
  ModelConfig decoder = Gpt2Config{};
  take_special_ids(decoder, store.tokenizer().special());
  const std::vector<std::pair<ObjectiveConfig, ModelConfig>> cases{
      {mixed, BertConfig{}}, {rtd, ElectraConfig{}}, {mntp, BertConfig{}}, {mntp, decoder}};
  for (const auto& [objective, model] : cases) {
    INFO(kind_of(objective) << " of " << kind_of(model));
    const auto collator = training(store, {objective}, model);
    const auto first = sorted(epoch(collator, 0));
    CHECK(first != sorted(epoch(collator, 1)));
    CHECK(first == sorted(epoch(collator, 2)));
  }
}

TEST_CASE("held-out rows are those of dynamic masking", "[objectives]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Collator fixed(store, {static_mlm(1)}, rows_of(32), Rng(5), "valid"),
      dynamic(store, {MlmConfig{}}, rows_of(32), Rng(5), "valid");
  for (uint64_t number = 0; number < 3; ++number) CHECK(epoch(fixed, number) == epoch(dynamic, number));
}
