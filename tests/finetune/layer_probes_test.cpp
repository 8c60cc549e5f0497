// Linear probes of layers: the states that they read, and losses that are those of each probe alone.
#include "finetune/run_rows.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "objectives/constraints.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

template <class Config>
Config probe_of(std::vector<int64_t> layer, HeadDesign head = HeadDesign::huggingface) {
  Config config;
  config.layer = std::move(layer);
  config.head = head;
  if (config.has_labels()) config.labels = {"a", "b", "c"};
  return config;
}

/// A network whose weights are drawn by their names, so that those of another with the same names are equal.
std::shared_ptr<Network> probe_network(const ModelConfig& model, const ObjectiveConfig& head) {
  auto network = std::make_shared<Network>(model, Objectives{head});
  initialize(collect_params(*network), 0.3, false, Rng(1));
  network->eval();
  return network;
}

/// Eight rows of lengths 5 to 9 with a target of every kind; of a choice, two are an item.
std::vector<TaskRow> eight_rows(const ObjectiveConfig& head) {
  const auto task = task_head_of(head)->name();
  std::vector<TaskRow> rows;
  for (int64_t r = 0; r < 8; ++r) {
    auto& row = rows.emplace_back();
    row.item = task == ChoiceConfig::kind ? r / 2 : r;
    for (int64_t t = 0; t < 5 + (3 * r) % 5; ++t) row.ids.push_back(static_cast<int32_t>(5 + (r + 7 * t) % 17));
    row.class_token = 0;
    row.gold.label = task == ChoiceConfig::kind ? r % 2 : r % 3;
    row.gold.value = 0.25 * static_cast<double>(r);
    if (task == MultilabelConfig::kind) row.gold.labels = {1, r % 2, 0};
    if (task != TaggingConfig::kind) continue;
    row.gold.labels.assign(row.ids.size(), no_label);
    for (size_t t = 1; t < row.gold.labels.size(); t += 2) row.gold.labels[t] = (r + static_cast<int64_t>(t)) % 3;
  }
  return rows;
}

Batch probe_batch(const ModelConfig& model, const ObjectiveConfig& head, const std::vector<TaskRow>& rows) {
  std::vector<const TaskRow*> all;
  for (const auto& row : rows) all.push_back(&row);
  return labelled_batch(labelled_setting(model, {head}), all);
}

std::vector<ObjectiveConfig> probes_of_kinds(const std::vector<int64_t>& layer) {
  return {probe_of<ClassificationConfig>(layer), probe_of<ClassificationConfig>(layer, HeadDesign::mean),
          probe_of<MultilabelConfig>(layer),     probe_of<RegressionConfig>(layer),
          probe_of<TaggingConfig>(layer),        probe_of<ChoiceConfig>(layer)};
}

/// What the probes of a network read of a batch.
Tensor states_of(const Network& network, const Batch& batch) {
  return probes_of(network)->states(*network.backbone, batch);
}

/// The gradient of the weights of a probe after a step of this network.
Tensor gradient_of(Network& network, const Batch& batch, const std::string& name) {
  network.freeze_backbone();
  network.train();
  FlatParameters flat(collect_params(network), at::kCPU);
  flat.grads.zero_();
  network.losses(batch, 5)[0].sum.backward();
  for (const auto& range : flat.ranges())
    if (range.param.name == name) return flat.grads.narrow(0, range.offset, range.numel).clone();
  FAIL("no parameter is called " << name);
  return {};
}

}  // namespace

