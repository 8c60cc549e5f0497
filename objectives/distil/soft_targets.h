#pragma once
// How far what one network says is from what another one says, row by row.
#include "core/tensor/param.h"

namespace cloze {

/// T^2 KL(softmax(teacher / T) || softmax(student / T)) of each row, fp32 [N]: of logits [N, K], those of the teacher
/// without gradient. Logits of both that are -inf count nothing.
/// Source: Hinton et al. 2015, section 2 (arXiv 1503.02531).
Tensor divergence(const Tensor& student, const Tensor& teacher, double temperature);

/// 1 - cosine of the states [N, D] of each row, fp32 [N]. Source: torch.nn.CosineEmbeddingLoss of the target 1.
Tensor cosine_distance(const Tensor& student, const Tensor& teacher);

}  // namespace cloze
