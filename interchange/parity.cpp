#include <filesystem>
#include <set>

#include "core/config.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/tensor/plain.h"
#include "core/tensor/safetensors.h"
#include "generation/generate.h"
#include "interchange/huggingface.h"
#include "interchange/huggingface_config.h"
#include "interchange/huggingface_names.h"
#include "interchange/interchange.h"

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

/// The tolerance of an output: 0 for ids, else relative to the largest entry.
double tolerance_of(const std::string& name, const at::Tensor& wanted) {
  if (name.starts_with("generated.") || wanted.numel() == 0) return 0;
  return output_tolerance * std::max(1.0, wanted.abs().max().item<double>());
}

struct Comparison {
  std::vector<ParityRow> rows;
  void add(const std::string& name, double error, double tolerance, const std::string& note = "") {
    rows.push_back({name, error, tolerance, error <= tolerance, note});
  }
  void missing(const std::string& name, const std::string& why) { rows.push_back({name, 0, 0, false, why}); }
};

/// The decoder input ids for labels: the labels shifted right, after the start token or their own last token. Source:
/// shift_tokens_right of transformers, models/bart and models/mbart.
Tensor shifted_right(const Tensor& labels, const ModelConfig& config) {
  const auto& model = backbone_of(config);
  const auto decoding = decoding_ids_of(config);
  const auto clean = labels.masked_fill(labels.eq(-100), model.pad_token_id);
  auto start = at::full_like(clean.narrow(1, 0, 1), decoding.decoder_start_token_id);
  if (decoding.decoder_starts_with_last_target)
    start = clean.gather(1, (clean.ne(model.pad_token_id).sum(1, /*keepdim=*/true) - 1));
  return at::cat({start, clean.slice(1, 0, -1)}, 1);
}

/// Warns about inputs that are ignored for this kind of model, since outputs may differ because of them.
void warn_about_ignored(const SafeTensors& in, const RunConfig& config, const std::string& file) {
  const auto& model = backbone_of(config.model);
  std::set<std::string> known{"input_ids", "attention_mask", "labels"};
  if (model.is_encoder_decoder())
    known.insert({"decoder_input_ids", "decoder_attention_mask"});
  else if (model.is_two_stream())
    known.insert({"token_type_ids", "input_mask", "perm_mask", "target_mapping"});
  else if (!std::holds_alternative<Gpt2Config>(config.model))
    known.insert({"token_type_ids", "next_sentence_label", "sentence_order_label", "global_attention_mask"});
  for (const auto& name : in.names())
    if (known.count(name) == 0 && !(model.is_two_stream() && name.starts_with("mems.")))
      log_warning("verify", words(file, ": '", name, "' is ignored for ", kind_of(config.model)));
}

