#include "models/families/backbone.h"
#include "models/families/bert.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

BertConfig small() {
  BertConfig c;
  c.vocab_size = 23, c.hidden_size = 12, c.num_hidden_layers = 2, c.num_attention_heads = 3, c.intermediate_size = 20,
  c.max_position_embeddings = 16;
  return c;
}

std::shared_ptr<Backbone> make(const BertConfig& c, uint64_t seed = 1) {
  auto model = make_backbone(c, {.pooler = true});
  initialize(collect_params(*model), 0.3, false, Rng(seed));
  model->eval();
  return model;
}

Tensor some_ids(int64_t rows, int64_t columns) {
  return at::arange(rows * columns, at::kLong).mul(7).remainder(23).view({rows, columns});
}

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST_CASE("padding does not change the states of real tokens", "[models]") {
  at::NoGradGuard no_grad;
  auto model = make(small());
  const auto ids = some_ids(2, 6), types = ids.remainder(2);
  const auto alone = model->hidden({.input_ids = ids, .token_type_ids = types});
  const auto padded_ids = at::cat({ids, at::full({2, 4}, 5, at::kLong)}, 1);
  const auto mask = at::cat({at::ones({2, 6}, at::kBool), at::zeros({2, 4}, at::kBool)}, 1);
  const auto padded = model->hidden({.input_ids = padded_ids,
                                     .attention_mask = mask,
                                     .token_type_ids = at::cat({types, at::ones({2, 4}, at::kLong)}, 1)});
  CHECK(difference(alone, padded.narrow(1, 0, 6)) < 1e-5);
}

TEST_CASE("a row of a batch equals the same row in a batch of one", "[models]") {
  at::NoGradGuard no_grad;
  auto model = make(small());
  const auto ids = some_ids(3, 7);
  const auto together = model->hidden({.input_ids = ids});
  for (int64_t row = 0; row < 3; ++row)
    CHECK(difference(together[row], model->hidden({.input_ids = ids.narrow(0, row, 1)})[0]) < 1e-5);
}

TEST_CASE("earlier states of a causal model do not depend on later tokens", "[models]") {
  at::NoGradGuard no_grad;
  auto config = small();
  config.architecture = Architecture::decoder;
  auto model = make(config);
  auto ids = some_ids(1, 8);
  const auto before = model->hidden({.input_ids = ids});
  auto changed = ids.clone();
  changed[0][6] = 1 + ids[0][6].item<int64_t>() % 20;
  const auto after = model->hidden({.input_ids = changed});
  CHECK(difference(before.narrow(1, 0, 6), after.narrow(1, 0, 6)) == 0);
  CHECK(difference(before.narrow(1, 6, 2), after.narrow(1, 6, 2)) > 1e-3);
}

TEST_CASE("published shapes have the published number of parameters", "[models]") {
  const auto count = [](int64_t layers, int64_t width, int64_t vocab, bool pooler) {
    BertConfig c;
    c.num_hidden_layers = layers;
    c.hidden_size = width;
    c.num_attention_heads = width / 64;
    c.intermediate_size = 4 * width;
    c.vocab_size = vocab;
    int64_t n = 0;
    for (const auto& p : collect_params(*make_backbone(c, {.pooler = pooler}))) n += p.param.value().numel();
    return n;
  };
  CHECK(count(2, 128, 30522, true) == 4385920);     // BERT-tiny
  CHECK(count(4, 256, 30522, true) == 11170560);    // BERT-mini
  CHECK(count(12, 768, 30522, true) == 109482240);  // BERT-base, uncased
  CHECK(count(12, 768, 30522, false) == 108891648);
}

TEST_CASE("parameter names and shapes are a contract with checkpoints", "[models]") {
  std::string names;
  for (const auto& [name, param] : collect_params(*make(small()))) {
    names += name;
    for (const auto size : param.value().sizes()) names += " " + std::to_string(size);
    names += "\n";
    if (name.find("stack.0.output.bias") != std::string::npos) break;
  }
  CHECK(names ==
        "embeddings.word 23 12\nembeddings.position 16 12\nembeddings.token_type 2 12\nembeddings.norm.weight "
        "12\nembeddings.norm.bias 12\n"
        "stack.0.attention.output.weight 12 12\nstack.0.attention.output.bias 12\nstack.0.attention.qkv.weight 36 "
        "12\nstack.0.attention.qkv.bias 36\n"
        "stack.0.attention_norm.weight 12\nstack.0.attention_norm.bias 12\nstack.0.output_norm.weight "
        "12\nstack.0.output_norm.bias 12\n"
        "stack.0.intermediate.weight 20 12\nstack.0.intermediate.bias 20\nstack.0.output.weight 12 "
        "20\nstack.0.output.bias 12\n");
}

