#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <cmath>

#include "models/families/backbone.h"
#include "models/families/xlnet.h"
#include "tests/models/two_stream_inputs.h"
#include "tests/support/close_to.h"
#include "tests/support/naive.h"

using namespace cloze;

namespace {

/// One output row of a layer by the paper's equations, as loops: the content stream h, or the query stream g.
/// Source: Yang et al. 2019, section 2.3 and appendix A.2; Dai et al. 2019, section 3.3.
naive::Row slow_row(const std::map<std::string, Tensor>& w, const XlnetConfig& c, const Inputs& in, const Tensor& h,
                    const Tensor& start, int64_t b, int64_t position, bool content) {
  const int64_t width = c.hidden_size, heads = c.num_attention_heads, each = width / heads,
                length = in.input_ids.size(1), past = in.mems.empty() ? 0 : in.mems[0].size(1);
  const auto row_of = [](const Tensor& t) {
    return naive::Row(t.data_ptr<double>(), t.data_ptr<double>() + t.numel());
  };
  const auto times = [&](const std::string& name, const naive::Row& x, int64_t first = 0, int64_t count = -1) {
    const auto& matrix = w.at(name);
    naive::Row out;
    for (int64_t r = first; r < first + (count < 0 ? matrix.size(0) : count); ++r) {
      out.push_back(0);
      for (size_t k = 0; k < x.size(); ++k) out.back() += matrix[r].data_ptr<double>()[k] * x[k];
    }
    return out;
  };
  const auto element = [&](const std::string& name, int64_t i) { return w.at(name).data_ptr<double>()[i]; };
  const auto x = row_of(start);
  const auto q = times("stack.0.attention.query.weight", x);
  naive::Row joined(static_cast<size_t>(width));
  for (int64_t head = 0; head < heads; ++head) {
    std::vector<double> e;
    std::vector<naive::Row> values;
    double total = 0;
    for (int64_t j = 0; j < past + length; ++j) {
      const bool is_mem = j < past;
      const auto source = row_of(is_mem ? in.mems[0][b][j].to(at::kDouble).contiguous() : h[b][j - past].contiguous());
      int64_t distance = position + past - j;
      bool visible =
          is_mem || (in.attention_mask[b][j - past].item<bool>() && in.visible[b][position][j - past].item<bool>());
      if (c.attn_type == AttentionDirection::uni && distance < 0) visible = false;
      if (c.same_length && distance > past) visible = false;
      if (content && distance == 0) visible = true;
      if (position < 0) visible = false;
      const int64_t own = position < 0 ? 0 : in.token_type_ids[b][position].item<int64_t>(),
                    other = is_mem ? 0 : in.token_type_ids[b][j - past].item<int64_t>();
      if (c.clamp_len > 0) distance = std::clamp(distance, -c.clamp_len, c.clamp_len);
      if (in.backward.defined() && in.backward[b].item<bool>()) distance = -distance;
      naive::Row angle;
      for (const bool cosine : {false, true})
        for (int64_t i = 0; i < width / 2; ++i) {
          const double a = static_cast<double>(distance) /
                           std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(width));
          angle.push_back(cosine ? std::cos(a) : std::sin(a));
        }
      const auto k = times("stack.0.attention.key_value.weight", source, head * each, each),
                 r = times("stack.0.attention.position.weight", angle, head * each, each);
      double score = 0;
      for (int64_t d = 0; d < each; ++d) {
        const int64_t n = head * each + d;
        score += (q[n] + element("stack.0.attention.r_w_bias", n)) * k[d] +
                 (q[n] + element("stack.0.attention.r_r_bias", n)) * r[d] +
                 (q[n] + element("stack.0.attention.r_s_bias", n)) *
                     element("stack.0.attention.seg_embed", (own == other ? 0 : width) + n);
      }
      e.push_back(visible ? std::exp(score / std::sqrt(static_cast<double>(each))) : 0);
      total += e.back();
      values.push_back(times("stack.0.attention.key_value.weight", source, width + head * each, each));
    }
    for (size_t j = 0; j < e.size() && total > 0; ++j)
      for (int64_t d = 0; d < each; ++d)
        joined[static_cast<size_t>(head * each + d)] += e[j] / total * values[j][static_cast<size_t>(d)];
  }
  const auto norm = [&](naive::Row sum, const naive::Row& more, const std::string& name) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    return naive::layer_norm(sum, row_of(w.at(name + ".weight")), row_of(w.at(name + ".bias")), c.layer_norm_eps);
  };
  const auto a = norm(times("stack.0.attention.output.weight", joined), x, "stack.0.attention_norm");
  auto inner = times("stack.0.intermediate.weight", a);
  for (size_t i = 0; i < inner.size(); ++i)
    inner[i] = naive::gelu(inner[i] + element("stack.0.intermediate.bias", static_cast<int64_t>(i)));
  auto out = times("stack.0.output.weight", inner);
  for (size_t i = 0; i < out.size(); ++i) out[i] += element("stack.0.output.bias", static_cast<int64_t>(i));
  return norm(out, a, "stack.0.output_norm");
}

}  // namespace

