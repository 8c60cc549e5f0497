// Heads of tasks: their losses as loops, and what must not change a row.
#include <ATen/Parallel.h>

#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "finetune/run_rows.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "objectives/constraints.h"
#include "objectives/task_heads/published_heads.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

bool is_near(double got, double wanted, double tolerance) { return std::abs(got - wanted) <= tolerance; }

std::shared_ptr<Network> task_network(const ModelConfig& model, const ObjectiveConfig& head) {
  auto network = std::make_shared<Network>(model, Objectives{head});
  initialize(collect_params(*network), 0.3, false, Rng(1));
  network->eval();
  return network;
}

ClassificationConfig of_three() {
  ClassificationConfig config;
  config.labels = {"bad", "fair", "good"};
  return config;
}
template <class Config>
Config with_labels(Config config = {}) {
  config.labels = {"a", "b", "c"};
  return config;
}

/// A row of `length` ids that begins with `first`, whose context are its last four tokens.
TaskRow task_row(int64_t item, int64_t length, int32_t first = 4) {
  TaskRow row;
  row.item = item;
  for (int64_t t = 0; t < length; ++t) row.ids.push_back(static_cast<int32_t>((first + 5 * t) % 17 + 5));
  row.second_begin = length - 4;
  row.second_end = length;
  row.first_end = length - 5;
  return row;
}

/// Rows of lengths 9, 6 and 11 with targets of all kinds.
std::vector<TaskRow> three_rows(const ObjectiveConfig& head) {
  const auto task = task_head_of(head)->name();
  std::vector<TaskRow> rows{task_row(0, 9), task_row(1, 6, 7), task_row(2, 11, 2)};
  for (size_t r = 0; r < rows.size(); ++r) {
    auto& row = rows[r];
    row.gold.label = static_cast<int64_t>(r + 1) % 3;
    row.gold.value = 0.5 + static_cast<double>(r);
    if (task == SpansConfig::kind) row.gold.labels = {row.second_begin, row.second_begin + static_cast<int64_t>(r)};
    if (task == MultilabelConfig::kind) row.gold.labels = {1, static_cast<int64_t>(r) % 2, 0};
    if (task != TaggingConfig::kind) continue;
    row.gold.labels.assign(row.ids.size(), no_label);
    for (size_t t = 1; t < row.gold.labels.size(); t += 2) row.gold.labels[t] = static_cast<int64_t>(t + r) % 3;
  }
  return rows;
}

/// Five rows: candidates of an item with two and of an item with three.
std::vector<TaskRow> two_choices() {
  std::vector<TaskRow> rows{task_row(0, 9), task_row(0, 7, 3), task_row(1, 6, 7), task_row(1, 11, 2),
                            task_row(1, 8, 9)};
  rows[1].gold.label = rows[2].gold.label = 1;
  return rows;
}

std::vector<const TaskRow*> pointers(const std::vector<TaskRow>& rows) {
  std::vector<const TaskRow*> all;
  for (const auto& row : rows) all.push_back(&row);
  return all;
}

Batch task_batch(const Network& network, const ObjectiveConfig& head, const std::vector<TaskRow>& rows) {
  return labelled_batch(labelled_setting(network.model_config(), {head}), pointers(rows));
}

double mean_task_loss(Network& network, const Batch& batch) {
  const auto parts = network.losses(batch, 0);
  REQUIRE(parts.size() == 1);
  return parts[0].sum.item<double>() / parts[0].total_weight();
}

/// The logits of a batch, [..., K].
Tensor logits_of_batch(Network& network, const Batch& batch) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : network.batch_outputs(batch))
    if (name == "logits" || name == "start_logits" || name == "end_logits") tensors.push_back(tensor);
  return (tensors.size() == 1 ? tensors[0] : at::stack(tensors, -1)).to(at::kDouble).contiguous();
}

/// log sum exp of `scores`.
double log_sum(const std::vector<double>& scores) {
  double sum = 0;
  for (const double score : scores) sum += std::exp(score);
  return std::log(sum);
}

