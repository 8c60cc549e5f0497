// What every kernel of core/kernels computes of made-up numbers, a line for each: its name, a tab, the results. Needs
// no LibTorch, so that it runs under an emulator of another processor; tests/arm.sh compares two of them.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/kernels/attention.h"

using namespace cloze::kernels;

namespace {

constexpr int64_t rows = 7, width = 75;  // no whole vectors

/// Numbers in [-1, 1) that depend on `seed` alone.
std::vector<float> numbers(int64_t n, uint32_t seed) {
  std::vector<float> out(static_cast<size_t>(n));
  uint32_t state = seed * 2654435761u + 12345;
  for (auto& x : out) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) / 8388608.0f - 1;
  }
  return out;
}

void show(const std::string& name, const std::vector<float>& values) {
  std::printf("%s\t", name.c_str());
  for (const float x : values) std::printf(" %.9g", static_cast<double>(x));
  std::printf("\n");
}

/// Arrays of an element type: float, or the bits of bf16.
template <class T>
struct Typing;
template <>
struct Typing<float> {
  static constexpr const char* name = "fp32 ";
  static float of(float x) { return x; }
  static float number(float x) { return x; }
};
template <>
struct Typing<uint16_t> {
  static constexpr const char* name = "bf16 ";
  static uint16_t of(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return static_cast<uint16_t>(bits >> 16);
  }
  static float number(uint16_t x) {
    const uint32_t bits = static_cast<uint32_t>(x) << 16;
    float y;
    __builtin_memcpy(&y, &bits, sizeof y);
    return y;
  }
};
template <class T>
std::vector<T> typed_numbers(int64_t n, uint32_t seed) {
  std::vector<T> out;
  for (const float x : numbers(n, seed)) out.push_back(Typing<T>::of(x));
  return out;
}
template <class T>
void show_typed(const std::string& name, const std::vector<T>& values) {
  std::vector<float> out;
  for (const T x : values) out.push_back(Typing<T>::number(x));
  show(Typing<T>::name + name, out);
}

const Dropout drop = make_dropout(0.1, 0x9F3A5B7C01234567, 0x80000007);

template <class T>
void norms() {
  const auto y = typed_numbers<T>(rows * width, 1), residual = typed_numbers<T>(rows * width, 2),
             dout = typed_numbers<T>(rows * width, 3);
  const auto bias = numbers(width, 4), gamma = numbers(width, 5), beta = numbers(width, 6);
  auto z = y, out = y, dz = y, dy = y;
  std::vector<float> mean(rows), rstd(rows), dgamma(width), dbeta(width), dbias(width);
  typed<T>().norm_forward({rows, 3, width, y.data(), bias.data(), residual.data(), drop, z.data(), gamma.data(),
                           beta.data(), 1e-5f, true, out.data(), mean.data(), rstd.data()});
  show_typed("norm", out);
  typed<T>().norm_backward({rows, 3, width, dout.data(), z.data(), mean.data(), rstd.data(), gamma.data(), true, drop,
                            dz.data(), dy.data(), dgamma.data(), dbeta.data(), dbias.data()});
  show_typed("norm backward", dy);
  show("norm dgamma", dgamma);
  show("norm dbias", dbias);
}

template <class T>
void embeddings() {
  const std::vector<int64_t> ids{3, 1, 0, 4, 4, 2, 1}, types{0, 1, 1, 0, 0, 1, 0};
  const auto word = numbers(5 * width, 1), type = numbers(2 * width, 2), position = numbers(4 * width, 3),
             gamma = numbers(width, 4), beta = numbers(width, 5);
  auto out = typed_numbers<T>(rows * width, 6);
  const auto dout = typed_numbers<T>(rows * width, 7);
  std::vector<float> mean(rows), rstd(rows), dsum(rows * width), dgamma(width), dbeta(width);
  typed<T>().embed_forward({rows, 0, width, 4, ids.data(), types.data(), nullptr, word.data(), type.data(),
                            position.data(), gamma.data(), beta.data(), 1, 1e-5f, true, drop, out.data(), mean.data(),
                            rstd.data()});
  show_typed("embed", out);
  typed<T>().embed_backward({rows,          0,
                             width,         4,
                             ids.data(),    types.data(),
                             nullptr,       word.data(),
                             type.data(),   position.data(),
                             gamma.data(),  mean.data(),
                             rstd.data(),   1,
                             true,          drop,
                             dout.data(),   dsum.data(),
                             dgamma.data(), dbeta.data()});
  show("embed backward", dsum);
}