TEST_CASE("the relative shift aligns distances with keys: row t starts at index T - t", "[models][xlnet]") {
  for (const auto& [t, s] : {std::pair<int64_t, int64_t>{1, 1}, {1, 6}, {4, 4}, {5, 9}, {7, 8}}) {
    INFO(t << " queries, " << s << " keys");
    const auto x = numbers({2, 3, t, s + t}, 0.4).set_requires_grad(true);
    const auto got = plain::relative_shift(x, at::arange(s, at::kLong));
    REQUIRE(got.sizes() == at::IntArrayRef({2, 3, t, s}));
    for (int64_t i = 0; i < t; ++i)
      for (int64_t j = 0; j < s; ++j)
        CHECK(at::equal(got.select(2, i).select(2, j), x.select(2, i).select(2, t - i + j)));
    got.sum().backward();  // every element that is used, once
    CHECK(x.grad().sum().item<double>() == Approx(2 * 3 * t * s));
    CHECK(x.grad().max().item<double>() == 1);
  }
}

TEST_CASE("both streams of a layer are the paper's equations, as loops", "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto config = small<XlnetConfig>();
  config.num_hidden_layers = 1;
  auto in = all_inputs(1);
  SECTION("default") {}
  SECTION("without mems") { in.mems.clear(); }
  SECTION("clamped distances") { config.clamp_len = 2; }
  SECTION("a reversed text") { in.backward = at::tensor({0, 1}, at::kInt).to(at::kBool); }
  SECTION("causal") { config.attn_type = AttentionDirection::uni; }
  SECTION("causal, same_length") {
    config.attn_type = AttentionDirection::uni;
    config.same_length = true;
  }
  auto model = make(config);
  std::map<std::string, Tensor> w;
  for (const auto& [name, param] : collect_params(*model)) w[name] = param.value().to(at::kDouble).contiguous();
  for (const auto* name : {"stack.0.attention_norm.bias", "stack.0.output_norm.weight", "stack.0.output.bias",
                           "stack.0.intermediate.bias"}) {
    for (const auto& [own, param] : collect_params(*model))
      if (own == name) {
        param.value().add_(numbers(param.value().sizes(), 0.7));
        w[name] = param.value().to(at::kDouble).contiguous();
      }
  }
  Traces traces;
  const auto got = model->hidden(in, &traces);
  const auto& states = traces.encoder.hidden_states;
  REQUIRE(states.size() == 4);  // content and query, before and after the layer
  CHECK(at::equal(got, states[3]));
  const auto h = states[0].to(at::kDouble);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 7; ++t)
      CHECK(error_of(states[2][b][t],
                     at::tensor(slow_row(w, config, in, h, h[b][t].contiguous(), b, t, true), at::kDouble)) < 1e-5);
    for (int64_t n = 0; n < 3; ++n)
      CHECK(error_of(got[b][n], at::tensor(slow_row(w, config, in, h, w["mask_emb"].flatten(), b,
                                                    in.target_positions[b][n].item<int64_t>(), false),
                                           at::kDouble)) < 1e-5);
  }
}

