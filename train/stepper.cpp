#include "train/stepper.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "core/tensor/ops.h"
#include "run/device.h"
#include "optimizers/optimizer.h"
#include "train/shares.h"
#include "train/step_exchange.h"
#include "train/weight_average.h"

namespace cloze {

namespace {

/// The weights of the predictions of each loss in all batches of a step.
std::vector<double> total_weights(const StepFacts& step) {
  std::vector<double> totals;
  for (const auto& batch : step.batches) {
    totals.resize(batch.weights.size());
    for (size_t k = 0; k < totals.size(); ++k) totals[k] += batch.weights[k];
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
  if (sums.empty()) {
    sums = std::move(parts);
    return;
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    sums[k].sum += parts[k].sum;
    sums[k].count += parts[k].count;
    if (parts[k].weights.defined()) sums[k].weights = at::cat({sums[k].weights, parts[k].weights});
    if (const auto& more = parts[k].counts; more.defined())  // undefined where a micro-batch has no predictions
      sums[k].counts = sums[k].counts.defined() ? sums[k].counts + more : more;
  }
}

/// The parameters of a network, and of its teacher.
std::vector<NamedParam> held_params(const Network& network) {
  auto params = collect_params(network);
  for (auto& named : network.teachers_params()) params.push_back(std::move(named));
  return params;
}

/// True where every process computes faster in bf16: those of one run have one precision.
bool all_have_bf16(Communicator& processes, const at::Device& device) {
  const auto all = processes.exchange({has_fast_bf16(device) ? 1.0 : 0.0});
  return std::ranges::all_of(all, [](const auto& one) { return one[0] == 1; });
}

}  // namespace

uint64_t pass_key(const Rng& rng, int64_t step, size_t micro) {
  return mix(mix(rng.key("dropout"), static_cast<uint64_t>(step)), micro);
}

struct Stepper::Impl {
  Impl(const RunConfig& config, Network& net, Communicator& group)
      : network(net),
        processes(group),
        parts(config.train.parts),
        device(device_of(config.train.device)),
        rng(rng_of(config.train, RandomStream::dropout)),
        max_norm(config.optimizer.max_grad_norm),
        bf16(config.train.precision == Precision::bf16 && all_have_bf16(group, device)),
        configured_precision(name_of(config.train.precision)),
        counts_whole(config.train.budget.count == FlopsCount::published),
        flat(held_params(net), device),
        shares(group, config.train, flat),
        optimizer(config.optimizer, flat) {
    network.backbone->set_gradient_checkpointing(config.train.gradient_checkpointing);
    flat.use_bf16(bf16);
    set_exact_masks(config.train.dropout_masks == DropoutMasks::exact);
    if (config.train.ema_decay > 0 && group.is_first()) average.emplace(config.train.ema_decay, flat);
    if (const auto* model = as<TwoStreamConfig>(config.model); model && model->carries_mems()) {
      layers = static_cast<size_t>(model->num_hidden_layers);
      mems_shape = {config.train.batch_size, model->mem_len, model->hidden_size};
    }
    micro_batches = static_cast<size_t>(config.train.accumulation);
  }
  Network& network;
  Communicator& processes;
  int64_t parts;  ///< of a step
  at::Device device;
  Rng rng;  // of what is random within the network
  double max_norm;
  bool bf16;
  std::string configured_precision;
  bool counts_whole;  ///< RowSizes::is_whole
  bool waits_for_parts = false;
  FlatParameters flat;
  Shares shares;
  Optimizer optimizer;
  std::optional<WeightAverage> average;
  size_t layers = 0, micro_batches = 0;   // layers: those with mems; micro-batches of all processes
  std::vector<int64_t> mems_shape;        // [B, M, D]
  std::vector<std::vector<Tensor>> mems;  // [micro-batch][layer]; empty: no mems
  std::vector<double> squares{};          // of the gradient of each parameter, of a step in parts

