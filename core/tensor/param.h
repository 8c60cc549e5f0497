#pragma once
// Parameters: an fp32 leaf that owns the value and the gradient, and the copy that the forward pass multiplies with.
//
// Legend of shapes, everywhere: B batch, T query or target tokens, S source or key tokens, D width, H heads, C head
// width, E embedding width, F feed-forward width, V vocabulary, N predictions. Every mask says its polarity:
// true = may be used.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/tensor/role.h"

namespace cloze {

using at::Tensor;
/// A state to save: tensors by their names, in order.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

/// How a parameter is initialised. The sinusoids are a table of position embeddings (Vaswani et al. 2017, section 3.5),
/// trained or fixed, sines and cosines interleaved or each in one half; fixed features are rows of draw_features. Fixed
/// parameters are never trained.
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

/// The default role of a parameter with this initialisation.
Role role_of(Init init);

/// What a weight matrix projects to, where its initial values may depend on that.
enum class Projection {
  other,
  query,     ///< queries, or queries, keys and values stacked
  residual,  ///< the residual stream of a stack
  sequence,  ///< fewer positions (Linformer)
  output     ///< the output embedding: the dense layer of a prediction head
};

/// The distribution of initial weights: that of the network (normal, truncated or not), or one of its own with the same
/// standard deviation.
enum class Spread { network, normal, truncated, uniform };

struct LowRanks;

/// A named parameter. Copies are handles to the same tensors.
class Param {
 public:
  Param() = default;
  Param(Tensor value, Init init) : Param(std::move(value), init, role_of(init)) {}
  Param(Tensor value, Init init, Role role)
      : state_(std::make_shared<State>(State{std::move(value), {}, {}, init, role})) {}
  bool defined() const { return state_ != nullptr; }
  /// The fp32 leaf; its `.grad()` is a view of the flat gradient once it is part of FlatParameters.
  const Tensor& value() const { return state_->value; }
  /// The operand of matrix multiplications: the bf16 shadow if there is one, else the value itself.
  const Tensor& compute() const { return state_->shadow.defined() ? state_->shadow : state_->value; }
  void set_shadow(Tensor shadow) { state_->shadow = std::move(shadow); }
  /// The value in oneDNN's layout for few rows, while a PackedWeights exists; else undefined.
  const Tensor& packed() const { return state_->packed; }
  void set_packed(Tensor packed) { state_->packed = std::move(packed); }
  Init init() const { return state_->init; }
  Role role() const { return state_->role; }
  /// A row that is initialised to zero and gets no gradient from a lookup (torch's padding_idx); -1 = none.
  int64_t padding_row() const { return state_->padding_row; }
  void set_padding_row(int64_t row) { state_->padding_row = row; }
  /// Not trained in this step: it has no gradient, and the optimizer skips it, whatever its moments.
  bool frozen() const { return state_->frozen; }
  void set_frozen(bool on);
  /// Never trained: no gradient reaches it.
  bool fixed() const {
    return is_base() || state_->init == Init::fixed_sinusoid || state_->init == Init::fixed_sinusoid_halves ||
           state_->init == Init::fixed_features || state_->init == Init::fixed_zero;
  }
  bool is_trained() const { return !frozen() && !fixed(); }
  /// What a run keeps of the network that it begins with: it has no gradient, no moments, and is in no checkpoint.
  bool is_base() const { return state_->is_base; }
  void set_base(bool on = true);
  /// What is trained of a matrix that is base (core/tensor/low_rank.h); null: nothing.
  const std::shared_ptr<LowRanks>& low_rank() const { return state_->low_rank; }
  void set_low_rank(std::shared_ptr<LowRanks> factors) { state_->low_rank = std::move(factors); }
  /// What autograd knows it by: the value, or the first factor of what is trained of it.
  const Tensor& leaf() const;
  /// Standard deviation of the initial values; 0 = that of the network.
  double init_range() const { return state_->init_range; }
  Spread init_spread() const { return state_->init_spread; }
  void set_init_range(double range, Spread spread = Spread::network) {
    state_->init_range = range;
    state_->init_spread = spread;
  }
  /// The initial values of the first `rows` rows are multiplied by `factor`.
  void set_init_rows(int64_t rows, double factor) {
    state_->init_rows = rows;
    state_->init_factor = factor;
  }
  int64_t init_rows() const { return state_->init_rows; }
  double init_factor() const { return state_->init_factor; }
  Projection projection() const { return state_->projection; }
  void set_projection(Projection projection) { state_->projection = projection; }
  /// The width of the heads that these queries are of; 0: no queries.
  int64_t head_width() const { return state_->head_width; }
  void set_queries(int64_t head_width) {
    state_->projection = Projection::query;
    state_->head_width = head_width;
  }
  /// Number of tensors of one shape stacked along the first axis (queries, keys and values, which most published code
  /// stores separately). An optimizer that uses norms of whole tensors uses the norm of each.
  int64_t stacked() const { return state_->stacked; }
  /// Throws ShapeError if the number of rows is not divisible by `count`.
  void set_stacked(int64_t count);
  /// Where it stands in the network: 0 among embeddings and what all layers share, i + 1 in layer i, and a norm after
  /// the layers with the last of them. Layers of an encoder are below those of its decoder.
  int64_t depth() const { return state_->depth; }
  void set_depth(int64_t depth) { state_->depth = depth; }
  /// Above all layers: of the heads and the pooler.
  static constexpr int64_t head_depth = std::numeric_limits<int64_t>::max();
  bool is_of_head() const { return depth() == head_depth; }