template <class T>
void pointwise() {
  const auto bias = numbers(width, 1), table = numbers(4 * 24, 2);
  const auto grad = typed_numbers<T>(rows * width, 3);
  for (const auto act : {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu}) {
    auto u = typed_numbers<T>(rows * width, 4), out = u, du = u;
    std::vector<float> dbias(width);
    typed<T>().activation_forward(act, rows, 5, width, u.data(), bias.data(), drop, out.data());
    typed<T>().activation_backward(act, rows, 5, width, u.data(), grad.data(), drop, du.data(), dbias.data());
    show_typed("activation", out);
    show_typed("activation backward", du);
    show("activation dbias", dbias);
  }
  auto x = typed_numbers<T>(rows * 72, 5), out = x;
  typed<T>().rotate({.rows = rows,
                     .first_row = 2,
                     .length = 4,
                     .width = 72,
                     .rotated = 48,
                     .head_width = 24,
                     .table = table.data(),
                     .x = x.data(),
                     .out = out.data()});
  show_typed("rotate", out);
  const auto gates = typed_numbers<T>(rows * 4 * width, 7);
  const auto cell = numbers(rows * width, 8), dnext = numbers(rows * width, 9);
  auto output = grad, dgates = gates;
  auto next = cell, dcell = cell;
  MemoryCell<T> of_units{.rows = rows, .width = width, .gates = gates.data(), .cell = cell.data()};
  of_units.output = output.data();
  of_units.next = next.data();
  typed<T>().memory_cell_forward(of_units);
  of_units.doutput = grad.data();
  of_units.dnext = dnext.data();
  of_units.dgates = dgates.data();
  of_units.dcell = dcell.data();
  typed<T>().memory_cell_backward(of_units);
  show_typed("memory output", output);
  show("memory cell", next);
  show_typed("memory gates", dgates);
  show("memory backward", dcell);
  auto y = grad, dropped = grad;
  typed<T>().dropout(rows, 9, width, grad.data(), drop, dropped.data());
  show_typed("dropout", dropped);
  typed<T>().dropout_add(rows, 9, width, y.data(), bias.data(), drop, dropped.data());
  show_typed("dropout and residual", y);
  std::vector<float> sums(width), total = numbers(width, 6);
  typed<T>().column_sums(rows, width, grad.data(), sums.data());
  show("column sums", sums);
  typed<T>().add_to(width, grad.data(), total.data());
  show("add", total);
}

template <class T>
void losses() {
  auto logits = typed_numbers<T>(rows * width, 1);
  const auto bias = numbers(width, 2), weights = numbers(rows, 3);
  const std::vector<int64_t> labels{0, 74, 16, 40, 63, 64, 5};
  std::vector<float> peak(rows, -1e30f), total(rows), score(rows), all(rows), lse(rows), dbias(width);
  CrossEntropy<T> pass{.rows = rows,
                       .width = width,
                       .first = 0,
                       .logits = logits.data(),
                       .bias = bias.data(),
                       .labels = labels.data(),
                       .peak = peak.data(),
                       .total = total.data(),
                       .score = score.data(),
                       .all = all.data(),
                       .lse = lse.data(),
                       .smoothing = 0.1f,
                       .share = 0.1f / width,
                       .z_weight = 1e-3f,
                       .scale = 0.5f,
                       .weights = weights.data(),
                       .dbias = dbias.data()};
  typed<T>().cross_entropy_forward(pass);
  for (size_t r = 0; r < rows; ++r) lse[r] = peak[r] + std::log(total[r]);
  show("cross entropy", lse);
  show("label scores", score);
  const std::vector<double> uniform{0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999};
  std::vector<int64_t> drawn(rows);
  std::vector<float> scratch(width + 16);
  const T* const blocks[] = {logits.data()};
  typed<T>().draw({.rows = rows,
                   .width = width,
                   .block = width,
                   .blocks = blocks,
                   .bias = bias.data(),
                   .inverse_temperature = 2,
                   .uniform = uniform.data(),
                   .scratch = scratch.data(),
                   .drawn = drawn.data()});
  show("drawn", {drawn.begin(), drawn.end()});
  typed<T>().cross_entropy_backward(pass);
  show_typed("cross entropy backward", logits);
}

