// The losses by which a network becomes like its teacher, held to loops in double over what both networks say.
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "models/families/families.h"
#include "objectives/distil/config.h"
#include "objectives/distil/soft_targets.h"
#include "objectives/kinds.h"
#include "objectives/network.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace cloze;
using Catch::Contains;

namespace {

constexpr int64_t vocabulary = 31, length = 9;
constexpr double tolerance = 1e-5;

using Row = std::vector<double>;

Row row_of(const Tensor& x) {
  const auto wide = x.detach().to(at::kDouble).contiguous();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

Row softmax(const Row& logits, double temperature) {
  Row p;
  double sum = 0;
  for (const double x : logits) p.push_back(std::exp(x / temperature)), sum += p.back();
  for (double& x : p) x /= sum;
  return p;
}

/// T^2 sum_k p_k log(p_k / q_k), p of the teacher.
double slow_divergence(const Row& student, const Row& teacher, double temperature) {
  const auto q = softmax(student, temperature), p = softmax(teacher, temperature);
  double sum = 0;
  for (size_t k = 0; k < p.size(); ++k)
    if (p[k] > 0) sum += p[k] * std::log(p[k] / q[k]);
  return temperature * temperature * sum;
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

double slow_cosine(const Row& a, const Row& b) { return 1 - dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)); }

double mean_square(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum / static_cast<double>(a.size());
}

BertConfig bert(int64_t layers, int64_t width = 18) {
  BertConfig c;
  c.vocab_size = vocabulary, c.hidden_size = width, c.num_hidden_layers = layers, c.num_attention_heads = 3,
  c.intermediate_size = 22, c.max_position_embeddings = 20;
  c.hidden_dropout_prob = c.attention_probs_dropout_prob = 0;
  return c;
}

std::shared_ptr<Network> drawn(const ModelConfig& model, const Objectives& objectives, uint64_t seed) {
  auto network = std::make_shared<Network>(model, objectives);
  initialize(collect_params(*network), 0.3, false, Rng(seed));
  return network;
}

/// Two rows, the second of six tokens.
Batch padded_batch() {
  Batch batch;
  batch.input_ids = at::arange(2 * length, at::kLong).mul(7).remainder(vocabulary).view({2, length});
  batch.attention_mask = at::ones({2, length}, at::kBool);
  batch.attention_mask[1].narrow(0, 6, 3).fill_(false);
  batch.token_type_ids = at::zeros_like(batch.input_ids);
  batch.positions = at::tensor({1, 4, 11}, at::kLong);
  batch.labels = at::tensor({3, 9, 22}, at::kLong);
  return batch;
}

std::vector<std::pair<int64_t, int64_t>> real_tokens(const Batch& batch) {
  std::vector<std::pair<int64_t, int64_t>> all;
  for (int64_t b = 0; b < batch.input_ids.size(0); ++b)
    for (int64_t t = 0; t < batch.input_ids.size(1); ++t)
      if (!batch.attention_mask.defined() || batch.attention_mask[b][t].item<bool>()) all.emplace_back(b, t);
  return all;
}

/// What a network says of a batch in plain operators, without dropout.
struct Said {
  Tensor logits;
  std::vector<Tensor> states, attentions;
};
Said said_by(Network& network, const Batch& batch) {
  const at::NoGradGuard no_grad;
  const PlainScope plain;
  const bool trains = network.is_training();
  network.eval();
  Traces traces;
  traces.encoder.keeps_projections = true;
  const auto outputs = network.outputs(batch, &traces);
  network.train(trains);
  Said said{.logits = {}, .states = traces.encoder.hidden_states, .attentions = traces.encoder.projections};
  for (const auto& [name, tensor] : outputs)
    if (name == "logits" || name == "prediction_logits") said.logits = tensor;
  return said;
}

/// The mean of a loss of this name, as the log has it, with gradients.
Tensor loss_called(Network& network, const Batch& batch, const std::string& name) {
  for (const auto& part : network.losses(batch, 0))
    if (part.name == name) return part.sum / part.total_weight();
  FAIL("no loss is called " << name);
  return {};
}
double mean_of(Network& network, const Batch& batch, const std::string& name) {
  return loss_called(network, batch, name).item<double>();
}

struct Pair {
  std::shared_ptr<Network> student, teacher;
};
Pair pair_of(const DistilConfig& config, const ModelConfig& student = bert(2), const ModelConfig& teacher = bert(4),
             const Objectives& objectives = {MlmConfig{}}) {
  Pair made{drawn(student, objectives, 1), drawn(teacher, objectives, 2)};
  made.student->learn_from(config, made.teacher);
  initialize(collect_params(*made.student), 0.3, false, Rng(1));
  return made;
}

DistilConfig of_teacher(const std::function<void(DistilConfig&)>& change = [](DistilConfig&) {}) {
  DistilConfig config;
  config.teacher = "runs/teacher";
  change(config);
  return config;
}

/// The slope of `f` along one number of a tensor.
double slope(const std::function<double()>& f, const Tensor& at, int64_t index) {
  constexpr double step = 1e-2;
  const at::NoGradGuard no_grad;
  const auto number = at.flatten()[index];
  const auto before = number.clone();
  number.add_(step);
  const double above = f();
  number.copy_(before - step);
  const double below = f();
  number.copy_(before);
  return (above - below) / (2 * step);
}

}  // namespace

