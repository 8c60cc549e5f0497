#include "core/error.h"
#include "core/tensor/moved.h"
#include "objectives/mntp/mntp.h"
#include "objectives/next_token.h"

namespace cloze {

namespace {

/// The loss of masked rows and the loss of causal rows, with one LM head.
struct Mntp final : NextTokenPrediction {
  Mntp(const MntpConfig& c, const BackboneConfig& m)
      : NextTokenPrediction(MntpConfig::kind, c, c, m),
        causal_share(c.causal_share),
        causal_name(c.causal().name()),
        is_decoder(m.is_decoder()) {}

  bool uses_prefix() const override { return is_decoder; }

  /// bool [N], true = the prediction is of a causal row.
  Tensor causal(const Batch& batch) const {
    if (!is_decoder) return at::zeros_like(batch.positions, at::kBool);
    if (!batch.prefix.defined()) return at::ones_like(batch.positions, at::kBool);
    return batch.prefix.index_select(0, batch.positions.div(batch.input_ids.size(1), "floor")).eq(0);
  }

  /// The loss of masked rows, and that of causal rows if there may be any: held-out batches of clm have no others.
  std::vector<LossPart> parts(const Batch& batch) const override {
    const auto in_causal = causal(batch);
    const int64_t all = batch.positions.numel(), of_causal = in_causal.sum().item<int64_t>();
    const auto weights = [&](const Tensor& own) {
      return batch.weights.defined() ? batch.weights.masked_select(own) : Tensor();
    };
    std::vector<LossPart> list{{.name = MntpConfig::kind,
                                .weight = weight * (1 - causal_share),
                                .count = all - of_causal,
                                .weights = weights(in_causal.logical_not())}};
    if (causal_share > 0 || of_causal > 0)
      list.push_back(
          {.name = causal_name, .weight = weight * causal_share, .count = of_causal, .weights = weights(in_causal)});
    return list;
  }

  Tensor read_positions(const Batch& batch) const override { return batch.positions; }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto list = parts(batch.host());
    const auto of_causal = causal(batch.host());
    const auto on_device = [&](const Tensor& x) { return moved_to(x, hidden.device()); };
    for (auto& part : list) {
      part.sum = at::zeros({}, hidden.options().dtype(at::kFloat));
      if (part.count == 0) continue;
      if (part.weights.defined()) part.weights = on_device(part.weights);
      const auto own = on_device((part.name == causal_name ? of_causal : of_causal.logical_not()).nonzero().flatten());
      fill(part, backbone, hidden, batch.positions.index_select(0, own), batch.labels.index_select(0, own));
    }
    return list;
  }

  double causal_share;
  std::string causal_name;
  bool is_decoder;
};

}  // namespace

std::shared_ptr<Objective> make_head(const MntpConfig& config, const HeadContext& in) {
  const auto& model = in.base;
  require<ConfigError>(model.is_encoder() || model.is_decoder(),
                       "objective 'mntp' trains one stack; set model.architecture to decoder or encoder");
  return std::make_shared<Mntp>(config, model);
}

}  // namespace cloze
