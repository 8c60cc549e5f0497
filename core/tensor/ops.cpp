#include "core/tensor/ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "core/error.h"
#include "core/tensor/device.h"
#include "core/tensor/fused.h"
#include "core/tensor/parallel.h"
#include "core/tensor/plain.h"

namespace cloze {

namespace {

/// The kernels do not check indices into tables; the plain operators do.
bool within(const Tensor& index, int64_t rows) {
  return index.numel() == 0 || (index.min().item<int64_t>() >= 0 && index.max().item<int64_t>() < rows);
}

std::atomic<bool> masks_are_exact{false};
std::atomic<bool> fused_allowed{std::getenv("CLOZE_PLAIN") == nullptr};

bool have_kernels(bool cpu, at::ScalarType type) {
  return fused_allowed && cpu && (type == at::kFloat || type == at::kBFloat16) && !torch::jit::tracer::isTracing();
}

/// The form of an operator for tensors like x: fused on the CPU, that of a GPU, or plain.
template <class F>
F* form_for(const Tensor& x, F* fused, F* on_device, F* plain) {
  if (use_fused(x)) return fused;
  return fused_allowed && device::is_used(x) ? on_device : plain;
}

}  // namespace

bool use_fused(const Tensor& x) { return have_kernels(x.is_cpu(), x.scalar_type()); }
bool unpads_rows(const Tensor& x) { return use_fused(x) || (fused_allowed && device::is_used(x)); }
void set_exact_masks(bool on) { masks_are_exact = on; }
bool has_exact_masks() { return masks_are_exact; }
void set_fused(bool on) { fused_allowed = on; }
PlainScope::PlainScope() : fused_before_(fused_allowed.exchange(false)) {}
PlainScope::~PlainScope() { fused_allowed = fused_before_; }

PackedWeights::PackedWeights(const Layer& network, int64_t rows, bool tables) {
  if (!at::globalContext().hasMKLDNN()) return;
  at::NoGradGuard no_grad;
  static const auto pack = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("mkldnn::_reorder_linear_weight", "")
                               .typed<Tensor(const Tensor&, std::optional<c10::SymInt>)>();
  for (auto& named : collect_params(network)) {
    const auto& value = named.param.value();
    if (!tables && named.param.role() == Role::embedding) continue;
    if (value.dim() != 2 || !value.is_cpu() || value.scalar_type() != at::kFloat) continue;
    named.param.set_packed(pack.call(value.detach(), c10::SymInt(rows)));
    packed_.push_back(named);
  }
}
PackedWeights::~PackedWeights() {
  for (auto& named : packed_) named.param.set_packed({});
}

Tensor linear(const Tensor& x, const Param& w, const Param& b) {
  return form_for(x, fused::linear, device::linear, plain::linear)(x, w, b);
}

Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, Activation act, const Dropout& drop) {
  return form_for(x, fused::linear_activation, device::linear_activation, plain::linear_activation)(x, w, b, act, drop);
}

Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table) {
  return form_for(x, fused::linear_rotary, device::linear_rotary, plain::linear_rotary)(x, w, b, table);
}

Tensor layer_norm(const Tensor& x, const NormParams& norm) {
  return form_for(x, fused::layer_norm, device::layer_norm, plain::layer_norm)(x, norm);
}

Tensor dropout(const Tensor& x, const Dropout& drop) {
  return form_for(x, fused::dropout, device::dropout, plain::dropout)(x, drop);
}

MemoryState memory_cell(const Tensor& gates, const Tensor& cell) {
  return form_for(gates, fused::memory_cell, device::memory_cell, plain::memory_cell)(gates, cell);
}

Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm, const FirstLayer* first) {
  return form_for(x, fused::linear_dropout_add_norm, device::linear_dropout_add_norm, plain::linear_dropout_add_norm)(
      x, w, b, drop, residual, norm, first);
}

Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                          const FirstLayer* first) {
  return form_for(x, fused::linear_dropout_add, device::linear_dropout_add, plain::linear_dropout_add)(x, w, b, drop,
                                                                                                       residual, first);
}

Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop) {
  require<ShapeError>(context.window < 0 || !context.causal,
                      "attention in a window is bidirectional; it cannot be causal");
  require<ShapeError>(context.window < 0 || !context.distance_bias.defined(),
                      "attention in a window has no distance biases");
  if (context.probabilities) return plain::self_attention(qkv, bias, heads, context, drop);
  return form_for(qkv, fused::self_attention, device::self_attention, plain::self_attention)(qkv, bias, heads, context,
                                                                                             drop);
}