std::vector<double> scores_in(const Tensor& t) {
  const auto flat = t.contiguous().to(at::kDouble);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

/// The mean loss of rows by the formulas of each kind, as loops over the logits.
double loss_by_loops(const Tensor& logits, const TaskHead& head, const std::vector<TaskRow>& rows) {
  double sum = 0, count = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto& row = rows[r];
    const auto own = logits[static_cast<int64_t>(r)];
    if (head.name() == ClassificationConfig::kind) {
      sum += log_sum(scores_in(own)) - scores_in(own)[static_cast<size_t>(row.gold.label)];
      count += 1;
    } else if (head.name() == MultilabelConfig::kind) {
      for (size_t k = 0; k < row.gold.labels.size(); ++k, count += 1) {
        const double p = 1 / (1 + std::exp(-scores_in(own)[k]));
        sum -= row.gold.labels[k] == 1 ? std::log(p) : std::log(1 - p);
      }
    } else if (head.name() == RegressionConfig::kind) {
      sum += std::pow(scores_in(own)[0] - row.gold.value, 2);
      count += 1;
    } else if (head.name() == TaggingConfig::kind) {
      for (size_t t = 0; t < row.gold.labels.size(); ++t) {
        if (row.gold.labels[t] == no_label) continue;
        const auto scores = scores_in(own[static_cast<int64_t>(t)]);
        sum += log_sum(scores) - scores[static_cast<size_t>(row.gold.labels[t])];
        count += 1;
      }
    } else if (head.name() == SpansConfig::kind) {
      for (const auto& [side, label] : {std::pair{0, row.gold.labels[0]}, {1, row.gold.labels[1]}}) {
        auto scores = scores_in(own.select(-1, side));
        scores.resize(row.ids.size());
        sum += (log_sum(scores) - scores[static_cast<size_t>(label)]) / 2;
      }
      count += 1;
    }
  }
  return sum / count;
}

/// What the constraints forbid, a sentence in each line.
std::string forbidden_heads(const ModelConfig& model, const ObjectiveConfig& head) {
  Constraints constraints;
  const DataConfig data;
  const Objectives objectives{head};
  as_kind(head).check({.model = model, .data = data, .objectives = objectives}, constraints);
  std::string lines;
  for (const auto& sentence : constraints.broken()) lines += (lines.empty() ? "" : "\n") + sentence;
  return lines;
}

}  // namespace

TEST_CASE("the loss of every head of a task is its formula, whatever the padding of the batch", "[objectives][tasks]") {
  for (const ObjectiveConfig& head : {ObjectiveConfig(of_three()), ObjectiveConfig(with_labels<MultilabelConfig>()),
                                      ObjectiveConfig(RegressionConfig{}),
                                      ObjectiveConfig(with_labels<TaggingConfig>()), ObjectiveConfig(SpansConfig{})}) {
    INFO(task_head_of(head)->name());
    const auto network = task_network(small(), head);
    const auto rows = three_rows(head);
    const auto batch = task_batch(*network, head, rows);
    CHECK(is_near(mean_task_loss(*network, batch),
                  loss_by_loops(logits_of_batch(*network, batch), *task_head_of(head), rows), 1e-5));
  }
}

TEST_CASE("a choice is over the candidates of its item, also beside items with more of them", "[objectives][tasks]") {
  const ChoiceConfig head;
  const auto network = task_network(small(), head);
  const auto rows = two_choices();
  const auto outputs = run_rows(*network, {head}, rows);
  std::vector<double> scores;
  for (const auto& one : outputs.logits) scores.push_back(one.item<double>());
  const double first = log_sum({scores[0], scores[1]}) - scores[1],
               second = log_sum({scores[2], scores[3], scores[4]}) - scores[2];
  const auto batch = task_batch(*network, head, rows);
  CHECK((batch.candidates.sizes() == std::vector<int64_t>{2, 3}));
  CHECK(is_near(mean_task_loss(*network, batch), (first + second) / 2, 1e-5));
}

TEST_CASE("class weights and smoothing are those of the formula, and a step divides by the sum of all weights",
          "[objectives][tasks]") {
  auto head = of_three();
  head.class_weights = {0.5, 2, 3};
  head.label_smoothing = 0.1;
  auto model = small();
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
  const auto network = task_network(model, head);
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 8; ++r) {
    rows.push_back(task_row(r, 6 + r % 4, static_cast<int32_t>(r)));
    rows.back().gold.label = (r * r + 1) % 3;
  }
  const auto logits = logits_of_batch(*network, task_batch(*network, head, rows));
  network->train();
  double wanted = 0, total = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto scores = scores_in(logits[static_cast<int64_t>(r)]);
    const double all = log_sum(scores);
    const auto label = static_cast<size_t>(rows[r].gold.label);
    wanted += head.class_weights[label] * 0.9 * (all - scores[label]);
    for (size_t k = 0; k < 3; ++k) wanted += head.class_weights[k] * 0.1 / 3 * (all - scores[k]);
    total += head.class_weights[label];
  }
  const auto gradients = [&](size_t micro_batches) {
    FlatParameters flat(collect_params(*network), at::kCPU);
    flat.grads.zero_();
    std::vector<Batch> batches;
    for (size_t m = 0; m < micro_batches; ++m)
      batches.push_back(task_batch(*network, head,
                                   {rows.begin() + static_cast<int64_t>(m * 8 / micro_batches),
                                    rows.begin() + static_cast<int64_t>((m + 1) * 8 / micro_batches)}));
    double weights = 0, loss = 0;
    for (const auto& batch : batches) weights += network->parts(batch)[0].total_weight();
    for (const auto& batch : batches) {
      const auto share = network->losses(batch, 0)[0].sum / weights;
      loss += share.item<double>();
      share.backward();
    }
    CHECK(is_near(weights, total, 1e-6));
    CHECK(is_near(loss, wanted / total, 1e-5));
    return flat.grads.clone();
  };
  const auto one = gradients(1), four = gradients(4);
  CHECK(error_of(four, one) < 1e-6);
  CHECK(one.abs().max().item<double>() > 1e-3);
}