TEST_CASE("the divergence of logits is that of their softmaxes, and its gradient is its slope",
          "[objectives][distil]") {
  at::manual_seed(3);
  for (const double temperature : {1.0, 2.0, 10.0}) {
    const auto student = at::randn({4, 7}).mul(2).set_requires_grad(true), teacher = at::randn({4, 7}).mul(2);
    const auto rows = divergence(student, teacher, temperature);
    for (int64_t n = 0; n < 4; ++n)
      CHECK(rows[n].item<double>() ==
            Approx(slow_divergence(row_of(student[n]), row_of(teacher[n]), temperature)).epsilon(tolerance));
    const auto weights = at::tensor({0.5, 1.0, 2.0, 3.0}, at::kFloat);
    (rows * weights).sum().backward();
    for (const int64_t index : {0, 9, 27}) {
      const auto f = [&] { return (divergence(student, teacher, temperature) * weights).sum().item<double>(); };
      CHECK(student.grad().flatten()[index].item<double>() ==
            Approx(slope(f, student, index)).epsilon(0.01).margin(3e-3));
    }
  }
}

TEST_CASE("the losses of given tensors are those of torch's classes that DistilBERT's and TinyBERT's programs call",
          "[objectives][distil]") {
  const auto student = numbers({5, 11}, 0.3, 4), teacher = numbers({5, 11}, 1.1, 4);
  // KLDivLoss(reduction="batchmean") of log_softmax(s / 2) and softmax(t / 2), times 2^2 (distiller.py, step)
  CHECK(divergence(student, teacher, 2).mean().item<double>() == Approx(3.477576494216919).epsilon(1e-6));
  // soft_cross_entropy(s, t) less the entropy of softmax(t) (task_distill.py, of the prediction layer)
  CHECK(divergence(student, teacher, 1).mean().item<double>() == Approx(2.575455665588379).epsilon(1e-6));
  // CosineEmbeddingLoss(reduction="mean") of the target 1 (distiller.py, step)
  CHECK(cosine_distance(numbers({5, 6}, 0.7), numbers({5, 6}, 1.9)).mean().item<double>() ==
        Approx(1.2513525485992432).epsilon(1e-6));
}

TEST_CASE("what neither network can say counts nothing in a divergence", "[objectives][distil]") {
  const double none = -std::numeric_limits<double>::infinity();
  const auto student = at::tensor({1.0, none, 0.5}, at::kFloat).unsqueeze(0).set_requires_grad(true),
             teacher = at::tensor({-1.0, none, 0.25}, at::kFloat).unsqueeze(0);
  const auto rows = divergence(student, teacher, 2);
  CHECK(rows[0].item<double>() == Approx(slow_divergence({1, 0.5}, {-1, 0.25}, 2)));
  rows.sum().backward();
  CHECK(student.grad()[0][1].item<double>() == 0);
}

