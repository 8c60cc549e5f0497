#include <limits>

#include "objectives/task_heads/head_kind.h"

namespace cloze {

namespace {

struct Spans final : HeadKind {
  int64_t count(const Batch& batch) const override { return batch.labels.size(0); }
  /// The mean of the cross entropies of the first and of the last token, over the real tokens of each row.
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool) const override {
    auto scores = logits;
    if (batch.attention_mask.defined())
      scores =
          scores.masked_fill(batch.attention_mask.logical_not().unsqueeze(-1), -std::numeric_limits<float>::infinity());
    const auto of_side = [&](int64_t side) {
      return at::cross_entropy_loss(scores.select(-1, side), batch.labels.select(1, side), {}, at::Reduction::None);
    };
    const auto losses = (of_side(0) + of_side(1)) / 2;  // [B]
    part.counts = scores.argmax(1).eq(batch.labels).all(1).sum();
    fill_sum(part, losses, rows_of(batch.labels.select(1, 0)), losses);
  }
  NetworkOutputs outputs(const Tensor& logits) const override {
    return {{"start_logits", logits.select(-1, 0)}, {"end_logits", logits.select(-1, 1)}};
  }
};

}  // namespace

std::shared_ptr<HeadKind> make_head_kind(const SpansConfig&) { return std::make_shared<Spans>(); }

}  // namespace cloze
