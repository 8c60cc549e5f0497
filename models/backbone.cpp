#include "models/backbone.h"

#include "core/error.h"

namespace cloze {

EncoderOutput Backbone::encode(const Inputs&, Trace*) { fail<ShapeError>("this model is no encoder-decoder"); }
Tensor Backbone::decode(const Tensor&, const EncoderOutput&, std::vector<BlockCache>&, const Tensor&, const Tensor&) {
  fail<ConfigError>(
      "this model is bidirectional, so it generates no text; train one with model.architecture: "
      "decoder or encoder_decoder, or fill masks with `cloze fill`");
}

}  // namespace cloze
