#pragma once
// What tells a kind of head from others: what its logits are of, and their loss.
#include "objectives/objective.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

/// The label that no loss counts, which at::cross_entropy_loss ignores.
inline constexpr int64_t uncounted_label = -100;

/// The logits of a kind of head and their loss, whatever layers they come from. The labels of a batch are Batch::labels
/// or Batch::targets.
class HeadKind {
 public:
  virtual ~HeadKind() = default;
  /// The number of predictions of a batch.
  virtual int64_t count(const Batch& batch) const { return batch.labels.ne(uncounted_label).sum().item<int64_t>(); }
  /// Its predictions are right or wrong.
  virtual bool has_accuracy() const { return true; }
  /// The logits that are compared with one another, of the outputs of texts or candidates [B, K], of tokens [..., K].
  virtual Tensor logits(const Tensor& outputs, const Batch&) const { return outputs; }
  /// Values as the task has them, where training has others.
  virtual Tensor by_task(const Tensor& logits) const { return logits; }
  /// Fills in the sum of the losses, what is right and, without gradients, each loss. `logits`: as above; those of
  /// tokens [N, K] at the batch's positions.
  virtual void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool is_training) const = 0;
  /// What the network gives under Hugging Face's names.
  virtual NetworkOutputs outputs(const Tensor& logits) const { return {{"logits", by_task(logits)}}; }
};

// What the layers of all kinds share.

/// Name, weight and number of predictions of a head's loss, with their factors.
LossPart part_of_head(const std::string& name, double weight, const TaskHeadTerms& terms, const HeadKind& kind,
                      const Batch& batch);
/// The decoder of an encoder-decoder reads the whole text, and nothing is predicted token by token.
void count_labelled(const Batch& batch, std::vector<RowSizes>& rows);

// What several kinds share.

/// 0, 1, 2, ...: the row of each label.
inline Tensor rows_of(const Tensor& labels) { return at::ones_like(labels).cumsum(0) - 1; }
/// The factors of labels, as a tensor where `like` is.
Tensor class_weights_of(const TaskHeadTerms& terms, const Tensor& like);
/// Fills in the sum of `losses` and, without gradients, `single`, each of its row.
void fill_sum(LossPart& part, const Tensor& losses, const Tensor& rows, const Tensor& single);
/// Cross entropy of labels int64 [N] against logits [N, K].
void fill_by_labels(LossPart& part, const TaskHeadTerms& terms, const Tensor& logits, const Tensor& labels,
                    const Tensor& rows, bool is_training);
/// `losses` of targets [B, L].
void fill_by_targets(LossPart& part, const Tensor& losses, const Tensor& targets);

}  // namespace cloze
