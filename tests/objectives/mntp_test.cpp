// Masked next-token prediction, alone and mixed with causal language modelling.
#include "models/families/families.h"
#include "objectives/clm/clm.h"
#include "objectives/mntp/mntp.h"

#include <map>
#include <set>

#include "core/error.h"
#include "models/initialization.h"
#include "objectives/collator.h"
#include "objectives/mlm/mlm.h"
#include "objectives/network.h"
#include "objectives/nsp_sop/nsp_sop.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

DataConfig rows_of(int64_t length, RowPacking packing = RowPacking::document) {
  DataConfig data;
  data.max_seq_length = length;
  data.packing = packing;
  data.short_seq_prob = 0;
  return data;
}

template <class Config = Gpt2Config>
Config decoder_of(const TokenStore& store) {
  Config model;
  model.architecture = Architecture::decoder;
  model.pad_token_id = store.tokenizer().special().pad;
  model.eos_token_id = store.tokenizer().special().sep;
  return model;
}

/// A row of a batch: what is read, and the label at each position, -100 = none.
struct HybridRow {
  std::vector<int64_t> ids, labels;
  int64_t prefix = 0;
  bool causal = false;
  bool operator==(const HybridRow&) const = default;
};

std::vector<HybridRow> rows_in(const Batch& batch) {
  const int64_t width = batch.input_ids.size(1);
  std::vector<HybridRow> rows(static_cast<size_t>(batch.input_ids.size(0)));
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto row = static_cast<int64_t>(r);
    const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width;
    const auto* ids = batch.input_ids.data_ptr<int64_t>() + row * width;
    rows[r].ids.assign(ids, ids + length);
    rows[r].labels.assign(static_cast<size_t>(length), -100);
    if (batch.prefix.defined()) rows[r].prefix = batch.prefix[row].item<int64_t>();
    rows[r].causal = rows[r].prefix == 0;
  }
  for (int64_t i = 0; i < batch.positions.numel(); ++i) {
    const auto at = batch.positions.data_ptr<int64_t>()[i];
    rows.at(static_cast<size_t>(at / width)).labels.at(static_cast<size_t>(at % width)) =
        batch.labels.data_ptr<int64_t>()[i];
  }
  return rows;
}

/// Rows [first, first + count) of an objective, in batches of `size`.
std::vector<HybridRow> read(const Collator& collator, uint64_t first, int64_t count, int64_t size) {
  std::vector<HybridRow> all;
  for (int64_t done = 0; done < count; done += size)
    for (auto& row : rows_in(collator.batch(first + static_cast<uint64_t>(done), size))) all.push_back(std::move(row));
  return all;
}

template <class Config = Gpt2Config>
Config small_decoder() {
  auto model = small<Config>();
  model.architecture = Architecture::decoder;
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
  return model;
}

/// Rows of 6 tokens: masked, causal, masked. One of the causal labels and three of the masked ones.
Batch hybrid_batch() {
  Batch batch;
  batch.input_ids = at::arange(18, at::kLong).mul(7).remainder(23).view({3, 6});
  batch.prefix = at::tensor({6, 0, 6}, at::kLong);
  batch.positions = at::tensor({1, 2, 6, 7, 8, 9, 10, 15}, at::kLong);
  batch.labels = at::tensor({3, 9, 1, 22, 7, 5, 0, 11}, at::kLong);
  return batch;
}

MntpConfig hybrid(double fraction) {
  MntpConfig mntp;
  mntp.causal_share = fraction;
  return mntp;
}

}  // namespace

TEST_CASE("labels are one position before their tokens, and a causal row is the row of clm", "[objectives][mntp]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto model = decoder_of(store);
  const auto mask = store.tokenizer().special().mask;
  for (const auto packing : {RowPacking::document, RowPacking::full}) {
    INFO(name_of(packing));
    const auto data = rows_of(24, packing);
    const Collator mixed(store, {hybrid(0.25)}, data, Rng(1), "train", model),
        plain(store, {ClmConfig{}}, data, Rng(1), "train", model);
    const auto count = static_cast<int64_t>(mixed.size());
    REQUIRE(mixed.size() == plain.size());
    const auto rows = read(mixed, 0, count, 4), texts = read(plain, 0, count, 4);
    int64_t causal = 0, masks = 0, last = 0;
    for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
      INFO("row " << r);
      const auto &row = rows[r], &text = texts[r];
      REQUIRE(row.ids.size() == text.ids.size());
      if (row.causal) {
        ++causal;
        CHECK(row.ids == text.ids);
        CHECK(row.labels == text.labels);
        continue;
      }
      CHECK(row.prefix == static_cast<int64_t>(row.ids.size()));
      for (size_t t = 0; t < row.ids.size(); ++t) {
        const bool predicted = row.labels[t] != -100;
        if (predicted) CHECK(row.labels[t] == text.labels[t]);  // clm's label: the token after this position
        const bool chosen = t > 0 && row.labels[t - 1] != -100;
        if (!chosen) CHECK(row.ids[t] == text.ids[t]);
        masks += row.ids[t] == mask;
        last += predicted && t + 1 == row.ids.size();
      }
    }
    CHECK(causal == static_cast<int64_t>(causal_rows(0.25, mixed.size())));
    CHECK(masks > 100);
    CHECK(last > 0);  // the token that is only a label is predicted too
  }
}

