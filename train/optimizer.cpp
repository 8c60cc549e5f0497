#include "train/optimizer.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "core/error.h"
#include "core/kernels/kernels.h"

namespace cloze {

namespace {

constexpr int64_t block = 1 << 16;   // floats; sums of squares are taken over blocks of this size, whatever the threads

}  // namespace

bool decays(const NamedParam& named) { return named.param.value().dim() > 1; }

AdamW::AdamW(const OptimizerConfig& config, FlatParameters& flat)
    : config_(config), flat_(flat), exp_avg_(at::zeros_like(flat.values)), exp_avg_sq_(at::zeros_like(flat.values)) {}

std::vector<AdamW::Range> AdamW::ranges() const {
  std::vector<Range> found;
  for (const auto& slot : flat_.slots()) {
    if (slot.param.param.resting()) continue;
    const bool decayed = !slot.param.param.fixed() && (config_.decay_norm_and_bias || decays(slot.param));
    const int64_t end = (slot.offset + slot.numel + 15) / 16 * 16;
    if (!found.empty() && found.back().decayed == decayed && found.back().end == slot.offset) found.back().end = end;
    else found.push_back({slot.offset, end, decayed});
  }
  return found;
}

void AdamW::step(double learning_rate, double grad_scale) {
  at::NoGradGuard no_grad;
  ++updates;
  const double c1 = config_.bias_correction ? 1 - std::pow(config_.beta1, static_cast<double>(updates)) : 1;
  const double c2 = config_.bias_correction ? 1 - std::pow(config_.beta2, static_cast<double>(updates)) : 1;
  for (const auto& range : ranges()) {
    const double decay = range.decayed ? config_.weight_decay : 0;
    if (!flat_.values.is_cpu()) {
      const auto piece = [&](const Tensor& t) { return t.narrow(0, range.begin, range.end - range.begin); };
      auto p = piece(flat_.values), m = piece(exp_avg_), v = piece(exp_avg_sq_), g = piece(flat_.grads) * grad_scale;
      m.mul_(config_.beta1).add_(g, 1 - config_.beta1);
      v.mul_(config_.beta2).addcmul_(g, g, 1 - config_.beta2);
      const auto denominator = (v / c2).sqrt_().add_(config_.epsilon);
      p.mul_(1 - learning_rate * decay).addcdiv_(m, denominator, -learning_rate / c1);
      continue;
    }
    const kernels::AdamW update{.learning_rate = static_cast<float>(learning_rate), .beta1 = static_cast<float>(config_.beta1), .beta2 = static_cast<float>(config_.beta2),
                                .epsilon = static_cast<float>(config_.epsilon), .decay = static_cast<float>(learning_rate * decay), .correction1 = static_cast<float>(c1),
                                .correction2 = static_cast<float>(c2), .grad_scale = static_cast<float>(grad_scale)};
    auto* p = flat_.values.data_ptr<float>();
    auto* g = flat_.grads.data_ptr<float>();
    auto* m = exp_avg_.data_ptr<float>();
    auto* v = exp_avg_sq_.data_ptr<float>();
    auto* shadow = flat_.shadow.defined() ? reinterpret_cast<uint16_t*>(flat_.shadow.data_ptr<at::BFloat16>()) : nullptr;
    const int64_t blocks = (range.end - range.begin + block - 1) / block;
    at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      const int64_t begin = range.begin + first * block, end = std::min(range.end, range.begin + last * block);
      kernels::table().adamw(update, end - begin, p + begin, g + begin, m + begin, v + begin, shadow ? shadow + begin : nullptr);
    });
  }
  if (!flat_.values.is_cpu()) {
    flat_.grads.zero_();
    flat_.refresh_shadow();
  }
}

std::vector<std::pair<std::string, Tensor>> AdamW::state() const {
  std::vector<std::pair<std::string, Tensor>> found;
  for (const auto& slot : flat_.slots()) {
    const auto sizes = slot.param.param.value().sizes();
    found.emplace_back("exp_avg." + slot.param.name, exp_avg_.narrow(0, slot.offset, slot.numel).view(sizes));
    found.emplace_back("exp_avg_sq." + slot.param.name, exp_avg_sq_.narrow(0, slot.offset, slot.numel).view(sizes));
  }
  return found;
}

void AdamW::load(const std::vector<std::pair<std::string, Tensor>>& saved) {
  at::NoGradGuard no_grad;
  for (auto& [name, place] : state()) {
    const auto found = std::find_if(saved.begin(), saved.end(), [&, wanted = name](const auto& s) { return s.first == wanted; });
    require<CheckpointError>(found != saved.end() && found->second.sizes() == place.sizes(), "the optimizer's state has no tensor '", name,
                             "' of the right shape; the checkpoint belongs to another model");
    place.copy_(found->second);
  }
}

double global_norm(const Tensor& grads) {
  if (!grads.is_cpu()) return grads.norm().item<double>();
  const auto* g = grads.data_ptr<float>();
  const int64_t n = grads.numel(), blocks = (n + block - 1) / block;
  std::vector<double> sums(static_cast<size_t>(blocks));
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) sums[static_cast<size_t>(b)] = kernels::table().sum_of_squares(std::min(block, n - b * block), g + b * block);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace cloze
