#pragma once
// What heads of tasks and probes of layers are made of.
#include "objectives/batch.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

/// Sets how a weight [N, K] is drawn. `range`: of normal and truncated.
void set_first_weights(Param weight, FirstWeights first, double range);

/// A dense layer with the first weights of a published head.
struct HeadLinear : Layer {
  HeadLinear(int64_t in, int64_t out, bool with_bias, FirstWeights first, double range);
  double multiply_adds() const { return static_cast<double>(weight.value().numel()); }
  Param weight, bias;
};

/// Which state stands for a text.
struct TextState {
  HeadDesign head;
  ClassToken token;
  bool mean;    ///< the mean of the states of all real tokens
  int64_t eos;  ///< the end token of the model

  /// The position of that token of each row, int64 [B].
  Tensor positions(const Batch& batch) const;
  /// The state [B, D] that stands for each row, of the states [B, T, D] of its tokens.
  Tensor of(const Tensor& hidden, const Batch& batch) const;
};

}  // namespace cloze