Batch batch_of(const SafeTensors& in, const RunConfig& config) {
  const auto& objectives = config.objectives;
  const auto& model = backbone_of(config.model);
  Batch batch;
  batch.input_ids = in.get("input_ids").to(at::kLong);
  if (in.contains("attention_mask")) batch.attention_mask = in.get("attention_mask").ne(0);
  if (in.contains("input_mask")) batch.attention_mask = in.get("input_mask").le(0);
  if (in.contains("decoder_attention_mask")) batch.decoder_attention_mask = in.get("decoder_attention_mask").ne(0);
  batch.token_type_ids =
      in.contains("token_type_ids") ? in.get("token_type_ids").to(at::kLong) : at::zeros_like(batch.input_ids);
  if (in.contains("global_attention_mask")) batch.global_attention_mask = in.get("global_attention_mask").ne(0);
  if (in.contains("perm_mask")) batch.visible = in.get("perm_mask").le(0);
  if (in.contains("target_mapping")) {
    const auto [max, position] = in.get("target_mapping").max(-1);
    batch.target_positions = position.masked_fill(max.le(0), -1);
  }
  if (const auto* streams = as<TwoStreamConfig>(config.model); streams && streams->bi_data)
    batch.backward =
        at::arange(batch.input_ids.size(0))
            .ge(batch.input_ids.size(0) / 2);  // transformers, modeling_xlnet.py, relative_positional_encoding
  for (int64_t i = 0; in.contains("mems." + std::to_string(i)); ++i)
    batch.mems.push_back(in.get("mems." + std::to_string(i)).transpose(0, 1));
  const bool is_rtd = !objectives.empty() && std::holds_alternative<RtdConfig>(objectives[0]);
  if (in.contains("labels") && is_rtd) batch.replaced = in.get("labels").to(at::kLong);
  if (in.contains("decoder_input_ids")) batch.decoder_input_ids = in.get("decoder_input_ids").to(at::kLong);
  if (in.contains("labels") && !is_rtd) {
    auto labels = in.get("labels").to(at::kLong);
    if (model.is_encoder_decoder() && !batch.decoder_input_ids.defined())
      batch.decoder_input_ids = shifted_right(labels, config.model);
    const bool labels_are_shifted = !std::holds_alternative<Gpt2Config>(config.model) &&
                                    decoder_family(config.model);  // BartForCausalLM does not shift labels
    if (!objectives.empty() && std::holds_alternative<ClmConfig>(objectives[0]) && !labels_are_shifted)
      labels = at::cat({labels.slice(1, 1), at::full_like(labels.narrow(1, 0, 1), -100)}, 1);  // of the next position
    labels = labels.flatten();
    batch.positions = labels.ne(-100).nonzero().flatten();
    batch.labels = labels.index_select(0, batch.positions);
  }
  for (const auto* name : {"next_sentence_label", "sentence_order_label"})
    if (in.contains(name)) batch.pair_label = in.get(name).flatten().to(at::kLong);
  return batch;
}

/// Checks the inputs before LibTorch would fail on them. Throws CheckpointError naming the tensor.
void check_inputs(const SafeTensors& in, const BackboneConfig& model, const std::string& path) {
  require<CheckpointError>(in.contains("input_ids"), path, ": has no input_ids");
  const auto shape = in.get("input_ids").sizes().vec();
  const auto integers = [&](const std::string& name) {
    const auto t = in.get(name);
    require<CheckpointError>(!t.is_floating_point() || t.eq(t.round()).all().item<bool>(), path, ": ", name,
                             " contains fractions; ids are integers");
    return t.to(at::kLong);
  };
  const auto below = [&](const std::string& name, const Tensor& t, int64_t count, int64_t ignored, const char* noun) {
    const auto wrong = t.masked_select(t.lt(0).logical_or(t.ge(count)).logical_and(t.ne(ignored)));
    require<CheckpointError>(wrong.numel() == 0, path, ": ", name, " contains ",
                             wrong.numel() ? wrong[0].item<int64_t>() : 0, ", but the model has ", noun, " from 0 to ",
                             count - 1);
  };
  const auto ids = [&](const std::string& name, int64_t ignored) {
    if (!in.contains(name)) return;
    const auto t = integers(name);
    require<CheckpointError>(t.dim() == 2 && t.numel() > 0, path, ": ", name, " has shape ", t.sizes(),
                             "; ids are [batch, length]");
    require<CheckpointError>(t.size(0) == shape[0], path, ": ", name, " has ", t.size(0), " rows, but input_ids has ",
                             shape[0]);
    below(name, t, model.vocab_size, ignored, "ids");
    require<CheckpointError>(t.size(1) <= model.max_input_length(), path, ": ", name, " is ", t.size(1),
                             " tokens long, but the model accepts at most ", model.max_input_length());
  };
  ids("input_ids", 0);
  ids("decoder_input_ids", 0);
  ids("labels", -100);
  require<CheckpointError>(!model.is_encoder_decoder() || in.contains("labels") || in.contains("decoder_input_ids"),
                           path, ": has neither labels nor decoder_input_ids; the decoder needs one of them");
  const auto like = [&](const std::string& name, const std::vector<int64_t>& wanted) {
    if (in.contains(name))
      require<CheckpointError>(in.get(name).sizes() == at::IntArrayRef(wanted), path, ": ", name, " has shape ",
                               in.get(name).sizes(), " instead of ", at::IntArrayRef(wanted));
  };
  for (const char* name : {"attention_mask", "input_mask", "token_type_ids", "global_attention_mask"})
    like(name, shape);
  if (model.is_encoder_decoder())
    like("decoder_attention_mask",
         in.get(in.contains("decoder_input_ids") ? "decoder_input_ids" : "labels").sizes().vec());
  if (in.contains("token_type_ids") && model.token_types)
    below("token_type_ids", integers("token_type_ids"), model.type_vocab_size, 0, "types");
}

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

