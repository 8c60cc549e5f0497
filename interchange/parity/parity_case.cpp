#include "interchange/parity/parity_case.h"

#include <set>

#include "core/log.h"
#include "finetune/labelled_rows.h"

namespace cloze {

namespace {

/// Warns about inputs that are ignored for this kind of model, since outputs may differ because of them.
void warn_about_ignored(const SafeTensors& in, const RunConfig& config, const std::string& file) {
  const auto& model = backbone_of(config.model);
  std::set<std::string> known{"input_ids", "attention_mask", "labels"};
  if (model.is_encoder_decoder())
    known.insert({"decoder_input_ids", "decoder_attention_mask"});
  else if (model.is_two_stream())
    known.insert({"token_type_ids", "input_mask", "perm_mask", "target_mapping"});
  else if (default_architecture(config.model) != Architecture::decoder)
    known.insert({"token_type_ids", "global_attention_mask", pair_label_of(config.objectives)});
  for (const auto& name : in.names())
    if (known.count(name) == 0 && !(model.is_two_stream() && name.starts_with("mems.")))
      log_warning("verify", concat(file, ": '", name, "' is ignored for ", kind_of(config.model)));
}

/// Adds the inputs that two-stream models alone take.
void add_streams(Batch& batch, const SafeTensors& in, const TwoStreamConfig& model) {
  if (in.contains("input_mask")) batch.attention_mask = in.get("input_mask").le(0);
  if (in.contains("perm_mask")) batch.visible = in.get("perm_mask").le(0);
  if (in.contains("target_mapping")) {
    const auto [max, position] = in.get("target_mapping").max(-1);
    batch.target_positions = position.masked_fill(max.le(0), -1);
  }
  if (model.bi_data)
    batch.backward =
        at::arange(batch.input_ids.size(0))
            .ge(batch.input_ids.size(0) / 2);  // transformers, modeling_xlnet.py, relative_positional_encoding
  for (int64_t i = 0; in.contains("mems." + std::to_string(i)); ++i)
    batch.mems.push_back(in.get("mems." + std::to_string(i)).transpose(0, 1));
}

/// The inputs of the backbone.
Batch batch_of(const SafeTensors& in, const RunConfig& config) {
  Batch batch;
  batch.input_ids = in.get("input_ids").to(at::kLong);
  if (in.contains("attention_mask")) batch.attention_mask = in.get("attention_mask").ne(0);
  if (in.contains("decoder_attention_mask")) batch.decoder_attention_mask = in.get("decoder_attention_mask").ne(0);
  batch.token_type_ids =
      in.contains("token_type_ids") ? in.get("token_type_ids").to(at::kLong) : at::zeros_like(batch.input_ids);
  if (in.contains("global_attention_mask")) batch.global_attention_mask = in.get("global_attention_mask").ne(0);
  if (const auto* streams = as<TwoStreamConfig>(config.model)) add_streams(batch, in, *streams);
  if (in.contains("decoder_input_ids")) batch.decoder_input_ids = in.get("decoder_input_ids").to(at::kLong);
  return batch;
}

/// Adds the targets of the objectives.
void add_labels(Batch& batch, const SafeTensors& in, const RunConfig& config) {
  const auto pair_label = pair_label_of(config.objectives);
  if (!pair_label.empty() && in.contains(pair_label)) batch.pair_label = in.get(pair_label).flatten().to(at::kLong);
  if (!in.contains("labels")) return;
  const auto& objectives = config.objectives;
  auto labels = in.get("labels").to(at::kLong);
  if (!objectives.empty() && as_kind(objectives[0]).replaces_tokens()) {
    batch.replaced = labels;
    return;
  }
  if (backbone_of(config.model).is_encoder_decoder() && !batch.decoder_input_ids.defined())
    batch.decoder_input_ids = shifted_right(labels, config.model);
  const bool labels_are_shifted = as<EncoderDecoderConfig>(config.model);  // BartForCausalLM does not shift labels
  const bool of_next =
      !objectives.empty() && as_kind(objectives[0]).is_generative() && !as_kind(objectives[0]).layout();
  if (of_next && !labels_are_shifted)
    labels = at::cat({labels.slice(1, 1), at::full_like(labels.narrow(1, 0, 1), -100)}, 1);  // of the next position
  labels = labels.flatten();
  batch.positions = labels.ne(-100).nonzero().flatten();
  batch.labels = labels.index_select(0, batch.positions);
}

}  // namespace

Batch read_case(const SafeTensors& in, const RunConfig& config, bool with_loss, const std::string& path) {
  warn_about_ignored(in, config, path);
  check_inputs(in, config, with_loss, path);
  auto batch = batch_of(in, config);
  add_labels(batch, in, config);
  require<CheckpointError>(!with_loss || !batch.positions.defined() || batch.positions.numel() > 0, path,
                           ": labels has only -100 where the model predicts, so that the loss is no number; give it a "
                           "target");
  return batch;
}

}  // namespace cloze