 private:
  struct State {
    Tensor value, shadow, packed;
    Init init;
    Role role;
    int64_t padding_row = -1;
    bool frozen = false;
    bool is_base = false;
    std::shared_ptr<LowRanks> low_rank{};
    double init_range = 0;
    Spread init_spread = Spread::network;
    Projection projection = Projection::other;
    int64_t head_width = 0;
    int64_t init_rows = 0;
    double init_factor = 1;
    int64_t stacked = 1;
    int64_t depth = 0;
  };
  std::shared_ptr<State> state_;
};

struct NamedParam {
  std::string name;  ///< dotted path from the network
  Param param;
};

/// A part of a network: named parameters of its own and named child layers.
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
  /// Gives a child up.
  void disown(const std::string& name) {
    std::erase_if(children_, [&](const auto& child) { return child.first == name; });
  }
  const std::vector<std::pair<std::string, Param>>& own_params() const { return params_; }
  const std::vector<std::pair<std::string, std::shared_ptr<Layer>>>& children() const { return children_; }

  /// Runs before optimizer step `step` + 1 for changes that no gradient makes: redrawing random features, copying
  /// weights. Calls every child with an Rng of its own. Returns true if a parameter changed.
  virtual bool before_step(int64_t step, const Rng& rng) {
    bool changed = false;
    for (const auto& [name, child] : children_) changed = child->before_step(step, Rng(rng.key(name))) || changed;
    return changed;
  }

  /// Switches training mode (dropout) on or off, here and in every child.
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

/// Sets the depth of every parameter under `root`.
void set_depth(const Layer& root, int64_t depth);

/// Converts every parameter under `root` in place.
void convert_params(const Layer& root, at::ScalarType type);

/// Draws every parameter from `rng.stream("init", hash of its name)`: parameters of the same name and shape are equal
/// in every network of the same seed.
void initialize(const std::vector<NamedParam>& params, double range, bool truncated, const Rng& rng);

/// Zeros fp32 [count] on `device`. On the CPU the system maps their memory page by page at the first write, so that
/// rows of a table that are never written take none.
at::Tensor lazy_zeros(int64_t count, at::Device device);
/// Gives the memory of a slice of such a tensor back to the system, page by page: its numbers are lost.
void forget(const at::Tensor& slice);

/// The parameters of which a run keeps what it begins with, and those of which it does not.
std::vector<NamedParam> base_params(std::vector<NamedParam> all);
std::vector<NamedParam> own_params(std::vector<NamedParam> all);

/// One buffer for all values and one for all gradients; every parameter is a view of both, but for those that are base,
/// which have tensors of their own.
class FlatParameters {
 public:
  struct Range {
    NamedParam param;
    int64_t offset;  ///< in floats, a multiple of 16
    int64_t numel;
  };
  /// Moves `params` into the buffers of `device`, keeping their values.
  FlatParameters(std::vector<NamedParam> params, at::Device device);
  Tensor values;  ///< fp32 [n], padding between parameters stays zero
  Tensor grads;   ///< fp32 [n]
  Tensor shadow;  ///< bf16 [n], undefined in fp32
  const std::vector<Range>& ranges() const { return ranges_; }
  const std::vector<NamedParam>& base() const { return base_; }
  /// Number of parameters, without padding and base.
  int64_t count() const;
  /// Makes matrix multiplications read bf16 copies (`true`) or the fp32 values, of the base too.
  void use_bf16(bool on);
  /// Rewrites the bf16 copies after values changed (the fused optimizer does it in its own pass).
  void refresh_shadow();

 private:
  std::vector<Range> ranges_;
  std::vector<NamedParam> base_;
};

/// Fills w [R, C] with rows that are orthogonal in blocks of C, with the norms of rows of independent normal numbers.
/// Source: Choromanski et al. 2021, section 2.4 (arXiv 2009.14794).
void draw_features(const Tensor& w, Stream stream);

}  // namespace cloze
