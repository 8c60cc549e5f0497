// The inputs of a golden case, held to what its model takes before it runs.
#include <algorithm>

#include "core/error.h"
#include "interchange/parity/parity_case.h"
#include "models/families/bigbird.h"

namespace cloze {

namespace {

constexpr int64_t any = -1;  ///< a size that is free
constexpr const char* of_tokens = "one entry for each token of input_ids";
constexpr const char* of_rows = "one row for each of input_ids";

/// The sizes of a tensor as a message shows them: `[3, any]`.
std::string shown(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + (size == any ? "any" : std::to_string(size));
  return "[" + text + "]";
}

/// The inputs of a case, and what one tensor of them must be.
struct CaseInputs {
  const SafeTensors& in;
  const RunConfig& config;
  const std::string& path;

  const BackboneConfig& model() const { return backbone_of(config.model); }
  int64_t size(const std::string& name, int64_t axis) const { return in.get(name).size(axis); }

  Tensor integers(const std::string& name) const {
    const auto t = in.get(name);
    const auto numbers = t.to(at::kDouble);
    require<CheckpointError>(!t.is_floating_point() || numbers.eq(numbers.round()).all().item<bool>(), path, ": ", name,
                             " contains fractions; give integers");
    return t.to(at::kLong);
  }

  /// `numbers` of this tensor are 0, 1, ..., count - 1 or `ignored`.
  void below(const std::string& name, const Tensor& numbers, int64_t count, int64_t ignored, const char* noun) const {
    const auto outside = numbers.lt(0).logical_or(numbers.ge(count)).logical_and(numbers.ne(ignored));
    const auto wrong = numbers.masked_select(outside);
    require<CheckpointError>(wrong.numel() == 0, path, ": ", name, " contains ",
                             wrong.numel() ? wrong[0].item<int64_t>() : 0, ", but the model has ", noun, " from 0 to ",
                             count - 1);
  }

  /// Ids that the model can embed, or `ignored`.
  void ids(const std::string& name, int64_t ignored) const {
    if (!in.contains(name)) return;
    const auto t = integers(name);
    require<CheckpointError>(t.dim() == 2 && t.numel() > 0, path, ": ", name, " has shape ", t.sizes(),
                             "; ids are [batch, length]");
    below(name, t, model().vocab_size, ignored, "ids");
    require<CheckpointError>(t.size(1) <= model().max_input_length(), path, ": ", name, " is ", t.size(1),
                             " tokens long, but the model accepts at most ", model().max_input_length());
  }

  /// The tensor, if there is one, has these sizes: `what`.
  void shape(const std::string& name, const std::vector<int64_t>& sizes, const char* what) const {
    if (!in.contains(name)) return;
    const auto shape_read = in.get(name).sizes().vec();
    const bool fits = std::equal(shape_read.begin(), shape_read.end(), sizes.begin(), sizes.end(),
                                 [](int64_t size, int64_t wanted) { return wanted == any || size == wanted; });
    require<CheckpointError>(fits, path, ": ", name, " has shape ", shown(shape_read), " instead of ", shown(sizes),
                             ", ", what);
  }