TEST_CASE("gradients of both streams match finite differences", "[models][xlnet]") {
  auto config = small<XlnetConfig>();
  config.clamp_len = 4;
  auto model = make(config);
  convert_params(*model, at::kDouble);
  const auto in = all_inputs();
  const auto loss = [&] { return (model->hidden(in) * numbers({2, 3, 12}, 0.2)).sum(); };
  loss().backward();
  for (const auto& [name, param] : collect_params(*model)) {
    INFO(name);
    at::NoGradGuard no_grad;
    const auto direction = numbers(param.value().sizes(), 0.9).to(at::kDouble);
    const double step = 1e-5, wanted = (param.value().grad() * direction).sum().item<double>();
    param.value().add_(direction, step);
    const double above = loss().item<double>();
    param.value().sub_(direction, 2 * step);
    const double below = loss().item<double>();
    param.value().add_(direction, step);
    CHECK((above - below) / (2 * step) == Approx(wanted).epsilon(1e-5).margin(1e-7));
    CHECK(param.value().grad().abs().sum().item<double>() > 1e-6);
  }
}

TEST_CASE("fused operators match plain ones for XLNet, and roughly in bf16", "[models][xlnet]") {
  const auto run = [](bool fused, bool bf16, const Inputs& in) {
    set_fused(fused);
    auto model = make(small<XlnetConfig>());
    FlatParameters flat(collect_params(*model), at::kCPU);
    flat.use_bf16(bf16);
    const auto hidden = model->hidden(in);
    (hidden.to(at::kFloat) * numbers(hidden.sizes(), 0.2)).sum().backward();
    set_fused(true);
    return std::pair{hidden.detach().to(at::kFloat), flat.grads.clone()};
  };
  const auto given = all_inputs();
  for (const auto& in : {given, Inputs{.input_ids = given.input_ids, .token_type_ids = given.token_type_ids}}) {
    const auto a = run(true, false, in), b = run(false, false, in), c = run(true, true, in);
    CHECK(error_of(a.first, b.first) < 1e-5);
    CHECK(error_of(a.second, b.second) < 1e-4);
    CHECK(b.second.abs().sum().item<double>() > 1);
    CHECK(error_of(c.first, b.first) < 5e-2);
    CHECK(error_of(c.second, b.second) < 1e-1);
  }
}

TEST_CASE("gradient checkpointing of XLNet gives bitwise equal gradients, dropout included", "[models][xlnet]") {
  for (const bool predicts : {false, true}) {
    const auto gradients = [&](bool checkpointing) {
      auto model = make(small<XlnetConfig>());
      model->train();
      model->set_gradient_checkpointing(checkpointing);
      FlatParameters flat(collect_params(*model), at::kCPU);
      auto in = all_inputs();
      in.dropout_key = 77;
      if (!predicts) in.target_positions = Tensor();
      model->hidden(in).square().sum().backward();
      return flat.grads.clone();
    };
    const auto plain = gradients(false);
    CHECK(plain.abs().sum().item<double>() > 0);
    CHECK(at::equal(plain, gradients(true)));
  }
}

TEST_CASE("left and right padding do not change the states of real tokens and targets", "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto config = small<XlnetConfig>();
  config.attn_type = GENERATE(AttentionDirection::bi, AttentionDirection::uni);
  auto model = make(config);
  const auto given = all_inputs();
  Inputs in{.input_ids = given.input_ids, .token_type_ids = given.token_type_ids, .visible = given.visible};
  const auto content = model->hidden(in);
  in.target_positions = at::tensor({1, 4, 6, 3, 0, 2}, at::kLong).view({2, 3});
  const auto queries = model->hidden(in);
  for (const auto& [left, right] : {std::pair<int64_t, int64_t>{0, 4}, {3, 0}, {2, 5}}) {
    INFO(left << " on the left, " << right << " on the right");
    const auto pad = [&, l = left, r = right](const Tensor& x, int64_t with) {
      return at::constant_pad_nd(x, {l, r}, with);
    };
    Inputs padded{.input_ids = pad(in.input_ids, 5),
                  .attention_mask = pad(at::ones_like(in.input_ids), 0).to(at::kBool),
                  .token_type_ids = pad(in.token_type_ids, 1)};
    padded.visible = at::constant_pad_nd(in.visible.to(at::kLong), {left, right, left, right}, 1).to(at::kBool);
    CHECK(error_of(model->hidden(padded).narrow(1, left, 7), content) < 1e-5);
    padded.target_positions = at::constant_pad_nd(in.target_positions + left, {0, 2}, -1);  // rows with fewer targets
    const auto got = model->hidden(padded);
    CHECK(error_of(got.narrow(1, 0, 3), queries) < 1e-5);
    CHECK(at::isfinite(got).all().item<bool>());
  }
}