TEST_CASE("the losses of DistilBERT are those of its formulas, over all tokens but padding", "[objectives][distil]") {
  auto config = of_teacher([](auto& c) { c.temperature = 2, c.logits = 5, c.cosine = 1; });
  auto [student, teacher] = pair_of(config);
  const auto batch = padded_batch();
  const auto own = said_by(*student, batch), taught = said_by(*teacher, batch);
  const auto tokens = real_tokens(batch);
  double logits = 0, cosine = 0;
  for (const auto& [b, t] : tokens) {
    logits += slow_divergence(row_of(own.logits[b][t]), row_of(taught.logits[b][t]), 2);
    cosine += slow_cosine(row_of(own.states.back()[b][t]), row_of(taught.states.back()[b][t]));
  }
  const auto parts = student->losses(batch, 0);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].name == "mlm");
  CHECK(parts[1].count == std::ssize(tokens));
  CHECK(parts[1].weight == 5);
  CHECK(parts[1].sum.item<double>() == Approx(logits).epsilon(tolerance));
  CHECK(parts[2].sum.item<double>() == Approx(cosine).epsilon(tolerance));
  config.tokens = TaughtTokens::predicted;
  config.cosine = 0;
  auto [other, same] = pair_of(config);
  logits = 0;
  for (const auto& [b, t] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {0, 4}, {1, 2}})
    logits += slow_divergence(row_of(own.logits[b][t]), row_of(taught.logits[b][t]), 2);
  CHECK(mean_of(*other, batch, "distil") == Approx(logits / 3).epsilon(tolerance));
}

TEST_CASE("states of layers are compared through a layer where widths differ", "[objectives][distil]") {
  const auto config = of_teacher([](auto& c) { c.logits = 0, c.hidden = 1, c.embeddings = 1; });
  for (const int64_t width : {18, 12}) {
    auto [student, teacher] = pair_of(config, bert(2, width));
    const auto batch = padded_batch();
    const auto own = said_by(*student, batch), taught = said_by(*teacher, batch);
    const auto fitted = [&](const Tensor& state, const std::string& name) {
      Tensor weight, bias;
      for (const auto& [of, param] : collect_params(*student)) {
        if (of == "distil." + name + ".weight") weight = param.value();
        if (of == "distil." + name + ".bias") bias = param.value();
      }
      CHECK(weight.defined() == (width != 18));
      return weight.defined() ? at::linear(state, weight, bias) : state;
    };
    double hidden = 0, embeddings = 0;
    for (const auto& [b, t] : real_tokens(batch)) {
      embeddings += mean_square(row_of(fitted(own.states[0][b][t], "embeddings")), row_of(taught.states[0][b][t]));
      for (const auto& [m, l] : {std::pair{1, 2}, std::pair{2, 4}})
        hidden += mean_square(row_of(fitted(own.states[static_cast<size_t>(m)][b][t], "hidden")),
                              row_of(taught.states[static_cast<size_t>(l)][b][t]));
    }
    const auto count = static_cast<double>(real_tokens(batch).size());
    CHECK(mean_of(*student, batch, "distil_hidden") == Approx(hidden / count).epsilon(tolerance));
    CHECK(mean_of(*student, batch, "distil_embeddings") == Approx(embeddings / count).epsilon(tolerance));
  }
}

