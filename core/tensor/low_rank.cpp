#include "core/tensor/low_rank.h"

#include "core/tensor/fused_support.h"

namespace cloze {

namespace {

Tensor dropped(const Tensor& rows, const LowRank& part, const RowProducts& by) {
  return part.drop.on() ? by.masked(rows, fused::kernel_dropout(part.drop)) : rows;
}

}  // namespace

void merge(const Param& w) {
  at::NoGradGuard no_grad;
  if (!w.low_rank()) return;
  for (const auto& part : w.low_rank()->parts) {
    const auto product = at::mm(part.b.value().to(at::kDouble), part.a.value().to(at::kDouble)) * part.scale;
    const auto rows = w.value().narrow(0, part.first, part.rows());
    rows.copy_(rows.to(at::kDouble) + product);
  }
}

void add_low_rank(const LowRanks& of, const Tensor& x, const Tensor& y, const RowProducts& by) {
  for (const auto& part : of.parts) {
    const auto thin = by.nt(dropped(x, part, by), part.a.compute());  // [M, R]
    y.narrow(1, part.first, part.rows()).add_(by.nt(thin, part.b.compute()), part.scale);
  }
}

void add_low_rank_backward(const LowRanks& of, const Tensor& dy, const Tensor& x, const Tensor& dx,
                           const RowProducts& by) {
  for (const auto& part : of.parts) {
    const auto in = dropped(x, part, by), a = part.a.compute();
    const auto dout = (dy.narrow(1, part.first, part.rows()) * part.scale).contiguous();
    by.add_tn(fused::grad_of(part.b), dout, by.nt(in, a));
    const auto dthin = by.nn(dout, part.b.compute());  // [M, R]
    by.add_tn(fused::grad_of(part.a), dthin, in);
    dx.add_(dropped(by.nn(dthin, a), part, by));
  }
}

}  // namespace cloze
