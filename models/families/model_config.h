#pragma once
// A config's model: one of the families, and what is asked of whichever it is.
#include <string>
#include <utility>
#include <vector>

#include "core/config/boxed.h"
#include "core/config/config_rule.h"

namespace cloze {

enum class Architecture;
struct BackboneConfig;
struct DecodingIds;
struct StackParts;
struct TransformerConfig;
/// One of the families in models/families/families.h.
struct ModelFamily;
extern template class Boxed<ModelFamily>;
using ModelConfig = Boxed<ModelFamily>;

/// `bert`, `roberta`, ...
std::string kind_of(const ModelConfig& model);
/// The options and answers that every family has.
BackboneConfig& backbone_of(ModelConfig& model);
const BackboneConfig& backbone_of(const ModelConfig& model);
/// Those that every Transformer has. Throws ConfigError for another network: what asks for them (imports, exports,
/// generators of rtd) is for Transformers.
TransformerConfig& transformer_of(ModelConfig& model);
const TransformerConfig& transformer_of(const ModelConfig& model);
/// The config as `Base` (a family, TransformerConfig, EncoderDecoderConfig, TwoStreamConfig, RecurrentConfig, or a
/// part), or null.
template <class Base>
const Base* as(const ModelConfig& model);
template <class Base>
Base* as(ModelConfig& model) {
  return const_cast<Base*>(as<Base>(std::as_const(model)));
}
/// The part `Part` of a family; for a family without it, its defaults, which leave it out.
template <class Part>
Part part_of(const ModelConfig& model) {
  const auto* part = as<Part>(model);
  return part ? *part : Part{};
}
/// The parts that a family adds to its stacks.
StackParts stack_parts_of(const ModelConfig& model);
/// Encoder and decoder, if there are both, share one token embedding.
bool shares_embeddings(const ModelConfig& model);
/// The decoding ids of an encoder-decoder family; for others, defaults that leave generation unchanged.
DecodingIds decoding_ids_of(const ModelConfig& model);
/// The base model, which has no objectives, has a pooler.
bool base_model_has_pooler(const ModelConfig& model);
/// The option to keep a pooler even if no objective uses it; null: the family has no such option.
const bool* pooler_option(const ModelConfig& model);
bool* pooler_option(ModelConfig& model);
/// A pooler is kept even if no objective uses it.
bool keeps_pooler(const ModelConfig& model);
/// Training carries mems from segment to segment.
bool carries_mems(const ModelConfig& model);
/// The family supports this architecture.
bool has_architecture(const ModelConfig& model, Architecture architecture);
/// The architecture of a family's defaults, whatever this model's is.
Architecture default_architecture(const ModelConfig& model);
/// The architectures that a family supports, for messages.
std::string architectures_of(const ModelConfig& model);
/// The kinds of all families: `bert`, `roberta`, ...
std::vector<std::string> model_kinds();
/// The families whose defaults have a property, for messages: `gpt2, t5 or bart`.
std::string families_that(bool (BackboneConfig::*have)() const);

/// The rules between the options of a model: those of every family, of encoder-decoders and of two streams.
void check_constraints(const ModelConfig& model, Constraints& constraints);

}  // namespace cloze
