#pragma once
// The optimizer of a run: moments, and updates of all parameters. Its kinds are in optimizers.h.
#include <map>

#include "core/tensor/param.h"
#include "run/config/config.h"

namespace cloze {

namespace optimizers {
struct Matrix;
struct Step;
}  // namespace optimizers

/// The optimizer state of one parameter by the names that its kind gives (optimizers.h), in the parameter's shape; of a
/// matrix that Adafactor factors, exp_avg_sq_row [stacked, rows] and exp_avg_sq_col [stacked, columns].
using Moments = std::map<std::string, Tensor>;

class Optimizer {
 public:
  Optimizer(const OptimizerConfig& config, FlatParameters& flat);
  ~Optimizer();
  /// One update at `learning_rate`; gradients are scaled by `grad_scale`. Zeroes the gradients that it reads,
  /// which are not those of frozen and fixed parameters.
  void step(double learning_rate, double grad_scale);
  /// The number of updates done, on which bias corrections and Adafactor's decay depend.
  int64_t updates = 0;
  /// The moments of every parameter: `exp_avg.NAME`, ...
  StateDict state() const;
  /// Restores moments by name. Throws CheckpointError for a missing or misshapen one.
  void load(const StateDict& state);

 private:
  struct Group;
  size_t group_at(size_t own, double factor);
  /// With the kernels, for a kind that has them.
  void step_fused(const UpdateRule& rule, const optimizers::Step& step,
                  const std::vector<optimizers::Matrix>& matrices);
  /// In plain operators.
  void step_generic(const UpdateRule& rule, const optimizers::Step& step,
                    const std::vector<optimizers::Matrix>& matrices);
  std::vector<Group> groups_;  // the rest, then those of the config, then those of other depths
  std::vector<size_t> group_of_param_;
  FlatParameters& flat_;
  Moments flat_moments_;          // [n], AdamW and LAMB
  std::vector<Moments> moments_;  // of each parameter: views of those above, or separate tensors
};

/// The layers of a network: of its only stack or its encoder, and of its decoder.
struct NetworkLayers {
  int64_t first = 0, decoder = 0;
};

/// Freezes the parameters of depth 0 to `layers`, as freeze.layers says: the embeddings, and so many layers.
void freeze_layers(const std::vector<NamedParam>& params, int64_t layers);

/// The factor on the learning rate of a parameter of the network by its depth; the head's and the pooler's is
/// optimizer.head_rate where that is given.
double depth_factor(const OptimizerConfig& config, const std::string& name, const NetworkLayers& layers);

/// The group of optimizer.groups that a parameter is in; else the optimizer's own options.
const UpdateOptions& update_options(const OptimizerConfig& config, const NamedParam& param);

/// Throws ConfigError for a group that no parameter is in, and for one of Muon with a parameter that is no matrix.
void check_groups(const OptimizerConfig& config, const std::vector<NamedParam>& params);

/// Bytes of the optimizer state for a parameter of these sizes.
int64_t moment_bytes(const UpdateRule& rule, at::IntArrayRef sizes, int64_t stacked);

/// L2 norm of a flat gradient; the same for any number of threads.
double global_norm(const Tensor& grads);

/// True for parameters to which weight decay and LAMB's trust ratio apply: weights, embeddings, and those that the
/// config adds.
/// Source: the exclusions by name (LayerNorm, layer_norm, bias) of google-research/bert, electra, albert and bigbird;
/// zihangdai/xlnet, model_utils.py, which excludes these too, except for the biases of attention scores.
bool decays(const UpdateOptions& config, const Param& param);

}  // namespace cloze
