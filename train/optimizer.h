#pragma once
// AdamW, LAMB and Adafactor over the flat buffers.
#include "core/tensor/param.h"
#include "run/config.h"

namespace cloze {

/// What an optimizer remembers of one parameter; undefined: its kind keeps none.
struct Moments {
  Tensor exp_avg, exp_avg_sq;  ///< in the parameter's shape
  Tensor exp_avg_sq_row{},
      exp_avg_sq_col{};  ///< [stacked, rows] and [stacked, columns]: means of a matrix that Adafactor factors
};

class Optimizer {
 public:
  Optimizer(const OptimizerConfig& config, FlatParameters& flat);
  /// One update at `learning_rate`; gradients are multiplied by `grad_scale` on the way. Zeroes the gradients that it
  /// read: not those of parameters that rest or are fixed.
  void step(double learning_rate, double grad_scale);
  /// Updates done; bias corrections and Adafactor's decay follow it.
  int64_t updates = 0;
  /// The moments by parameter name: `exp_avg.NAME`, `exp_avg_sq.NAME`, `exp_avg_sq_row.NAME`, `exp_avg_sq_col.NAME`.
  std::vector<std::pair<std::string, Tensor>> state() const;
  /// Copies moments back by name. Throws CheckpointError for a missing or misshapen one.
  void load(const std::vector<std::pair<std::string, Tensor>>& state);

 private:
  struct Piece;
  struct Block;
  std::vector<Piece> pieces() const;
  std::vector<Block> blocks(const std::vector<Piece>& pieces) const;
  std::vector<double> scales(const std::vector<Piece>& pieces, const std::vector<Block>& blocks) const;
  void step_generic(double learning_rate, double grad_scale);  // in plain operators
  void adam(double learning_rate, double grad_scale);          // AdamW and LAMB
  void adafactor(double learning_rate, double grad_scale);
  OptimizerConfig config_;
  FlatParameters& flat_;
  Tensor exp_avg_, exp_avg_sq_;   // [n], AdamW and LAMB
  std::vector<Moments> moments_;  // of each slot, views of these or tensors of their own
};

/// One update of one tensor in plain operators, on any device: p and g [rows, columns], moments as in Moments, those of
/// a vector too. `decays`: weight decay applies, and LAMB's ratio. g is not changed.
void plain_update(const OptimizerConfig& config, int64_t update, double learning_rate, double grad_scale, bool decays,
                  const Tensor& p, const Tensor& g, const Moments& moments);

/// Bytes of moments that the optimizer will keep for a parameter of these sizes.
int64_t moment_bytes(const OptimizerConfig& config, at::IntArrayRef sizes, int64_t stacked);

/// Root of the sum of squares of a flat gradient; the same for any number of threads.
double global_norm(const Tensor& grads);

/// True for parameters to which weight decay and LAMB's ratio apply: weights and embeddings, and what the config adds.
/// Source: the exclusions by name (LayerNorm, layer_norm, bias) of google-research/bert, electra, albert and bigbird;
/// zihangdai/xlnet, model_utils.py, which excludes these too but for the biases of scores.
bool decays(const OptimizerConfig& config, const Param& param);

}  // namespace cloze
