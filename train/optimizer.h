#pragma once
// AdamW over the flat buffers: one pass reads gradients and writes values, moments and bf16 copies.
#include "core/tensor/param.h"
#include "train/config.h"

namespace cloze {

class AdamW {
 public:
  AdamW(const OptimizerConfig& config, FlatParameters& flat);
  /// One update at `learning_rate`; gradients are multiplied by `grad_scale` on the way. Zeroes the gradients.
  void step(double learning_rate, double grad_scale);
  /// Updates done; bias corrections follow it.
  int64_t updates = 0;
  /// The moments by parameter name: `exp_avg.NAME`, `exp_avg_sq.NAME`.
  std::vector<std::pair<std::string, Tensor>> state() const;
  /// Copies moments back by name. Throws CheckpointError for a missing or misshapen one.
  void load(const std::vector<std::pair<std::string, Tensor>>& state);

 private:
  OptimizerConfig config_;
  FlatParameters& flat_;
  Tensor exp_avg_, exp_avg_sq_;
  struct Range {
    int64_t begin, end;
    bool decayed;
  };
  /// Stretches of parameters that are updated now and decay alike.
  std::vector<Range> ranges() const;
};

/// Root of the sum of squares of a flat gradient; the same for any number of threads.
double global_norm(const Tensor& grads);

/// True for parameters that decay by default: neither a bias nor a norm.
bool decays(const NamedParam& param);

}  // namespace cloze
