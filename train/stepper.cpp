#include "train/stepper.h"

#include <cmath>
#include <limits>
#include <optional>

#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "run/device.h"
#include "optimizers/optimizer.h"
#include "train/weight_average.h"

namespace cloze {

namespace {

/// The weights of the predictions of each loss over all micro-batches: their number, unless they have weights.
std::vector<double> total_weights(const Network& network, const std::vector<Batch>& batches) {
  std::vector<double> totals;
  for (const auto& batch : batches) {
    const auto parts = network.parts(batch);
    totals.resize(parts.size());
    for (size_t k = 0; k < parts.size(); ++k) totals[k] += parts[k].total_weight();
  }
  return totals;
}

/// The weighted sum of losses, each divided by the weights of its predictions in all micro-batches; undefined without
/// predictions.
Tensor weighted_loss(const std::vector<LossPart>& parts, const std::vector<double>& totals) {
  Tensor total;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (totals[k] == 0) continue;
    const auto share = parts[k].sum * (parts[k].weight / totals[k]);
    total = total.defined() ? total + share : share;
  }
  return total;
}

/// Adds the losses of a micro-batch to those of the step, which are empty before the first one.
void add(std::vector<LossPart>& sums, std::vector<LossPart> parts) {
  for (auto& part : parts) part.sum = part.sum.detach().to(at::kCPU).to(at::kDouble);
  if (sums.empty()) {
    sums = std::move(parts);
    return;
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    sums[k].sum += parts[k].sum;
    sums[k].count += parts[k].count;
    if (parts[k].weights.defined()) sums[k].weights = at::cat({sums[k].weights, parts[k].weights});
    sums[k].correct += parts[k].correct;
    if (parts[k].binary) *sums[k].binary += *parts[k].binary;
  }
}

}  // namespace

uint64_t pass_key(const Rng& rng, int64_t step, size_t micro) {
  return mix(mix(rng.key("dropout"), static_cast<uint64_t>(step)), micro);
}

struct Stepper::Impl {
  Impl(const RunConfig& config, Network& net)
      : network(net),
        device(device_of(config.train.device)),
        rng(rng_of(config.train, RandomStream::dropout)),
        max_norm(config.optimizer.max_grad_norm),
        bf16(config.train.precision == Precision::bf16 && has_fast_bf16(device)),
        configured_precision(name_of(config.train.precision)),
        counts_whole(config.train.budget.count == FlopsCount::published),
        flat(collect_params(net), device),
        optimizer(config.optimizer, flat) {
    network.backbone->set_gradient_checkpointing(config.train.gradient_checkpointing);
    flat.use_bf16(bf16);
    if (config.train.ema_decay > 0) average.emplace(config.train.ema_decay, flat);
    if (const auto* model = as<TwoStreamConfig>(config.model); model && model->carries_mems()) {
      layers = static_cast<size_t>(model->num_hidden_layers);
      mems_shape = {config.train.batch_size, model->mem_len, model->hidden_size};
    }
    micro_batches = static_cast<size_t>(config.train.accumulation);
  }
  Network& network;
  at::Device device;
  Rng rng;  // of what is random within the network
  double max_norm;
  bool bf16;
  std::string configured_precision;
  bool counts_whole;  ///< RowSizes::is_whole
  FlatParameters flat;
  Optimizer optimizer;
  std::optional<WeightAverage> average;
  size_t layers = 0, micro_batches = 0;   // layers: those with mems
  std::vector<int64_t> mems_shape;        // [B, M, D]
  std::vector<std::vector<Tensor>> mems;  // [micro-batch][layer]; empty: no mems

  /// The mems of each layer that a micro-batch attends to. Without previous text they are zeros, which may be attended
  /// to. Source: zihangdai/xlnet, train_gpu.py, initialize_mems_np. Differs: every epoch begins so (there the
  /// mems of the previous epoch are kept).
  std::vector<Tensor> mems_before(size_t micro, const Batch& batch) const {
    if (batch.continues && micro < mems.size() && !mems[micro].empty()) return mems[micro];
    return std::vector<Tensor>(layers, at::zeros(mems_shape, flat.grads.options()));
  }

