#include "models/families/model_config.h"

#include <concepts>
#include <type_traits>
#include <vector>

#include "core/config/boxed.inc"
#include "core/error.h"
#include "core/text.h"
#include "models/families/families.h"

namespace cloze {

template class Boxed<ModelFamily>;

std::string kind_of(const ModelConfig& model) {
  return std::visit([](const auto& m) { return std::string(m.kind); }, *model);
}
BackboneConfig& backbone_of(ModelConfig& model) {
  return std::visit([](auto& m) -> BackboneConfig& { return m; }, *model);
}
const BackboneConfig& backbone_of(const ModelConfig& model) {
  return std::visit([](const auto& m) -> const BackboneConfig& { return m; }, *model);
}
template <class Base>
const Base* as(const ModelConfig& model) {
  return std::visit(
      [](const auto& m) -> const Base* {
        if constexpr (std::derived_from<std::decay_t<decltype(m)>, Base>) return &m;
        return nullptr;
      },
      *model);
}

/// What is declared of any family, compiled for each.
template <class... Families>
constexpr auto for_families(const std::variant<Families...>* each) {
  return std::tuple{makers_of<ModelFamily>(each),
                    static_cast<const Families* (*)(const ModelConfig&)>(&as<Families>)...};
}
[[gnu::used]] const auto functions_of_families = for_families(static_cast<const ModelFamily*>(nullptr));
template const TransformerConfig* as<TransformerConfig>(const ModelConfig&);
template const RecurrentConfig* as<RecurrentConfig>(const ModelConfig&);
template const EncoderDecoderConfig* as<EncoderDecoderConfig>(const ModelConfig&);
template const TwoStreamConfig* as<TwoStreamConfig>(const ModelConfig&);
template const DecodingIds* as<DecodingIds>(const ModelConfig&);
template const LayerSharing* as<LayerSharing>(const ModelConfig&);
template const PrefixAttention* as<PrefixAttention>(const ModelConfig&);
template const EmbeddingProjection* as<EmbeddingProjection>(const ModelConfig&);

const TransformerConfig& transformer_of(const ModelConfig& model) {
  const auto* transformer = as<TransformerConfig>(model);
  require<ConfigError>(transformer != nullptr, "a model of kind ", kind_of(model),
                       " is no Transformer, and has no class at Hugging Face and no form in TorchScript; it is used by "
                       "Cloze alone");
  return *transformer;
}
TransformerConfig& transformer_of(ModelConfig& model) {
  return const_cast<TransformerConfig&>(transformer_of(std::as_const(model)));
}
StackParts stack_parts_of(const ModelConfig& model) {
  return {.sharing = part_of<LayerSharing>(model), .prefix = part_of<PrefixAttention>(model)};
}
bool shares_embeddings(const ModelConfig& model) {
  const auto* both = as<EncoderDecoderConfig>(model);
  return !both || both->shared_embeddings;
}
DecodingIds decoding_ids_of(const ModelConfig& model) { return part_of<DecodingIds>(model); }
bool base_model_has_pooler(const ModelConfig& model) {
  return std::visit(
      [](const auto& m) {
        if constexpr (requires { m.base_model_has_pooler; }) return m.base_model_has_pooler;
        return false;
      },
      *model);
}
const bool* pooler_option(const ModelConfig& model) {
  return std::visit(
      [](const auto& m) -> const bool* {
        if constexpr (requires { m.pooler; }) return &m.pooler;
        return nullptr;
      },
      *model);
}
bool* pooler_option(ModelConfig& model) { return const_cast<bool*>(pooler_option(std::as_const(model))); }
bool keeps_pooler(const ModelConfig& model) {
  const auto* kept = pooler_option(model);
  return kept && *kept;
}
bool carries_mems(const ModelConfig& model) {
  const auto* two_stream = as<TwoStreamConfig>(model);
  return two_stream && two_stream->carries_mems();
}
bool has_architecture(const ModelConfig& model, Architecture architecture) {
  if (as<RecurrentConfig>(model)) return architecture == Architecture::decoder;
  if (as<TwoStreamConfig>(model)) return architecture == Architecture::two_stream;
  if (architecture == Architecture::encoder_decoder) return as<EncoderDecoderConfig>(model) != nullptr;
  return architecture != Architecture::two_stream;
}
Architecture default_architecture(const ModelConfig& model) {
  return std::visit([](const auto& m) { return std::decay_t<decltype(m)>().architecture; }, *model);
}
std::string architectures_of(const ModelConfig& model) {
  if (as<RecurrentConfig>(model)) return "decoder";
  if (as<TwoStreamConfig>(model)) return "two_stream";
  return as<EncoderDecoderConfig>(model) ? "encoder_decoder, encoder or decoder" : "encoder or decoder";
}
namespace {

/// Calls `visit` with the defaults of each family.
template <class Visit>
void each_family(const Visit& visit) {
  const auto each = [&]<class... Families>(const std::variant<Families...>*) { (visit(Families{}), ...); };
  each(static_cast<const ModelFamily*>(nullptr));
}

}  // namespace

std::vector<std::string> model_kinds() {
  std::vector<std::string> kinds;
  each_family([&](const auto& model) { kinds.emplace_back(model.kind); });
  return kinds;
}

std::string families_that(bool (BackboneConfig::*have)() const) {
  std::vector<std::string> kinds;
  each_family([&](const auto& model) {
    if ((model.*have)()) kinds.emplace_back(model.kind);
  });
  return listed(kinds, "or");
}

}  // namespace cloze
