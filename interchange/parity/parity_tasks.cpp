// The inputs of a golden case whose class has the head of a task, and the loss of spans in transformers.
#include <set>

#include "core/log.h"
#include "finetune/labelled_rows.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface/json_file.h"
#include "interchange/parity/parity_case.h"
#include "models/attention/kinds.h"
#include "objectives/task_heads/class_positions.h"

namespace cloze {

namespace {

/// A case of a task, held to what its class takes.
struct TaskCase {
  const SafeTensors& in;
  const RunConfig& config;
  const TaskHead& terms;
  int64_t separator;  ///< the id of [SEP]
  const std::string& path;

  const TransformerConfig& model() const { return transformer_of(config.model); }

  Tensor whole_numbers(const std::string& name) const {
    const auto tensor = in.get(name);
    require<CheckpointError>(!tensor.is_floating_point() || tensor.eq(tensor.round()).all().item<bool>(), path, ": ",
                             name, " contains fractions; give whole numbers");
    return tensor.to(at::kLong);
  }

  /// A tensor with an entry for each token: [B, T], or of a choice [I, n, T], whose rows follow each other.
  Tensor of_tokens(const std::string& name) const {
    const auto token_ids = whole_numbers(name);
    const int64_t axes = terms.use() == HeadUse::candidates ? 3 : 2;
    require<CheckpointError>(token_ids.dim() == axes && token_ids.numel() > 0, path, ": ", name, " has shape ",
                             token_ids.sizes(), "; it must be ",
                             axes == 3 ? "[items, candidates, length]" : "[batch, length]");
    const auto ids = in.get("input_ids").sizes().vec();
    require<CheckpointError>(token_ids.sizes() == at::IntArrayRef(ids) || name.starts_with("decoder_"), path, ": ",
                             name, " has shape ", token_ids.sizes(), " instead of ", at::IntArrayRef(ids),
                             ", one entry for each token of input_ids");
    return axes == 3 ? token_ids.flatten(0, 1) : token_ids;
  }

  /// `numbers` are in [0, count), or `ignored`.
  void require_below(const std::string& name, const Tensor& numbers, int64_t count, int64_t ignored) const {
    const auto wrong =
        numbers.masked_select(numbers.lt(0).logical_or(numbers.ge(count)).logical_and(numbers.ne(ignored)));
    require<CheckpointError>(wrong.numel() == 0, path, ": ", name, " contains ",
                             wrong.numel() ? wrong[0].item<int64_t>() : 0, ", and the model has 0 to ", count - 1);
  }

  /// The target of this name with these sizes.
  Tensor target(const std::string& name, const std::vector<int64_t>& sizes) const {
    auto tensor = in.get(name);
    if (tensor.dim() == static_cast<int64_t>(sizes.size()) + 1 && tensor.size(-1) == 1) tensor = tensor.squeeze(-1);
    require<CheckpointError>(tensor.sizes() == at::IntArrayRef(sizes), path, ": ", name, " has shape ", tensor.sizes(),
                             " instead of ", at::IntArrayRef(sizes));
    return tensor;
  }

