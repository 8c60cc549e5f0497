#include "models/attention/performer.h"

#include "core/tensor/param.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// FAVOR+ attention. The heads of a layer share its random features, which are saved with the weights.
/// Source: Choromanski et al. 2021, section 2.
struct PerformerAttentionLayer final : Attention {
  PerformerAttentionLayer(const PerformerAttention& given, const AttentionSizes& c)
      : Attention(c),
        kind(given),
        projection(own_param("features", {kind.nb_features, c.head_width()}, Init::fixed_features)) {}

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout&) override {
    return favor_attention(linear(x, qkv->weight, Param()), qkv->bias, heads, context,
                           {.projection = projection.value(), .kernel = kind.kernel, .epsilon = kind.kernel_epsilon});
  }

  double multiply_adds(const RowSizes& row, bool) const override {
    const auto random = static_cast<double>(kind.nb_features),
               features = kind.kernel == FeatureKernel::trigonometric ? 2 * random : random;
    // Features of queries and keys; then the sums of values by features, and what each query takes of them. A column of
    // ones among the values of each head becomes its denominator.
    return row.length *
           (qkv->multiply_adds() + 2 * random * width() + 2 * features * (width() + static_cast<double>(heads)));
  }

  bool before_step(int64_t step, const Rng& rng) override {
    if (kind.feature_redraw_interval == 0 || step == 0 || step % kind.feature_redraw_interval != 0) return false;
    draw_features(projection.value(), rng.stream("features", static_cast<uint64_t>(step)));
    return true;
  }

  PerformerAttention kind;
  Param projection;  // [R, C]
};

}  // namespace

std::shared_ptr<Attention> PerformerAttention::make(const AttentionSizes& sizes, int64_t, PositionScheme&) const {
  return std::make_shared<PerformerAttentionLayer>(*this, sizes);
}

}  // namespace cloze
