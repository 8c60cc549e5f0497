#include "models/backbone.h"

namespace cloze {

std::shared_ptr<Backbone> make_bert(const BertConfig& config, const BackboneParts& parts);

std::shared_ptr<Backbone> make_backbone(const ModelConfig& config, const BackboneParts& parts) {
  return std::visit([&](const BertConfig& c) { return make_bert(c, parts); }, config);
}

}  // namespace cloze
