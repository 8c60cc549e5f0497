// Golden cases: the numbers of transformers against those of a network.
#include <cmath>
#include <filesystem>

#include "core/tensor/plain.h"
#include "interchange/huggingface.h"
#include "interchange/huggingface_tasks.h"
#include "interchange/interchange.h"
#include "interchange/parity/parity_case.h"
#include "models/attention/kinds.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

namespace {

constexpr double output_tolerance = 1e-5, loss_tolerance = 1e-5, gradient_tolerance = 1e-4;

/// The largest difference at unmasked positions of [B, T, ...] or, for attentions, [B, H, T, S].
double output_error(const at::Tensor& got, const at::Tensor& wanted, const at::Tensor& mask, int64_t axis) {
  auto difference = (got.detach().to(at::kDouble) - wanted.to(at::kDouble)).abs();
  if (mask.defined() && difference.dim() > axis) {
    auto shape = std::vector<int64_t>(static_cast<size_t>(difference.dim()), 1);
    shape[0] = mask.size(0);
    shape[static_cast<size_t>(axis)] = mask.size(1);
    difference = difference * mask.view(shape).to(at::kDouble);
  }
  return difference.numel() ? difference.max().item<double>() : 0;
}

/// The largest entry, by its absolute value; 0 for an empty tensor.
double largest_of(const at::Tensor& t) { return t.numel() ? t.to(at::kDouble).abs().max().item<double>() : 0; }

/// The tolerance of an output: 0 for ids, else relative to the largest entry.
double tolerance_of(const std::string& name, const at::Tensor& wanted) {
  if (name.starts_with("generated.") || wanted.numel() == 0) return 0;
  return output_tolerance * std::max(1.0, largest_of(wanted));
}

struct Comparison {
  std::vector<ParityRow> rows;
  void add(const std::string& name, double error, double tolerance, const std::string& note = "") {
    rows.push_back({name, error, tolerance, error <= tolerance, note});
  }
  void missing(const std::string& name, const std::string& why) { rows.push_back({name, 0, 0, false, why}); }
  void other_shape(const std::string& name, at::IntArrayRef shape, at::IntArrayRef wanted) {
    missing(name, concat("shape ", shape, " instead of ", wanted));
  }
};

/// Attention probabilities of a sliding window in the layout of transformers: [B, H, T, G + 2 w + 1], first global
/// keys, then keys from t - w to t + w; rows of global and of padded queries are zero.
at::Tensor window_probabilities(const at::Tensor& qkv, int64_t heads, int64_t window, const Batch& batch) {
  const int64_t rows = qkv.size(0), length = qkv.size(1), width = qkv.size(2) / 3 / heads;
  const auto parts = qkv.view({rows, length, 3, heads, width}).permute({2, 0, 3, 1, 4});
  const auto real = batch.attention_mask.defined() ? batch.attention_mask : at::ones({rows, length}, at::kBool);
  const auto global = batch.global_attention_mask.defined() ? batch.global_attention_mask.logical_and(real)
                                                            : at::zeros({rows, length}, at::kBool);
  const auto position = at::arange(length, at::kLong);
  const auto in_window = (position.unsqueeze(1) - position.unsqueeze(0)).abs().le(window).unsqueeze(0);
  const auto visible = in_window.logical_or(global.unsqueeze(1)).logical_and(real.unsqueeze(1)).unsqueeze(1);
  const auto scores = at::matmul(parts[0], parts[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(width));
  auto p = at::softmax(scores.masked_fill(visible.logical_not(), -30000.0), -1).masked_fill(visible.logical_not(), 0.0);
  p = p.masked_fill(global.logical_or(real.logical_not()).unsqueeze(1).unsqueeze(-1), 0.0);
  const int64_t max_global = global.sum(1).max().item<int64_t>();
  const auto order = at::argsort(global.to(at::kLong), true, 1, true).narrow(1, 0, max_global);
  const auto global_part = at::gather(p, 3, order.unsqueeze(1).unsqueeze(1).expand({rows, heads, length, max_global})) *
                           at::gather(global, 1, order).unsqueeze(1).unsqueeze(1).to(p.scalar_type());
  const auto key = position.unsqueeze(1) + at::arange(-window, window + 1, at::kLong).unsqueeze(0);  // [T, 2 w + 1]
  const auto in_sequence = key.ge(0).logical_and(key.lt(length));
  const auto window_part = at::gather(p.masked_fill(global.unsqueeze(1).unsqueeze(1), 0.0), 3,
                                      key.clamp(0, length - 1).expand({rows, heads, length, 2 * window + 1})) *
                           in_sequence.to(p.scalar_type());
  return at::cat({global_part, window_part}, -1);
}

/// The gradients of a network by their names at Hugging Face.
TensorMap gradients_of(const Network& network) {
  const auto& model = network.model_config();
  TensorMap gradients;
  for (const auto& [name, param] : collect_params(network)) {
    const auto names = huggingface_names(model, name);
    if (!param.value().grad().defined()) continue;
    const auto parts = to_huggingface(model, name, param.value().grad()).chunk(static_cast<int64_t>(names.size()));
    for (size_t i = 0; i < names.size(); ++i) gradients[names[i]] = parts[i];
    for (const auto& alias : huggingface_aliases(model, name)) gradients.emplace(alias, param.value().grad());
  }
  join_parts(gradients);
  return gradients;
}

/// `class_prefix`: that of the base model in its class.
void compare_gradients(const SafeTensors& expected, const Network& network, const std::string& class_prefix,
                       Comparison& out) {
  const auto& model = network.model_config();
  const auto gradients = gradients_of(network);
  // Some gradients are zero up to rounding (a bias of keys changes no probability, nor does one of all logits of a
  // row); what rounding leaves of them depends on the terms of their sums, of the size of 1 or of the largest of all.
  double largest = 0;
  for (const auto& name : expected.names())
    if (name.rfind("grad.", 0) == 0) largest = std::max(largest, largest_of(expected.get(name)));
  for (const auto& name : expected.names()) {
    if (name.rfind("grad.", 0) != 0) continue;
    auto parameter = name_in_model(name.substr(5), class_prefix);
    const auto prefixed = huggingface_prefix(model) + parameter;
    if (!gradients.count(parameter) && gradients.count(prefixed)) parameter = prefixed;
    const auto wanted = expected.get(name);
    const double own_max = largest_of(wanted), unit = std::max(1.0, largest);
    const double scale = own_max < 1e-6 * unit ? 1e-2 * unit : std::max(own_max, 1e-3 * largest);
    const auto gradient = gradients.find(parameter);
    if (gradient == gradients.end()) {
      if (own_max == 0)
        out.add(name, 0, gradient_tolerance, "unused in transformers, absent in Cloze");
      else
        out.missing(name, "no such parameter in Cloze");
      continue;
    }
    if (gradient->second.sizes() != wanted.sizes()) {
      out.other_shape(name, gradient->second.sizes(), wanted.sizes());
      continue;
    }
    out.add(name, output_error(gradient->second, wanted, {}, 0) / std::max(scale, 1e-30), gradient_tolerance,
            own_max < scale ? "zero up to rounding" : "");
  }
}

/// The mean of a loss, without rows of the class -100, which transformers ignores.
Tensor mean_of(const LossPart& part, const Batch& batch) {
  const bool of_pairs = part.binary() && !part.detects;
  const auto count = of_pairs ? batch.pair_label.ne(-100).sum().item<int64_t>() : part.count;
  return part.sum / static_cast<double>(count);
}

/// The losses of the heads that have targets: of BigBird's two, the first needs no pair labels.
std::vector<LossPart> losses_of(Network& network, const Batch& batch) {
  const bool alone = network.objectives.size() > 1 && !batch.pair_label.defined();
  return alone ? network.losses_at(network.objectives.front()->head_name(), batch, 0) : network.losses(batch, 0);
}

/// Compares the loss and the gradients, computed as in training: fused operators, predicted positions only.
void compare_loss(const SafeTensors& expected, const std::string& folder, Network& network, const RunConfig& config,
                  const Batch& batch, Comparison& out) {
  if (!expected.contains("loss")) return;
  require<CheckpointError>(!network.objectives.empty(), folder,
                           "/expected.safetensors: has loss, but the model has no head to compute it; name the class "
                           "with the head in config.json, or leave the loss out");
  const bool of_spans = as<SpansConfig>(config.objectives[0]);
  auto total = of_spans ? span_loss_of_transformers(network, batch) : Tensor();
  for (const auto& part : of_spans ? std::vector<LossPart>() : losses_of(network, batch)) {
    const auto mean = mean_of(part, batch);
    total = total.defined() ? total + mean : mean;
  }
  total.backward();
  require<CheckpointError>(expected.get("loss").numel() == 1, folder, "/expected.safetensors: loss has ",
                           expected.get("loss").numel(), " elements; it must be a scalar");
  const double wanted = expected.get("loss").item<double>();
  out.add("loss", std::abs(total.item<double>() - wanted) / std::abs(wanted), loss_tolerance);
  compare_gradients(expected, network, prefix_of_class(config), out);
}

/// Attention probabilities of the first layer in the layout of transformers' Longformer.
Tensor first_window_probabilities(const Network& network, const WindowAttention& window, const Batch& batch,
                                  const Trace& trace) {
  at::NoGradGuard no_grad;
  std::map<std::string, Param> params;
  for (const auto& [name, param] : collect_params(network)) params.emplace(name, param);
  const std::string qkv = "backbone.stack.0.attention.qkv.";
  const auto projected =
      plain::linear(trace.hidden_states[0], params.at(qkv + "weight"), Param()) + params.at(qkv + "bias").value();
  const auto heads = transformer_of(network.model_config()).num_attention_heads;
  return window_probabilities(projected, heads, window.attention_window[0] / 2, batch);
}

/// All outputs, hidden states, attentions and mems of a network by the names of a case.
TensorMap computed_outputs(Network& network, const Batch& batch) {
  Traces traces;
  std::vector<Tensor> mems;
  TensorMap computed;
  {
    at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : network.batch_outputs(batch, &traces, &mems)) computed.emplace(name, tensor);
  }
  const auto list = [&](const std::string& name, const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) computed[name + "." + std::to_string(i)] = tensors[i];
  };
  const auto alternating = [&](const std::vector<Tensor>& tensors, const auto& name_of) {
    for (size_t i = 0; i < tensors.size(); ++i) computed[name_of(i / 2, i % 2)] = tensors[i];
  };
  const auto& model = transformer_of(network.model_config());
  const bool two = model.is_encoder_decoder();
  list(two ? "encoder_hidden_states" : "hidden_states", traces.encoder.hidden_states);
  if (batch.target_positions.defined())  // the two streams alternate
    alternating(traces.encoder.attentions,
                [](size_t i, size_t stream) { return concat("attentions.", i, ".", stream); });
  else
    list(two ? "encoder_attentions" : "attentions", traces.encoder.attentions);
  for (auto& mem : mems) mem = mem.transpose(0, 1);
  list("mems", mems);
  list("decoder_hidden_states", traces.decoder.hidden_states);
  alternating(traces.decoder.attentions, [](size_t i, size_t cross) {  // self- and cross-attention alternate
    return concat(cross ? "cross_attentions." : "decoder_attentions.", i);
  });
  const auto* window = std::get_if<WindowAttention>(&*model.attention);
  if (window && model.num_hidden_layers > 0)
    computed["attentions.0"] = first_window_probabilities(network, *window, batch, traces.encoder);
  return computed;
}