  /// A frozen table that a head shares gets gradients that no update would clear.
  void drop_frozen_gradients() {
    for (const auto& range : flat.ranges())
      if (range.param.param.frozen()) flat.grads.narrow(0, range.offset, range.numel).zero_();
  }

  /// The first parameter whose gradient is not finite.
  std::string bad_gradient() const {
    for (const auto& range : flat.ranges())
      if (!at::isfinite(flat.grads.narrow(0, range.offset, range.numel)).all().item<bool>())
        return "the gradient of " + range.param.name;
    return "the gradient norm";
  }

  /// Forward and backward passes of one micro-batch; the times go to `ledger`.
  std::vector<LossPart> pass(const Batch& given, size_t micro, uint64_t key, const std::vector<double>& totals,
                             TimeBreakdown& ledger) {
    const auto start = Clock::now();
    auto batch = to_device(given, device);
    std::vector<Tensor> new_mems;
    if (layers > 0) batch.mems = mems_before(micro, batch);
    auto parts = network.losses(batch, key, layers > 0 ? &new_mems : nullptr);
    const auto total = weighted_loss(parts, totals);
    ledger.forward += seconds_since(start);
    const auto middle = Clock::now();
    if (total.defined() && total.requires_grad()) total.backward();
    drop_frozen_gradients();
    if (layers > 0) mems[micro] = std::move(new_mems);
    ledger.backward += seconds_since(middle);
    return parts;
  }

  /// Fills in the loss, the gradient norm, and the first of them that is not finite.
  void sum_up(Result& result) const {
    bool has_predictions = false;
    for (const auto& part : result.parts) {
      const double total = part.total_weight();
      if (total == 0) continue;
      has_predictions = true;
      const double mean = part.sum.item<double>() / total;
      result.loss += part.weight * mean;
      if (!std::isfinite(mean) && result.nonfinite.empty()) result.nonfinite = "the loss of " + part.name;
    }
    if (!has_predictions) result.loss = std::numeric_limits<double>::quiet_NaN();
    result.grad_norm = global_norm(flat.grads);
    if (result.nonfinite.empty() && !std::isfinite(result.grad_norm)) result.nonfinite = bad_gradient();
    result.finite = result.nonfinite.empty();
  }

  /// The gradients of each part of a head that is clipped by its own norm.
  std::vector<std::vector<Tensor>> gradients_apart() const {
    std::vector<std::vector<Tensor>> parts;
    for (const auto& objective : network.objectives)
      for (const auto* part : objective->clipped_apart()) {
        auto& gradients = parts.emplace_back();
        for (const auto& own : collect_params(*part))
          for (const auto& range : flat.ranges())
            if (range.param.param.value().is_same(own.param.value()))
              gradients.push_back(flat.grads.narrow(0, range.offset, range.numel));
      }
    return parts;
  }

  /// Clips these gradients by the norm of all of them.
  void clip(std::vector<Tensor>& gradients) const {
    double square = 0;
    for (const auto& gradient : gradients) square += std::pow(global_norm(gradient), 2);
    const double norm = std::sqrt(square);
    if (norm <= max_norm) return;
    for (auto& gradient : gradients) gradient.mul_(max_norm / (norm + 1e-6));
  }

  /// The update, with gradients clipped to the maximal norm; without finite gradients only clears what the step left.
  void update(const Result& result, int64_t number, double learning_rate) {
    if (!result.finite) {
      flat.grads.zero_();
      mems.clear();  // these may not be finite, and older ones do not precede the text of the next rows
      return;
    }
    auto apart = max_norm > 0 ? gradients_apart() : std::vector<std::vector<Tensor>>();
    for (auto& gradients : apart) clip(gradients);
    const bool clips = max_norm > 0 && apart.empty() && result.grad_norm > max_norm;
    optimizer.step(learning_rate, clips ? max_norm / (result.grad_norm + 1e-6) : 1.0);
    if (average) average->update(number + 1);
  }
};

Stepper::Stepper(const RunConfig& config, Network& network) : impl_(std::make_unique<Impl>(config, network)) {}
Stepper::~Stepper() = default;

