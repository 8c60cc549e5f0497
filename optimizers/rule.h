#pragma once
// What a rule of an optimizer is: a struct in a file of its own, which rules.h lists. Without LibTorch, for configs.
//
// Each has
//   kind, words                  its name and its meaning in a config, and a `describe` of its options
//   moments(MatrixShape)         what it keeps of a parameter, from which tensors, checkpoints and memory follow
//   update(Step, Target)         the update of one matrix in plain operators, on any device
// and may have
//   update(Step, Buffers)        the update of all with kernels, on the processor
//   update(Step, DeviceBuffers)  the same on a GPU
//   elementwise                  true: no element depends on another, so that matrices are updated together
//   matrices_alone               true: it is for a group of matrices
#include <cstdint>
#include <vector>

namespace cloze {

namespace optimizers {
struct Step;
struct Target;
struct Buffers;
struct DeviceBuffers;
}  // namespace optimizers

/// A matrix as published code stores it; a vector is one row.
struct MatrixShape {
  int64_t rows, columns;
  int64_t numel() const { return rows * columns; }
};

/// What of a matrix a moment has a number for. Those that are `flat` have one for each element, too, and lie in a
/// buffer as long as all parameters; an elementwise rule has no others.
enum class Extent { flat, elements, rows, columns };

/// What an optimizer keeps of a parameter, zero at first.
struct Moment {
  const char* name;
  Extent extent;
};

/// The numbers of a moment of a matrix.
inline int64_t numel(const Moment& moment, const MatrixShape& shape) {
  switch (moment.extent) {
    case Extent::flat:
    case Extent::elements:
      return shape.numel();
    case Extent::rows:
      return shape.rows;
    case Extent::columns:
      return shape.columns;
  }
  return 0;
}

}  // namespace cloze