Tensor linear_self_attention(const Tensor& x, const Param& w, const Param& b, int64_t heads,
                             const AttentionContext& context, const Dropout& drop) {
  const bool on_device = !use_fused(x) && unpads_rows(x) && !context.probabilities;
  return on_device ? device::linear_self_attention(x, w, b, heads, context, drop)
                   : self_attention(linear(x, w, Param()), b, heads, context, drop);
}

Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop) {
  if (context.probabilities) return plain::cross_attention(q, q_bias, kv, kv_bias, heads, context, drop);
  if (!use_fused(q))
    return form_for(q, fused::cross_attention, device::cross_attention, plain::cross_attention)(q, q_bias, kv, kv_bias,
                                                                                                heads, context, drop);
  const int64_t masked = context.key_mask.defined() ? context.key_mask.size(0) : kv.size(0);
  require<ShapeError>(q.size(0) == kv.size(0) && masked == kv.size(0), "queries have ", q.size(0), " rows, keys ",
                      kv.size(0), " and their mask ", masked, "; these must be equal");
  return fused::cross_attention(q, q_bias, kv, kv_bias, heads, context, drop);
}

Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop) {
  if (terms.probabilities) return plain::relative_attention(q, kv, r, heads, terms, drop);
  return form_for(q, fused::relative_attention, device::relative_attention, plain::relative_attention)(q, kv, r, heads,
                                                                                                       terms, drop);
}

Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& features) {
  if (use_fused(qkv) && features.kernel != FeatureKernel::trigonometric)
    return fused::favor_attention(qkv, bias, heads, context, features);
  if (!context.unpadded) return plain::favor_attention(qkv, bias, heads, context, features);
  const auto& rows = *context.unpadded;
  return rows.unpad(plain::favor_attention(rows.pad(qkv), bias, heads, context.with_padding(), features));
}

Tensor marked_positions(const Tensor& mask, int64_t most) {
  const auto counts = mask.to(at::kLong);
  const auto order = at::argsort(counts, /*stable=*/true, 1, /*descending=*/true);
  if (most > 0) return order.narrow(1, 0, most);
  const auto columns = at::ones_like(counts.select(0, 0)).cumsum(0) - 1;  // 0 ... T - 1
  return order.index_select(1, columns.masked_select(columns.lt(counts.sum(1).max())));
}

namespace {

/// The embedding of vectors in place of rows of the table, with gradients.
Tensor embed_vectors(const EmbeddingIds& in, const EmbeddingTables& t, const Dropout& drop) {
  auto sum = in.vectors;
  if (t.type.defined()) {
    const auto& table = t.type.value();
    sum = sum + (in.types.defined() ? at::embedding(table, in.types) : table.select(0, 0));
  }
  if (t.position.defined()) {
    const auto& table = t.position.value();
    sum = sum + (in.positions.defined() ? at::embedding(table, in.positions) : table.narrow(0, 0, in.ids.size(1)));
  }
  sum = sum.to(t.word.compute().scalar_type());
  return dropout(t.norm.gamma.defined() ? layer_norm(sum, t.norm) : sum, drop);
}

}  // namespace

Tensor embed(const EmbeddingIds& in, const EmbeddingTables& t, const Dropout& drop) {
  if (in.vectors.defined()) return embed_vectors(in, t, drop);
  const auto& table = t.word.value();
  if (!use_fused(table)) return form_for(table, fused::embed, device::embed, plain::embed)(in, t, drop);
  require<ShapeError>(within(in.ids, table.size(0)), "an id lies outside the token embedding of ", table.size(0),
                      " rows; the text was prepared with another tokenizer");
  require<ShapeError>(!in.types.defined() || !t.type.defined() || within(in.types, t.type.value().size(0)),
                      "a segment type lies outside the types of the model");
  if (t.position.defined()) {
    const int64_t max_positions = t.position.value().size(0);
    const bool fit = in.positions.defined() ? within(in.positions, max_positions) : in.ids.size(1) <= max_positions;
    if (!fit)
      fail<ShapeError>("a sequence of ",
                       in.positions.defined() ? in.positions.max().item<int64_t>() + 1 : in.ids.size(1),
                       " tokens is longer than the model's ", max_positions, " positions allow");
  }
  return fused::embed(in, t, drop);
}

Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, Tensor* correct, TokenDraw* draw) {
  if (!use_fused(hidden))
    return form_for(hidden, fused::token_cross_entropy, device::token_cross_entropy, plain::token_cross_entropy)(
        hidden, table, bias, labels, shape, correct, draw);
  require<ShapeError>(within(labels, table.value().size(0)), "a label lies outside the ", table.value().size(0),
                      " tokens of the model; the text was prepared with another tokenizer");
  return fused::token_cross_entropy(hidden, table, bias, labels, shape, correct, draw);
}

