#include "models/families/backbone.h"

namespace cloze {

std::shared_ptr<Backbone> make_backbone(const ModelConfig& model, const BackboneParts& parts) {
  const auto& config = backbone_of(model);
  switch (config.architecture) {
    case Architecture::encoder:
    case Architecture::decoder:
      return make_single_stack(config, parts);
    case Architecture::encoder_decoder:
      if (const auto* both = as<EncoderDecoderConfig>(model)) return make_encoder_decoder(*both);
      break;
    case Architecture::two_stream:
      if (const auto* streams = as<TwoStreamConfig>(model)) return make_two_stream(*streams);
      break;
  }
  fail<ConfigError>("model.architecture ", name_of(config.architecture), " is not one of ", kind_of(model), "; choose ",
                    architectures_of(model));
}

}  // namespace cloze