/// What an expected tensor is.
struct Expected {
  bool of_query = false;  ///< of the query stream
  Tensor mask{};          ///< bool [B, T], where it is compared, [B, 1] of pooled rows; undefined: everywhere
  int64_t axis = 1;       ///< the axis of T
};

/// The tokens that may begin or end an answer; BigBird's question may not.
Tensor answer_mask(const Batch& batch) {
  const auto real = batch.attention_mask.defined() ? batch.attention_mask : at::ones_like(batch.input_ids, at::kBool);
  const auto place = at::ones_like(batch.input_ids).cumsum(1) - 1;
  return real.logical_and(place.eq(0).logical_or(place.ge(batch.context_begin.unsqueeze(1))));
}

Expected classify(const std::string& name, const Batch& batch, bool encoder_decoder) {
  const auto starts = [&](const char* with) { return name.starts_with(with); };
  Expected expected;
  expected.axis = name.find("attentions.") != std::string::npos ? 2 : 1;
  expected.of_query = batch.target_positions.defined() && (name == "logits" || name == "last_hidden_state" ||
                                                           (starts("hidden_states.") && name.back() % 2 == 1) ||
                                                           (starts("attentions.") && name.back() == '1'));
  if (expected.of_query || starts("generated.") || starts("mems.")) return expected;
  if (name == "logits" && batch.class_positions.defined()) return expected;  // one for each text
  if (name == "logits" && (batch.candidates.defined() || batch.targets.defined())) return expected;
  if (batch.context_begin.defined() && (name == "start_logits" || name == "end_logits")) {
    expected.mask = answer_mask(batch);
    return expected;
  }
  expected.mask = encoder_decoder && !starts("encoder_") ? batch.decoder_attention_mask : batch.attention_mask;
  const bool by_row = name == "pooler_output" || name == "seq_relationship_logits" || name == "sop_logits";
  if (by_row && expected.mask.defined()) expected.mask = expected.mask.narrow(1, 0, 1);  // pooled from position 0
  return expected;
}