TEST_CASE("a segment with mems has the states of the whole text in which the first half does not attend to the second",
          "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto config = small<XlnetConfig>();
  const bool uni = GENERATE(false, true);
  config.attn_type = uni ? AttentionDirection::uni : AttentionDirection::bi;
  auto model = make(config);
  const auto ids = some_ids(2, 10);
  const auto half = at::arange(10, at::kLong).ge(4);
  Inputs whole{.input_ids = ids, .token_type_ids = at::zeros_like(ids)};
  if (!uni)
    whole.visible = half.unsqueeze(1).logical_or(half.logical_not().unsqueeze(0)).unsqueeze(0).expand({2, 10, 10});
  std::vector<Tensor> mems, next_mems;
  Inputs first{.input_ids = ids.narrow(1, 0, 4), .token_type_ids = at::zeros({2, 4}, at::kLong), .new_mems = &mems};
  const auto a = model->hidden(first);
  REQUIRE(mems.size() == 2);
  Inputs second{.input_ids = ids.narrow(1, 4, 6),
                .token_type_ids = at::zeros({2, 6}, at::kLong),
                .mems = mems,
                .new_mems = &next_mems};
  const auto b = model->hidden(second);
  CHECK(error_of(at::cat({a, b}, 1), model->hidden(whole)) < 1e-5);
  // The query stream attends to the mems like the content stream.
  second.target_positions = at::tensor({1, 5, 0, 3}, at::kLong).view({2, 2});
  whole.target_positions = second.target_positions + 4;
  CHECK(error_of(model->hidden(second), model->hidden(whole)) < 1e-5);
}

TEST_CASE("mems are the inputs of layers: the last mem_len of the old mems and the first reuse_len new states",
          "[models][xlnet]") {
  auto config = small<XlnetConfig>();
  auto in = all_inputs();
  std::vector<Tensor> kept;
  in.new_mems = &kept;
  const auto states = [&] {
    auto model = make(config);
    Traces traces;
    model->hidden(in, &traces);
    return traces.encoder.hidden_states;  // content and query alternate
  };
  const auto all = states();
  for (size_t i = 0; i < 2; ++i) {
    CHECK(at::equal(kept[i], at::cat({in.mems[i], all[2 * i]}, 1)));
    CHECK_FALSE(kept[i].requires_grad());
  }
  config.mem_len = 5;
  config.reuse_len = 4;
  CHECK(at::equal(states()[2], all[2]));
  for (size_t i = 0; i < 2; ++i)
    CHECK(at::equal(kept[i], at::cat({in.mems[i], all[2 * i].narrow(1, 0, 4)}, 1).narrow(1, 2, 5)));
  config.mem_len = 100;  // more than there is: all states
  states();
  CHECK(kept[0].size(1) == 7);
}