TEST_CASE("a row of any length gives the same alone and in a batch, in every family", "[objectives][tasks]") {
  auto longformer = small<LongformerConfig>();
  longformer.attention = WindowAttention{.attention_window = {4}, .global_tokens = GlobalTokens::none};
  auto modernbert = small<ModernBertConfig>();
  modernbert.attention = AlternatingAttention{.global_attn_every_n_layers = 2, .local_attention = 6};
  auto encoder = small<T5Config>();
  encoder.d_kv = 0;
  auto t5 = encoder;
  encoder.architecture = Architecture::encoder;
  auto roberta = small<RobertaConfig>();
  roberta.pad_token_id = 0;
  auto albert = small<AlbertConfig>();
  albert.embedding_size = 8;
  auto electra = small<ElectraConfig>();
  electra.embedding_size = 8;
  for (const ModelConfig& model :
       {ModelConfig(small()), ModelConfig(roberta), ModelConfig(albert), ModelConfig(electra),
        ModelConfig(small<DistilBertConfig>()), ModelConfig(longformer), ModelConfig(modernbert),
        ModelConfig(small<Gpt2Config>()), ModelConfig(encoder), ModelConfig(t5), ModelConfig(small<BartConfig>()),
        ModelConfig(small<XlnetConfig>())})
    for (const ObjectiveConfig& head :
         {ObjectiveConfig(of_three()), ObjectiveConfig(with_labels<TaggingConfig>()), ObjectiveConfig(SpansConfig{})}) {
      INFO(kind_of(model) << " " << task_head_of(head)->name());
      const auto network = task_network(model, head);
      auto rows = three_rows(head);
      for (auto& row : rows) {
        row.class_token = static_cast<int64_t>(row.ids.size()) - 1;
        row.segments.assign(row.ids.size(), 0);
        if (!backbone_of(model).is_two_stream() && !backbone_of(model).token_types) row.segments.clear();
      }
      const auto together = run_rows(*network, {head}, rows);
      for (size_t r = 0; r < rows.size(); ++r)
        CHECK(error_of(together.logits[r], run_rows(*network, {head}, {rows[r]}).logits[0]) < 1e-5);
    }
}

TEST_CASE("the last end token stands for a text, whatever number of them other rows have", "[objectives][tasks]") {
  const auto model = small<BartConfig>();
  const auto network = task_network(model, of_three());
  auto one = task_row(0, 9), two = task_row(1, 11, 2);
  for (auto* row : {&one, &two}) row->ids.back() = static_cast<int32_t>(model.eos_token_id);
  two.ids[4] = static_cast<int32_t>(model.eos_token_id);
  one.class_token = 8, two.class_token = 10;
  const auto together = run_rows(*network, {of_three()}, {one, two}).logits;
  CHECK(error_of(together[0], run_rows(*network, {of_three()}, {one}).logits[0]) < 1e-5);
  CHECK(error_of(together[1], run_rows(*network, {of_three()}, {two}).logits[0]) < 1e-5);
  // A batch that does not say which token it is has the same one.
  auto batch = task_batch(*network, of_three(), {one, two});
  batch.class_positions = Tensor();
  CHECK(error_of(logits_of_batch(*network, batch)[1], together[1].to(at::kDouble)) < 1e-5);
}

TEST_CASE("the padding id inside a text of GPT-2 is a token of it", "[objectives][tasks]") {
  auto model = small<Gpt2Config>();
  model.pad_token_id = 2;
  const auto network = task_network(model, of_three());
  auto text = task_row(0, 7), longer = task_row(1, 10, 3);
  text.ids[3] = text.ids[6] = 2;  // the last token too
  text.class_token = 6, longer.class_token = 9;
  const auto together = run_rows(*network, {of_three()}, {text, longer}).logits[0];
  auto other = text;
  other.ids[6] = 9;
  CHECK(error_of(together, run_rows(*network, {of_three()}, {text}).logits[0]) < 1e-5);
  CHECK(error_of(together, run_rows(*network, {of_three()}, {other}).logits[0]) > 1e-3);
}