TokenScores token_scores(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                         TokenDraw* draw) {
  at::NoGradGuard no_grad;
  constexpr int64_t numbers_at_once = 4 << 20;
  const int64_t n = hidden.size(0), block = std::max<int64_t>(1, numbers_at_once / table.value().size(0));
  std::vector<Tensor> losses{at::empty({0}, hidden.options().dtype(at::kFloat))},
      hits{at::empty({0}, labels.options().dtype(at::kBool))}, drawn{at::empty({0}, labels.options())};
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = std::min(block, n - first);
    const auto rows = hidden.narrow(0, first, count), wanted = labels.narrow(0, first, count);
    auto logits = linear(rows, table, bias);  // [count, V]
    if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
    losses.push_back(
        (at::logsumexp(logits, {-1}) - logits.gather(-1, wanted.unsqueeze(-1)).squeeze(-1)).to(at::kFloat));
    hits.push_back(logits.argmax(-1).eq(wanted));
    if (!draw) continue;
    TokenDraw part{.temperature = draw->temperature, .uniform = draw->uniform.narrow(0, first, count)};
    drawn.push_back(draw_tokens(rows, table, bias, part));
  }
  if (draw) draw->drawn = at::cat(drawn);
  return {at::cat(losses), at::cat(hits)};
}

Tensor token_log_probabilities(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                               const Tensor& labels) {
  at::NoGradGuard no_grad;
  require<ShapeError>(within(labels, table.value().size(0)), "a label lies outside the ", table.value().size(0),
                      " tokens of the model; the text was read with another tokenizer");
  const int64_t rows_at_once = table.packed().defined() ? 128 : 512;
  const auto compute =
      have_kernels(hidden.is_cpu(), at::kFloat) ? fused::token_log_probabilities : plain::token_log_probabilities;
  std::vector<Tensor> tensors{at::empty({0}, at::kDouble)};
  int64_t done = 0;  // labels
  for (int64_t first = 0; first < hidden.size(0); first += rows_at_once) {
    const int64_t n = std::min(rows_at_once, hidden.size(0) - first);
    const int64_t count = rows.narrow(0, done, rows.numel() - done).lt(first + n).sum().item<int64_t>();
    tensors.push_back(compute(hidden.narrow(0, first, n), table, bias, rows.narrow(0, done, count) - first,
                              labels.narrow(0, done, count)));
    done += count;
  }
  return at::cat(tensors);
}

TokenRanks token_ranks(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                       const Tensor& labels) {
  at::NoGradGuard no_grad;
  constexpr int64_t rows_at_once = 512;
  const TokenRanks ranks{.rank = at::empty({labels.numel()}, at::kLong),
                         .gap_to_best = at::empty({labels.numel()}, at::kDouble)};
  const auto row = rows.contiguous(), label = labels.contiguous();
  const int64_t vocabulary = table.value().size(0);
  int64_t done = 0;  // labels
  for (int64_t first = 0; first < hidden.size(0); first += rows_at_once) {
    const int64_t n = std::min(rows_at_once, hidden.size(0) - first);
    const auto logits = plain::linear(hidden.narrow(0, first, n).to(at::kFloat), table, bias).cpu().contiguous();
    const int64_t count = row.narrow(0, done, row.numel() - done).lt(first + n).sum().item<int64_t>();
    each_range(count, 16, [&](int64_t begin, int64_t end) {
      for (int64_t m = done + begin; m < done + end; ++m) {
        const auto* of_row = logits.data_ptr<float>() + (row.data_ptr<int64_t>()[m] - first) * vocabulary;
        const float own = of_row[label.data_ptr<int64_t>()[m]];
        ranks.rank.data_ptr<int64_t>()[m] =
            1 + std::count_if(of_row, of_row + vocabulary, [own](float other) { return other > own; });
        ranks.gap_to_best.data_ptr<double>()[m] = double{*std::max_element(of_row, of_row + vocabulary)} - double{own};
      }
    });
    done += count;
  }
  return ranks;
}

Tensor uniform_numbers(int64_t n, uint64_t key) {
  auto uniform = at::empty({n}, at::kDouble);
  for (int64_t i = 0; i < n; ++i) uniform.data_ptr<double>()[i] = Stream(key, 0, static_cast<uint64_t>(i)).uniform();
  return uniform;
}

Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw) {
  at::NoGradGuard no_grad;
  return have_kernels(hidden.is_cpu(), hidden.scalar_type()) ? fused::draw_tokens(hidden, table, bias, draw)
                                                             : plain::draw_tokens(hidden, table, bias, draw);
}

Tensor matmul(const Tensor& a, const Tensor& b) { return use_fused(a) ? fused::matmul(a, b) : at::matmul(a, b); }

Tensor take_rows(const Tensor& x, const Tensor& index) {
  return form_for(x, fused::take_rows, device::take_rows, plain::take_rows)(x, index);
}

Tensor add_by_distance(const Tensor& scores, const Tensor& by_distance) {
  return form_for(scores, plain::add_by_distance, device::add_by_distance, plain::add_by_distance)(scores, by_distance);
}

Tensor sum_by_distance(const Tensor& x, int64_t reach) {
  return form_for(x, plain::sum_by_distance, device::sum_by_distance, plain::sum_by_distance)(x, reach);
}

}  // namespace cloze