TEST_CASE("which rows are causal depends on the sequence number, not on the shape of batches and steps",
          "[objectives][mntp]") {
  for (const double fraction : {0.0625, 0.1, 0.3, 0.75}) {
    INFO(fraction);
    for (uint64_t first = 0; first < 400; ++first) {
      uint64_t causal = 0;
      for (uint64_t i = first; i < first + 20; ++i) causal += is_causal_row(fraction, i);
      CHECK(std::abs(static_cast<double>(causal) - 20 * fraction) < 1);
    }
  }
  CHECK_FALSE(is_causal_row(0, 12));
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto model = decoder_of(store);
  const auto of_steps = [&](StepRows steps) {
    return Collator(store, {hybrid(0.25)}, rows_of(24), Rng(1), "train", model, steps);
  };
  const auto shuffled = of_steps({});
  const auto all = read(shuffled, 0, 48, 1);
  CHECK((read(shuffled, 0, 48, 8) == all));
  CHECK((read(shuffled, 17, 24, 3) == std::vector<HybridRow>(all.begin() + 17, all.begin() + 41)));
  // Two shapes of a step of 8 sequences: the same rows, sorted by length alike.
  const auto one = of_steps({.batch_size = 8, .accumulation = 1, .steps = 100}),
             two = of_steps({.batch_size = 4, .accumulation = 2, .steps = 100});
  const auto sorted = [](std::vector<HybridRow> rows) {
    std::sort(rows.begin(), rows.end(), [](const HybridRow& a, const HybridRow& b) { return a.ids < b.ids; });
    return rows;
  };
  for (uint64_t step = 0; step < 8; ++step) {
    const auto a = read(one, 8 * step, 8, 8), b = read(two, 8 * step, 8, 4);
    CHECK((sorted(a) == sorted(b)));
    CHECK(std::count_if(a.begin(), a.end(), [](const HybridRow& row) { return row.causal; }) == 2);
  }
}

TEST_CASE(
    "the share of masked tokens changes linearly over the steps of training, and held-out rows have the final one",
    "[objectives][mntp]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto model = decoder_of(store);
  MntpConfig mntp;
  mntp.initial_mlm_probability = 0.6;
  mntp.mlm_probability = 0.2;
  const StepRows steps{.batch_size = 8, .accumulation = 2, .steps = 10};
  const auto shares = [&](const MntpConfig& config, const StepRows& rows_of_steps, const std::string& stage) {
    const Collator collator(store, {config}, rows_of(24, RowPacking::full), Rng(1), stage, model, rows_of_steps);
    std::vector<double> found;
    for (uint64_t step = 0; step < 14; ++step) {
      int64_t predicted = 0, candidates = 0;
      for (const auto& row : read(collator, 16 * step, 16, 8)) {
        predicted += std::count_if(row.labels.begin(), row.labels.end(), [](int64_t label) { return label >= 0; });
        candidates += static_cast<int64_t>(row.ids.size());
      }
      found.push_back(static_cast<double>(predicted) / static_cast<double>(candidates));
    }
    return found;
  };
  const auto run = shares(mntp, steps, "train"), held_out = shares(mntp, {}, "valid");
  for (size_t step = 0; step < run.size(); ++step) {
    INFO(step);
    CHECK(run[step] == Approx(0.6 - 0.04 * static_cast<double>(std::min<size_t>(step, 10))).margin(0.02));
    CHECK(held_out[step] == Approx(0.2).margin(0.02));
  }
  mntp.decay_steps = 5;
  CHECK(shares(mntp, steps, "train")[5] == Approx(0.2).margin(0.02));
  mntp.initial_mlm_probability = 0;
  CHECK(shares(mntp, steps, "train")[0] == Approx(0.2).margin(0.02));
  // By the formula, whatever the objective.
  MlmConfig mlm;
  mlm.initial_mlm_probability = 0.3;
  CHECK(masking_rate(mlm, steps, 0, 100) == 0.3);
  CHECK(masking_rate(mlm, steps, 16 * 5 + 15, 100) == Approx(0.225));
  CHECK(masking_rate(mlm, steps, 16 * 1000, 100) == Approx(0.15));
  CHECK(masking_rate(mlm, {}, 0, 100) == 0.15);
  // From the start of a phase on, steps and epochs are counted on from those before it.
  auto later = steps;
  later.start = {.step = 4, .sequence = 320, .epochs = 2};
  CHECK(masking_rate(mlm, later, 320 + 16, 100) == masking_rate(mlm, steps, 16 * 5, 100));
  // Without a number of steps the share follows the epochs, and is one for all sequences of a step.
  auto by_epochs = steps;
  by_epochs.steps = 0;
  CHECK(masking_rate(mlm, by_epochs, 0, 100) == 0.15);  // of no known number
  by_epochs.epochs = 4;
  CHECK(masking_rate(mlm, by_epochs, 0, 100) == 0.3);
  CHECK(masking_rate(mlm, by_epochs, 160, 100) == Approx(0.3 - 0.15 * 1.6 / 4));
  CHECK(masking_rate(mlm, by_epochs, 175, 100) == masking_rate(mlm, by_epochs, 160, 100));
  CHECK(masking_rate(mlm, by_epochs, 16 * 1000, 100) == Approx(0.15));
  by_epochs.start = later.start;
  CHECK(masking_rate(mlm, by_epochs, 320 + 16, 100) == Approx(0.3 - 0.15 * (2 + 0.16) / 4));
}