void updates() {
  const auto& update = table().updates;
  const Adam adam{.beta1 = 0.9f,
                  .beta2 = 0.999f,
                  .epsilon = 1e-6f,
                  .rest1 = 0.1f,
                  .rest2 = 0.001f,
                  .correction1 = 0.1f,
                  .correction2 = 0.001f,
                  .grad_scale = 0.5f};
  const int64_t n = 100;
  auto p = numbers(n, 1), g = numbers(n, 2), m = numbers(n, 3), v = numbers(n, 4);
  for (auto& x : v) x = x * x;
  std::vector<uint16_t> shadow(n);
  const Parameters all{n, p.data(), g.data(), m.data(), v.data(), shadow.data()};
  update.adamw(adam, 0.01f, 0.001f, all);
  show("adamw", p);
  show_typed("shadow", shadow);
  std::ranges::copy(numbers(n, 5), g.begin());
  update.direction(adam, 0.01f, all);
  show("direction", g);
  update.descend(0.1f, 0.01f, all);
  show("descend", p);
  auto square = numbers(5 * 20, 6);
  std::vector<float> of_rows(5), of_columns(20);
  update.squares(5, 20, square.data(), of_rows.data(), of_columns.data());
  show("squares of rows", of_rows);
  show("squares of columns", of_columns);
  update.scale(5, 20, of_rows.data(), of_columns.data(), square.data());
  show("scale", square);
  show("sum of squares", {static_cast<float>(update.sum_of_squares(n, p.data()))});
  update.approach(n, 0.3f, p.data(), m.data());
  show("approach", m);
}

void scores() {
  const auto& score = table().scores;
  const auto x = numbers(700, 1), bias = numbers(700, 2);
  std::vector<float> out(700);
  const auto [max, log] = score.log_sum(700, x.data());
  ExpSum sum;
  score.add_exponentials(700, x.data(), bias.data(), sum);
  show("scores", {score.largest(700, x.data()), max, log, sum.max, static_cast<float>(sum.total),
                  static_cast<float>(score.weights(700, x.data(), -0.5f, max, out.data())),
                  static_cast<float>(score.next_above(x.data(), 3, 700, 0.25f, 1.2f))});
  show("weights", out);
  score.minus(700, x.data(), 0.5f, 0.25f, out.data());
  show("minus", out);
}

/// One head of `queries` over `keys`, forward and backward; `change` says what is special about it.
template <class T, class F>
void attend(const std::string& name, int64_t queries, int64_t keys, const F& change) {
  constexpr int64_t c = 20;
  const auto q = typed_numbers<T>(queries * c, 1), k = typed_numbers<T>(keys * c, 2), v = typed_numbers<T>(keys * c, 3),
             dout = typed_numbers<T>(queries * c, 4);
  auto out = q, dq = q, dk = k, dv = v;
  std::vector<float> lse(static_cast<size_t>(queries)),
      scratch(static_cast<size_t>(std::max(attention_scratch(keys, c), window_scratch(keys, c, 8, 2))));
  Attention<T> a{};
  a.queries = queries;
  a.keys = keys;
  a.head_width = c;
  a.mask_row = 5 * queries;
  a.q = {q.data(), c, nullptr};
  a.k = {k.data(), c, nullptr};
  a.v = {v.data(), c, nullptr};
  a.scale = 0.3f;
  a.window = -1;
  a.dilation = 1;
  a.drop = drop;
  a.out = {out.data(), c};
  a.lse = lse.data();
  a.dout = {dout.data(), c, nullptr};
  a.dq = {dq.data(), c};
  a.dk = {dk.data(), c};
  a.dv = {dv.data(), c};
  a.scratch = scratch.data();
  change(a);
  const auto& kernels = attention<T>();
  (a.window < 0 ? kernels.forward : kernels.window_forward)(a);
  show_typed(name, out);
  (a.window < 0 ? kernels.backward : kernels.window_backward)(a);
  show_typed(name + " dq", dq);
  show_typed(name + " dk", dk);
  show_typed(name + " dv", dv);
}

