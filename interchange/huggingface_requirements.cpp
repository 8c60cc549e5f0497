// What a class of transformers cannot compute.
#include <algorithm>

#include "core/log.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_tasks.h"
#include "models/attention/kinds.h"
#include "models/stack_parts.h"

namespace cloze {

using huggingface::Family;
using huggingface::Head;
using huggingface::heads_of;

namespace {

template <class T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

template <class T>
std::string spelled(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  return concat(value);
}

/// Throws ConfigError naming an option of the model unless some class has this value.
template <class T>
void require_option(bool has_class, const char* option, const T& value, const ModelConfig& model) {
  require<ConfigError>(has_class, "model.", option, " ", spelled(value), " has no class at Hugging Face for ",
                       kind_of(model), "; export to torchscript");
}

void require_stack(const ModelConfig& model, const Family& family) {
  const auto &c = transformer_of(model), &standard = transformer_of(family.table.model);
  const auto option = [&](const char* name, const auto& value, bool has_class) {
    require_option(has_class, name, value, model);
  };
  option("norm_place", c.norm_place, c.norm_place == standard.norm_place);
  option("norm_kind", c.norm_kind, c.norm_kind == standard.norm_kind);
  const auto positions = keys_of(c.positions);
  option("position_embeddings", positions.position_embeddings,
         contains(family.positions, positions.position_embeddings));
  option("relative_positions", positions.relative_positions, positions.relative_positions == 0);
  option("feed_forward", c.feed_forward, contains(family.feed_forward, c.feed_forward));
  option("architecture", c.architecture, family.has_architecture(c.architecture));
  const bool has_prefix = part_of<PrefixAttention>(model).prefix_lm;
  option("prefix_lm", has_prefix, !has_prefix);
  const auto sharing = part_of<LayerSharing>(model);
  const bool shares_parts = sharing.num_hidden_groups > 0 && sharing.num_hidden_groups != c.num_hidden_layers;
  option("share", sharing.share, !shares_parts || sharing.share == Sharing::all);
  if (std::holds_alternative<RelativeKeys>(c.positions.relative))
    log_warning("export", concat("position_embedding_type ", positions.position_embeddings,
                                 " is computed by transformers 4, but ignored by transformers 5"));
}

void require_attention(const ModelConfig& model, const Family& family) {
  const auto& attention = transformer_of(model).attention;
  const bool own = kind_of(attention) == kind_of(transformer_of(family.table.model).attention);
  const bool full = family.full_attention && is_full(attention);
  require_option(own || full, "attention of kind", kind_of(attention), model);
  if (const auto* window = std::get_if<WindowAttention>(&*attention)) {
    const auto& steps = window->attention_dilation;
    require<ConfigError>(std::all_of(steps.begin(), steps.end(), [](int64_t d) { return d == 1; }),
                         "model.attention.attention_dilation ", *std::max_element(steps.begin(), steps.end()),
                         " has no class at Hugging Face, whose windows are not dilated; export to torchscript");
  }
}

/// The LM head has a dense layer, an activation and a norm before the output embedding.
bool has_transform(const ObjectiveConfig& objective) {
  const auto* terms = as_kind(objective).next_token();
  return terms && terms->transform;
}

/// The class of the language modeling head has a dense layer before the output embedding, or has none, and so must the
/// model.
void require_transform(const ObjectiveConfig& objective, bool of_class, const std::string& model) {
  if (has_transform(objective) == of_class) return;
  const std::string kind = as_kind(objective).predicts_shifted() ? kind_of(objective) : "clm";
  fail<ConfigError>("a language modeling head ", of_class ? "without" : "with",
                    " a transform has no class at Hugging Face for ", model, "; train with `kind: ", kind,
                    ", transform: ", of_class ? "true" : "false", "`, or export to torchscript");
}

void require_heads(const RunConfig& config, const Family& family) {
  const auto& c = backbone_of(config.model);
  const auto kind = kind_of(config.model);
  std::set<Head> known;
  bool has_base_class = false;
  for (const auto* one : family.classes_of(c.architecture)) {
    known.merge(heads_of(one->objectives));
    has_base_class = has_base_class || one->objectives.empty();
    for (const auto& of_class : one->objectives)
      for (const auto& o : config.objectives)
        if (head_of(of_class) == "lm" && head_of(o) == "lm") require_transform(o, has_transform(of_class), kind);
  }
  require<ConfigError>(has_base_class || !config.objectives.empty(),
                       "Hugging Face's class of a decoder without encoder needs a head, and this model has none; "
                       "export to torchscript");
  for (const auto& o : config.objectives) {
    require<ConfigError>(!as_kind(o).predicts_shifted() || known.count(Head::lm),
                         "Hugging Face has no class for an encoder whose hidden states predict the next token (mntp); "
                         "export to torchscript");
    for (const auto head : heads_of({o}))
      require<ConfigError>(known.count(head), "Hugging Face has no class for ", kind, " with the head of ", kind_of(o),
                           "; export to torchscript");
  }
}

}  // namespace

void require_huggingface(const RunConfig& config) {
  const auto& family = huggingface::family_of(config.model);
  require_stack(config.model, family);
  require_attention(config.model, family);
  require_heads(config, family);
  require_task_head(config);
}

}  // namespace cloze
