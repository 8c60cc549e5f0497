#include "interchange/huggingface_classes.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface_config.h"
#include "interchange/huggingface_tasks.h"

namespace cloze {

using huggingface::Class;
using huggingface::Family;
using huggingface::family_of;
using huggingface::Head;
using huggingface::heads_of;

namespace {

/// Reduces an encoder-decoder model to one stack: the decoder (BartForCausalLM) or the encoder (T5EncoderModel).
void keep_stack(EncoderDecoderConfig& c, Architecture stack) {
  const auto layers = std::exchange(c.num_decoder_layers, 0);
  c.architecture = stack;
  if (stack == Architecture::encoder) return;
  c.num_hidden_layers = layers;
  c.num_attention_heads = std::exchange(c.decoder_attention_heads, 0);
  c.intermediate_size = std::exchange(c.decoder_ffn_dim, 0);
}

/// The class of this name. Throws ConfigError for a class that the family's table lacks.
const Class& class_named(const Family& family, const std::string& name, const std::string& path) {
  std::string list;
  for (const auto& one : family.classes) {
    if (name.ends_with(one.suffix) && !name.ends_with("HeadsModel")) return one;
    list += (list.empty() ? "" : ", ") + family.class_prefix + one.suffix;
  }
  fail<ConfigError>(path, ": architecture '", name, "' cannot be imported; of ", family.model_type, ", ", list,
                    " can; to import the model without the head of this class, write \"architectures\": [\"",
                    family.class_prefix, "Model\"] into the file");
}

}  // namespace

Objectives objectives_of_class(const std::string& architecture, ModelConfig& model, const std::string& path) {
  const auto& one = class_named(family_of(model), architecture, path);
  const auto& c = transformer_of(model);
  const auto stacks = one.architecture.value_or(c.architecture);
  if (stacks == c.architecture) return one.objectives;
  if (auto* both = as<EncoderDecoderConfig>(model)) {
    keep_stack(*both, stacks);
    return one.objectives;
  }
  log_warning("import", concat(path, ": ", architecture,
                               " without is_decoder is bidirectional; it is imported as a masked language model"));
  return huggingface::masked_class().objectives;
}

namespace {

/// The architecture of a model whose weights may be those of one of its stacks.
Architecture stacks_of(const ModelConfig& model, const Family& family, const TensorMap& tensors) {
  const auto own = backbone_of(model).architecture;
  if (own != Architecture::encoder_decoder) return own;
  const auto has_stack = [&](const char* stack) {
    const auto prefix = family.prefix + stack;
    const auto found = tensors.lower_bound(prefix);
    return found != tensors.end() && found->first.starts_with(prefix);
  };
  const bool encodes = has_stack("encoder."), decodes = has_stack("decoder.");
  if (!decodes && family.has_architecture(Architecture::encoder)) return Architecture::encoder;
  if (decodes && !encodes && family.has_architecture(Architecture::decoder)) return Architecture::decoder;
  return own;
}

/// The weights contain this head.
bool is_stored(Head head, const ModelConfig& model, const Family& family, const TensorMap& tensors, bool bare) {
  const auto has = [&](const char* name) {
    const auto names = huggingface_names(model, name);
    return !names.empty() && tensors.count(names[0]) > 0;
  };
  switch (head) {
    case Head::mlm:
      return has("mlm.head.transform.weight");
    case Head::nsp:
      return has("nsp.head.weight");
    case Head::sop:
      return has("sop.head.weight");
    case Head::rtd:
      return has("rtd.dense.weight");
    case Head::lm:
      // A tied head has no tensor of its own. T5 has no prefix that would tell a base model; its head is the table
      // alone.
      if (family.is_generative()) return has("lm.head.decoder") || (backbone_of(model).tie_word_embeddings && !bare);
      return has("lm.head.transform.weight") || has("lm.head.bias");
    case Head::texts:
    case Head::tags:
    case Head::spans:
    case Head::choice:
      return false;  // several classes have weights of one name: config.json has to name the class
  }
  return false;
}

/// The name of the class with these heads. Throws ConfigError if there is none.
std::string class_name(const Family& family, Architecture architecture, const std::set<Head>& heads) {
  const auto* one = class_with(family, architecture, heads);
  require<ConfigError>(one != nullptr, "Hugging Face has no class for ", kind_of(family.table.model),
                       " with all of these heads; export to torchscript");
  return family.class_prefix + one->suffix;
}

}  // namespace

std::string class_of_weights(const ModelConfig& model, const TensorMap& tensors, bool bare) {
  const auto& family = family_of(model);
  const auto architecture = stacks_of(model, family, tensors);
  std::set<Head> heads;
  for (const auto* one : family.classes_of(architecture))
    for (const auto head : heads_of(one->objectives))
      if (is_stored(head, model, family, tensors, bare)) heads.insert(head);
  for (const auto alone : {Head::lm, Head::rtd})  // no class has another head besides one of these
    if (heads.count(alone)) heads = {alone};
  return class_name(family, architecture, heads);
}

std::string class_of_config(const RunConfig& config, const Family& family) {
  return class_name(family, backbone_of(config.model).architecture, heads_of(config.objectives));
}

nlohmann::json huggingface_config(const RunConfig& config) {
  auto j = model_json(config.model);
  j["architectures"] = {class_of_config(config, family_of(config.model))};
  write_task_head(j, family_of(config.model), config);
  j["dtype"] = "float32";
  return j;
}

}  // namespace cloze