/// The ids generated for the first row of the inputs, by each search of generation.json.
std::map<std::string, Tensor> generated(Network& network, const Batch& batch, const std::string& folder) {
  std::map<std::string, Tensor> found;
  const auto path = folder + "/generation.json";
  if (!std::filesystem::exists(path)) return found;
  const auto text = read_text(path);
  const auto j = parse_json(text);
  if (!j.is_object()) fail<CheckpointError>(path, ": is not a JSON object", json_fault(text), "; the file is damaged");
  const auto& model = backbone_of(network.model_config());
  const auto decoding = decoding_ids_of(network.model_config());
  const auto row = batch.input_ids[0].contiguous();
  std::vector<int64_t> ids(
      row.data_ptr<int64_t>(),
      row.data_ptr<int64_t>() +
          (batch.attention_mask.defined() ? batch.attention_mask[0].sum().item<int64_t>() : row.numel()));
  const Prompt prompt = model.is_encoder_decoder() ? Prompt{.source = ids, .prefix = {decoding.decoder_start_token_id}}
                                                   : Prompt{.prefix = ids};
  // Settings of all searches, then of one; keys are those of transformers' GenerationConfig.
  const auto read = [&](SearchConfig& search, const nlohmann::json& settings) {
    static const std::set<std::string> handled{"do_sample", "source", "early_stopping", "decoder_start_token_id",
                                               "use_cache"};
    const std::vector<std::pair<const char*, int64_t*>> counts{{"max_new_tokens", &search.max_new_tokens},
                                                               {"min_new_tokens", &search.min_new_tokens},
                                                               {"min_length", &search.min_length},
                                                               {"num_beams", &search.num_beams},
                                                               {"num_beam_groups", &search.num_beam_groups},
                                                               {"no_repeat_ngram_size", &search.no_repeat_ngram_size},
                                                               {"eos_token_id", &search.eos_token_id},
                                                               {"pad_token_id", &search.pad_token_id},
                                                               {"forced_bos_token_id", &search.forced_bos_token_id},
                                                               {"forced_eos_token_id", &search.forced_eos_token_id}};
    const std::vector<std::pair<const char*, double*>> factors{{"length_penalty", &search.length_penalty},
                                                               {"diversity_penalty", &search.diversity_penalty},
                                                               {"repetition_penalty", &search.repetition_penalty}};
    std::set<std::string> known = handled;
    for (const auto& [key, field] : counts) {
      take(settings, key, *field, path);
      known.insert(key);
    }
    for (const auto& [key, field] : factors) {
      take(settings, key, *field, path);
      known.insert(key);
    }
    if (settings.contains("early_stopping") && settings["early_stopping"].is_boolean())
      search.early_stopping = settings["early_stopping"].get<bool>() ? "true" : "false";
    else
      take(settings, "early_stopping", search.early_stopping, path);
    bool samples = false;
    take(settings, "do_sample", samples, path);
    require<ConfigError>(!samples, path, ": do_sample is true; sampled text cannot be compared");
    for (const auto& [key, value] : settings.items())
      if (!value.is_object() && known.count(key) == 0)
        log_warning("verify", words(path, ": '", key, "' is ignored", did_you_mean(key, {known.begin(), known.end()})));
  };
  const auto run = [&](const std::string& name, const nlohmann::json& settings) {
    SearchConfig search{.max_new_tokens = 20,
                        .eos_token_id = model.eos_token_id,
                        .pad_token_id = model.pad_token_id,
                        .forced_bos_token_id = decoding.forced_bos_token_id,
                        .forced_eos_token_id = decoding.forced_eos_token_id};
    read(search, j);
    read(search, settings);
    found["generated." + name] = at::tensor(generate_ids(network, {prompt}, search)[0][0].ids, at::kLong).unsqueeze(0);
  };
  run("greedy", nlohmann::json::object());
  for (const auto& [name, settings] : j.items())
    if (settings.is_object()) run(name, settings);
  return found;
}