TEST_CASE("mean, first and last read those states, and padding is none", "[objectives][tasks]") {
  auto model = small();
  const auto rows = three_rows(ClassificationConfig());
  for (const auto design : {HeadDesign::mean, HeadDesign::first, HeadDesign::last}) {
    INFO(name_of(design));
    auto head = of_three();
    head.head = design;
    const auto network = task_network(model, head);
    const auto found = run_rows(*network, {head}, rows).logits;
    for (size_t r = 0; r < rows.size(); ++r) {
      const at::NoGradGuard no_grad;
      const auto batch = task_batch(*network, head, {rows[r]});
      const auto hidden = network->backbone->hidden(batch);  // [1, T, D]
      const auto state = design == HeadDesign::mean    ? hidden.mean(1)
                         : design == HeadDesign::first ? hidden.select(1, 0)
                                                       : hidden.select(1, -1);
      const auto params = collect_params(*network);
      const auto value = [&](const std::string& name) {
        for (const auto& named : params)
          if (named.name == name) return named.param.value();
        return Tensor();
      };
      const auto logits = at::linear(network->backbone->pooled(state.unsqueeze(1)),
                                     value("classification.output.weight"), value("classification.output.bias"));
      CHECK(error_of(found[r], logits[0]) < 1e-5);
    }
  }
}

namespace {

/// (x - mean) / sqrt(var + 1e-5).
std::vector<double> norm_by_loops(std::vector<double> x) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / n;
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  for (double& v : x) v = (v - mean) / std::sqrt(variance + 1e-5);
  return x;
}

/// W x + b.
std::vector<double> affine_by_loops(const Tensor& w, const Tensor& b, const std::vector<double>& x) {
  const auto weights = scores_in(w), biases = scores_in(b);
  auto y = biases;
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t j = 0; j < x.size(); ++j) y[i] += weights[i * x.size() + j] * x[j];
  return y;
}

}  // namespace

TEST_CASE("the head of BabyLM's program is norm, dense, gelu, norm and output, over rows without segments",
          "[objectives][tasks]") {
  auto decoder = small<Gpt2Config>();
  decoder.architecture = Architecture::decoder;
  for (const ModelConfig& model : {ModelConfig(small()), ModelConfig(decoder)})
    for (const auto design : {HeadDesign::babylm, HeadDesign::babylm_pooled}) {
      INFO(kind_of(model) << " " << name_of(design));
      auto head = of_three();
      head.head = design;
      CHECK(forbidden_heads(model, head).empty());
      const auto network = task_network(model, head);
      auto row = task_row(0, 9);
      const bool reads_last = backbone_of(model).is_decoder() && design == HeadDesign::babylm_pooled;
      row.class_token = backbone_of(model).is_decoder() ? 8 : 0;
      row.segments = {0, 0, 0, 0, 1, 1, 1, 1, 1};
      const at::NoGradGuard no_grad;
      const auto batch = task_batch(*network, head, {row});
      CHECK_FALSE(batch.token_type_ids.defined());
      const auto hidden = network->backbone->hidden(batch);
      const auto params = collect_params(*network);
      const auto value = [&](const std::string& name) {
        for (const auto& named : params)
          if (named.name == "classification." + name) return named.param.value();
        return Tensor();
      };
      auto x = norm_by_loops(scores_in(hidden.select(1, reads_last ? 8 : 0)));
      x = affine_by_loops(value("dense.weight"), value("dense.bias"), x);
      for (double& v : x) v *= 0.5 * (1 + std::erf(v / std::sqrt(2.0)));
      x = affine_by_loops(value("output.weight"), value("output.bias"), norm_by_loops(x));
      const auto found = scores_in(run_rows(*network, {head}, {row}).logits[0]);
      REQUIRE(found.size() == 3);
      for (size_t k = 0; k < 3; ++k) CHECK(is_near(found[k], x[k], 1e-5));
    }
}

TEST_CASE("as BabyLM's program reads a decoder, texts that begin alike, or padding, have the same logits",
          "[objectives][tasks]") {
  auto model = small<Gpt2Config>();
  model.architecture = Architecture::decoder;
  auto head = of_three();
  auto one = task_row(0, 9), other = task_row(1, 6);
  other.ids[0] = one.ids[0], other.ids[3] = 22;
  one.class_token = 8, other.class_token = 5;
  head.head = HeadDesign::babylm;
  const auto constant = run_rows(*task_network(model, head), {head}, {one, other}).logits;
  CHECK(error_of(constant[0], constant[1]) < 1e-5);
  head.head = HeadDesign::babylm_left;
  auto longest = task_row(2, 12);
  longest.class_token = 11;
  const auto padded = run_rows(*task_network(model, head), {head}, {one, other, longest}).logits;
  CHECK(error_of(padded[0], padded[1]) < 1e-5);  // both are read at their padding
  CHECK(error_of(padded[0], padded[2]) > 1e-3);
  head.head = HeadDesign::babylm_pooled;
  const auto corrected = run_rows(*task_network(model, head), {head}, {one, other}).logits;
  CHECK(error_of(corrected[0], corrected[1]) > 1e-3);
}