TEST_CASE("a probe of layer k reads the states that the network has there, bit for bit", "[objectives][tasks][probe]") {
  auto albert = small<AlbertConfig>();
  albert.embedding_size = 8;
  auto t5 = small<T5Config>();
  t5.d_kv = 0;
  for (const ModelConfig& model : {ModelConfig(small()), ModelConfig(albert), ModelConfig(small<ModernBertConfig>()),
                                   ModelConfig(small<Gpt2Config>()), ModelConfig(small<XlnetConfig>()), ModelConfig(t5),
                                   ModelConfig(small<BartConfig>())}) {
    INFO(kind_of(model));
    const auto head = probe_of<ClassificationConfig>({every_layer}, HeadDesign::mean);
    const auto network = probe_network(model, head);
    CHECK((probes_of(*network)->layers() == std::vector<int64_t>{0, 1, 2}));
    auto batch = probe_batch(model, head, {eight_rows(ClassificationConfig())[0]});
    const at::NoGradGuard no_grad;
    Traces traces;
    traces.encoder.keeps_attentions = traces.decoder.keeps_attentions = false;  // those are of plain operators
    network->backbone->hidden(batch, &traces);
    const auto& trace = backbone_of(model).is_encoder_decoder() ? traces.decoder : traces.encoder;
    REQUIRE(trace.hidden_states.size() == 3);
    const auto states = states_of(*network, batch);
    for (int64_t k = 0; k < 3; ++k)
      CHECK(at::equal(states[k][0], trace.hidden_states[static_cast<size_t>(k)].mean(1)[0]));
  }
}

TEST_CASE("the states of layer k are the last ones of a network that ends there", "[objectives][tasks][probe]") {
  const auto head = probe_of<ClassificationConfig>({every_layer}, HeadDesign::first);
  const auto whole = probe_network(small(), head);
  const auto rows = eight_rows(ClassificationConfig());
  const auto batch = probe_batch(small(), head, rows);
  const at::NoGradGuard no_grad;
  const auto states = states_of(*whole, batch);
  for (const int64_t k : {1, 2}) {
    auto model = small();
    model.num_hidden_layers = k;
    const auto cut = probe_network(model, probe_of<ClassificationConfig>({k}, HeadDesign::first));
    CHECK(at::equal(states[k], cut->backbone->hidden(batch).select(1, 0)));
    CHECK(at::equal(states[k], states_of(*cut, batch)[0]));
  }
}

TEST_CASE("the pooling of a probe is that of its head, and nothing of that head stands below it",
          "[objectives][tasks][probe]") {
  const auto rows = eight_rows(ClassificationConfig());
  for (const auto design : {HeadDesign::huggingface, HeadDesign::first, HeadDesign::last, HeadDesign::mean}) {
    INFO(name_of(design));
    const auto head = probe_of<ClassificationConfig>({1}, design);
    const auto network = probe_network(small(), head);
    std::vector<std::string> own;
    for (const auto& [name, param] : collect_params(*network))
      if (!name.starts_with("backbone.")) own.push_back(name);
    CHECK((own == std::vector<std::string>{"classification.layer1.weight", "classification.layer1.bias"}));
    const at::NoGradGuard no_grad;
    Traces traces;
    traces.encoder.keeps_attentions = traces.decoder.keeps_attentions = false;  // those are of plain operators
    const auto batch = probe_batch(small(), head, {rows[3]});
    network->backbone->hidden(batch, &traces);
    const auto& hidden = traces.encoder.hidden_states[1];
    const auto wanted = design == HeadDesign::mean   ? hidden.mean(1)
                        : design == HeadDesign::last ? hidden.select(1, -1)
                                                     : hidden.select(1, 0);
    CHECK(at::equal(states_of(*network, batch)[0], wanted));
  }
}

TEST_CASE("probes of all layers lose, learn and answer what each does alone", "[objectives][tasks][probe]") {
  for (const auto& all : probes_of_kinds({every_layer})) {
    INFO(task_head_of(all)->name());
    const auto rows = eight_rows(all);
    const auto joint = probe_network(small(), all);
    const auto outputs = run_probes(*joint, {all}, rows);
    REQUIRE(outputs.size() == 3);
    const auto batch = probe_batch(small(), all, rows);
    double sum = 0;
    for (int64_t k = 0; k < 3; ++k) {
      TaskHeadTerms terms = *task_head_of(all);
      terms.layer = {k};
      const auto one = task_head_objective(task_head_of(all)->name(), terms);
      const auto alone = probe_network(small(), one);
      const auto wanted = run_rows(*alone, {one}, rows).logits;
      probes_of(*joint)->choose(k);
      const auto chosen = run_rows(*joint, {all}, rows).logits;
      for (size_t r = 0; r < rows.size(); ++r) {
        CHECK(at::equal(outputs[static_cast<size_t>(k)].logits[r], wanted[r]));
        CHECK(at::equal(chosen[r], wanted[r]));
      }
      const double loss = alone->losses(batch, 5)[0].sum.item<double>();
      joint->eval();
      CHECK(joint->losses(batch, 5)[0].sum.item<double>() == loss);  // of the probe that was chosen
      sum += loss;
      const auto name = concat(task_head_of(all)->name(), ".layer", k, ".weight");
      const auto gradient = gradient_of(*alone, batch, name);
      CHECK(gradient.abs().max().item<double>() > 0);
      CHECK(at::equal(gradient_of(*joint, batch, name), gradient));
    }
    joint->train();
    CHECK(joint->losses(batch, 5)[0].sum.item<double>() == Approx(sum).epsilon(1e-5));
    CHECK_FALSE(joint->parts(batch)[0].has_accuracy);
  }
}

