#include "models/families/model_config.h"

#include "models/encoder_decoder_config.h"
#include "models/stack_parts.h"
#include "models/two_stream_config.h"

namespace cloze {

namespace {

void check_decoder_heads(const EncoderDecoderConfig& m, Constraints& constraints) {
  constraints.forbid(m.d_kv == 0 && m.decoder_attention_heads > 0 && m.hidden_size % m.decoder_heads() != 0,
                     "model.hidden_size ", m.hidden_size, " is not a multiple of model.decoder_attention_heads ",
                     m.decoder_attention_heads, "; choose a number of heads that divides it");
}

void check_mems(const TwoStreamConfig& m, Constraints& constraints) {
  constraints.forbid(m.same_length && m.mem_len == 0,
                     "model.same_length needs mems, and model.mem_len 0 keeps none in training; raise mem_len, or set "
                     "same_length to false");
}

}  // namespace

void check_constraints(const ModelConfig& model, Constraints& constraints) {
  const auto& backbone = backbone_of(model);
  constraints.forbid(!has_architecture(model, backbone.architecture), "model.architecture ", backbone.architecture,
                     " is not available for ", kind_of(model), "; choose ", architectures_of(model));
  constraints.forbid(backbone.vocab_size > 0 && backbone.pad_token_id >= backbone.vocab_size, "model.pad_token_id ",
                     backbone.pad_token_id, " is outside model.vocab_size ", backbone.vocab_size,
                     "; name an id of the vocabulary");
  if (const auto* both = as<EncoderDecoderConfig>(model)) check_decoder_heads(*both, constraints);
  if (const auto* streams = as<TwoStreamConfig>(model)) check_mems(*streams, constraints);
  if (const auto* transformer = as<TransformerConfig>(model))
    check_constraints(*transformer, stack_parts_of(model), constraints);
}

}  // namespace cloze
