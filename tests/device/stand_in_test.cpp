// The stand-in for a GPU: its fused operators against plain ones in double, with gradients by autograd.
#include <ATen/ATen.h>
#include <ATen/Context.h>

#include "tests/support/catch.h"
#include "tests/support/fake_cuda/counts.h"

using at::Tensor;

namespace {

const at::Device card("cuda:0");

Tensor numbers(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) { return at::randn(sizes).to(type).to(card); }

Tensor in_double(const Tensor& x) { return x.cpu().to(at::kDouble); }

/// The largest difference, as a share of the largest element.
double error_of(const Tensor& x, const Tensor& expected) {
  const auto wanted = in_double(expected);
  return ((in_double(x) - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30)).item<double>();
}

struct Attended {
  Tensor out, q_grad, k_grad, v_grad, bias_grad;
};

/// Softmax attention of [T, H, C] in double. hidden bool [T, S], bias [H, T, S] or undefined.
Attended attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& hidden, const Tensor& bias,
                const Tensor& grad) {
  const auto leaf = [](const Tensor& x) { return in_double(x).detach().requires_grad_(); };
  const auto a = leaf(q), b = leaf(k), c = leaf(v);
  const auto added = bias.defined() ? leaf(bias) : at::zeros({1}, at::kDouble).requires_grad_();
  auto scores = at::einsum("thc,shc->hts", {a, b}) / std::sqrt(static_cast<double>(q.size(-1))) + added;
  if (hidden.defined()) scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const auto out = at::einsum("hts,shc->thc", {scores.softmax(-1), c});
  out.backward(in_double(grad));
  return {out.detach(), a.grad(), b.grad(), c.grad(), added.grad()};
}

/// bool [T, S], true = more than `left` before or `right` after the query.
Tensor far(int64_t length, int64_t left, int64_t right) {
  const auto distance = at::arange(length).unsqueeze(0) - at::arange(length).unsqueeze(1);
  return distance.lt(-left).logical_or(distance.gt(right));
}

Tensor ends_of(std::vector<int32_t> ends) { return at::tensor(ends, at::kInt).to(card); }

}  // namespace

TEST_CASE("the stand-in's flash attention is softmax attention, in rows and without their padding", "[device]") {
  at::manual_seed(1);
  const auto q = numbers({12, 2, 8}, at::kBFloat16), k = numbers({12, 2, 8}, at::kBFloat16),
             v = numbers({12, 2, 8}, at::kBFloat16), grad = numbers({12, 2, 8}, at::kBFloat16);
  const auto left = GENERATE(-1, 2);
  const bool causal = GENERATE(false, true);
  const std::vector<int32_t> ends{0, 5, 12};
  const auto options = std::make_tuple(left, causal ? 0 : left);
  const auto [out, sums, state, unused, debug] =
      at::_flash_attention_forward(q, k, v, ends_of(ends), ends_of(ends), 7, 7, 0.0, causal, false, std::nullopt,
                                   std::get<0>(options), std::get<1>(options));
  CHECK(sums.sizes() == at::IntArrayRef({2, 12}));
  const auto [q_grad, k_grad, v_grad] =
      at::_flash_attention_backward(grad, q, k, v, out, sums, ends_of(ends), ends_of(ends), 7, 7, 0.0, causal, state,
                                    unused, std::nullopt, std::get<0>(options), std::get<1>(options));
  for (size_t row = 0; row < 2; ++row) {
    const int64_t begin = ends[row], length = ends[row + 1] - begin;
    const auto of = [&](const Tensor& x) { return x.narrow(0, begin, length); };
    const auto hidden = far(length, left < 0 ? 99 : left, causal ? 0 : left < 0 ? 99 : left);
    const auto wanted = attend(of(q), of(k), of(v), hidden, {}, of(grad));
    CHECK(error_of(of(out), wanted.out) < 1e-2);
    CHECK(error_of(of(q_grad), wanted.q_grad) < 4e-2);
    CHECK(error_of(of(k_grad), wanted.k_grad) < 4e-2);
    CHECK(error_of(of(v_grad), wanted.v_grad) < 2e-2);
    const auto dense =
        at::_flash_attention_forward(of(q).unsqueeze(0), of(k).unsqueeze(0), of(v).unsqueeze(0), {}, {}, length, length,
                                     0.0, causal, false, std::nullopt, std::get<0>(options), std::get<1>(options));
    CHECK(at::equal(std::get<0>(dense)[0].cpu(), of(out).cpu()));
    CHECK(at::equal(std::get<1>(dense)[0].cpu(), sums.narrow(1, begin, length).cpu()));
  }
}

