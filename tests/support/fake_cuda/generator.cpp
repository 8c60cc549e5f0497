#include "tests/support/fake_cuda/generator.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace fake_cuda {

namespace {

struct DeviceGenerator final : c10::GeneratorImpl {
  DeviceGenerator()
      : GeneratorImpl(c10::Device(c10::DeviceType::CUDA, 0), c10::DispatchKeySet(c10::DispatchKey::CUDA)) {}
  PhiloxState state{c10::default_rng_seed_val, 0};

  void set_current_seed(uint64_t seed) override { state = {seed, 0}; }
  void set_offset(uint64_t offset) override { state.offset = offset; }
  uint64_t get_offset() const override { return state.offset; }
  uint64_t current_seed() const override { return state.seed; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return state.seed;
  }
  void set_state(const c10::TensorImpl&) override {
    TORCH_CHECK(false, "the stand-in for a GPU restores no generator");
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    TORCH_CHECK(false, "the stand-in for a GPU saves no generator");
  }
  DeviceGenerator* clone_impl() const override {
    auto* copy = new DeviceGenerator;
    copy->state = state;
    return copy;
  }
};

}  // namespace

at::Generator new_generator() { return at::make_generator<DeviceGenerator>(); }

const at::Generator& default_generator() {
  static const auto* generator = new at::Generator(new_generator());
  return *generator;
}

PhiloxState take_state(const std::optional<at::Generator>& generator) {
  auto& state = (generator && generator->defined() ? *generator : default_generator()).get<DeviceGenerator>()->state;
  const auto taken = state;
  state.offset += 4;
  return taken;
}

at::Tensor kept_elements(at::IntArrayRef sizes, double keep, const PhiloxState& state, int64_t part) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(
      state.seed * 0x9e3779b97f4a7c15 + state.offset * 0xbf58476d1ce4e5b9 + static_cast<uint64_t>(part));
  return at::rand(sizes, generator, at::TensorOptions(at::kFloat)).lt(keep);
}

}  // namespace fake_cuda