  /// The mems of each layer that a micro-batch attends to. Without previous text they are zeros, which may be attended
  /// to. Source: zihangdai/xlnet, train_gpu.py, initialize_mems_np. Differs: every epoch begins so (there the
  /// mems of the previous epoch are kept).
  std::vector<Tensor> mems_before(size_t micro, const Batch& batch) const {
    if (batch.continues && micro < mems.size() && !mems[micro].empty()) return mems[micro];
    return std::vector<Tensor>(layers, at::zeros(mems_shape, flat.grads.options()));
  }

  /// The norm of the gradient of a parameter.
  double norm_of(size_t parameter) const {
    const auto& range = flat.ranges()[parameter];
    return parts > 1 ? std::sqrt(squares[parameter]) : global_norm(flat.grads.narrow(0, range.offset, range.numel));
  }

  /// The first parameter whose gradient is not finite.
  std::string bad_gradient() const {
    for (size_t k = 0; k < flat.ranges().size(); ++k)
      if (!std::isfinite(norm_of(k))) return "the gradient of " + flat.ranges()[k].param.name;
    return "the gradient norm";
  }

  std::vector<BatchFacts> batch_facts(const OwnBatches& own) const {
    std::vector<BatchFacts> facts;
    for (const auto& micro_batch : own.micro_batches)
      for (const auto& batch : micro_batch) {
        auto& known = facts.emplace_back();
        known.tokens = batch.tokens;
        if (batch.labels.defined()) known.predicted_tokens = batch.labels.numel();
        known.flops = network.training_flops(batch, counts_whole);
        for (const auto& part : network.parts(batch)) known.weights.push_back(part.total_weight());
      }
    return facts;
  }

  /// The seconds of a part of a step.
  double seconds_of_part(Clock::time_point start) const {
    if (waits_for_parts) wait_for(device);
    return seconds_since(start);
  }

  /// Forward and backward passes of one batch; the times go to `time_breakdown`.
  std::vector<LossPart> pass(const Batch& given, size_t micro, uint64_t key, const std::vector<double>& totals,
                             TimeBreakdown& time_breakdown) {
    const auto start = Clock::now();
    auto batch = to_device(given, device);
    std::vector<Tensor> new_mems;
    if (layers > 0) batch.mems = mems_before(micro, batch);
    auto losses = network.losses(batch, key, layers > 0 ? &new_mems : nullptr);
    const auto total = weighted_loss(losses, totals);
    time_breakdown.forward += seconds_of_part(start);
    const auto middle = Clock::now();
    if (total.defined() && total.requires_grad()) total.backward();
    if (layers > 0) mems[micro] = std::move(new_mems);
    time_breakdown.backward += seconds_of_part(middle);
    for (auto& part : losses) part.sum = part.sum.detach();
    return losses;
  }

  /// The passes of one process in a step.
  struct Passes {
    const OwnBatches& given;
    int64_t first;  ///< number of the first own micro-batch
    int64_t step;
    std::vector<double> totals;
    bool may_stop;
    TimeBreakdown& time_breakdown;
    std::vector<std::vector<LossPart>> losses{};  ///< of each batch
  };

  /// Adds the gradients of a part of the step. Throws Interrupted after a signal.
  void pass_part(Passes& passes, int64_t part) {
    const auto numbers = parts_of(part, parts, passes.given.of_step);
    for (int64_t micro = numbers.begin; micro < numbers.end; ++micro) {
      const auto& batches = passes.given.micro_batches.at(static_cast<size_t>(micro - passes.first));
      for (size_t i = 0; i < batches.size(); ++i) {
        if (!passes.losses.empty() && interrupted && passes.may_stop) throw Interrupted("within a step");
        const auto number = static_cast<size_t>(micro);
        const auto key = pass_key(rng, passes.step, number + i * static_cast<size_t>(passes.given.of_step));
        passes.losses.push_back(pass(batches[i], number, key, passes.totals, passes.time_breakdown));
      }
    }
  }

