#include "train/weight_average.h"

#include <algorithm>

#include "core/kernels/kernels.h"
#include "core/tensor/ops.h"
#include "core/tensor/parallel.h"

namespace cloze {

namespace {

constexpr int64_t averaged_floats = 1 << 16;  // for any number of threads

}  // namespace

WeightAverage::WeightAverage(double decay, FlatParameters& flat)
    : decay_(decay), flat_(flat), average_(flat.values.clone()) {}

void WeightAverage::update(int64_t step) {
  at::NoGradGuard no_grad;
  const auto t = static_cast<double>(step);
  const double fraction = 1 - std::min(decay_, (1 + t) / (10 + t));
  if (use_fused(flat_.values)) {
    const auto* values = flat_.values.data_ptr<float>();
    auto* average = average_.data_ptr<float>();
    const int64_t n = flat_.values.numel();
    each_part((n + averaged_floats - 1) / averaged_floats, [&](int64_t i) {
      const int64_t first = i * averaged_floats;
      kernels::table().updates.approach(std::min(averaged_floats, n - first), static_cast<float>(fraction),
                                        values + first, average + first);
    });
  } else {
    average_.lerp_(flat_.values, fraction);
  }
  for (const auto& range : flat_.ranges())
    if (range.param.param.fixed())
      average_.narrow(0, range.offset, range.numel).copy_(flat_.values.narrow(0, range.offset, range.numel));
}

void WeightAverage::restart() { average_.copy_(flat_.values); }

void WeightAverage::exchange() {
  at::NoGradGuard no_grad;
  if (average_.is_cpu()) {
    auto* values = flat_.values.data_ptr<float>();
    std::swap_ranges(values, values + flat_.values.numel(), average_.data_ptr<float>());
  } else {
    const auto kept = flat_.values.clone();
    flat_.values.copy_(average_);
    average_.copy_(kept);
  }
  flat_.refresh_shadow();
}

std::vector<NamedParam> WeightAverage::params() const {
  std::vector<NamedParam> params;
  for (const auto& range : flat_.ranges()) {
    const auto& param = range.param.param;
    const auto view = average_.narrow(0, range.offset, range.numel).view(param.value().sizes());
    params.push_back({range.param.name, Param(view, param.init(), param.role())});
  }
  return params;
}

}  // namespace cloze
