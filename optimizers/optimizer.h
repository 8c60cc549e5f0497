#pragma once
// The optimizer of a run: what is kept of all parameters, and their updates by the rules of rules.h.
#include <array>

#include "core/part_range.h"
#include "core/tensor/param.h"
#include "optimizers/config.h"
#include "optimizers/update.h"

namespace cloze {

class Optimizer {
 public:
  Optimizer(const OptimizerConfig& config, FlatParameters& flat);
  ~Optimizer();
  /// One update at `learning_rate`; gradients are scaled by `grad_scale`. Zeroes the gradients that it reads,
  /// which are not those of frozen and fixed parameters.
  /// own  updates the parameters that begin in this range of the flat values, and has the moments of no others
  void step(double learning_rate, double grad_scale, const PartRange& own);
  void step(double learning_rate, double grad_scale) { step(learning_rate, grad_scale, {0, flat_.values.numel()}); }
  /// The number of updates done, on which bias corrections and Adafactor's decay depend.
  int64_t updates = 0;
  /// The moments of parameter number `parameter`, by name.
  const Moments& moments(size_t parameter) const { return moments_[parameter]; }
  /// The moments of every parameter: `exp_avg.NAME`, ...
  StateDict state() const;
  /// Gives back the memory of the moments of parameters that do not begin in `own`, which are lost.
  void forget_others(const PartRange& own);
  /// Restores moments by name. Throws CheckpointError for a missing or misshapen one.
  void load(const StateDict& state);

 private:
  struct Group;
  size_t group_at(size_t own, double factor);
  Tensor zeros_of(const Moment& moment, const FlatParameters::Range& range);
  Moments moments_in(const optimizers::Matrix& matrix, const UpdateRule& rule) const;
  /// With the kernels, for a rule that has them.
  void step_fused(const UpdateRule& rule, const optimizers::Step& step, std::vector<optimizers::Matrix> matrices);
  std::array<float*, 2> own_moments(const optimizers::Matrix& matrix, const UpdateRule& rule) const;
  /// With the kernels of a GPU, for a rule that has them.
  void step_on_device(Group& group, const optimizers::Step& step, const std::vector<optimizers::Matrix>& matrices);
  /// In plain operators.
  void step_generic(const UpdateRule& rule, const optimizers::Step& step,
                    const std::vector<optimizers::Matrix>& matrices);
  std::vector<Group> groups_;  // the rest, then those of the config, then those of other depths
  std::vector<size_t> group_of_param_;
  FlatParameters& flat_;
  Moments flat_moments_;          // [n], those of Extent::flat
  std::vector<Moments> moments_;  // of each parameter: views of those above, or separate tensors
};

/// Makes those of depth 0 to `layers` base, as freeze.layers says: the embeddings, and so many layers.
void freeze_layers(const std::vector<NamedParam>& params, int64_t layers);

/// Freezes all but the heads and the uppermost `layers` layers, which it thaws; with more than there are, nothing.
void thaw_layers(const std::vector<NamedParam>& params, int64_t layers);

/// The factor on the learning rate of a parameter by its depth in a network of so many layers; the head's and the
/// pooler's is optimizer.head_rate where that is given.
/// Source: google-research/electra, model/optimization.py, _get_layer_lrs.
double depth_factor(const OptimizerConfig& config, const Param& param, int64_t layers);

/// The group of optimizer.groups that a parameter is in; else the optimizer's own options.
const UpdateOptions& update_options(const OptimizerConfig& config, const NamedParam& param);

/// Throws ConfigError for a group that no parameter is in, and for one whose rule is for matrices alone with a
/// parameter that is none.
void check_groups(const OptimizerConfig& config, const std::vector<NamedParam>& params);

/// Bytes of what a rule keeps of a parameter.
int64_t moment_bytes(const UpdateRule& rule, const Param& param);

/// L2 norm of a flat gradient; the same for any number of threads.
double global_norm(const Tensor& grads);
/// The norms of parts of it.
std::vector<double> norms_of(const std::vector<Tensor>& gradients);

/// True for parameters to which weight decay and LAMB's trust ratio apply: weights, embeddings, and those that the
/// config adds.
/// Source: the exclusions by name (LayerNorm, layer_norm, bias) of google-research/bert, electra, albert and bigbird;
/// zihangdai/xlnet, model_utils.py, which excludes these too, except for the biases of attention scores.
bool decays(const UpdateOptions& config, const Param& param);

}  // namespace cloze