TEST_CASE("rows padded on the left are read at their padding, and judged 64 at a time in their order",
          "[objectives][tasks]") {
  auto head = of_three();
  head.head = HeadDesign::babylm_left;
  const auto network = task_network(small(), head);
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 65; ++r) rows.push_back(task_row(r, r == 0 ? 12 : 6, static_cast<int32_t>(r)));
  const auto batch = task_batch(*network, head, {rows[0], rows[1]});
  CHECK_FALSE(batch.attention_mask[1][5].item<bool>());
  CHECK(batch.input_ids[1][6].item<int64_t>() == rows[1].ids[0]);
  const auto together = run_rows(*network, {head}, rows).logits;
  const auto alone = [&](size_t r) { return run_rows(*network, {head}, {rows[r]}).logits[0]; };
  CHECK(error_of(together[0], alone(0)) < 1e-5);
  CHECK(error_of(together[63], alone(63)) > 1e-3);
  CHECK(error_of(together[64], alone(64)) < 1e-5);  // in a batch of its own
}

TEST_CASE("rows run without dropout, and the network goes on in the mode that it was in", "[objectives][tasks]") {
  RegressionConfig head;
  head.scale = {1, 5};
  head.classifier_dropout = 0.5;
  const auto network = task_network(small(), head);
  const auto rows = three_rows(RegressionConfig());
  const auto still = run_rows(*network, {head}, rows).logits;
  network->train();
  const auto again = run_rows(*network, {head}, rows).logits;
  CHECK(network->is_training());
  for (size_t r = 0; r < rows.size(); ++r) CHECK(at::equal(still[r], again[r]));
  const auto batch = task_batch(*network, head, rows);
  CHECK(mean_task_loss(*network, batch) != network->losses(batch, 1)[0].sum.item<double>() / 3);  // keys of two passes
  network->eval();
  // Targets and values are on the scale of the task, the loss is on [0, 1].
  double wanted = 0;
  for (size_t r = 0; r < rows.size(); ++r)
    wanted += std::pow((still[r].item<double>() - rows[r].gold.value) / 4, 2) / 3;
  CHECK(is_near(mean_task_loss(*network, batch), wanted, 1e-5));
}

TEST_CASE("rows have their own outputs in their order, whatever the batches in which they run", "[objectives][tasks]") {
  auto model = small();
  model.initializer_range = 0.3;  // of the pooler too, so that rows differ
  const auto network = task_network(model, of_three());
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 10; ++r) rows.push_back(task_row(r, 5 + r * 7 % 10, static_cast<int32_t>(r)));
  const auto together = run_rows(*network, {of_three()}, rows).logits;
  for (const int64_t tokens : {1, 30, 45}) {
    const auto apart = run_rows(*network, {of_three()}, rows, tokens).logits;
    REQUIRE(apart.size() == 10);
    for (size_t r = 0; r < 10; ++r) CHECK(error_of(apart[r], together[r]) < 1e-5);
  }
  CHECK(error_of(together[0], together[1]) > 1e-3);
}

TEST_CASE("windows are global at the class token of a text, on a question and on the second text of a choice",
          "[objectives][tasks]") {
  const auto globals = [](const ObjectiveConfig& head) {
    const std::vector<TaskRow> rows{task_row(0, 9), task_row(1, 11)};
    const auto mask = labelled_batch(labelled_setting(small<LongformerConfig>(), {head}), pointers(rows),
                                     /*with_targets=*/false)
                          .global_attention_mask;
    std::vector<std::vector<int64_t>> places(mask.defined() ? rows.size() : 0);
    for (size_t r = 0; r < places.size(); ++r)
      for (int64_t t = 0; t < mask.size(1); ++t)
        if (mask[static_cast<int64_t>(r)][t].item<bool>()) places[r].push_back(t);
    return places;
  };
  using Places = std::vector<std::vector<int64_t>>;
  CHECK((globals(ClassificationConfig()) == Places{{0}, {0}}));
  CHECK((globals(SpansConfig()) == Places{{0, 1, 2, 3}, {0, 1, 2, 3, 4, 5}}));
  CHECK((globals(ChoiceConfig()) == Places{{5, 6, 7, 8}, {7, 8, 9, 10}}));
  CHECK(globals(TaggingConfig()).empty());  // as the model's config says
}

