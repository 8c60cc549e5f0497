#include "models/backbone.h"

#include "core/error.h"

namespace cloze {

EncoderOutput Backbone::encode(const Inputs&, Trace*) { fail<ShapeError>("this model is no encoder-decoder"); }
DecoderState DecoderState::select(const Tensor& rows) const {
  DecoderState selected{.of_source = of_source};
  for (const auto& tensor : of_tokens) selected.of_tokens.push_back(tensor.index_select(0, rows));
  return selected;
}

Tensor Backbone::decode(const Tensor&, const EncoderOutput&, DecoderState&, const Tensor&, const Tensor&) {
  fail<ConfigError>(
      "this model is bidirectional, so it generates no text; train one with model.architecture: "
      "decoder or encoder_decoder, or fill masks with `cloze fill`");
}

}  // namespace cloze
