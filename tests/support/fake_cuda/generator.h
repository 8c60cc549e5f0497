#pragma once
// Random numbers of the stand-in for a GPU: a state of seed and offset, as Philox has, and masks that follow from it.
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace fake_cuda {

const at::Generator& default_generator();
at::Generator new_generator();

/// What one dropout of a kernel is drawn from.
struct PhiloxState {
  uint64_t seed = 0, offset = 0;
};
/// The state of a generator, the default one if none is given; the next call has another.
PhiloxState take_state(const std::optional<at::Generator>& generator = {});
/// bool, true = kept, with probability `keep`; a function of the state, `part` and the sizes alone.
at::Tensor kept_elements(at::IntArrayRef sizes, double keep, const PhiloxState& state, int64_t part = 0);

}  // namespace fake_cuda