TEST_CASE("scores and relations of attention are those of TinyBERT's and MiniLM's formulas", "[objectives][distil]") {
  const auto config = of_teacher([](auto& c) { c.logits = 0, c.scores = 1, c.attention = 1, c.values = 1; });
  auto [student, teacher] = pair_of(config, bert(2, 12));
  const auto batch = padded_batch();
  const auto own = said_by(*student, batch), taught = said_by(*teacher, batch);
  // Products of part `a` of query token t with part `b` of each real token, of one head.
  const auto products = [&](const Tensor& projections, int64_t row, int64_t token, int64_t head, int64_t a, int64_t b) {
    const int64_t width = projections.size(-1) / 3, per_head = width / 3;
    const auto vector = [&](int64_t at, int64_t part) {
      return row_of(projections[row][at].narrow(0, part * width + head * per_head, per_head));
    };
    Row all;
    for (const auto& [other, key] : real_tokens(batch))
      if (other == row) all.push_back(dot(vector(token, a), vector(key, b)) / std::sqrt(static_cast<double>(per_head)));
    return all;
  };
  double scores = 0, attention = 0, values = 0;
  for (const auto& [b, t] : real_tokens(batch))
    for (int64_t head = 0; head < 3; ++head) {
      for (const auto& [m, l] : {std::pair{0, 1}, std::pair{1, 3}})
        scores += mean_square(products(own.attentions[static_cast<size_t>(m)], b, t, head, 0, 1),
                              products(taught.attentions[static_cast<size_t>(l)], b, t, head, 0, 1)) /
                  3;
      const auto divergence_of = [&](int64_t one, int64_t two) {
        return slow_divergence(products(own.attentions[1], b, t, head, one, two),
                               products(taught.attentions[3], b, t, head, one, two), 1) /
               3;
      };
      attention += divergence_of(0, 1);
      values += divergence_of(2, 2);
    }
  const auto count = static_cast<double>(real_tokens(batch).size());
  CHECK(mean_of(*student, batch, "distil_scores") == Approx(scores / count).epsilon(tolerance));
  CHECK(mean_of(*student, batch, "distil_attention") == Approx(attention / count).epsilon(tolerance));
  CHECK(mean_of(*student, batch, "distil_values") == Approx(values / count).epsilon(tolerance));
}

TEST_CASE("patient losses compare the directions of the first token below the last layer", "[objectives][distil]") {
  auto [student, teacher] =
      pair_of(of_teacher([](auto& c) { c.logits = 0, c.patient = 1, c.layers = {the_last}; }), bert(3), bert(4));
  const auto batch = padded_batch();
  const auto own = said_by(*student, batch), taught = said_by(*teacher, batch);
  double sum = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (const auto& [m, l] : {std::pair{1, 2}, std::pair{2, 3}}) {
      auto s = row_of(own.states[static_cast<size_t>(m)][b][0]),
           t = row_of(taught.states[static_cast<size_t>(l)][b][0]);
      const double of_s = std::sqrt(dot(s, s)), of_t = std::sqrt(dot(t, t));
      for (double& x : s) x /= of_s;
      for (double& x : t) x /= of_t;
      sum += mean_square(s, t) * static_cast<double>(s.size());
    }
  CHECK(mean_of(*student, batch, "distil_patient") == Approx(sum / 2).epsilon(tolerance));
}

TEST_CASE("the gradients of all losses are their slopes, and the teacher has none", "[objectives][distil]") {
  const auto config = of_teacher([](auto& c) {
    c.temperature = 2;
    c.hidden = c.embeddings = c.scores = c.attention = c.values = 1;
  });
  auto [student, teacher] = pair_of(config, bert(2, 12));
  const auto batch = padded_batch();
  for (const auto& part : student->losses(batch, 0)) {
    const auto name = part.name;
    INFO(name);
    const auto params = collect_params(*student);
    for (const auto& [own, param] : params) param.value().mutable_grad() = Tensor();
    loss_called(*student, batch, name).backward();
    int compared = 0;
    for (const auto& [own, param] : params) {
      const auto& grad = param.value().grad();
      if (!grad.defined() || grad.abs().max().item<double>() < 1e-3) continue;
      const auto index = grad.abs().argmax().item<int64_t>();
      INFO(own);
      const auto f = [&] { return mean_of(*student, batch, name); };
      CHECK(grad.flatten()[index].item<double>() == Approx(slope(f, param.value(), index)).epsilon(0.03).margin(2e-3));
      ++compared;
    }
    CHECK(compared > 3);
  }
  for (const auto& [name, param] : collect_params(*teacher)) {
    CHECK_FALSE(param.value().requires_grad());
    CHECK_FALSE(param.value().grad().defined());
  }
}

