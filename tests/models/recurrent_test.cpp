#include "models/families/lstm.h"
#include "tests/support/catch.h"
#include "tests/support/naive.h"
#include "tests/support/small.h"

using namespace cloze;
using naive::Matrix;
using naive::Row;

namespace {

LstmConfig small_lstm() {
  LstmConfig c;
  c.vocab_size = 23, c.hidden_size = 5, c.num_hidden_layers = 2;
  return c;
}

/// A network of doubles, in evaluation mode, without biases of 0.
std::shared_ptr<Backbone> exact(const LstmConfig& config) {
  auto model = make(config);
  at::NoGradGuard no_grad;
  for (auto [name, param] : collect_params(*model))
    if (name.ends_with("bias")) param.value().copy_(numbers(param.value().sizes(), 0.3));
  convert_params(*model, at::kDouble);
  return model;
}

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Zaremba et al. 2014, section 3.1: the outputs of a layer for inputs x.
Matrix lstm_layer(const Matrix& x, const Tensor& input, const Tensor& recurrent, const Tensor& bias) {
  const size_t width = x[0].size();
  const auto w = input.accessor<double, 2>(), u = recurrent.accessor<double, 2>();
  Row h(width), c(width);
  Matrix outputs;
  for (const auto& token : x) {
    const auto gate = [&](size_t kind, size_t unit) {
      const auto row = static_cast<int64_t>(kind * width + unit);
      double sum = bias[row].item<double>();
      for (size_t k = 0; k < width; ++k)
        sum += w[row][static_cast<int64_t>(k)] * token[k] + u[row][static_cast<int64_t>(k)] * h[k];
      return sum;
    };
    Row next(width);
    for (size_t d = 0; d < width; ++d) {
      c[d] = sigmoid(gate(1, d) + 1) * c[d] + sigmoid(gate(0, d)) * std::tanh(gate(2, d));
      next[d] = sigmoid(gate(3, d)) * std::tanh(c[d]);
    }
    h = next;
    outputs.push_back(h);
  }
  return outputs;
}

/// A loss in which every state counts by a factor of its own.
Tensor loss_of(Backbone& model, const Tensor& ids) {
  const auto states = model.hidden({.input_ids = ids});
  return (states * numbers(states.sizes(), 0.9).to(states.scalar_type())).sum();
}

}  // namespace

TEST_CASE("an LSTM computes the formula of its paper in every layer", "[models][recurrent]") {
  at::NoGradGuard no_grad;
  const auto model = exact(small_lstm());
  const auto ids = some_ids(2, 7);
  Traces traces;
  const auto states = model->hidden({.input_ids = ids}, &traces);
  REQUIRE(traces.encoder.hidden_states.size() == 3);
  CHECK(at::equal(traces.encoder.hidden_states[2], states));
  std::map<std::string, Tensor> w;
  for (const auto& [name, param] : collect_params(*model)) w[name] = param.value();
  for (int64_t row = 0; row < 2; ++row) {
    Matrix x(7, Row(5));
    for (size_t t = 0; t < 7; ++t)
      for (size_t d = 0; d < 5; ++d)
        x[t][d] = w.at("embeddings.word")[ids[row][static_cast<int64_t>(t)].item<int64_t>()][static_cast<int64_t>(d)]
                      .item<double>();
    for (size_t layer = 0; layer < 2; ++layer) {
      const auto of_layer = "stack." + std::to_string(layer) + ".";
      x = lstm_layer(x, w.at(of_layer + "input.weight"), w.at(of_layer + "recurrent.weight"),
                     w.at(of_layer + "input.bias"));
      for (size_t t = 0; t < 7; ++t)
        for (size_t d = 0; d < 5; ++d)
          CHECK(traces.encoder.hidden_states[layer + 1][row][static_cast<int64_t>(t)][static_cast<int64_t>(d)]
                    .item<double>() == Approx(x[t][d]).margin(1e-12));
    }
  }
}

TEST_CASE("the gradients of an LSTM are finite differences of its loss", "[models][recurrent]") {
  const auto model = exact(small_lstm());
  const auto ids = some_ids(2, 6);
  loss_of(*model, ids).backward();
  for (const auto& [name, param] : collect_params(*model)) {
    INFO(name);
    const auto value = param.value().detach().flatten(), gradient = param.value().grad().flatten();
    for (const int64_t i : {int64_t{0}, value.numel() / 3, value.numel() - 1}) {
      at::NoGradGuard no_grad;
      const double kept = value[i].item<double>(), step = 1e-5;
      value[i] = kept + step;
      const double above = loss_of(*model, ids).item<double>();
      value[i] = kept - step;
      const double below = loss_of(*model, ids).item<double>();
      value[i] = kept;
      CHECK(gradient[i].item<double>() == Approx((above - below) / (2 * step)).epsilon(1e-6).margin(1e-8));
    }
  }
}

TEST_CASE("rows of a decoder's state go on in another order, and twice", "[models][recurrent][decoder]") {
  at::NoGradGuard no_grad;
  const auto model = exact(small_lstm());
  const auto begin = some_ids(3, 4), rest = some_ids(4, 3);
  const auto origins = at::tensor({2, 0, 2, 1}, at::kLong);
  DecoderState state;
  model->decode(begin, {}, state);
  auto after = state.select(origins);
  const auto states = model->decode(rest, {}, after);
  const auto whole = model->hidden({.input_ids = at::cat({begin.index_select(0, origins), rest}, 1)});
  CHECK(difference(states, whole.narrow(1, 4, 3)) < 1e-12);
  // The state that was selected from is as it was.
  CHECK(difference(model->decode(rest.narrow(0, 0, 3), {}, state),
                   model->hidden({.input_ids = at::cat({begin, rest.narrow(0, 0, 3)}, 1)}).narrow(1, 4, 3)) < 1e-12);
}

TEST_CASE("a recurrent network reads no prefix, no padding of a decoder and no vocabulary of 0 tokens",
          "[models][recurrent]") {
  at::NoGradGuard no_grad;
  auto config = small_lstm();
  const auto model = make(config);
  CHECK_THROWS_WITH(model->hidden({.input_ids = some_ids(1, 3), .prefix = at::ones({1}, at::kLong)}),
                    "a recurrent network reads a text from left to right, without a prefix");
  DecoderState state;
  CHECK_THROWS_WITH(model->decode(some_ids(1, 3), {}, state, at::ones({1, 3}, at::kBool)),
                    "a recurrent network reads rows without padding");
  CHECK_THROWS_WITH(model->pooled(at::zeros({1, 3, 5})), "a recurrent network has no pooler");
  config.vocab_size = 0;
  CHECK_THROWS_WITH(make_backbone(config, {}),
                    "model.vocab_size is 0; set it to the number of rows of the token embedding");
}