  void needed_by_loss(const std::string& name) const {
    require<CheckpointError>(in.contains(name), path, ": has no ", name,
                             "; the loss in expected.safetensors is computed from that tensor, so add it, or leave the "
                             "loss out");
  }
};

/// The decoder's ids are given, or are the labels shifted right.
void check_decoder(const CaseInputs& inputs) {
  const auto& in = inputs.in;
  const int64_t rows = inputs.size("input_ids", 0);
  const bool has_decoder_ids = in.contains("decoder_input_ids");
  require<CheckpointError>(has_decoder_ids || in.contains("labels"), inputs.path,
                           ": has neither labels nor decoder_input_ids; the decoder needs one of them");
  inputs.ids("decoder_input_ids", 0);
  inputs.shape("decoder_input_ids", {rows, any}, of_rows);
  if (has_decoder_ids)
    inputs.shape("labels", {rows, inputs.size("decoder_input_ids", 1)}, "one entry for each of decoder_input_ids");
  else
    inputs.shape("labels", {rows, any}, of_rows);
  const char* decoded = has_decoder_ids ? "decoder_input_ids" : "labels";
  const auto sizes = in.get(decoded).sizes().vec();
  inputs.shape("decoder_attention_mask", sizes, "one entry for each token of the decoder");
  if (has_decoder_ids || !decoding_ids_of(inputs.config.model).decoder_starts_with_last_target) return;
  // Source: shift_tokens_right of transformers, models/mbart, which fails for such a row.
  const auto labels = inputs.integers("labels");
  const auto tokens = labels.ne(-100).logical_and(labels.ne(inputs.model().pad_token_id)).sum(1);  // [B]
  const auto empty = tokens.eq(0).nonzero().flatten();
  require<CheckpointError>(empty.numel() == 0, inputs.path, ": labels[", empty.numel() ? empty[0].item<int64_t>() : 0,
                           "] has no token, only -100 and padding; its last token starts the decoder's input, so give "
                           "it one, or add decoder_input_ids");
}

/// There are mems of each layer, or of none.
void check_mems(const CaseInputs& inputs) {
  const auto names = inputs.in.names();
  const auto count =
      std::count_if(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("mems."); });
  const int64_t layers = inputs.model().num_hidden_layers;
  for (int64_t i = 0; i < layers && count > 0; ++i) {
    const auto name = concat("mems.", i);
    require<CheckpointError>(inputs.in.contains(name), inputs.path, ": has no ", name, ", but others; the model has ",
                             layers, " layers, and each of them needs its own");
    const int64_t length = i == 0 ? any : inputs.size("mems.0", 0);
    inputs.shape(name, {length, inputs.size("input_ids", 0), inputs.model().hidden_size},
                 "the states of earlier tokens in each row");
  }
  require<CheckpointError>(count == 0 || count == layers, inputs.path, ": has ", count,
                           " tensors of mems, but the model has ", layers, " layers; give one for each");
}

void check_two_streams(const CaseInputs& inputs) {
  const int64_t rows = inputs.size("input_ids", 0), length = inputs.size("input_ids", 1);
  inputs.shape("perm_mask", {rows, length, length}, "one entry for each query and key of a row");
  inputs.shape("target_mapping", {rows, any, length}, "one entry for each target and token of a row");
  const bool targets = inputs.in.contains("target_mapping");
  if (targets) {
    const auto mapping = inputs.in.get("target_mapping").to(at::kDouble);
    const bool one_hot = mapping.eq(0).logical_or(mapping.eq(1)).all().item<bool>();
    require<CheckpointError>(one_hot && mapping.sum(-1).le(1).all().item<bool>(), inputs.path,
                             ": target_mapping has a target of several tokens; each has a 1 at one token, or none, and "
                             "0 elsewhere");
  }
  if (targets)
    inputs.shape("labels", {rows, inputs.size("target_mapping", 1)}, "one entry for each target of target_mapping");
  else
    inputs.shape("labels", {rows, length}, of_tokens);
  check_mems(inputs);
}

void check_shapes(const CaseInputs& inputs) {
  const auto text = inputs.in.get("input_ids").sizes().vec();
  for (const char* name : {"attention_mask", "input_mask", "token_type_ids", "global_attention_mask"})
    inputs.shape(name, text, of_tokens);
  if (inputs.model().is_encoder_decoder())
    check_decoder(inputs);
  else if (inputs.model().is_two_stream())
    check_two_streams(inputs);
  else
    inputs.shape("labels", text, of_tokens);
}

/// Labels are ids, or classes of the tokens that the mask shows.
void check_labels(const CaseInputs& inputs) {
  if (!inputs.in.contains("labels")) return;
  if (!any_that(inputs.config.objectives, &ObjectiveKind::replaces_tokens)) {
    inputs.ids("labels", -100);
    return;
  }
  auto classes = inputs.integers("labels");
  if (inputs.in.contains("attention_mask")) classes = classes.masked_select(inputs.in.get("attention_mask").ne(0));
  inputs.below("labels", classes, 2, 0, "classes");
}

/// Rows of the class -100 are ignored, as in transformers.
void check_pair_label(const CaseInputs& inputs, const std::string& name) {
  if (name.empty() || !inputs.in.contains(name)) return;
  const auto classes = inputs.integers(name);
  const int64_t rows = inputs.size("input_ids", 0);
  require<CheckpointError>(classes.numel() == rows, inputs.path, ": ", name, " has shape ", classes.sizes(),
                           " instead of ", shown({rows}), ", one class for each row of input_ids");
  inputs.below(name, classes, 2, -100, "classes");
}

/// There are targets of every loss of the model's class. BigBird's class alone has its other loss without pair labels.
/// Source: transformers, modeling_bert.py, modeling_albert.py and modeling_big_bird.py.
void check_targets(const CaseInputs& inputs, const std::string& pair_label) {
  if (inputs.config.objectives.empty()) return;
  inputs.needed_by_loss("labels");
  if (pair_label.empty()) return;
  if (kind_of(inputs.config.model) != BigBirdConfig::kind) inputs.needed_by_loss(pair_label);
  require<CheckpointError>(!inputs.in.contains(pair_label) || inputs.integers(pair_label).ne(-100).any().item<bool>(),
                           inputs.path, ": ", pair_label,
                           " has only -100, so that its loss is no number; give a row a class");
}

}  // namespace

std::string pair_label_of(const Objectives& objectives) {
  if (first_of<NspConfig>(objectives)) return "next_sentence_label";
  return first_of<SopConfig>(objectives) ? "sentence_order_label" : "";
}

void check_inputs(const SafeTensors& in, const RunConfig& config, bool with_loss, const std::string& path) {
  const CaseInputs inputs{in, config, path};
  require<CheckpointError>(in.contains("input_ids"), path, ": has no input_ids");
  inputs.ids("input_ids", 0);
  check_shapes(inputs);
  check_labels(inputs);
  const auto& model = inputs.model();
  if (in.contains("token_type_ids") && model.token_types)
    inputs.below("token_type_ids", inputs.integers("token_type_ids"), model.type_vocab_size, 0, "types");
  const auto pair_label = pair_label_of(config.objectives);
  check_pair_label(inputs, pair_label);
  if (with_loss) check_targets(inputs, pair_label);
}

}  // namespace cloze
