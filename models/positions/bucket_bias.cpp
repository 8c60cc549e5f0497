#include "models/positions/bucket_bias.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tensor/moved.h"
#include "models/positions/scheme.h"

namespace cloze {

DistanceBuckets::DistanceBuckets(int64_t buckets, int64_t max_distance, bool causal)
    : count_(causal ? buckets : buckets / 2), exact_(count_ / 2), causal_(causal) {
  // Computed once in fp32, as in the published code, and compared as integers: a logarithm off by one unit in the last
  // place would move whole distances to another bucket.
  std::vector<int64_t> begins;
  for (int64_t n = exact_, last = exact_; last < count_ - 1 && n <= 2 * max_distance; ++n) {
    const auto position = std::log(static_cast<float>(n) / static_cast<float>(exact_)) /
                          static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact_)));
    const auto bucket =
        std::min(count_ - 1, exact_ + static_cast<int64_t>(position * static_cast<float>(count_ - exact_)));
    for (; last < bucket; ++last) begins.push_back(n);
  }
  if (begins.empty()) begins.push_back(int64_t{1} << 40);
  begins_ = at::tensor(begins, at::kLong);
}

Tensor DistanceBuckets::operator()(const Tensor& distance) const {
  const auto magnitude = causal_ ? (-distance).clamp_min(0) : distance.abs();
  const auto bucket =
      magnitude.clamp_max(exact_) + magnitude.unsqueeze(-1).ge(moved_to(begins_, distance.device())).sum(-1);
  return causal_ ? bucket : bucket + distance.gt(0).to(at::kLong) * count_;
}

namespace {

/// A scalar for each bucket and head, which the layers of a stack share.
struct BucketScheme final : PositionScheme {
  BucketScheme(const BucketBias& kind, const PositionSizes& sizes, Layer& stack)
      : buckets(kind.buckets, kind.max_distance, sizes.causal),
        bias(stack.own_param("relative_attention_bias", {kind.buckets, sizes.heads}, Init::weight, Role::score_bias)) {}
  Tensor distance_bias(const Tensor& x, const Tensor& past) const override {
    return at::embedding(bias.value(), buckets(distance_range(x, past))).t();
  }
  DistanceBuckets buckets;
  Param bias;  // [buckets, H]
};

}  // namespace

std::shared_ptr<PositionScheme> make_scheme(const BucketBias& kind, const PositionSizes& sizes, Layer& stack) {
  return std::make_shared<BucketScheme>(kind, sizes, stack);
}

}  // namespace cloze