template <class T>
void attentions() {
  attend<T>("attention", 61, 61, [](auto&) {});
  attend<T>("attention of few", 3, 61, [](auto&) {});
  const auto distance = numbers(61 + 61 + 128, 7);
  std::vector<float> ddistance(distance.size());
  attend<T>("causal attention", 61, 61, [&](auto& a) {
    a.causal = true;
    a.prefix = 4;
    a.distance = distance.data();
    a.ddistance = ddistance.data();
  });
  show("distances", ddistance);
  const std::vector<int64_t> globals{0, 30};
  attend<T>("window attention", 61, 61, [&](auto& a) {
    a.window = 8;
    a.dilation = 2;
    a.globals = globals.data();
    a.num_globals = a.max_globals = 2;
  });
}

template <class T>
void relative_attention() {
  constexpr int64_t t = 30, c = 20, distances = 2 * t;
  const auto r = typed_numbers<T>(distances * c, 8);
  const auto r_r = numbers(c, 9), r_s = numbers(c, 10), segments = numbers(2 * c, 11);
  const auto padded = static_cast<size_t>(relative_width(c));
  std::vector<float> dr(static_cast<size_t>(relative_rows(distances)) * padded), dr_w(padded), dr_r(padded),
      dr_s(padded), dsegments(2 * padded), scratch(static_cast<size_t>(relative_scratch(distances, c)));
  std::vector<char> differ(t * t);
  for (size_t i = 0; i < differ.size(); ++i) differ[i] = i % 3 == 0;
  Relative<T> x{};
  x.r = {r.data(), c, nullptr};
  x.distances = distances;
  x.segments_differ = reinterpret_cast<const bool*>(differ.data());
  x.r_r = r_r.data();
  x.r_s = r_s.data();
  x.segments = segments.data();
  x.segment_stride = c;
  x.dr = dr.data();
  x.dr_w = dr_w.data();
  x.dr_r = dr_r.data();
  x.dr_s = dr_s.data();
  x.dsegments = dsegments.data();
  x.scratch = scratch.data();
  attend<T>("relative attention", t, t, [&](auto& a) { a.relative = &x; });
  show("relative dr", dr);
  show("relative dsegments", dsegments);
}

template <class T>
void random_features() {
  constexpr int64_t t = 70, c = 20, features = 33, padded_c = 32, padded_r = 48;
  const auto q = typed_numbers<T>(t * c, 1), k = typed_numbers<T>(t * c, 2), v = typed_numbers<T>(t * c, 3),
             dout = typed_numbers<T>(t * c, 4);
  const auto drawn = numbers(features * c, 5);
  std::vector<float> w(features * padded_c), w_t(c * padded_r);
  for (size_t f = 0; f < features; ++f)
    for (size_t i = 0; i < c; ++i) w[f * padded_c + i] = w_t[i * padded_r + f] = drawn[f * c + i];
  for (const bool softmax : {true, false})
    for (const bool causal : {true, false}) {
      auto out = q, dq = q, dk = q, dv = q;
      std::vector<float> denominator(t), scratch(static_cast<size_t>(favor_scratch(t, c, features)));
      const Favor<T> a{.length = t,
                       .head_width = c,
                       .q = {q.data(), c, nullptr},
                       .k = {k.data(), c, nullptr},
                       .v = {v.data(), c, nullptr},
                       .key_mask = nullptr,
                       .causal = causal,
                       .softmax = softmax,
                       .epsilon = 1e-3f,
                       .features = features,
                       .w = w.data(),
                       .w_t = w_t.data(),
                       .out = {out.data(), c},
                       .denominator = denominator.data(),
                       .dout = {dout.data(), c, nullptr},
                       .dq = {dq.data(), c},
                       .dk = {dk.data(), c},
                       .dv = {dv.data(), c},
                       .scratch = scratch.data()};
      attention<T>().favor_forward(a);
      show_typed("random features", out);
      attention<T>().favor_backward(a);
      show_typed("random features dq", dq);
      show_typed("random features dk", dk);
      show_typed("random features dv", dv);
    }
}

template <class T>
void all_of() {
  norms<T>();
  embeddings<T>();
  pointwise<T>();
  losses<T>();
  attentions<T>();
  relative_attention<T>();
  random_features<T>();
}

}  // namespace

int main() {
  std::fprintf(stderr, "kernels: %s\n", table().isa);
  all_of<float>();
  all_of<uint16_t>();
  updates();
  scores();
}
