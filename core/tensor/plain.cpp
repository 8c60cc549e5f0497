#include "core/tensor/plain.h"

#include <torch/csrc/jit/frontend/tracer.h>

#include <array>
#include <cmath>

#include "core/error.h"
#include "core/tensor/low_rank.h"
#include "core/tensor/matmul.h"
#include "core/tensor/moved.h"

namespace cloze::plain {

Tensor weight(const Param& param, at::ScalarType dtype) {
  if (!param.defined()) return {};
  const auto& value = param.value();
  if (value.scalar_type() == dtype) return value;
  return at::GradMode::is_enabled() || param.compute().scalar_type() != dtype ? value.to(dtype) : param.compute();
}

namespace {

constexpr int64_t word_mask = 0xFFFFFFFF;

/// The four words of philox() with 7 rounds for each first counter word in `counter` (int64), made of operators that
/// run on any device. Products of 32-bit words wrap around in int64, which keeps both halves.
std::array<Tensor, 4> philox_words(const Tensor& counter, uint32_t third, uint32_t fourth, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const auto high = [](const Tensor& product) { return product.bitwise_right_shift(32).bitwise_and(word_mask); };
  std::array<Tensor, 4> words{counter, at::zeros_like(counter), at::full_like(counter, static_cast<int64_t>(third)),
                              at::full_like(counter, static_cast<int64_t>(fourth))};
  for (int round = 0; round < 7; ++round) {
    const auto a = words[0] * int64_t{0xD2511F53}, b = words[2] * int64_t{0xCD9E8D57};
    words = {high(b).bitwise_xor(words[1]).bitwise_xor(static_cast<int64_t>(k0)), b.bitwise_and(word_mask),
             high(a).bitwise_xor(words[3]).bitwise_xor(static_cast<int64_t>(k1)), a.bitwise_and(word_mask)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return words;
}

}  // namespace

Tensor dropout_mask(at::IntArrayRef sizes, const Dropout& drop, at::Device device) {
  constexpr int64_t lanes = 16, block = 128;  // elements of a row whose draws come from the same 16 counters
  constexpr uint32_t purpose = 0x64726f70;
  const int64_t width = sizes.back(), rows = c10::multiply_integers(sizes) / std::max<int64_t>(width, 1),
                blocks = (width + block - 1) / block;
  const double threshold = std::nearbyint(drop.p * 65536);
  const auto counter =
      at::arange(rows * blocks * lanes, at::TensorOptions(device).dtype(at::kLong)).bitwise_and(word_mask);
  std::vector<Tensor> draws;  // of 16 bits; each [rows blocks, 16]
  for (const auto& word : philox_words(counter, drop.site, purpose, drop.key))
    for (const auto& half : {word.bitwise_and(0xFFFF), word.bitwise_right_shift(16)})
      draws.push_back(half.view({rows * blocks, lanes}));
  const auto kept =
      at::stack(draws, 1).view({rows, blocks * block}).narrow(1, 0, width).ge(static_cast<int64_t>(threshold));
  return (kept.to(at::kFloat) * (1 / (1 - threshold / 65536))).view(sizes);
}

namespace {

/// x W' + b of the matrix alone.
Tensor of_matrix(const Tensor& x, const Param& w, const Param& b) {
  const auto dtype = x.scalar_type();
  if (w.packed().defined() && dtype == at::kFloat && !at::GradMode::is_enabled() && !torch::jit::tracer::isTracing())
    return matmul_packed(x, w.packed(), b.defined() ? b.value() : Tensor());
  return b.defined() ? at::linear(x, weight(w, dtype), weight(b, dtype)) : at::linear(x, weight(w, dtype));
}

}  // namespace

Tensor linear(const Tensor& x, const Param& w, const Param& b) {
  auto y = of_matrix(x, w, b);
  if (!w.low_rank()) return y;
  const auto dtype = x.scalar_type();
  for (const auto& part : w.low_rank()->parts) {
    const auto thin = at::linear(plain::dropout(x, part.drop), weight(part.a, dtype));
    const int64_t after = w.value().size(0) - part.first - part.rows();
    const auto product = at::linear(thin, weight(part.b, dtype)) * part.scale;
    y = y + at::constant_pad_nd(product, {part.first, after});
  }
  return y;
}

Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, Activation act, const Dropout& drop) {
  return plain::dropout(plain::activation(plain::linear(x, w, b), act), drop);
}

Tensor activation(const Tensor& x, Activation act) {
  switch (act) {
    case Activation::gelu:
    case Activation::gelu_python:
      return at::gelu(x);
    case Activation::gelu_new:
    case Activation::gelu_pytorch_tanh:
    case Activation::gelu_python_tanh:
    case Activation::gelu_accurate:
    case Activation::gelu_fast:
      return at::gelu(x, "tanh");
    case Activation::quick_gelu:
      return x * at::sigmoid(1.702 * x);
    case Activation::gelu_10:
      return at::clamp(at::gelu(x), -10, 10);
    case Activation::relu:
      return at::relu(x);
    case Activation::relu2:
      return at::relu(x).square();
    case Activation::relu6:
      return at::relu6(x);
    case Activation::leaky_relu:
      return at::leaky_relu(x, 0.01);
    case Activation::silu:
    case Activation::swish:
      return at::silu(x);
    case Activation::mish:
      return at::mish(x);
    case Activation::tanh:
      return at::tanh(x);
    case Activation::sigmoid:
      return at::sigmoid(x);
    case Activation::laplace:
      return 0.5 * (1 + at::erf((x - 0.707107) / (0.282095 * 1.4142135623730951)));
    case Activation::linear:
      return x;
  }
  return x;
}

Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table) {
  const auto qkv = plain::linear(x, w, b);  // [..., T, 3 H C]
  const int64_t half = table.size(-1) / 2;
  const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto heads = qkv.unflatten(-1, {-1, 2, half});          // [..., T, 3 H, 2, C / 2]
  const auto angles = table.to(wide).unflatten(-1, {2, half});  // [T, 2, C / 2]
  const auto cosines = angles.select(1, 0).unsqueeze(1), sines = angles.select(1, 1).unsqueeze(1);  // [T, 1, C / 2]
  const int64_t rotated = w.value().size(0) / 3 / half;                                             // 2 H
  const auto both = heads.narrow(-3, 0, rotated).to(wide);
  const auto u = both.select(-2, 0), v = both.select(-2, 1);  // [..., T, 2 H, C / 2]
  const auto turned = at::stack({u * cosines - v * sines, v * cosines + u * sines}, -2).to(x.scalar_type());
  return at::cat({turned, heads.narrow(-3, rotated, rotated / 2)}, -3).flatten(-3);
}

Tensor layer_norm(const Tensor& x, const NormParams& norm) {
  const auto dtype = x.scalar_type();
  const auto gamma = weight(norm.gamma, dtype);
  if (norm.centred) return at::layer_norm(x, gamma.sizes(), gamma, weight(norm.beta, dtype), norm.eps);
  const auto wide = dtype == at::kBFloat16 ? x.to(at::kFloat) : x;
  const auto scaled = (wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + norm.eps)).to(dtype) * gamma;
  return norm.beta.defined() ? scaled + weight(norm.beta, dtype) : scaled;
}