TEST_CASE("in bf16 both networks compute by their copies, and the losses are near those of fp32",
          "[objectives][distil]") {
  const auto config = of_teacher([](auto& c) {
    c.temperature = 2;
    c.cosine = c.hidden = c.embeddings = c.scores = c.attention = c.values = c.patient = 1;
  });
  auto [student, teacher] = pair_of(config);
  const auto wanted = student->losses(padded_batch(), 0);
  auto params = collect_params(*student);
  for (auto& named : student->teachers_params()) params.push_back(named);
  FlatParameters flat(params, at::kCPU);
  flat.use_bf16(true);
  CHECK(teacher->backbone->token_embedding().compute().scalar_type() == at::kBFloat16);
  Tensor sum;
  const auto got = student->losses(padded_batch(), 0);
  for (size_t k = 0; k < got.size(); ++k) {
    INFO(got[k].name);
    CHECK(got[k].sum.item<double>() == Approx(wanted[k].sum.item<double>()).epsilon(0.05));
    sum = sum.defined() ? sum + got[k].sum : got[k].sum;
  }
  sum.backward();
  CHECK(flat.grads.abs().max().item<double>() > 0);
}

TEST_CASE("the teacher is no part of the network, which has its losses in training alone", "[objectives][distil]") {
  auto [student, teacher] = pair_of(of_teacher());
  CHECK(collect_params(*student).size() == collect_params(Network(bert(2), {MlmConfig{}})).size());
  CHECK(student->teachers_params().size() == collect_params(*teacher).size());
  student->train();
  CHECK_FALSE(teacher->is_training());
  CHECK(student->losses(padded_batch(), 0).size() == 2);
  student->eval();
  CHECK(student->losses(padded_batch(), 0).size() == 1);
  CHECK(student->parts(padded_batch()).size() == 1);
}

TEST_CASE("what two networks cannot compare is said", "[objectives][distil]") {
  const auto said = [](const std::string& sentence, const std::function<void(DistilConfig&)>& change,
                       const ModelConfig& student, const ModelConfig& teacher,
                       const Objectives& teachers = {MlmConfig{}}) {
    const auto own = drawn(student, {MlmConfig{}}, 1);
    INFO(sentence);
    CHECK_THROWS_WITH(own->learn_from(of_teacher(change), drawn(teacher, teachers, 2)), Contains(sentence));
  };
  const auto none = [](DistilConfig&) {};
  const auto layers = [](DistilConfig& c) { c.hidden = 1; };
  auto wider = bert(2), headed = bert(2);
  wider.vocab_size = 40;
  headed.num_attention_heads = 2;
  auto biased = bert(2);
  biased.positions = Alibi{};
  said("distil.layers: runs/teacher has 5 layers, which 2 do not divide; list a layer of it for each, or choose last",
       layers, bert(2), bert(5));
  said("distil.layers: runs/teacher has 2 layers, fewer than the 4 of this network", layers, bert(4), bert(2));
  said(
      "distil.layers lists 3 layers, and this network has 2",
      [](DistilConfig& c) { c.hidden = 1, c.layers = {1, 2, 3}; }, bert(2), bert(4));
  said(
      "distil.layers: runs/teacher has the layers 1 to 4, and 5 is none of them",
      [](DistilConfig& c) { c.hidden = 1, c.layers = {1, 5}; }, bert(2), bert(4));
  said(
      "distil.cosine compares states of one width, and those of runs/teacher have 18, of this network 12; set it to 0",
      [](DistilConfig& c) { c.cosine = 1; }, bert(2, 12), bert(4));
  said("distil.patient compares states of one width", [](DistilConfig& c) { c.patient = 1; }, bert(2, 12), bert(4));
  said("distil.logits: runs/teacher has 40 logits, and this network 31; set model.vocab_size=40", none, bert(2), wider);
  said("distil.logits: runs/teacher has no head for mlm", none, bert(2), bert(4), {NspConfig{}});
  said(
      "distil compares layers below the last, and this network has 1; set distil.patient to 0",
      [](DistilConfig& c) { c.patient = 1; }, bert(1), bert(4));
  said("distil compares layers, and this network has 0", layers, bert(0), bert(4));
  said(
      "distil compares attention head by head, and runs/teacher has 2 heads, this network 3",
      [](DistilConfig& c) { c.scores = 1; }, bert(2), headed);
  said(
      "scores are products of queries and keys, and that of runs/teacher is another",
      [](DistilConfig& c) { c.values = 1; }, bert(2), biased);
}