TEST_CASE("an epoch has every item once, its last batch is smaller, and no batch has items of two epochs",
          "[objectives][tasks]") {
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 10; ++r) {
    rows.push_back(task_row(r, 5 + r));
    rows.back().gold.label = r % 3;
  }
  const auto network = task_network(small(), of_three());
  const auto setting = labelled_setting(network->model_config(), {of_three()});
  const auto maker = make_labelled_rows(setting, rows, Rng(7), {4});
  CHECK(maker->size() == 12);
  std::vector<std::vector<int64_t>> orders(2);
  for (uint64_t first = 0; first < 24; first += 4) {
    const auto batch = maker->batch(first, 4, nullptr);
    CHECK(batch.input_ids.size(0) == (first % 12 == 8 ? 2 : 4));
    const auto lengths = batch.attention_mask.defined()
                             ? batch.attention_mask.sum(1)
                             : at::full({batch.input_ids.size(0)}, batch.input_ids.size(1), at::kLong);
    for (int64_t r = 0; r < lengths.numel(); ++r) orders[first / 12].push_back(lengths[r].item<int64_t>());
  }
  CHECK(orders[0] != orders[1]);
  for (const auto& order : orders) CHECK((std::set<int64_t>(order.begin(), order.end()).size() == 10));
  const auto same = make_labelled_rows(setting, rows, Rng(7), {4})->batch(12, 4, nullptr);
  CHECK(at::equal(same.input_ids, maker->batch(12, 4, nullptr).input_ids));
  const auto choices = make_labelled_rows(labelled_setting(network->model_config(), {ObjectiveConfig(ChoiceConfig{})}),
                                          two_choices(), Rng(7), {1});
  CHECK(choices->size() == 2);
  CHECK(choices->batch(0, 1, nullptr).candidates.size(0) == 1);
}

TEST_CASE("rows have the same outputs whatever the threads, and a network its mode after a failure",
          "[objectives][tasks]") {
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 40; ++r) rows.push_back(task_row(r, 5 + r % 17, static_cast<int32_t>(r % 11)));
  const auto network = task_network(small(), of_three());
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = run_rows(*network, {of_three()}, rows, /*batch_tokens=*/30).logits;
  at::set_num_threads(3);
  const auto shared = run_rows(*network, {of_three()}, rows, /*batch_tokens=*/30).logits;
  for (size_t r = 0; r < rows.size(); ++r) CHECK(alone[r].equal(shared[r]));
  network->train();
  rows[20].ids[1] = 1 << 20;  // no token of the network
  CHECK_THROWS_AS(run_rows(*network, {of_three()}, rows, /*batch_tokens=*/30), ShapeError);
  at::set_num_threads(threads);
  CHECK(network->is_training());
}

TEST_CASE("a step computes its rows in batches of like length, whose losses sum to those of all",
          "[objectives][tasks]") {
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 40; ++r) {
    rows.push_back(task_row(r, r % 2 == 0 ? 5 + r % 4 : 30 + r % 9, static_cast<int32_t>(r % 11)));
    rows.back().gold.label = r % 3;
  }
  const auto network = task_network(small(), of_three());
  auto setting = labelled_setting(network->model_config(), {of_three()});
  CHECK(setting.unpads);
  CHECK(make_labelled_rows(setting, rows, Rng(7), {40})->step_batches(0, 40).size() == 1);
  setting.unpads = false;
  const auto maker = make_labelled_rows(setting, rows, Rng(7), {40});
  const auto whole = maker->batch(0, 40, nullptr);
  const auto batches = maker->step_batches(0, 40);
  REQUIRE(batches.size() == 2);
  int64_t tokens = 0, positions = 0, items = 0;
  double sum = 0;
  for (const auto& batch : batches) {
    tokens += batch.tokens;
    positions += batch.input_ids.numel();
    items += batch.input_ids.size(0);
    const at::NoGradGuard no_grad;
    sum += network->losses(batch, 0)[0].sum.item<double>();
  }
  CHECK(tokens == whole.tokens);
  CHECK(items == 40);
  CHECK(positions <= 20 * 7 + 20 * 38);
  CHECK(whole.input_ids.numel() == 40 * 38);
  const at::NoGradGuard no_grad;
  CHECK(is_near(sum, network->losses(whole, 0)[0].sum.item<double>(), 1e-3));
  // Several batches of a step share its rows by length.
  const auto shorter = maker->step_batches(0, 20), longer = maker->step_batches(20, 20);
  REQUIRE((shorter.size() == 1 && longer.size() == 1));
  CHECK(shorter[0].input_ids.size(1) == 7);
  CHECK(longer[0].tokens == whole.tokens - shorter[0].tokens);
  // Numbers after the last item of an epoch stand for none.
  rows.resize(10);
  const auto few = make_labelled_rows(setting, rows, Rng(7), {8});
  CHECK(few->size() == 16);
  CHECK(few->step_batches(12, 4).empty());
  CHECK(few->step_batches(8, 4).size() == 1);
  // A batch of which no word has a tag has no gradient, and is not computed.
  auto tags = three_rows(TaggingConfig());
  for (auto& label : tags[1].gold.labels) label = no_label;
  const auto tagged = labelled_setting(network->model_config(), {with_labels<TaggingConfig>()});
  CHECK(make_labelled_rows(tagged, tags, Rng(7), {3})->step_batches(0, 3).size() == 1);
  CHECK(make_labelled_rows(tagged, {tags[1]}, Rng(7), {1})->step_batches(0, 1).empty());
}

