#pragma once
// What one process of a run has of a step and of its parameters, and how the others get to know of it
// (docs/scaling.md).
#include <functional>
#include <vector>

#include "core/part_range.h"
#include "core/tensor/param.h"
#include "distributed/communicator.h"
#include "optimizers/optimizer.h"
#include "run/config/train_config.h"

namespace cloze {

/// The micro-batches, of as many in a step, that stand in these of its parts.
PartRange micro_batches_in(const PartRange& own, int64_t parts, int64_t of_step);

/// The shares of a process: whole parts of each step, whose gradients it computes, and a slice of whole parameters,
/// which it updates, and of which it alone has the moments. Source of the slices: ZeRO, stage 1; Rajbhandari et al.
/// 2020 (arXiv 1910.02054).
class Shares {
 public:
  /// All but the config outlive this.
  Shares(Communicator& processes, const TrainConfig& config, FlatParameters& flat);

  bool is_alone() const { return processes_.size() == 1; }
  PartRange own_parts() const { return parts_of(processes_.rank(), processes_.size(), parts_); }
  /// The own slice, in the flat parameters.
  PartRange own_slice() const;
  /// The process that has a parameter of this number, or a micro-batch of this number of so many.
  int64_t owner_of_parameter(size_t parameter) const;
  int64_t owner_of_micro_batch(int64_t micro_batch, int64_t of_step) const;

  /// Sums the gradients of a step in the order of its tree, or of the processes (train.deterministic), where `add_part`
  /// adds those of an own part to the flat gradients, which are zeros before. Those are then the sums: all in one
  /// process alone, else the own slice's, and zeros.
  void sum_gradients(const std::function<void(int64_t part)>& add_part);
  /// The sum of the squares of each parameter's gradient, the same for any number of processes.
  std::vector<double> exchange_squares() const;
  /// Every process gets the values of the slices of all.
  void gather_values();
  /// Throws Error where the weights of another process are not those of the first.
  void require_equal_weights() const;

 private:
  void for_others(const std::function<void(const PartRange&)>& use) const;
  Tensor sum_of_parts(const PartRange& node, const std::function<void(int64_t part)>& add_part);
  Tensor sum_as_they_come(const std::function<void(int64_t part)>& add_part);

  Communicator& processes_;
  int64_t parts_;
  bool is_deterministic_;
  FlatParameters& flat_;
  SliceBounds slices_;
};

}  // namespace cloze