TEST_CASE("the stand-in's memory-efficient attention adds its bias and gives its gradient", "[device]") {
  at::manual_seed(2);
  const auto q = numbers({1, 8, 2, 4}), k = numbers({1, 8, 2, 4}), v = numbers({1, 8, 2, 4}),
             grad = numbers({1, 8, 2, 4}), bias = numbers({1, 2, 8, 8});
  const int64_t mask = GENERATE(0, 1, 2);
  const auto [out, sums, seed, offset, longest_q, longest_k] =
      at::_efficient_attention_forward(q, k, v, bias, {}, {}, std::nullopt, std::nullopt, 0.0, mask, true);
  CHECK(sums.sizes() == at::IntArrayRef({1, 2, 32}));
  CHECK(longest_q == 8);
  CHECK(longest_k == 8);
  const auto [q_grad, k_grad, v_grad, bias_grad] =
      at::_efficient_attention_backward(grad, q, k, v, bias, out, {}, {}, 8, 8, sums, 0.0, seed, offset, mask, true);
  const auto wanted = attend(q[0], k[0], v[0], mask > 0 ? far(8, 99, 0) : Tensor(), bias[0], grad[0]);
  CHECK(error_of(out[0], wanted.out) < 1e-5);
  CHECK(error_of(q_grad[0], wanted.q_grad) < 1e-5);
  CHECK(error_of(k_grad[0], wanted.k_grad) < 1e-5);
  CHECK(error_of(v_grad[0], wanted.v_grad) < 1e-5);
  CHECK(error_of(bias_grad[0], wanted.bias_grad) < 1e-5);
}

TEST_CASE("the stand-in's attention drops the same weights in both passes, and others in the next call", "[device]") {
  at::manual_seed(3);
  const auto q = numbers({2, 6, 2, 8}, at::kBFloat16), k = numbers({2, 6, 2, 8}, at::kBFloat16);
  const auto v = numbers({2, 6, 2, 8}, at::kBFloat16), grad = numbers({2, 6, 2, 8}, at::kBFloat16);
  auto generator = at::globalContext().defaultGenerator(card);
  const auto forward = [&] { return at::_flash_attention_forward(q, k, v, {}, {}, 6, 6, 0.5, false, false); };
  generator.set_current_seed(5);
  const auto [out, sums, state, unused, debug] = forward();
  const auto next = std::get<0>(forward());
  generator.set_current_seed(5);
  CHECK(at::equal(std::get<0>(forward()).cpu(), out.cpu()));
  CHECK_FALSE(at::equal(next.cpu(), out.cpu()));
  const auto v_grad =
      std::get<2>(at::_flash_attention_backward(grad, q, k, v, out, sums, {}, {}, 6, 6, 0.5, false, state, unused));
  // The output is linear in the values, by the matrix whose transpose makes their gradient.
  const double to_out = (in_double(out) * in_double(grad)).sum().item<double>();
  CHECK((in_double(v) * in_double(v_grad)).sum().item<double>() == Approx(to_out).epsilon(2e-2));
}