namespace {

template <class Config>
Config with_labels() {
  Config config;
  if constexpr (requires { config.class_weights; })
    if (config.has_labels()) config.labels = {"a", "b", "c"};
  return config;
}

/// Three rows, the second of six tokens, with labels of one kind.
Batch labelled_batch(const std::string& kind) {
  Batch batch;
  batch.input_ids = at::arange(3 * length, at::kLong).mul(7).remainder(vocabulary).view({3, length});
  batch.attention_mask = at::ones({3, length}, at::kBool);
  batch.attention_mask[1].narrow(0, 6, 3).fill_(false);
  if (kind == "classification") batch.labels = at::tensor({0, -100, 2}, at::kLong);
  if (kind == "tagging") {
    batch.positions = at::tensor({1, 4, 11, 19}, at::kLong);
    batch.labels = at::tensor({0, 2, -100, 1}, at::kLong);
  }
  if (kind == "spans") batch.labels = at::tensor({1, 2, 3, 3, 0, 8}, at::kLong).view({3, 2});
  if (kind == "choice") {
    batch.candidates = at::tensor({0, 1, 2, -1}, at::kLong).view({2, 2});
    batch.labels = at::tensor({1, 0}, at::kLong);
  }
  return batch;
}

/// The distributions that a network says of what is labelled, as logits.
std::vector<Row> distributions(Network& network, const Batch& batch, const std::string& kind) {
  const at::NoGradGuard no_grad;
  const bool trains = network.is_training();
  network.eval();
  std::map<std::string, Tensor> by_name;
  for (const auto& [name, tensor] : network.batch_outputs(batch)) by_name[name] = tensor;
  network.train(trains);
  std::vector<Row> rows;
  const auto& logits = by_name["logits"];
  if (kind == "classification") rows = {row_of(logits[0]), row_of(logits[2])};
  if (kind == "tagging") rows = {row_of(logits[0][1]), row_of(logits[0][4]), row_of(logits[2][1])};
  if (kind == "choice") rows = {row_of(logits[0]), {logits[1][0].item<double>()}};
  if (kind == "spans")
    for (int64_t b = 0; b < 3; ++b)
      for (const auto* side : {"start_logits", "end_logits"})
        rows.push_back(row_of(by_name[side][b].narrow(0, 0, b == 1 ? 6 : length)));
  return rows;
}

}  // namespace

TEST_CASE("on a task the logits of what is labelled are compared, in every kind of head", "[objectives][distil]") {
  const std::vector<std::pair<std::string, ObjectiveConfig>> kinds{
      {"classification", with_labels<ClassificationConfig>()},
      {"tagging", with_labels<TaggingConfig>()},
      {"spans", SpansConfig{}},
      {"choice", ChoiceConfig{}}};
  for (const auto& [kind, head] : kinds) {
    INFO(kind);
    auto [student, teacher] = pair_of(of_teacher([](auto& c) { c.temperature = 4; }), bert(2, 12), bert(4), {head});
    for (const auto& network : {student, teacher})
      for (const auto& [name, param] : collect_params(*network)) {
        const at::NoGradGuard no_grad;
        if (name.ends_with("output.weight") && param.is_of_head()) param.value().mul_(40);  // so that labels differ
      }
    const auto batch = labelled_batch(kind);
    const auto own = distributions(*student, batch, kind), taught = distributions(*teacher, batch, kind);
    double sum = 0;
    for (size_t k = 0; k < own.size(); ++k) sum += slow_divergence(own[k], taught[k], 4);
    const double items = kind == "spans" ? 2 * 3 : static_cast<double>(own.size());
    CHECK(mean_of(*student, batch, "distil") == Approx(sum / items).epsilon(tolerance).margin(1e-6));
    CHECK(student->losses(batch, 0).size() == 2);
  }
}