  bool windows() const { return std::holds_alternative<WindowAttention>(*model().attention); }
  bool is_bigbird_span() const {
    return terms.use() == HeadUse::spans && head_of(terms, terms.use(), config.model).block;
  }
};

/// 0, 1, 2, ... in each row.
Tensor places(const Tensor& ids) { return at::ones_like(ids).cumsum(1) - 1; }

/// The place [B, 1] of the first separator of each row, 0 without one.
Tensor first_separator(const TaskCase& c, const Tensor& ids) {
  const auto place = places(ids).masked_fill(ids.ne(c.separator), ids.size(1)).amin(1, /*keepdim=*/true);
  return place.masked_fill(place.eq(ids.size(1)), 0);
}

void add_task_text(Batch& batch, const TaskCase& c) {
  batch.input_ids = c.of_tokens("input_ids");
  c.require_below("input_ids", batch.input_ids, c.model().vocab_size, 0);
  require<CheckpointError>(batch.input_ids.size(1) <= c.model().max_input_length(), c.path, ": input_ids is ",
                           batch.input_ids.size(1), " tokens long, but the model accepts at most ",
                           c.model().max_input_length());
  if (c.in.contains("attention_mask")) batch.attention_mask = c.of_tokens("attention_mask").ne(0);
  if (c.in.contains("token_type_ids")) {
    batch.token_type_ids = c.of_tokens("token_type_ids");
    if (c.model().token_types) c.require_below("token_type_ids", batch.token_type_ids, c.model().type_vocab_size, 0);
  } else if (!c.model().is_two_stream()) {
    batch.token_type_ids = at::zeros_like(batch.input_ids);
  }
  if (!c.model().is_encoder_decoder()) return;
  batch.decoder_input_ids = c.in.contains("decoder_input_ids") ? c.of_tokens("decoder_input_ids")
                                                               : shifted_right(batch.input_ids, c.config.model);
  if (c.in.contains("decoder_attention_mask"))
    batch.decoder_attention_mask = c.of_tokens("decoder_attention_mask").ne(0);
}

/// The state that the class of transformers reads: the first or the last position whatever stands there, or, in a
/// decoder, the last id that is no padding. Rows of a batch here have the last real token instead.
void add_class_positions(Batch& batch, const TaskCase& c) {
  const auto place = places(batch.input_ids);
  switch (head_of(c.terms, c.terms.use(), c.config.model).token) {
    case ClassToken::first:
      if (kind_of(c.config.model) == "modernbert" && c.terms.use() == HeadUse::candidates)
        return;  // the first that is real
      batch.class_positions = place.select(1, 0).contiguous();
      return;
    case ClassToken::last:
      batch.class_positions = c.model().is_two_stream()
                                  ? place.select(1, -1).contiguous()
                                  : place.masked_fill(batch.input_ids.eq(c.model().pad_token_id), 0).amax(1);
      return;
    case ClassToken::last_end:
      batch.class_positions =
          class_positions_of(ClassToken::last_end, batch.input_ids, batch.attention_mask, c.model().eos_token_id);
  }
}

/// The tokens that the class of transformers makes global where none are given.
void add_class_globals(Batch& batch, const TaskCase& c) {
  const auto place = places(batch.input_ids);
  if (c.in.contains("global_attention_mask"))
    batch.global_attention_mask = c.of_tokens("global_attention_mask").ne(0);
  else if (c.terms.use() == HeadUse::spans)
    batch.global_attention_mask = place.lt(first_separator(c, batch.input_ids));
  else if (c.terms.use() == HeadUse::candidates)
    batch.global_attention_mask = place.gt(first_separator(c, batch.input_ids) + 1);
  else if (c.terms.use() == HeadUse::texts)
    batch.global_attention_mask = place.eq(0);
  if (batch.global_attention_mask.defined() && batch.attention_mask.defined())
    batch.global_attention_mask = batch.global_attention_mask.logical_and(batch.attention_mask);
}

/// BigBird's class finds no answer in the question, which ends with the first separator, and makes segments of it.
void add_question(Batch& batch, const TaskCase& c) {
  const auto begin = first_separator(c, batch.input_ids) + 1;
  batch.context_begin = begin.flatten();
  if (!c.in.contains("token_type_ids")) batch.token_type_ids = places(batch.input_ids).ge(begin).to(at::kLong);
}

void add_task_labels(Batch& batch, const TaskCase& c) {
  const int64_t rows = batch.input_ids.size(0), length = batch.input_ids.size(1);
  if (c.terms.use() == HeadUse::spans) {
    if (!c.in.contains("start_positions") || !c.in.contains("end_positions")) return;
    batch.labels = at::stack({c.target("start_positions", {rows}), c.target("end_positions", {rows})}, 1)
                       .to(at::kLong)
                       .clamp(0, length);
    return;
  }
  if (!c.in.contains("labels")) return;
  const auto outputs = c.terms.outputs();
  if (c.terms.name() == MultilabelConfig::kind) {
    batch.targets = c.target("labels", {rows, outputs}).to(at::kFloat);
  } else if (c.terms.name() == RegressionConfig::kind) {
    batch.targets = c.target("labels", {rows}).to(at::kFloat).unsqueeze(1);
  } else if (c.terms.use() == HeadUse::tokens) {
    const auto labels = c.of_tokens("labels").flatten();
    c.require_below("labels", labels, outputs, no_label);
    batch.positions = labels.ne(no_label).nonzero().flatten();
    batch.labels = labels.index_select(0, batch.positions);
  } else {
    const bool is_choice = c.terms.use() == HeadUse::candidates;
    batch.labels = c.target("labels", {is_choice ? c.in.get("input_ids").size(0) : rows}).to(at::kLong);
    c.require_below("labels", batch.labels, is_choice ? batch.candidates.size(1) : outputs, no_label);
  }
}

void warn_about_unread(const TaskCase& c) {
  std::set<std::string> known{"input_ids", "attention_mask", "labels", "start_positions", "end_positions"};
  if (c.model().is_encoder_decoder()) known.insert({"decoder_input_ids", "decoder_attention_mask"});
  if (c.model().token_types || c.model().is_two_stream()) known.insert("token_type_ids");
  if (c.windows()) known.insert("global_attention_mask");
  for (const auto& name : c.in.names())
    if (known.count(name) == 0)
      log_warning("verify", concat(c.path, ": '", name, "' is ignored for ", kind_of(c.config.model)));
}

void require_targets(const TaskCase& c) {
  const auto needed = c.terms.use() == HeadUse::spans ? std::vector<std::string>{"start_positions", "end_positions"}
                                                      : std::vector<std::string>{"labels"};
  for (const auto& name : needed)
    require<CheckpointError>(
        c.in.contains(name), c.path, ": has no ", name,
        ", from which the loss in expected.safetensors is computed; add it, or leave the loss out");
}

}  // namespace

void follow_labels(RunConfig& config, const SafeTensors& in) {
  if (config.objectives.empty() || !as<ClassificationConfig>(config.objectives[0]) || !in.contains("labels")) return;
  if (!in.get("labels").is_floating_point()) return;
  MultilabelConfig several;
  static_cast<TaskHeadTerms&>(several) = *task_head_of(config.objectives[0]);
  config.objectives = {several};
}

int64_t separator_of(const ModelConfig& model, const std::string& folder) {
  int64_t id = huggingface::family_of(model).text_ids.value("sep_token_id", int64_t{-1});
  take(read_json(folder + "/config.json"), "sep_token_id", id, folder + "/config.json");
  return id;
}

Batch read_task_case(const SafeTensors& in, const RunConfig& config, bool with_loss, int64_t separator,
                     const std::string& path) {
  const auto& terms = *task_head_of(config.objectives[0]);
  const TaskCase c{in, config, terms, separator, path};
  require<CheckpointError>(in.contains("input_ids"), path, ": has no input_ids");
  if (with_loss) require_targets(c);
  warn_about_unread(c);
  Batch batch;
  add_task_text(batch, c);
  if (reads_texts(terms.use())) add_class_positions(batch, c);
  if (c.windows()) add_class_globals(batch, c);
  if (c.is_bigbird_span()) add_question(batch, c);
  if (terms.use() == HeadUse::candidates) {
    const auto sizes = in.get("input_ids").sizes().vec();
    batch.candidates = at::arange(sizes[0] * sizes[1], at::kLong).view({sizes[0], sizes[1]});
  }
  add_task_labels(batch, c);
  return batch;
}

Tensor span_loss_of_transformers(Network& network, const Batch& batch) {
  Tensor sum;
  for (const auto& [name, logits] : network.batch_outputs(batch)) {
    if (name != "start_logits" && name != "end_logits") continue;
    const auto labels = batch.labels.select(1, name == "end_logits");
    const auto loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, logits.size(1));
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum / 2;
}

}  // namespace cloze