void compare_gradients(const SafeTensors& expected, const Network& network, Comparison& out) {
  const auto& model = network.model_config();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& [name, param] : collect_params(network)) {
    const auto names = huggingface_names(model, name);
    if (!param.value().grad().defined()) continue;
    const auto parts = to_huggingface(model, name, param.value().grad()).chunk(static_cast<int64_t>(names.size()));
    for (size_t i = 0; i < names.size(); ++i) gradients[names[i]] = parts[i];
    for (const auto& alias : huggingface_aliases(model, name)) gradients.emplace(alias, param.value().grad());
  }
  join_parts(gradients);
  // Some gradients are zero up to rounding (a bias of keys changes no probability); they are compared relative to the
  // largest of all.
  double largest = 0;
  for (const auto& name : expected.names())
    if (name.rfind("grad.", 0) == 0) largest = std::max(largest, expected.get(name).abs().max().item<double>());
  for (const auto& name : expected.names()) {
    if (name.rfind("grad.", 0) != 0) continue;
    auto parameter = name.substr(5);
    const auto prefixed = huggingface_prefix(model) + parameter;
    if (!gradients.count(parameter) && gradients.count(prefixed)) parameter = prefixed;
    const auto wanted = expected.get(name);
    const double own_max = wanted.abs().max().item<double>(), scale = std::max(own_max, 1e-3 * largest);
    const auto found = gradients.find(parameter);
    if (found == gradients.end()) {
      if (own_max == 0)
        out.add(name, 0, gradient_tolerance, "unused in transformers, absent in Cloze");
      else
        out.missing(name, "no such parameter in Cloze");
      continue;
    }
    out.add(name, output_error(found->second, wanted, {}, 0) / std::max(scale, 1e-30), gradient_tolerance,
            own_max < scale ? "zero up to rounding" : "");
  }
}

}  // namespace

