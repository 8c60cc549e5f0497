#include "models/families/xlnet.h"
#include "tests/models/two_stream_inputs.h"
#include "tests/support/close_to.h"

using namespace cloze;

TEST_CASE("dropout is a function of its key and is applied in both streams", "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto model = make(small<XlnetConfig>());
  model->train();
  auto in = all_inputs();
  const auto run = [&](uint64_t key) {
    in.dropout_key = key;
    Traces traces;
    model->hidden(in, &traces);
    return traces.encoder.hidden_states;
  };
  const auto a = run(1), b = run(1), c = run(2);
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(at::equal(a[i], b[i]));
    CHECK_FALSE(at::equal(a[i], c[i]));
  }
}

TEST_CASE("each dropout rate applies to both streams, with independent masks", "[models][xlnet]") {
  at::NoGradGuard no_grad;
  for (const std::string rate : {"hidden", "scores", "activation"}) {
    INFO(rate);
    auto config = small<XlnetConfig>();
    config.hidden_dropout_prob = rate == "hidden" ? 0.5 : 0;
    config.attention_probs_dropout_prob = rate == "scores" ? 0.5 : 0;
    config.activation_dropout = rate == "activation" ? 0.5 : 0;
    auto model = make(config);
    // Queries start from the token's embedding and attend to the same keys, so the streams differ by dropout only.
    for (const auto& [name, param] : collect_params(*model))
      if (name == "mask_emb") param.value().copy_(model->token_embedding().value()[4].view({1, 1, 12}));
    Traces clean, dropped;
    Inputs in{.input_ids = at::full({2, 7}, 4, at::kLong),
              .target_positions = at::arange(7, at::kLong).expand({2, 7}),
              .dropout_key = 5};
    model->hidden(in, &clean);
    model->train();
    model->hidden(in, &dropped);
    const auto &a = clean.encoder.hidden_states, &b = dropped.encoder.hidden_states;
    CHECK(error_of(a[4], a[5]) < 1e-5);
    for (const size_t stream : {4, 5}) CHECK(error_of(b[stream], a[stream]) > 0.05);
    CHECK(error_of(b[4], b[5]) > 0.05);
  }
}

TEST_CASE("hidden dropout follows both initial states, the distances, both sublayers of a block and the final states",
          "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto config = small<XlnetConfig>();
  config.num_hidden_layers = 1;
  config.hidden_dropout_prob = 0.5;
  config.attention_probs_dropout_prob = config.activation_dropout = 0;
  auto model = make(config);
  const Inputs in{.input_ids = some_ids(2, 7),
                  .target_positions = at::arange(5, at::kLong).expand({2, 5}),
                  .mems = {numbers({2, 3, 12}, 0.1)},
                  .dropout_key = 5};
  const auto set = [&](const std::string& part, double value) {
    for (const auto& [name, param] : collect_params(*model))
      if (name == part) param.value().fill_(value);
  };
  const auto run = [&](bool training) {
    model->train(training);
    Traces traces;
    traces.encoder.hidden_states.push_back(model->hidden(in, &traces));  // h0, g0, h1, g1, output
    return traces.encoder;
  };
  const auto half = [](const Tensor& which) {
    return std::abs(which.to(at::kDouble).mean().item<double>() - 0.5) < 0.2;
  };
  auto states = run(true).hidden_states;
  for (const size_t i : {0, 1, 4}) CHECK(half(states[i].eq(0)));
  // With zero initial states only the mems matter: dropout on the distances, then on the attention output. Dropped
  // elements have the same value after the norm.
  set("embeddings.word", 0);
  set("mask_emb", 0);
  set("stack.0.output.weight", 0);
  const auto dropped = run(true), clean = run(false);
  for (const size_t stream : {0, 1}) {
    CHECK(error_of(dropped.attentions[stream], clean.attentions[stream]) > 1e-3);
    const auto equal_elements = [](const Tensor& x) {
      return (x - std::get<0>(x.median(-1, true))).abs().lt(1e-5).sum(-1).max().item<int64_t>();
    };
    CHECK(equal_elements(dropped.hidden_states[2 + stream]) > 4);
    CHECK(equal_elements(clean.hidden_states[2 + stream]) == 1);
  }
  // A norm maps equal elements to zero, unless some were dropped.
  set("stack.0.attention.output.weight", 0);
  set("stack.0.output.bias", 1);
  states = run(true).hidden_states;
  const auto without = run(false).hidden_states;
  for (const size_t i : {2, 3}) {
    CHECK(states[i].abs().amin(-1).gt(0.01).to(at::kDouble).mean().item<double>() > 0.9);
    CHECK(without[i].abs().max().item<double>() < 1e-3);
  }
}