/// Attention probabilities of the query stream in transformers, [B, H, T, S], at the target positions.
Tensor at_targets(const Tensor& probabilities, const Batch& batch) {
  const auto position =
      batch.target_positions.unsqueeze(1).unsqueeze(-1).expand({-1, probabilities.size(1), -1, probabilities.size(3)});
  return probabilities.gather(2, position.clamp_min(0)).masked_fill(position.lt(0), 0);
}

/// Compares everything but the loss and its gradients.
void compare_outputs(const SafeTensors& expected, const TensorMap& computed, const Batch& batch, bool encoder_decoder,
                     Comparison& out) {
  for (const auto& name : expected.names()) {
    if (name == "loss" || name.starts_with("grad.")) continue;
    auto wanted = expected.get(name);
    const auto kind = classify(name, batch, encoder_decoder);
    const auto tensor = computed.find(name);
    if (tensor == computed.end()) {
      out.missing(name, "the model has no such output");
      continue;
    }
    auto shape = tensor->second.sizes().vec();
    const bool has_every_position = kind.of_query && shape.size() == 4;  // in transformers
    if (has_every_position) shape[2] = batch.input_ids.size(1);
    if (wanted.sizes() != at::IntArrayRef(shape)) {
      out.other_shape(name, shape, wanted.sizes());
      continue;
    }
    if (has_every_position) wanted = at_targets(wanted, batch);
    if (kind.mask.defined() && batch.context_begin.defined() && wanted.dim() == 2)  // the rest is about -1e6
      wanted = wanted.masked_fill(kind.mask.logical_not(), 0.0);
    out.add(name, output_error(tensor->second, wanted, kind.mask, kind.axis), tolerance_of(name, wanted));
  }
}

}  // namespace