std::vector<ParityRow> verify_parity(const std::string& folder) {
  const auto model = read_huggingface(folder);
  const auto network = std::make_shared<Network>(model.config.model, model.config.objectives);
  std::vector<std::string> ignored, fresh;
  load_huggingface(model, *network, ignored, fresh);
  require<CheckpointError>(fresh.empty(), folder, ": the weights lack ", fresh.empty() ? "" : fresh.front());
  network->eval();
  FlatParameters flat(collect_params(*network), at::kCPU);
  for (const char* name : {"inputs.safetensors", "expected.safetensors"})
    require<CheckpointError>(
        std::filesystem::exists(folder + "/" + name), folder, ": is not a golden case, it lacks ", name,
        "; a case has config.json, model.safetensors, inputs.safetensors and expected.safetensors");
  const auto inputs = SafeTensors::open(folder + "/inputs.safetensors"),
             expected = SafeTensors::open(folder + "/expected.safetensors");
  warn_about_ignored(inputs, model.config, folder + "/inputs.safetensors");
  check_inputs(inputs, backbone_of(model.config.model), folder + "/inputs.safetensors");
  const auto batch = batch_of(inputs, model.config);
  Comparison out;

  // Loss and gradients are computed as in training: fused operators, predicted positions only.
  if (expected.contains("loss")) {
    Tensor total;
    for (const auto& part : network->losses(batch, 0)) {
      const auto mean = part.sum / static_cast<double>(part.count);
      total = total.defined() ? total + mean : mean;
    }
    total.backward();
    require<CheckpointError>(expected.get("loss").numel() == 1, folder, "/expected.safetensors: loss has ",
                             expected.get("loss").numel(), " elements; it must be a scalar");
    const double wanted = expected.get("loss").item<double>();
    out.add("loss", std::abs(total.item<double>() - wanted) / std::abs(wanted), loss_tolerance);
    compare_gradients(expected, *network, out);
  }

  Traces traces;
  std::vector<Tensor> mems;
  const auto outputs = [&] {
    at::NoGradGuard no_grad;
    return network->outputs({.input_ids = batch.input_ids,
                             .attention_mask = batch.attention_mask,
                             .token_type_ids = batch.token_type_ids,
                             .global_attention_mask = batch.global_attention_mask,
                             .decoder_input_ids = batch.decoder_input_ids,
                             .decoder_attention_mask = batch.decoder_attention_mask,
                             .visible = batch.visible,
                             .target_positions = batch.target_positions,
                             .backward = batch.backward,
                             .mems = batch.mems,
                             .new_mems = &mems},
                            &traces);
  }();
  std::map<std::string, Tensor> computed(outputs.begin(), outputs.end());
  const auto list = [&](const std::string& name, const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) computed[name + "." + std::to_string(i)] = tensors[i];
  };
  const bool two = backbone_of(model.config.model).is_encoder_decoder();
  list(two ? "encoder_hidden_states" : "hidden_states", traces.encoder.hidden_states);
  const bool has_query_stream = batch.target_positions.defined();  // its traces alternate with the content stream's
  if (!has_query_stream) list(two ? "encoder_attentions" : "attentions", traces.encoder.attentions);
  for (size_t i = 0; has_query_stream && i < traces.encoder.attentions.size(); ++i)
    computed[words("attentions.", i / 2, ".", i % 2)] = traces.encoder.attentions[i];
  for (auto& mem : mems) mem = mem.transpose(0, 1);
  list("mems", mems);
  list("decoder_hidden_states", traces.decoder.hidden_states);
  for (size_t i = 0; i < traces.decoder.attentions.size(); ++i)
    computed[(i % 2 ? "cross_attentions." : "decoder_attentions.") + std::to_string(i / 2)] =
        traces.decoder.attentions[i];  // self- and cross-attention alternate
  const auto& trace = traces.encoder;
  const auto params = collect_params(*network);
  for (const auto& p : params) {
    if (p.name != "backbone.stack.0.attention.qkv.weight") continue;
    at::NoGradGuard no_grad;
    const auto bias = std::find_if(params.begin(), params.end(),
                                   [](const auto& q) { return q.name == "backbone.stack.0.attention.qkv.bias"; });
    const auto& encoder = backbone_of(model.config.model);
    if (const auto* window = std::get_if<WindowAttention>(&encoder.attention)) {
      const auto qkv = plain::linear(trace.hidden_states[0], p.param, Param()) + bias->param.value();
      computed["attentions.0"] =
          window_probabilities(qkv, encoder.num_attention_heads, window->attention_window[0] / 2, batch);
    }
  }
  for (const auto& [name, ids] : generated(*network, batch, folder)) computed[name] = ids;
  for (const auto& name : expected.names()) {
    if (name == "loss" || name.rfind("grad.", 0) == 0) continue;
    auto wanted = expected.get(name);
    const auto found = computed.find(name);
    const bool of_query = has_query_stream && (name == "logits" || name == "last_hidden_state" ||
                                               (name.rfind("hidden_states.", 0) == 0 && name.back() % 2 == 1) ||
                                               (name.rfind("attentions.", 0) == 0 && name.back() == '1'));
    if (of_query && wanted.dim() == 4) {  // [B, H, T, S] in transformers: keep the target positions
      const auto position =
          batch.target_positions.unsqueeze(1).unsqueeze(-1).expand({-1, wanted.size(1), -1, wanted.size(3)});
      wanted = wanted.gather(2, position.clamp_min(0)).masked_fill(position.lt(0), 0);
    }
    if (found == computed.end()) {
      out.missing(name, "the model has no such output");
    } else if (found->second.sizes() != wanted.sizes()) {
      out.missing(name, words("shape ", found->second.sizes(), " instead of ", wanted.sizes()));
    } else {
      const auto starts = [&](const char* with) { return name.rfind(with, 0) == 0; };
      const bool of_decoder = two && !starts("encoder_"),
                 by_token = name != "pooler_output" && name != "seq_relationship_logits" && name != "sop_logits" &&
                            !of_decoder && !of_query && !starts("generated.") && !starts("mems.");
      out.add(name,
              output_error(found->second, wanted,
                           by_token                              ? batch.attention_mask
                           : of_decoder && !starts("generated.") ? batch.decoder_attention_mask
                                                                 : at::Tensor(),
                           name.find("attentions.") != std::string::npos ? 2 : 1),
              tolerance_of(name, wanted));
    }
  }
  return out.rows;
}

}  // namespace cloze