  /// Moves moments and mems between their processes and the first, which saves and restores them.
  void move_state(bool to_first) {
    const auto move = [&](const Tensor& tensor, int64_t owner) {
      processes.move(tensor, to_first ? owner : 0, to_first ? 0 : owner);
    };
    for (size_t k = 0; k < flat.ranges().size(); ++k)
      for (const auto& [name, moment] : optimizer.moments(k)) move(moment, shares.owner_of_parameter(k));
    if (layers == 0) return;
    const bool has_mems = !mems.empty() && !mems[0].empty();
    const auto type = static_cast<double>(has_mems ? mems[0][0].scalar_type() : at::kFloat);
    const auto of_first = processes.exchange({static_cast<double>(mems.size()), type})[0];
    mems.resize(static_cast<size_t>(of_first[0]));
    for (size_t micro = 0; micro < mems.size(); ++micro) {
      mems[micro].resize(layers);
      for (auto& mem : mems[micro]) {
        if (!mem.defined())
          mem = at::empty(mems_shape, flat.values.options().dtype(static_cast<at::ScalarType>(of_first[1])));
        move(mem, shares.owner_of_micro_batch(static_cast<int64_t>(micro), std::ssize(mems)));
      }
    }
  }

  /// Fills in the loss, the gradient norm, and the first of them that is not finite.
  void sum_up(Result& result) {
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
    squares = parts > 1 ? shares.exchange_squares() : std::vector<double>();
    result.grad_norm =
        parts > 1 ? std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0)) : global_norm(flat.grads);
    if (result.nonfinite.empty() && !std::isfinite(result.grad_norm)) result.nonfinite = bad_gradient();
    result.finite = result.nonfinite.empty();
  }

  /// The numbers of the parameters of each part of a head that is clipped by its own norm.
  std::vector<std::vector<size_t>> clipped_apart() const {
    std::vector<std::vector<size_t>> apart;
    for (const auto& objective : network.objectives)
      for (const auto* part : objective->clipped_apart()) {
        auto& numbers = apart.emplace_back();
        for (const auto& own : collect_params(*part))
          for (size_t k = 0; k < flat.ranges().size(); ++k)
            if (flat.ranges()[k].param.param.value().is_same(own.param.value())) numbers.push_back(k);
      }
    return apart;
  }

  /// Clips the gradients of these parameters by the norm of all of them.
  void clip(const std::vector<size_t>& parameters) const {
    double square = 0;
    for (const auto k : parameters) square += std::pow(norm_of(k), 2);
    const double norm = std::sqrt(square);
    if (norm <= max_norm) return;
    for (const auto k : parameters) {
      const auto& range = flat.ranges()[k];
      flat.grads.narrow(0, range.offset, range.numel).mul_(max_norm / (norm + 1e-6));
    }
  }

  /// The update, with gradients clipped to the maximal norm; without finite gradients only clears what the step left.
  void update(const Result& result, int64_t number, double learning_rate) {
    if (!result.finite) {
      flat.grads.zero_();
      mems.clear();  // these may not be finite, and older ones do not precede the text of the next rows
      return;
    }
    const auto apart = max_norm > 0 ? clipped_apart() : std::vector<std::vector<size_t>>();
    for (const auto& parameters : apart) clip(parameters);
    const bool clips = max_norm > 0 && apart.empty() && result.grad_norm > max_norm;
    optimizer.step(learning_rate, clips ? max_norm / (result.grad_norm + 1e-6) : 1.0, shares.own_slice());
    shares.gather_values();
    if (average) average->update(number + 1);
  }
};

Stepper::Stepper(const RunConfig& config, Network& network, Communicator& processes)
    : impl_(std::make_unique<Impl>(config, network, processes)) {
  parameters_ = trained_parameters_ = impl_->flat.count();
  for (const auto& [name, param] : base_params(collect_params(network))) parameters_ += param.value().numel();
}
Stepper::~Stepper() = default;