Tensor dropout(const Tensor& x, const Dropout& drop) {
  if (!drop.on()) return x;
  return x * dropout_mask(x.sizes(), drop, x.device()).to(x.scalar_type());
}

MemoryState memory_cell(const Tensor& gates, const Tensor& cell) {
  const auto sums = gates.to(cell.scalar_type()).chunk(4, -1);
  const auto next = at::sigmoid(sums[1] + 1) * cell + at::sigmoid(sums[0]) * at::tanh(sums[2]);
  return {(at::sigmoid(sums[3]) * at::tanh(next)).to(gates.scalar_type()), next};
}

Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm, const FirstLayer* first) {
  return plain::layer_norm(plain::linear_dropout_add(x, w, b, drop, residual, first), norm);
}

Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                          const FirstLayer* first) {
  const auto in = first ? plain::linear_activation(x, first->w, first->b, first->activation, first->drop) : x;
  return residual + plain::dropout(plain::linear(in, w, b), drop);
}

Tensor embed(const EmbeddingIds& in, const EmbeddingTables& t, const Dropout& drop) {
  const auto dtype = t.word.compute().scalar_type();
  auto sum = at::embedding(weight(t.word, dtype), in.ids, t.word.padding_row());
  if (t.scale != 1) sum = sum * t.scale;
  if (t.type.defined()) {
    const auto segment = weight(t.type, dtype);
    sum = sum + (in.types.defined() ? at::embedding(segment, in.types) : segment.select(0, 0));
  }
  if (t.position.defined()) {
    const auto positions = in.positions.defined() ? in.positions : at::ones_like(in.ids).cumsum(1) - 1;  // [B, T]
    const auto position = weight(t.position, dtype);
    sum = sum + at::embedding(position, positions, t.position.padding_row());
  }
  return plain::dropout(t.norm.gamma.defined() ? plain::layer_norm(sum, t.norm) : sum, drop);
}

Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, Tensor* correct, TokenDraw* draw) {
  if (draw) draw->drawn = plain::draw_tokens(hidden.detach(), table, bias, *draw);
  auto logits = plain::linear(hidden, table, bias);  // [N, V]
  if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
  if (correct) *correct = logits.argmax(-1).eq(labels).sum();
  if (shape.weights.defined()) {
    auto losses = at::cross_entropy_loss(logits, labels, {}, at::Reduction::None, -100, shape.label_smoothing);
    if (shape.z_loss > 0) losses = losses + shape.z_loss * at::logsumexp(logits, {-1}).square();
    return (losses * shape.weights).sum();
  }
  auto loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, -100, shape.label_smoothing);
  return shape.z_loss > 0 ? loss + shape.z_loss * at::logsumexp(logits, {-1}).square().sum() : loss;
}

Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw) {
  at::NoGradGuard no_grad;
  const auto logits = plain::linear(hidden, table, bias).to(at::kDouble) / draw.temperature;  // [N, V]
  const auto sums = at::softmax(logits, -1).cumsum(-1);
  const auto wanted = (moved_to(draw.uniform, hidden.device()) * sums.select(-1, -1)).unsqueeze(-1);
  return at::searchsorted(sums, wanted, /*out_int32=*/false, /*right=*/true).squeeze(-1).clamp_max(sums.size(-1) - 1);
}

Tensor take_rows(const Tensor& x, const Tensor& index) { return x.index_select(0, index); }

Tensor token_log_probabilities(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                               const Tensor& labels) {
  const auto logits = plain::linear(hidden.to(at::kFloat), table, bias).to(at::kDouble);  // [N, V]
  const auto scores = logits.flatten().index_select(0, rows * logits.size(1) + labels);
  return (scores - at::logsumexp(logits, {-1}).index_select(0, rows)).to(at::kCPU);
}

}  // namespace cloze::plain
