#include "models/families/backbone.h"

#include "core/error.h"

namespace cloze {

std::shared_ptr<Backbone> make_backbone(const ModelConfig& model, const BackboneParts& wanted) {
  auto parts = wanted;
  parts.stack = stack_parts_of(model);
  parts.projection = part_of<EmbeddingProjection>(model);
  const auto& config = backbone_of(model);
  require<ConfigError>(has_architecture(model, config.architecture), "model.architecture ", config.architecture,
                       " is not one of ", kind_of(model), "; choose ", architectures_of(model));
  if (const auto* recurrent = as<RecurrentConfig>(model)) return make_recurrent(*recurrent);
  switch (config.architecture) {
    case Architecture::encoder:
    case Architecture::decoder:
      return make_single_stack(*as<TransformerConfig>(model), parts);
    case Architecture::encoder_decoder:
      return make_encoder_decoder(*as<EncoderDecoderConfig>(model), parts.stack);
    case Architecture::two_stream:
      return make_two_stream(*as<TwoStreamConfig>(model));
  }
  return nullptr;
}

}  // namespace cloze