TEST_CASE("rows of an encoder are those of mlm, pairs included, with labels one position earlier",
          "[objectives][mntp]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  MntpConfig mntp;
  mntp.initial_mlm_probability = 0;
  MlmConfig mlm;
  static_cast<Masking&>(mlm) = mntp;
  for (const bool pairs : {false, true}) {
    Objectives shifted{mntp}, usual{mlm};
    if (pairs) shifted.push_back(NspConfig{}), usual.push_back(NspConfig{});
    const auto a = Collator(store, shifted, rows_of(32), Rng(1), "train").batch(0, 16),
               b = Collator(store, usual, rows_of(32), Rng(1), "train").batch(0, 16);
    CHECK(at::equal(a.input_ids, b.input_ids));
    CHECK(at::equal(a.positions, b.positions - 1));
    CHECK(at::equal(a.labels, b.labels));
    CHECK(a.positions.min().item<int64_t>() >= 0);
    CHECK(a.pair_label.defined() == pairs);
    CHECK_FALSE(a.prefix.defined());
  }
}

TEST_CASE("both losses are cross entropies of the token after each state, weighted by the share of their rows",
          "[objectives][mntp]") {
  for (const bool transform : {false, true}) {
    INFO(transform);
    auto mntp = hybrid(0.25);
    mntp.transform = transform;
    mntp.weight = 3;
    auto model = small_decoder();
    Network network(model, {mntp});
    initialize(collect_params(network), 0.3, false, Rng(1));
    network.eval();
    const auto batch = hybrid_batch();
    at::NoGradGuard no_grad;
    const auto parts = network.losses(batch, 0);
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].name == "mntp");
    CHECK(parts[1].name == "clm");
    CHECK(parts[0].weight == Approx(3 * 0.75));
    CHECK(parts[1].weight == Approx(3 * 0.25));
    CHECK(parts[0].count == 3);
    CHECK(parts[1].count == 5);
    // Slowly, in double, of the hidden states.
    std::map<std::string, Tensor> w;
    for (const auto& [name, param] : collect_params(network)) w[name] = param.value().to(at::kDouble);
    const auto hidden = network.backbone->hidden({.input_ids = batch.input_ids, .prefix = batch.prefix})
                            .flatten(0, 1)
                            .to(at::kDouble)
                            .contiguous();
    const auto table = w.at("backbone.embeddings.word").contiguous();
    double masked = 0, causal = 0;
    for (int64_t i = 0; i < batch.positions.numel(); ++i) {
      const auto position = batch.positions[i].item<int64_t>(), label = batch.labels[i].item<int64_t>();
      auto state = hidden[position];
      if (transform) {
        auto x = at::linear(state, w.at("lm.head.transform.weight"), w.at("lm.head.transform.bias"));
        x = 0.5 * x * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));  // gelu_new
        x = x - x.mean();
        state = x / (x.square().mean() + model.layer_norm_eps).sqrt() * w.at("lm.head.norm.weight") +
                w.at("lm.head.norm.bias");
      }
      std::vector<double> logits;
      for (int64_t token = 0; token < 23; ++token) {
        double logit = transform ? w.at("lm.head.bias")[token].item<double>() : 0;
        for (int64_t d = 0; d < 12; ++d) logit += state[d].item<double>() * table[token][d].item<double>();
        logits.push_back(logit);
      }
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit);
      (batch.prefix[position / 6].item<int64_t>() > 0 ? masked : causal) +=
          std::log(sum) - logits[static_cast<size_t>(label)];
    }
    CHECK(parts[0].sum.item<double>() == Approx(masked).epsilon(1e-5));
    CHECK(parts[1].sum.item<double>() == Approx(causal).epsilon(1e-5));
  }
}