std::vector<ParityRow> verify_parity(const std::string& folder) {
  auto model = read_huggingface(folder);
  for (const char* name : {"inputs.safetensors", "expected.safetensors"})
    require<CheckpointError>(
        std::filesystem::exists(folder + "/" + name), folder, ": is not a golden case, it lacks ", name,
        "; a case has config.json, model.safetensors, inputs.safetensors and expected.safetensors");
  const auto inputs = SafeTensors::open(folder + "/inputs.safetensors"),
             expected = SafeTensors::open(folder + "/expected.safetensors");
  follow_labels(model.config, inputs);
  const auto network = std::make_shared<Network>(model.config.model, model.config.objectives);
  require_size(*network, model, folder + "/config.json");
  std::vector<std::string> ignored, fresh;
  load_huggingface(model, *network, ignored, fresh);
  require<CheckpointError>(fresh.empty(), folder, ": the weights lack ", fresh.empty() ? "" : fresh.front());
  network->eval();
  FlatParameters flat(collect_params(*network), at::kCPU);
  const bool of_task = !model.config.objectives.empty() && task_head_of(model.config.objectives[0]);
  const auto path = folder + "/inputs.safetensors";
  const auto batch = of_task ? read_task_case(inputs, model.config, expected.contains("loss"),
                                              separator_of(model.config.model, folder), path)
                             : read_case(inputs, model.config, expected.contains("loss"), path);
  Comparison out;
  compare_loss(expected, folder, *network, model.config, batch, out);
  auto computed = computed_outputs(*network, batch);
  for (const auto& [name, ids] : generate_case(*network, batch, folder)) computed[name] = ids;
  compare_outputs(expected, computed, batch, backbone_of(model.config.model).is_encoder_decoder(), out);
  return out.rows;
}

}  // namespace cloze
