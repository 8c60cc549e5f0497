#include "core/tensor/device_support.h"
#include "core/tensor/plain.h"

namespace cloze::device {

namespace {

/// The logits are kept for the backward pass, which overwrites them with their gradient.
struct DeviceCrossEntropy : Function<DeviceCrossEntropy> {
  static Tensor forward(AutogradContext* context, const Tensor& hidden, const Tensor&, const Param& table,
                        const Param& bias, const Tensor& labels, const LossOptions& shape, Tensor* correct) {
    const auto rows = as_rows(hidden), wanted = labels.contiguous(), logits = multiplied(rows, table);
    const auto weights = shape.weights.defined() ? shape.weights.contiguous() : Tensor();
    const int64_t count = logits.size(0), width = logits.size(1);
    const auto loss = at::empty({count}, rows.options().dtype(at::kFloat)), lse = at::empty_like(loss);
    const auto hits = at::empty({count}, rows.options().dtype(at::kInt));
    run(logits, "cross_entropy_forward", count, count, width, data(logits), data(bias), data(wanted), data(weights),
        static_cast<float>(shape.label_smoothing), static_cast<float>(shape.z_loss), data(loss), data(lse), data(hits));
    if (correct) *correct = hits.sum();
    context->save_for_backward({rows, wanted, logits, lse, weights});
    keep(context, "table", table);
    keep(context, "bias", bias);
    context->saved_data["smoothing"] = shape.label_smoothing;
    context->saved_data["z"] = shape.z_loss;
    return loss.sum(at::kDouble).to(at::kFloat);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &hidden = saved[0], &labels = saved[1], &logits = saved[2], &lse = saved[3], &weights = saved[4];
    const auto table = kept(context, "table"), bias = kept(context, "bias");
    const auto scale = grads[0].to(at::kFloat).contiguous();
    const int64_t rows = logits.size(0), width = logits.size(1), chunks = chunks_of(rows);
    const auto partial = partial_sums(logits, chunks, 1, width);
    run(logits, "cross_entropy_backward", chunks * tiles_of(width), rows, width, chunks, data(logits), data(bias),
        data(labels), data(weights), data(lse), static_cast<float>(context->saved_data["smoothing"].toDouble()),
        static_cast<float>(context->saved_data["z"].toDouble()), data(scale), data(partial));
    if (bias.defined() && bias.is_trained()) add_sums(partial, bias);
    return {multiplied_backward(table, logits, hidden), Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, Tensor* correct, TokenDraw* draw) {
  if (draw) draw->drawn = plain::draw_tokens(hidden.detach(), table, bias, *draw);
  return DeviceCrossEntropy::apply(hidden, leaf_of({table, bias}), table, bias, labels, shape, correct);
}

}  // namespace cloze::device