TEST_CASE("losses and gradients of a hybrid are those over the states of all positions", "[objectives][mntp]") {
  const auto batch = hybrid_batch();
  const auto run = [&](bool narrow) {
    Network network(small_decoder(), {hybrid(0.25)});
    initialize(collect_params(network), 0.3, false, Rng(1));
    FlatParameters flat(collect_params(network), at::kCPU);
    auto parts = narrow ? network.losses(batch, 0) : std::vector<LossPart>();
    if (!narrow) {
      const auto hidden = network.backbone->hidden({.input_ids = batch.input_ids, .prefix = batch.prefix});
      parts = network.objectives[0]->losses(*network.backbone, hidden, batch);
    }
    const auto total = parts[0].sum + 2 * parts[1].sum;
    total.backward();
    return std::pair{total.detach(), flat.grads.clone()};
  };
  const auto few = run(true), all = run(false);
  CHECK(error_of(few.first, all.first) < 1e-6);
  CHECK(error_of(few.second, all.second) < 1e-5);
  CHECK(all.second.abs().max().item<double>() > 0.1);
}

TEST_CASE("a batch with one kind of row gives both losses of a hybrid, one of them without predictions",
          "[objectives][mntp]") {
  Network network(small_decoder(), {hybrid(0.25)});
  initialize(collect_params(network), 0.3, false, Rng(1));
  auto batch = hybrid_batch();
  batch.prefix.fill_(6);
  auto parts = network.losses(batch, 0);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].count == 8);
  CHECK(parts[1].count == 0);
  CHECK(parts[1].sum.item<double>() == 0);
  CHECK(network.parts(batch).size() == 2);
  Network alone(small_decoder(), {MntpConfig{}});
  CHECK(alone.parts(batch).size() == 1);
  CHECK(alone.parts(batch)[0].weight == 1);
  batch.prefix = Tensor();  // a row of clm, which has none
  CHECK(alone.parts(batch)[1].count == 8);
}

TEST_CASE("a masked row is bidirectional, and a causal row ignores the future", "[objectives][mntp]") {
  const auto check = [](const ModelConfig& model) {
    INFO(kind_of(model));
    for (const bool training : {false, true}) {  // plain operators, and the fused ones
      Network network(model, {hybrid(0.5)});
      initialize(collect_params(network), 0.3, false, Rng(1));
      network.train(training);
      const at::AutoGradMode graph(training);
      const auto ids = at::arange(18, at::kLong).mul(5).remainder(23).view({3, 6});
      auto other = ids.clone();
      other.select(1, 5).add_(1).remainder_(23);
      Inputs inputs{.input_ids = ids, .prefix = at::tensor({6, 0, 3}, at::kLong)};
      const auto before = network.backbone->hidden(inputs);
      inputs.input_ids = other;
      const auto change = (network.backbone->hidden(inputs) - before).abs().amax(-1);  // [3, 6]
      CHECK(change[0].min().item<double>() > 1e-4);                                    // every state of the masked row
      CHECK(change[1].narrow(0, 0, 5).max().item<double>() == 0);                      // none before the token
      CHECK(change[1][5].item<double>() > 1e-4);
      CHECK(change[2].narrow(0, 0, 5).max().item<double>() == 0);  // a prefix ends before it
    }
  };
  check(small_decoder());
  check(small_decoder<BertConfig>());
  check(small_decoder<AlbertConfig>());
  auto t5 = small_decoder<T5Config>();
  t5.d_kv = 6;
  check(t5);
}

TEST_CASE("a hybrid has the parameters of clm, by the same names", "[objectives][mntp]") {
  for (const bool transform : {false, true}) {
    ClmConfig clm;
    auto mntp = hybrid(0.25);
    clm.transform = mntp.transform = transform;
    const Network a(small_decoder(), {clm}), b(small_decoder(), {mntp});
    const auto ours = collect_params(a), theirs = collect_params(b);
    REQUIRE(ours.size() == theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) CHECK(ours[i].name == theirs[i].name);
  }
  CHECK_THROWS_WITH(Network(small_decoder(), {ClmConfig{}, MntpConfig{}}),
                    Catch::Contains("objectives 'clm' and 'mntp' both predict the next token; keep one of them"));
}