TEST_CASE("gradients of every parameter agree with finite differences in double", "[models]") {
  auto model = make(small());
  convert_params(*model, at::kDouble);
  set_fused(false);
  const auto ids = some_ids(2, 5);
  const auto mask = at::tensor({1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, at::kInt).view({2, 5}).to(at::kBool);
  const auto probe = at::linspace(-1, 1, 2 * 5 * 12, at::kDouble).view({2, 5, 12});
  const auto loss = [&] {
    const auto hidden = model->hidden({.input_ids = ids, .attention_mask = mask});
    return (hidden * probe).sum() + model->pooled(hidden).sum();
  };
  loss().backward();
  at::NoGradGuard no_grad;
  for (const auto& [name, param] : collect_params(*model)) {
    auto value = param.value().view(-1);
    const auto grad = param.value().grad().view(-1);
    for (const int64_t at : {int64_t{0}, value.numel() / 2, value.numel() - 1}) {
      const double kept = value[at].item<double>(), step = 1e-6;
      value[at] = kept + step;
      const double up = loss().item<double>();
      value[at] = kept - step;
      const double down = loss().item<double>();
      value[at] = kept;
      INFO(name << " at " << at);
      CHECK(grad[at].item<double>() == Approx((up - down) / (2 * step)).epsilon(1e-4).margin(1e-6));
    }
  }
  set_fused(true);
}

TEST_CASE("gradient checkpointing gives bitwise equal gradients, dropout included", "[models]") {
  const auto gradients = [](bool checkpointing) {
    auto model = make(small());
    model->train();
    model->set_gradient_checkpointing(checkpointing);
    FlatParameters flat(collect_params(*model), at::kCPU);
    model->hidden({.input_ids = some_ids(2, 9), .dropout_key = 77}).square().sum().backward();
    return flat.grads.clone();
  };
  const auto plain = gradients(false);
  CHECK(plain.abs().sum().item<double>() > 0);
  CHECK(at::equal(plain, gradients(true)));
}

TEST_CASE("dropout masks differ between keys and are equal for the same key", "[models]") {
  at::NoGradGuard no_grad;
  auto model = make(small());
  model->train();
  const auto run = [&](uint64_t key) { return model->hidden({.input_ids = some_ids(2, 9), .dropout_key = key}); };
  CHECK(at::equal(run(1), run(1)));
  CHECK_FALSE(at::equal(run(1), run(2)));
}

TEST_CASE("the padding row of the embedding is frozen, as with torch's padding_idx", "[models]") {
  auto config = small();
  config.freeze_pad_embedding = true;
  config.pad_token_id = 3;
  auto model = make(config);
  model->train();
  FlatParameters flat(collect_params(*model), at::kCPU);
  CHECK(model->token_embedding().value()[3].abs().sum().item<double>() == 0);
  model->hidden({.input_ids = at::full({1, 4}, 3, at::kLong)}).square().sum().backward();
  CHECK(model->token_embedding().value().grad().abs().sum().item<double>() == 0);
}

TEST_CASE("heads that do not divide the width are rejected with a message", "[models]") {
  auto config = small();
  config.num_attention_heads = 5;
  CHECK_THROWS_WITH(make_backbone(config, {}),
                    "hidden_size 12 is not a multiple of num_attention_heads 5; choose a width that the heads divide");
}

TEST_CASE("parameters of the same name and shape have the same initial values for one seed", "[models]") {
  auto deeper = small();
  deeper.num_hidden_layers = 3;
  const auto a = collect_params(*make(small())), b = collect_params(*make(deeper));
  for (size_t i = 0; i < 5 + 12; ++i) CHECK(at::equal(a[i].param.value(), b[i].param.value()));
  CHECK_FALSE(at::equal(a[0].param.value(), collect_params(*make(small(), 2))[0].param.value()));
}

TEST_CASE("a truncated normal has the standard deviation after truncation", "[models]") {
  BertConfig c = small();
  c.vocab_size = 20000;
  auto model = make_backbone(c, {});
  const auto params = collect_params(*model);
  initialize(params, 0.02, true, Rng(3));
  const auto& word = params[0].param.value();
  CHECK(word.std().item<double>() == Approx(0.02 * 0.8796).epsilon(0.01));
  CHECK(word.abs().max().item<double>() <= 0.04);
  CHECK(std::abs(word.mean().item<double>()) < 2e-4);
}