TEST_CASE("without an order and mems the content stream is bidirectional, and targets do not change it",
          "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto model = make(small<XlnetConfig>());
  auto in = all_inputs();
  Traces with, without;
  model->hidden(in, &with);
  in.target_positions = Tensor();
  const auto content = model->hidden(in, &without);
  REQUIRE(with.encoder.hidden_states.size() == 6);
  REQUIRE(without.encoder.hidden_states.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(at::equal(with.encoder.hidden_states[2 * i], without.encoder.hidden_states[i]));
  CHECK(with.encoder.attentions[1].sizes() == at::IntArrayRef({2, 3, 3, 10}));  // a row per target
  // An unused target (-1) attends to nothing.
  CHECK(with.encoder.attentions[1][1].select(1, 2).abs().sum().item<double>() == 0);
  // Without segment ids all tokens are of one segment.
  in = {.input_ids = in.input_ids};
  const auto bare = model->hidden(in);
  in.token_type_ids = at::full_like(in.input_ids, 2);
  CHECK(error_of(model->hidden(in), bare) < 1e-6);
}

TEST_CASE("a target's query depends neither on its own token nor on later ones in the order, through all layers",
          "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto config = small<XlnetConfig>();
  config.num_hidden_layers = 3;
  auto model = make(config);
  // Targets in the order 4, 1, 6; all tokens attend to the others.
  const auto rank = at::full({7}, -1, at::kLong);
  rank[4] = 0;
  rank[1] = 1;
  rank[6] = 2;
  Inputs in{.input_ids = some_ids(1, 7)};
  in.visible = rank.unsqueeze(1).gt(rank.unsqueeze(0)).logical_or(rank.lt(0).unsqueeze(0)).unsqueeze(0);
  in.target_positions = at::tensor({4, 1, 6}, at::kLong).view({1, 3});
  const auto before = model->hidden(in)[0];
  for (int64_t changed = 0; changed < 7; ++changed) {
    in.input_ids = some_ids(1, 7);
    in.input_ids[0][changed] = 22;
    const auto moved = (model->hidden(in)[0] - before).abs().amax(-1);
    for (int64_t n = 0; n < 3; ++n) {
      INFO("token " << changed << ", target " << n);
      const int64_t own = rank[changed].item<int64_t>();
      CHECK((moved[n].item<double>() > 1e-4) == (own < n));
    }
  }
}

TEST_CASE("a trace of XLNet at one shape runs at other shapes, with and without a query stream", "[models][xlnet]") {
  at::NoGradGuard no_grad;
  auto config = small<XlnetConfig>();
  config.attn_type = GENERATE(AttentionDirection::bi, AttentionDirection::uni);
  const bool backward = GENERATE(false, true);
  auto model = make(config);
  for (const auto& p : collect_params(*model)) p.param.value().set_requires_grad(false);
  for (const bool predicts : {false, true}) {
    const auto run = [&](const torch::jit::Stack& in) {
      Inputs inputs{
          .input_ids = in[0].toTensor(), .attention_mask = in[1].toTensor(), .token_type_ids = in[2].toTensor()};
      if (backward) inputs.backward = inputs.input_ids.select(1, 0).remainder(2).eq(0);
      if (predicts) {
        inputs.visible = in[3].toTensor();
        inputs.target_positions = in[4].toTensor();
        inputs.mems = {in[5].toTensor(), in[6].toTensor()};
      }
      return model->hidden(inputs);
    };
    const auto inputs = [&](int64_t rows, int64_t length, int64_t targets, int64_t past) {
      auto mask = at::ones({rows, length}, at::kBool);
      if (length > 2) mask[rows - 1].narrow(0, length - 2, 2).fill_(false);
      torch::jit::Stack in{some_ids(rows, length), mask, some_ids(rows, length).remainder(3)};
      if (predicts)
        in.insert(in.end(), {flags({rows, length, length}, 5), some_ids(rows, targets).remainder(length),
                             numbers({rows, past, 12}, 0.1), numbers({rows, past, 12}, 0.5)});
      return in;
    };
    const auto traced = torch::jit::tracer::trace(
        inputs(2, 4, 2, 3), [&](torch::jit::Stack in) -> torch::jit::Stack { return {run(in)}; },
        [](const torch::autograd::Variable&) { return std::string(); });
    torch::jit::GraphExecutor executor(traced.first->graph, "forward");
    for (const auto& [rows, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 11}, {2, 6}, {4, 3}}) {
      auto stack = inputs(rows, length, 3, 5);
      const auto wanted = run(stack);
      executor.run(stack);
      INFO(rows << " x " << length);
      CHECK(error_of(stack[0].toTensor(), wanted) < 1e-6);
    }
  }
}

TEST_CASE("XLNet has the number of parameters of the published shapes", "[models][xlnet]") {
  const int64_t v = 23, d = 12, f = 20, layers = 2;
  int64_t count = 0;
  for (const auto& p : collect_params(*make_backbone(small<XlnetConfig>(), {}))) count += p.param.value().numel();
  CHECK(count == v * d + d + layers * (5 * d * d + 3 * d + 2 * d + 2 * d + (2 * d * f + f + d) + 2 * d));
}

TEST_CASE("options that XLNet does not support are rejected with a message", "[models][xlnet]") {
  auto config = small<XlnetConfig>();
  config.norm_place = NormPlacement::pre;
  CHECK_THROWS_WITH(make_backbone(config, {}), "model.norm_place is not for models of two streams; leave it out");
  config = small<XlnetConfig>();
  config.hidden_size = 9;
  CHECK_THROWS_WITH(make_backbone(config, {}), "model.hidden_size 9 is odd; sines and cosines need an even width");
  auto in = all_inputs(1);
  CHECK_THROWS_WITH(make(small<XlnetConfig>())->hidden(in),
                    "the model has 2 layers, but mems has 1 tensors; give one for each layer");
}