TEST_CASE("the stand-in updates lists of slices by AdamW, but not where a gradient was not finite", "[device]") {
  const auto p = at::ones({6}).to(card), g = at::full({6}, 2.0).to(card), m = at::zeros({6}).to(card),
             v = at::zeros({6}).to(card), step = at::ones({}).to(card);
  const bool is_bad = GENERATE(false, true);
  const auto found = at::full({}, is_bad ? 1.0 : 0.0).to(card);
  const auto slices = [](const Tensor& x) { return std::vector<Tensor>{x.narrow(0, 0, 2), x.narrow(0, 4, 2)}; };
  const std::vector<Tensor> steps{step, step};
  at::_fused_adamw_(slices(p), slices(g), slices(m), slices(v), {}, steps, 0.1, 0.9, 0.999, 0.0, 1e-8, false, false,
                    at::full({}, 4.0).to(card), found);
  const double moved = is_bad ? 1.0 : 0.9;
  CHECK(at::allclose(p.cpu(), at::tensor({moved, moved, 1.0, 1.0, moved, moved}, at::kFloat)));
  CHECK(m.cpu()[0].item<float>() == Approx(is_bad ? 0.0 : 0.05));  // of the gradient over its scale
}

TEST_CASE("the stand-in multiplies bf16 into fp32, and takes RMS norms", "[device]") {
  const auto a = numbers({3, 4}, at::kBFloat16), b = numbers({4, 5}, at::kBFloat16);
  auto sum = at::ones({3, 5}).to(card);
  at::addmm_out(sum, sum, a, b, at::kFloat);
  CHECK(error_of(sum, at::mm(in_double(a), in_double(b)) + 1) < 1e-5);

  const auto x = numbers({3, 8}).requires_grad_(), w = numbers({8}).requires_grad_(), grad = numbers({3, 8});
  const auto out = std::get<0>(at::_fused_rms_norm(x, {8}, w, 1e-6));
  out.backward(grad);
  const auto x2 = in_double(x).detach().requires_grad_(), w2 = in_double(w).detach().requires_grad_();
  const auto wanted = x2 * (x2.square().mean(-1, true) + 1e-6).rsqrt() * w2;
  wanted.backward(in_double(grad));
  CHECK(error_of(out.detach(), wanted.detach()) < 1e-5);
  CHECK(error_of(x.grad(), x2.grad()) < 1e-5);
  CHECK(error_of(w.grad(), w2.grad()) < 1e-5);
}

TEST_CASE("the stand-in counts operators, waits, copies and operators with tensors of both devices", "[device]") {
  const auto host = at::ones({4});
  const auto device = host.to(card);
  const auto counted = [](auto&& work) {
    fake_cuda::reset_counts();
    work();
    return fake_cuda::counts();
  };
  CHECK(counted([&] { device.add(device).mul(2); }).operators ==
        fake_cuda::CountsByName{{"aten::add.out", 1}, {"aten::mul.out", 1}});
  CHECK(counted([&] { at::native_layer_norm(device, {4}, {}, {}, 1e-5); }).operators ==
        fake_cuda::CountsByName{{"aten::native_layer_norm", 1}});
  CHECK(fake_cuda::total(counted([&] { at::_foreach_mul_(std::vector<Tensor>{device, device}, 2.0); }).operators) == 1);
  CHECK(counted([&] { host.to(card); }).syncs == fake_cuda::CountsByName{{"copy to device", 1}});
  CHECK(counted([&] { device.sum().item<float>(); }).syncs == fake_cuda::CountsByName{{"item", 1}});
  CHECK(counted([&] { device.index({device.gt(0)}); }).syncs == fake_cuda::CountsByName{{"aten::nonzero", 1}});
  const auto pinned = host.pin_memory();
  CHECK(pinned.is_pinned());
  const auto copied = counted([&] { pinned.to(card, at::kFloat, /*non_blocking=*/true); });
  CHECK(copied.syncs.empty());
  CHECK(copied.copies_to_device == 1);
  CHECK(copied.bytes_to_device == 16);
  const auto rows = at::tensor(std::vector<int64_t>{2, 0, 2}, at::kLong).to(card), more = at::ones({3}).to(card);
  CHECK(counted([&] { device.index_add(0, rows, more); }).unordered ==
        fake_cuda::CountsByName{{"aten::index_add.out", 1}});
  CHECK(counted([&] { device.index_add(0, rows.narrow(0, 0, 2), more.narrow(0, 0, 2)); }).unordered.empty());
  CHECK(counted([&] { device.take(at::zeros({1}, at::kLong)); }).mixed == fake_cuda::CountsByName{{"aten::take", 1}});
}
