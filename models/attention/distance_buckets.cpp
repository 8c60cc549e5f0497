#include "models/attention/distance_buckets.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace cloze {

DistanceBuckets::DistanceBuckets(int64_t buckets, int64_t max_distance, bool causal)
    : count_(causal ? buckets : buckets / 2), exact_(count_ / 2), causal_(causal) {
  // Computed once in fp32, as in the published code, and compared as integers: a logarithm off by one unit in the last
  // place would move whole distances to another bucket.
  std::vector<int64_t> begins;
  for (int64_t n = exact_, last = exact_; last < count_ - 1 && n <= 2 * max_distance; ++n) {
    const auto share = std::log(static_cast<float>(n) / static_cast<float>(exact_)) /
                       static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact_)));
    const auto bucket =
        std::min(count_ - 1, exact_ + static_cast<int64_t>(share * static_cast<float>(count_ - exact_)));
    for (; last < bucket; ++last) begins.push_back(n);
  }
  if (begins.empty()) begins.push_back(int64_t{1} << 40);
  begins_ = at::tensor(begins, at::kLong);
}

Tensor DistanceBuckets::operator()(const Tensor& distance) const {
  const auto magnitude = causal_ ? (-distance).clamp_min(0) : distance.abs();
  const auto bucket = magnitude.clamp_max(exact_) + magnitude.unsqueeze(-1).ge(begins_.to(distance.device())).sum(-1);
  return causal_ ? bucket : bucket + distance.gt(0).to(at::kLong) * count_;
}

}  // namespace cloze
