#pragma once
// What tells a kind of head from others: what its logits are of, and their loss.
#include "objectives/objective.h"
#include "objectives/task_heads/head_layers.h"

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

/// The loss of a kind on labelled rows, whatever layers its logits come from.
class LabelledLoss : public Objective {
 public:
  std::string name() const override { return name_; }
  /// With the number of predictions, and their factors.
  std::vector<LossPart> parts(const Batch& batch) const override;
  /// The decoder of an encoder-decoder reads the whole text, and nothing is predicted token by token.
  void count_predictions(const Batch& batch, std::vector<RowSizes>& rows) const override;
  /// A state alone does not tell which of them the head reads.
  NetworkOutputs outputs(Backbone&, const Tensor&) override { return {}; }

 protected:
  LabelledLoss(const TaskHead& config, std::shared_ptr<HeadKind> kind, const HeadContext& in);
  /// The states that logits are made of.
  double count_states(const std::vector<RowSizes>& rows) const;

  std::string name_;
  double weight_;
  TaskHeadTerms terms_;
  HeadUse use_;
  std::shared_ptr<HeadKind> kind_;
  PublishedHead design_;
  TextState text_state_;
};

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