Stepper::Result Stepper::step(const std::vector<Batch>& batches, int64_t number, double learning_rate) {
  OwnBatches own{.of_step = std::ssize(batches)};
  for (const auto& batch : batches) own.micro_batches.push_back({batch});
  return step(own, number, learning_rate);
}

Stepper::Result Stepper::step(const OwnBatches& batches, int64_t number, double learning_rate) {
  auto& in = *impl_;
  in.network.train();
  const bool prepared = in.network.before_step(number, in.rng);
  if (prepared) in.flat.refresh_shadow();
  const auto facts = exchange_facts(in.processes, in.batch_facts(batches), interrupted);
  const auto mems_before = in.mems;
  if (in.layers > 0) in.mems.resize(static_cast<size_t>(batches.of_step));
  Result result;
  const bool is_alone = in.shares.is_alone();
  try {
    // Weights that were changed before the step are only whole after it.
    if (!is_alone && facts.is_interrupted && !prepared) throw Interrupted("before a step");
    Impl::Passes passes{.given = batches,
                        .first = micro_batches_in(in.shares.own_parts(), in.parts, batches.of_step).begin,
                        .step = number,
                        .totals = total_weights(facts),
                        .may_stop = is_alone && !prepared,
                        .time_breakdown = time_breakdown};
    in.shares.sum_gradients([&](int64_t part) { in.pass_part(passes, part); });
    to_host(passes.losses);
    for (auto& losses : exchange_losses(in.processes, passes.losses)) add(result.parts, std::move(losses));
  } catch (const Interrupted&) {
    in.flat.grads.zero_();
    in.mems = mems_before;
    result.complete = false;
    return result;
  }
  for (const auto& batch : facts.batches) {
    result.tokens += batch.tokens;
    result.predicted_tokens += batch.predicted_tokens;
    result.flops += batch.flops;
  }
  const auto start = Clock::now();
  in.sum_up(result);
  in.update(result, number, learning_rate);
  time_breakdown.optimizer += in.seconds_of_part(start);
  return result;
}

void Stepper::collect() {
  auto& in = *impl_;
  if (in.shares.is_alone()) return;
  in.shares.require_equal_weights();
  in.move_state(/*to_first=*/true);
}

void Stepper::forget_collected() { impl_->optimizer.forget_others(impl_->shares.own_slice()); }

void Stepper::spread() {
  auto& in = *impl_;
  if (in.shares.is_alone()) return;
  in.processes.broadcast(in.flat.values);
  for (const auto& [name, param] : in.flat.base()) in.processes.broadcast(param.value());
  in.flat.use_bf16(in.bf16);
  in.optimizer.updates = static_cast<int64_t>(in.processes.exchange({static_cast<double>(in.optimizer.updates)})[0][0]);
  in.move_state(/*to_first=*/false);
  forget_collected();
}

std::vector<NamedParam> Stepper::params() const { return own_params(collect_params(impl_->network)); }
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
  StateDict tensors;
  for (size_t micro = 0; micro < impl_->mems.size(); ++micro)
    for (size_t layer = 0; layer < impl_->layers; ++layer)
      tensors.emplace_back(concat("memory.", micro, ".", layer), impl_->mems[micro][layer]);
  return tensors;
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
  return (in.average ? 8 : 4) * trained_parameters() + optimizer_bytes + mems_bytes;
}
void Stepper::wait_for_parts() { impl_->waits_for_parts = true; }
void Stepper::end() { impl_.reset(); }
void Stepper::refresh() { impl_->flat.use_bf16(impl_->bf16); }
std::string Stepper::precision_description() const {
  if (impl_->bf16) return "bf16 matrix multiplications and activations, fp32 master weights";
  if (impl_->configured_precision != "bf16") return "fp32";
  const bool is_alone = impl_->shares.is_alone();
  const auto* const whose = !impl_->device.is_cpu() ? "this GPU"
                            : is_alone              ? "this processor"
                                                    : "a processor of the run";
  return concat("fp32 (train.precision is bf16, but ", whose, " has no bf16 units, without which it would be slower)");
}

}  // namespace cloze