TEST_CASE("with drop_last an epoch ends before its smaller batch, whose items are others in the next epoch",
          "[objectives][tasks]") {
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 10; ++r) rows.push_back(task_row(r, 5 + r));
  for (auto& row : rows) row.gold.label = 0;
  const auto network = task_network(small(), of_three());
  const auto setting = labelled_setting(network->model_config(), {of_three()});
  const auto maker = make_labelled_rows(setting, rows, Rng(7), {4}, /*drop_last=*/true);
  const auto whole = make_labelled_rows(setting, rows, Rng(7), {4});
  CHECK(maker->size() == 8);
  for (const uint64_t first : {0, 4})
    CHECK(at::equal(maker->batch(first, 4, nullptr).input_ids, whole->batch(first, 4, nullptr).input_ids));
  CHECK(at::equal(maker->batch(8, 4, nullptr).input_ids, whole->batch(12, 4, nullptr).input_ids));
  CHECK(at::equal(maker->batch(14, 2, nullptr).input_ids, whole->batch(18, 2, nullptr).input_ids));
  CHECK_THROWS_WITH(make_labelled_rows(setting, rows, Rng(7), {16}, true),
                    "the task has 10 items to train on, and data.drop_last leaves out a batch of fewer than 16; lower "
                    "train.batch_size, or set data.drop_last=false");
}

TEST_CASE("the first weights of a head are those of the code that is named", "[objectives][tasks]") {
  const auto deviation = [](const ModelConfig& model, const ObjectiveConfig& head, const std::string& name) {
    Network network(model, {head});
    initialize(collect_params(network), backbone_of(model).initializer_range, false, Rng(3));
    for (const auto& [own, param] : collect_params(network))
      if (own == kind_of(head) + "." + name) return param.value().std().item<double>();
    return -1.0;
  };
  const auto wide = [](auto model) {
    model.vocab_size = 20, model.hidden_size = 512, model.num_attention_heads = 8, model.num_hidden_layers = 2;
    model.intermediate_size = 8;
    return model;
  };
  auto several = with_labels<ClassificationConfig>();
  for (int64_t k = 0; k < 20; ++k) several.labels.push_back(std::to_string(k));
  auto original = several;
  original.head = HeadDesign::original;
  TaggingConfig tags;
  tags.labels = several.labels;
  const double by_width = 1 / std::sqrt(512.0);
  auto encoder = wide(T5Config{});
  encoder.architecture = Architecture::encoder;
  const auto is = [](double found, double wanted) { return is_near(found, wanted, 0.03 * wanted); };
  CHECK(is(deviation(wide(BertConfig{}), several, "output.weight"), 0.02));
  CHECK(is(deviation(wide(BertConfig{}), original, "output.weight"), 0.02 * 0.8796));  // cut at two deviations
  CHECK(is(deviation(wide(RobertaConfig{}), original, "dense.weight"), by_width / std::sqrt(3.0)));
  CHECK(deviation(wide(RobertaConfig{}), original, "dense.bias") > 0.01);
  CHECK(deviation(wide(RobertaConfig{}), several, "dense.bias") == 0);
  CHECK(deviation(wide(ElectraConfig{}), original, "dense.weight") == -1);
  CHECK(is(deviation(wide(ElectraConfig{}), original, "output.weight"), std::sqrt(2 / (512.0 + 23))));
  CHECK(is(deviation(encoder, tags, "output.weight"), by_width));
  CHECK(is(deviation(wide(ModernBertConfig{}), several, "output.weight"), by_width * 0.8796));
  CHECK(is(deviation(wide(ModernBertConfig{}), several, "dense.weight"), 0.01 * 0.8796));
  CHECK(deviation(wide(Gpt2Config{}), several, "output.bias") == -1);
  auto babylm = several;
  babylm.head = HeadDesign::babylm;
  for (const auto* name : {"dense.weight", "output.weight"})
    CHECK(is(deviation(wide(BertConfig{}), babylm, name), by_width / std::sqrt(3.0)));
  CHECK(deviation(wide(BertConfig{}), babylm, "dense.bias") > 0.01);
  CHECK(deviation(wide(BertConfig{}), babylm, "norm.weight") == -1);
}

