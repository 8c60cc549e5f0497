#include "interchange/parity_case.h"

#include <set>

#include "core/log.h"

namespace cloze {

namespace {

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
  else if (default_architecture(config.model) != Architecture::decoder)
    known.insert({"token_type_ids", "next_sentence_label", "sentence_order_label", "global_attention_mask"});
  for (const auto& name : in.names())
    if (known.count(name) == 0 && !(model.is_two_stream() && name.starts_with("mems.")))
      log_warning("verify", words(file, ": '", name, "' is ignored for ", kind_of(config.model)));
}

/// The inputs of the backbone.
Batch batch_of(const SafeTensors& in, const RunConfig& config) {
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
  if (in.contains("decoder_input_ids")) batch.decoder_input_ids = in.get("decoder_input_ids").to(at::kLong);
  return batch;
}

/// Adds the targets of the objectives.
void add_labels(Batch& batch, const SafeTensors& in, const RunConfig& config) {
  for (const auto* name : {"next_sentence_label", "sentence_order_label"})
    if (in.contains(name)) batch.pair_label = in.get(name).flatten().to(at::kLong);
  if (!in.contains("labels")) return;
  const auto& objectives = config.objectives;
  auto labels = in.get("labels").to(at::kLong);
  if (!objectives.empty() && std::holds_alternative<RtdConfig>(objectives[0])) {
    batch.replaced = labels;
    return;
  }
  if (backbone_of(config.model).is_encoder_decoder() && !batch.decoder_input_ids.defined())
    batch.decoder_input_ids = shifted_right(labels, config.model);
  const bool labels_are_shifted = as<EncoderDecoderConfig>(config.model);  // BartForCausalLM does not shift labels
  if (!objectives.empty() && std::holds_alternative<ClmConfig>(objectives[0]) && !labels_are_shifted)
    labels = at::cat({labels.slice(1, 1), at::full_like(labels.narrow(1, 0, 1), -100)}, 1);  // of the next position
  labels = labels.flatten();
  batch.positions = labels.ne(-100).nonzero().flatten();
  batch.labels = labels.index_select(0, batch.positions);
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

}  // namespace

Batch read_case(const SafeTensors& in, const RunConfig& config, const std::string& path) {
  warn_about_ignored(in, config, path);
  check_inputs(in, backbone_of(config.model), path);
  auto batch = batch_of(in, config);
  add_labels(batch, in, config);
  return batch;
}

}  // namespace cloze
