#pragma once
// Buckets of the distances of queries and keys, each with a bias of the scores.
#include <cstdint>

#include "core/tensor/param.h"

namespace cloze {

/// Buckets of relative positions (key minus query): one bucket for each small distance, logarithmic buckets
/// beyond. A causal stack buckets distances to the past only, a bidirectional one both signs. Source: Raffel et al.
/// 2020, section 2.1; Mesh TensorFlow, transformer_layers.py.
class DistanceBuckets {
 public:
  DistanceBuckets(int64_t buckets, int64_t max_distance, bool causal);
  /// Bucket numbers, int64, of the shape of `distance`.
  Tensor operator()(const Tensor& distance) const;

 private:
  int64_t count_, exact_;  // buckets of one sign: all, and those of a single distance
  bool causal_;
  Tensor begins_;  // int64: the first distance of each logarithmic bucket
};

}  // namespace cloze