TEST_CASE("a pooler that pretraining lacked has the first weights of its head, whatever those of the network are",
          "[objectives][tasks]") {
  auto model = BertConfig{};
  model.vocab_size = 20, model.hidden_size = 256, model.num_attention_heads = 4, model.num_hidden_layers = 1;
  model.intermediate_size = 8, model.initializer_range = 0.08, model.initializer = Initializer::truncated_normal;
  const auto pooler = [&](HeadDesign design) {
    auto head = with_labels<ClassificationConfig>();
    head.head = design;
    Network network(model, {head});
    initialize(collect_params(network), model.initializer_range, true, Rng(3));
    for (const auto& [name, param] : collect_params(network))
      if (name == "backbone.pooler.weight") return param.value();
    return Tensor();
  };
  const auto of_transformers = pooler(HeadDesign::huggingface), of_bert = pooler(HeadDesign::original);
  CHECK(is_near(of_transformers.std().item<double>(), 0.08, 0.003));
  CHECK(of_transformers.abs().max().item<double>() > 3 * 0.08);  // not cut at two deviations
  CHECK(is_near(of_bert.std().item<double>(), 0.02 * 0.8796, 0.001));
  CHECK(of_bert.abs().max().item<double>() <= 2 * 0.02 + 1e-6);
}

TEST_CASE("the original head of BERT has its dropout where the network has none", "[objectives][tasks]") {
  auto model = BertConfig{};
  model.hidden_dropout_prob = 0;
  CHECK(published_head(model, HeadUse::texts, HeadDesign::original).dropout == 0.1);
  CHECK(published_head(model, HeadUse::texts, HeadDesign::huggingface).dropout == 0);
}

TEST_CASE("heads of tasks that cannot be are refused, each with what to choose", "[objectives][tasks]") {
  const auto refused = [](const ModelConfig& model, const ObjectiveConfig& head, const std::string& sentence) {
    CHECK(forbidden_heads(model, head) == sentence);
  };
  CHECK(forbidden_heads(BertConfig{}, of_three()).empty());
  refused(BertConfig{}, TaggingConfig{},
          "objective tagging has no labels; name them in the order of their ids, for instance `labels: [negative, "
          "positive]`");
  auto head = of_three();
  head.labels = {"good"};
  refused(BertConfig{}, head,
          "objective classification has the one label 'good', which every text would get; name the others");
  head.labels = {"good", "bad", "good"};
  refused(BertConfig{}, head, "objective classification names the label 'good' twice; each id has a name of its own");
  head = of_three();
  head.class_weights = {1, 2};
  refused(BertConfig{}, head, "objective classification has 2 class_weights for 3 labels; give one for each");
  head.class_weights = {0, 0, 0};
  refused(BertConfig{}, head, "objective classification: all class_weights are 0; give at least one label a weight");
  auto bert = BertConfig{};
  bert.architecture = Architecture::decoder;
  auto blind = of_three();
  blind.head = HeadDesign::first;
  refused(bert, blind,
          "objective classification reads the first token, which in a decoder is the same for every text; choose head: "
          "last or mean");
  SpansConfig spans;
  spans.head = HeadDesign::mean;
  refused(BertConfig{}, spans,
          "objective spans predicts for each token, and head mean is one state of a text; choose head: huggingface");
  spans.head = HeadDesign::original;
  refused(XlnetConfig{}, spans,
          "objective spans has no head original for xlnet, whose authors predict the end of an answer from its start; "
          "choose head: huggingface");
  refused(T5Config{}, with_labels<TaggingConfig>(),
          "objective tagging reads the encoder of t5 alone; set model.architecture: encoder");
  RegressionConfig values;
  values.scale = {5, 0};
  refused(BertConfig{}, values,
          "objective regression: scale must be the lowest and the highest target, for instance [0, 5]");
}

TEST_CASE("rows that a head cannot be trained on are refused with their item", "[objectives][tasks]") {
  const auto network = task_network(small(), of_three());
  const auto setting = labelled_setting(network->model_config(), {of_three()});
  const auto made_of = [&](std::vector<TaskRow> rows) {
    return make_labelled_rows(setting, std::move(rows), Rng(1), {2});
  };
  auto row = task_row(4, 6);
  row.gold.label = 3;
  CHECK_THROWS_WITH(made_of({row}),
                    "item 4 of the task has the label 3, and its labels are 0 to 2; name that label, or leave the item "
                    "out");
  row.ids.clear();
  CHECK_THROWS_WITH(made_of({row}), "item 4 of the task has a row without tokens; leave it out");
  CHECK_THROWS_WITH(made_of({}), "the task has no rows to train on; look at them with `cloze inspect task`");
  auto several = with_labels<MultilabelConfig>();
  auto short_row = task_row(1, 6);
  short_row.gold.labels = {1, 0};
  CHECK_THROWS_WITH(
      make_labelled_rows(labelled_setting(BertConfig{}, {ObjectiveConfig(several)}), {short_row}, Rng(1), {2}),
      "item 1 of the task has 2 entries for 3 labels; give one for each");
  CHECK_THROWS_WITH(labelled_setting(BertConfig{}, {default_objective<MlmConfig>()}),
                    "the run has no head of a task; fine-tune it on one first");
}
