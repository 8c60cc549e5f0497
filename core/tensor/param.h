#pragma once
// Parameters: an fp32 leaf that owns the value and the gradient, and what the forward pass multiplies with.
//
// Legend of shapes, everywhere: B batch, T query or target tokens, S source or key tokens, D width, H heads, C head
// width, E embedding width, F feed-forward width, V vocabulary, N predictions. Every mask says its polarity:
// true = may be used.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"

namespace cloze {

using at::Tensor;

/// How a parameter starts. The sinusoids are a table of positions (Vaswani et al. 2017, section 3.5), trained or not,
/// sines and cosines in turns or each in a half; fixed features are rows of draw_features. What is fixed is never
/// trained.
enum class Init {
  weight,
  embedding,
  zero,
  one,
  sinusoid,
  fixed_sinusoid,
  fixed_sinusoid_halves,
  fixed_features,
  fixed_zero
};

/// What a parameter is, whatever its shape: weight decay and LAMB's ratio go by it. A score bias is added to attention
/// scores or to the queries that make them: T5's relative_attention_bias, XLNet's r_w_bias, r_r_bias and r_s_bias.
enum class Role { weight, embedding, bias, score_bias, norm };

/// The role that a way to start says where none is declared.
Role role_of(Init init);

/// The distribution of first weights: that of the network (normal, truncated or not), or uniform with the same
/// deviation.
enum class Spread { network, uniform };

/// A named parameter. Copies are handles to the same tensors.
class Param {
 public:
  Param() = default;
  Param(Tensor value, Init init) : Param(std::move(value), init, role_of(init)) {}
  Param(Tensor value, Init init, Role role)
      : state_(std::make_shared<State>(State{std::move(value), {}, {}, init, role})) {}
  bool defined() const { return state_ != nullptr; }
  /// The fp32 leaf; its `.grad()` is a view of the flat gradient once it lives in FlatParameters.
  const Tensor& value() const { return state_->value; }
  /// What a product reads: the bf16 shadow where there is one, else the value itself.
  const Tensor& compute() const { return state_->shadow.defined() ? state_->shadow : state_->value; }
  void set_shadow(Tensor shadow) { state_->shadow = std::move(shadow); }
  /// The value as products of few rows read it fastest, while a PackedWeights lives; undefined: there is none.
  const Tensor& packed() const { return state_->packed; }
  void set_packed(Tensor packed) { state_->packed = std::move(packed); }
  Init init() const { return state_->init; }
  Role role() const { return state_->role; }
  /// A row that starts at zero and gets no gradient from a lookup (torch's padding_idx); -1 = none.
  int64_t padding_row() const { return state_->padding_row; }
  void set_padding_row(int64_t row) { state_->padding_row = row; }
  /// Passed over by the optimizer, whatever its gradient and moments are.
  bool resting() const { return state_->resting; }
  void set_resting(bool on) { state_->resting = on; }
  /// Never trained: no gradient reaches it.
  bool fixed() const {
    return state_->init == Init::fixed_sinusoid || state_->init == Init::fixed_sinusoid_halves ||
           state_->init == Init::fixed_features || state_->init == Init::fixed_zero;
  }
  /// Standard deviation at the start, where it is not that of the network; 0 = it is.
  double init_range() const { return state_->init_range; }
  Spread init_spread() const { return state_->init_spread; }
  void set_init_range(double range, Spread spread = Spread::network) {
    state_->init_range = range;
    state_->init_spread = spread;
  }
  /// The first `rows` rows start so many times larger.
  void set_init_rows(int64_t rows, double factor) { state_->init_rows = rows, state_->init_factor = factor; }
  int64_t init_rows() const { return state_->init_rows; }
  double init_factor() const { return state_->init_factor; }
  /// So many tensors of one shape lie here one above the other (queries, keys and values, which most published code
  /// keeps apart). An optimizer that measures whole tensors measures each.
  int64_t stacked() const { return state_->stacked; }
  /// Throws ShapeError where the rows cannot be shared out.
  void set_stacked(int64_t count);

 private:
  struct State {
    Tensor value, shadow, packed;
    Init init;
    Role role;
    int64_t padding_row = -1;
    bool resting = false;
    double init_range = 0;
    Spread init_spread = Spread::network;
    int64_t init_rows = 0;
    double init_factor = 1;
    int64_t stacked = 1;
  };
  std::shared_ptr<State> state_;
};

struct NamedParam {
  std::string name;  ///< dotted path from the network
  Param param;
};

/// A part of a network: parameters of its own and child parts, each with a name.
class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  /// Registers an fp32 parameter of `sizes`, not yet initialised.
  Param own_param(const std::string& name, at::IntArrayRef sizes, Init init) {
    return own_param(name, sizes, init, role_of(init));
  }
  Param own_param(const std::string& name, at::IntArrayRef sizes, Init init, Role role);
  /// Registers a child and returns it.
  template <class M>
  std::shared_ptr<M> own(const std::string& name, std::shared_ptr<M> child) {
    children_.emplace_back(name, child);
    return child;
  }
  const std::vector<std::pair<std::string, Param>>& own_params() const { return params_; }
  const std::vector<std::pair<std::string, std::shared_ptr<Layer>>>& children() const { return children_; }

  /// What changes by itself between steps, before optimizer step `step` + 1: random features drawn anew, weights taken
  /// over. Reaches every child; `rng` is its own. Returns whether a parameter changed.
  virtual bool before_step(int64_t step, const Rng& rng) {
    bool changed = false;
    for (const auto& [name, child] : children_) changed = child->before_step(step, Rng(rng.key(name))) || changed;
    return changed;
  }

  /// Switches dropout on, here and in every child.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

 private:
  std::vector<std::pair<std::string, Param>> params_;
  std::vector<std::pair<std::string, std::shared_ptr<Layer>>> children_;
  bool training_ = true;
};

/// Every parameter under `root`, each once, in the order of registration.
std::vector<NamedParam> collect_params(const Layer& root);

/// Converts every parameter under `root` in place.
void convert_params(const Layer& root, at::ScalarType type);

/// Draws every parameter from `rng.stream("init", hash of its name)`: parameters of the same name and shape are equal
/// in every network of the same seed.
void initialize(const std::vector<NamedParam>& params, double range, bool truncated, const Rng& rng);

/// One buffer for all values and one for all gradients; every parameter is a view of both.
class FlatParameters {
 public:
  struct Slot {
    NamedParam param;
    int64_t offset;  ///< in floats, a multiple of 16
    int64_t numel;
  };
  /// Moves `params` into the buffers of `device`, keeping their values.
  FlatParameters(std::vector<NamedParam> params, at::Device device);
  Tensor values;  ///< fp32 [n], padding between slots stays zero
  Tensor grads;   ///< fp32 [n]
  Tensor shadow;  ///< bf16 [n], undefined in fp32
  const std::vector<Slot>& slots() const { return slots_; }
  /// Parameters without padding.
  int64_t count() const;
  /// Products read bf16 copies from here on (`true`), or the values.
  void use_bf16(bool on);
  /// Rewrites the bf16 copies after values changed (the fused optimizer does it in its own pass).
  void refresh_shadow();

 private:
  std::vector<Slot> slots_;
};

}  // namespace cloze
