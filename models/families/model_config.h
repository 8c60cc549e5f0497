#pragma once
// The model families: a config's model is one of them.
#include <string>
#include <variant>
#include <vector>

#include "models/families/albert.h"
#include "models/families/bart.h"
#include "models/families/bert.h"
#include "models/families/bigbird.h"
#include "models/families/distilbert.h"
#include "models/families/electra.h"
#include "models/families/gpt2.h"
#include "models/families/longformer.h"
#include "models/families/mbart.h"
#include "models/families/modernbert.h"
#include "models/families/pegasus.h"
#include "models/families/performer.h"
#include "models/families/roberta.h"
#include "models/families/t5.h"
#include "models/families/transformer.h"
#include "models/families/xlnet.h"

namespace cloze {

using ModelConfig = std::variant<BertConfig, RobertaConfig, AlbertConfig, ElectraConfig, DistilBertConfig,
                                 LongformerConfig, BigBirdConfig, PerformerConfig, ModernBertConfig, Gpt2Config,
                                 T5Config, BartConfig, MBartConfig, PegasusConfig, TransformerConfig, XlnetConfig>;

/// The options that every family has.
inline BackboneConfig& backbone_of(ModelConfig& model) {
  return std::visit([](auto& m) -> BackboneConfig& { return m; }, model);
}
inline const BackboneConfig& backbone_of(const ModelConfig& model) {
  return std::visit([](const auto& m) -> const BackboneConfig& { return m; }, model);
}
/// The config as its base class `Base` (EncoderDecoderConfig, TwoStreamConfig), or null.
template <class Base>
const Base* as(const ModelConfig& model) {
  return std::visit(
      [](const auto& m) -> const Base* {
        if constexpr (std::derived_from<std::decay_t<decltype(m)>, Base>) return &m;
        return nullptr;
      },
      model);
}
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
inline StackParts stack_parts_of(const ModelConfig& model) {
  return {.sharing = part_of<LayerSharing>(model),
          .relative_bias = part_of<RelativeBias>(model),
          .prefix = part_of<PrefixAttention>(model)};
}
/// Encoder and decoder, if there are both, share one token embedding.
inline bool shares_embeddings(const ModelConfig& model) {
  const auto* both = as<EncoderDecoderConfig>(model);
  return !both || both->shared_embeddings;
}
/// The decoding ids of an encoder-decoder family; for others, defaults that leave generation unchanged.
inline DecodingIds decoding_ids_of(const ModelConfig& model) { return part_of<DecodingIds>(model); }
/// The base model, which has no objectives, has a pooler.
inline bool base_model_has_pooler(const ModelConfig& model) {
  return std::visit(
      [](const auto& m) {
        if constexpr (requires { m.base_model_has_pooler; }) return m.base_model_has_pooler;
        return false;
      },
      model);
}
/// The option to keep a pooler even if no objective uses it; null: the family has no such option.
inline const bool* pooler_option(const ModelConfig& model) {
  return std::visit(
      [](const auto& m) -> const bool* {
        if constexpr (requires { m.pooler; }) return &m.pooler;
        return nullptr;
      },
      model);
}
inline bool* pooler_option(ModelConfig& model) { return const_cast<bool*>(pooler_option(std::as_const(model))); }
/// A pooler is kept even if no objective uses it.
inline bool keeps_pooler(const ModelConfig& model) {
  const auto* kept = pooler_option(model);
  return kept && *kept;
}
/// Training carries mems from segment to segment.
inline bool carries_mems(const ModelConfig& model) {
  const auto* two_stream = as<TwoStreamConfig>(model);
  return two_stream && two_stream->carries_mems();
}
/// The family supports this architecture.
inline bool has_architecture(const ModelConfig& model, Architecture architecture) {
  if (as<TwoStreamConfig>(model)) return architecture == Architecture::two_stream;
  if (architecture == Architecture::encoder_decoder) return as<EncoderDecoderConfig>(model) != nullptr;
  return architecture != Architecture::two_stream;
}
/// The architecture of a family's defaults, whatever this model's is.
inline Architecture default_architecture(const ModelConfig& model) {
  return std::visit([](const auto& m) { return std::decay_t<decltype(m)>().architecture; }, model);
}
/// The architectures that a family supports, for messages.
inline std::string architectures_of(const ModelConfig& model) {
  if (as<TwoStreamConfig>(model)) return "two_stream";
  return as<EncoderDecoderConfig>(model) ? "encoder_decoder, encoder or decoder" : "encoder or decoder";
}
/// The families whose defaults have a property, for messages: `gpt2, t5 or bart`.
inline std::string families_that(bool (BackboneConfig::*have)() const) {
  std::vector<std::string> kinds;
  const auto add = [&](const auto& model) {
    if ((model.*have)()) kinds.emplace_back(model.kind);
  };
  const auto each = [&]<class... Families>(const std::variant<Families...>*) { (add(Families{}), ...); };
  each(static_cast<const ModelConfig*>(nullptr));
  std::string list;
  for (size_t i = 0; i < kinds.size(); ++i) list += (i == 0 ? "" : i + 1 == kinds.size() ? " or " : ", ") + kinds[i];
  return list;
}
/// `bert`, `roberta`, ...
inline std::string kind_of(const ModelConfig& model) {
  return std::visit([](const auto& m) { return std::string(m.kind); }, model);
}

}  // namespace cloze