TEST_CASE("the random features of a backbone that stays as it is are not redrawn", "[objectives][tasks][probe]") {
  auto model = small<PerformerConfig>();
  model.attention = PerformerAttention{.nb_features = 8, .feature_redraw_interval = 5};
  const auto head = probe_of<ClassificationConfig>({every_layer});
  const auto network = probe_network(model, head);
  const auto batch = probe_batch(model, head, eight_rows(ClassificationConfig()));
  const auto before = states_of(*network, batch);
  network->freeze_backbone();
  CHECK_FALSE(network->before_step(5, Rng(1)));
  CHECK(at::equal(states_of(*network, batch), before));
  const auto trained = probe_network(model, head);
  CHECK(trained->before_step(5, Rng(1)));
  CHECK_FALSE(at::equal(states_of(*trained, batch), before));
}

TEST_CASE("states that are kept are those of the rows of a step, whatever batches they were computed in",
          "[objectives][tasks][probe]") {
  for (const auto& head : probes_of_kinds({0, 2})) {
    INFO(task_head_of(head)->name());
    const auto rows = eight_rows(head);
    const auto network = probe_network(small(), head);
    const auto kept = states_of_rows(*network, {head}, rows, ProbedTokens::labelled);
    CHECK(bytes_of_states(*network, {head}, rows, ProbedTokens::labelled) ==
          static_cast<double>(kept.states.numel() * 4));
    const auto maker = make_labelled_rows(labelled_setting(small(), {head}), rows, Rng(3), {4});
    network->freeze_backbone();
    network->train();
    for (uint64_t first = 0; first < maker->size(); first += 4) {
      const auto batch = maker->batch(first, 4, nullptr);
      REQUIRE(batch.states_at.defined());
      probes_of(*network)->keep({});
      const double computed = network->losses(batch, 5)[0].sum.item<double>();
      probes_of(*network)->keep(kept.states);
      CHECK(network->losses(batch, 5)[0].sum.item<double>() == Approx(computed).epsilon(1e-4));
      probes_of(*network)->keep(at::full_like(kept.states, 100).mul_(kept.states));
      CHECK(network->losses(batch, 5)[0].sum.item<double>() != Approx(computed).epsilon(1e-3));
    }
    probes_of(*network)->keep({});
    const auto of_tokens = states_of_rows(*network, {head}, rows, ProbedTokens::all);
    const auto by_kept = run_probes(*network, {head}, rows, &of_tokens), computed = run_probes(*network, {head}, rows);
    for (size_t probe = 0; probe < 2; ++probe)
      for (size_t r = 0; r < rows.size(); ++r)
        CHECK(error_of(by_kept[probe].logits[r], computed[probe].logits[r]) < 1e-5);
  }
}

TEST_CASE("probes that cannot be are refused, each with what to choose", "[objectives][tasks][probe]") {
  const auto refused = [](const ObjectiveConfig& head, const std::string& sentence) {
    Constraints constraints;
    const DataConfig data;
    const Objectives objectives{head};
    const ModelConfig model = small();
    as_kind(head).check({.model = model, .data = data, .objectives = objectives}, constraints);
    REQUIRE(constraints.broken().size() == 1);
    CHECK(constraints.broken()[0] == sentence);
  };
  refused(probe_of<ClassificationConfig>({1, 9}),
          "objective classification: layer 9 does not exist; the network has layers 0 (its embeddings) to 2");
  SpansConfig spans;
  spans.layer = {1};
  refused(spans,
          "objective spans has no probe of a layer: the tokens of its windows are too many to keep their states; leave "
          "layer out");
}