Stepper::Result Stepper::step(const std::vector<Batch>& batches, int64_t number, double learning_rate) {
  auto& in = *impl_;
  in.network.train();
  const bool prepared = in.network.before_step(number, in.rng);
  if (prepared) in.flat.refresh_shadow();
  const auto totals = total_weights(in.network, batches);
  const auto mems_before = in.mems;
  if (in.layers > 0) in.mems.resize(batches.size());
  Result result;
  for (size_t micro = 0; micro < batches.size(); ++micro) {
    if (micro > 0 && interrupted && !prepared) {  // weights that were changed before the step are only whole after it
      in.flat.grads.zero_();
      in.mems = mems_before;
      result.complete = false;
      return result;
    }
    const auto& batch = batches[micro];
    add(result.parts, in.pass(batch, micro, pass_key(in.rng, number, micro), totals, ledger));
    result.tokens += batch.tokens;
    if (batch.labels.defined()) result.predicted_tokens += batch.labels.numel();
    result.flops += in.network.training_flops(batch, in.counts_whole);
  }
  const auto start = Clock::now();
  in.sum_up(result);
  in.update(result, number, learning_rate);
  ledger.optimizer += seconds_since(start);
  return result;
}

std::vector<NamedParam> Stepper::params() const { return collect_params(impl_->network); }
std::vector<NamedParam> Stepper::averages() const {
  return impl_->average ? impl_->average->params() : std::vector<NamedParam>();
}
void Stepper::restart_average() {
  if (impl_->average) impl_->average->restart();
}
void AveragedWeights::exchange() {
  if (stepper_.impl_->average) stepper_.impl_->average->exchange();
}
StateDict Stepper::optimizer_state() const { return impl_->optimizer.state(); }
void Stepper::load_optimizer(const StateDict& state, int64_t updates) {
  impl_->optimizer.load(state);
  impl_->optimizer.updates = updates;
}
StateDict Stepper::mems() const {
  StateDict found;
  for (size_t micro = 0; micro < impl_->mems.size(); ++micro)
    for (size_t layer = 0; layer < impl_->layers; ++layer)
      found.emplace_back(concat("memory.", micro, ".", layer), impl_->mems[micro][layer]);
  return found;
}
void Stepper::load_mems(const StateDict& saved) {
  auto& in = *impl_;
  std::vector<std::vector<Tensor>> tensors(in.micro_batches, std::vector<Tensor>(in.layers));
  size_t fitting = 0;
  for (const auto& [name, tensor] : saved) {
    for (size_t micro = 0; micro < in.micro_batches; ++micro) {
      for (size_t layer = 0; layer < in.layers; ++layer) {
        if (name == concat("memory.", micro, ".", layer) && tensor.sizes() == in.mems_shape) {
          tensors[micro][layer] = tensor.to(in.device, tensor.scalar_type(), false, /*copy=*/true);
          ++fitting;
        }
      }
    }
  }
  require<CheckpointError>(fitting == saved.size() && (saved.empty() || fitting == in.micro_batches * in.layers),
                           "the checkpoint has ", saved.size(), " tensors of mems, of which ", fitting, " fit the ",
                           in.micro_batches * in.layers,
                           " of this config; it is damaged: resume from an earlier checkpoint");
  in.mems = saved.empty() ? std::vector<std::vector<Tensor>>() : std::move(tensors);
}
int64_t Stepper::checkpoint_bytes() const {
  const auto& in = *impl_;
  int64_t mems_bytes = in.layers > 0 ? static_cast<int64_t>(in.micro_batches * in.layers) * (in.bf16 ? 2 : 4) : 0;
  for (const auto size : in.mems_shape) mems_bytes *= size;
  int64_t optimizer_bytes = 0;
  for (const auto& [name, tensor] : in.optimizer.state()) optimizer_bytes += 4 * tensor.numel();
  return (in.average ? 8 : 4) * parameters() + optimizer_bytes + mems_bytes;
}
void Stepper::end() { impl_.reset(); }
void Stepper::refresh() { impl_->flat.refresh_shadow(); }
int64_t Stepper::parameters() const { return impl_->flat.count(); }
std::string Stepper::precision_description() const {
  if (impl_->bf16) return "bf16 matrix multiplications and activations, fp32 master weights";
  return impl_->configured_precision == "bf16"
             ? "fp32 (train.precision is bf16, but this processor has no bf16 units, without which it would be slower)"
             : "fp32";
}

}  // namespace cloze
