#include "objectives/batch.h"

namespace cloze {

int64_t LossPart::correct() const { return counts.defined() ? counts.flatten()[0].item<int64_t>() : 0; }

std::optional<BinaryCounts> LossPart::binary() const {
  if (!counts.defined() || counts.dim() == 0) return {};
  const auto known = counts.to(at::kCPU);
  const auto* number = known.const_data_ptr<int64_t>();
  return BinaryCounts{number[1], number[2], number[3], detects};
}

Tensor counts_of(int64_t correct, const std::optional<BinaryCounts>& binary) {
  if (!binary) return at::scalar_tensor(correct, at::kLong);
  return at::tensor({correct, binary->positives, binary->predicted, binary->true_positives}, at::kLong);
}

void to_host(std::vector<std::vector<LossPart>>& losses) {
  std::vector<std::pair<Tensor*, at::ScalarType>> read;
  for (auto& batch : losses)
    for (auto& part : batch) {
      part.sum = part.sum.detach();
      read.emplace_back(&part.sum, at::kDouble);
      if (part.weights.defined()) read.emplace_back(&part.weights, part.weights.scalar_type());
      if (part.counts.defined()) read.emplace_back(&part.counts, at::kLong);
    }
  std::vector<Tensor> flat;
  for (const auto& [tensor, type] : read) flat.push_back(tensor->flatten().to(at::kDouble));
  if (flat.empty()) return;
  const auto all = at::cat(flat).to(at::kCPU);
  int64_t begin = 0;
  for (const auto& [tensor, type] : read) {
    const auto numbers = all.narrow(0, begin, tensor->numel()).view(tensor->sizes());
    begin += tensor->numel();
    *tensor = numbers.to(type);
  }
}

}  // namespace cloze
