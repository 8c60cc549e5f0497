#include "objectives/special_tokens.h"

#include <algorithm>

#include "core/error.h"
#include "models/encoder_decoder_config.h"
#include "objectives/masking_config.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

namespace {

struct NeededTokens {
  bool pad = false, cls = false, sep = true, mask = false;
};

NeededTokens generative_needs(const ObjectiveKind& objective, const BackboneConfig& model) {
  return {.pad = model.is_encoder_decoder(),
          .cls = model.prepend_bos || objective.uses_cls(),
          .mask = objective.uses_mask()};
}

int64_t decoder_start_id(DecoderStart kind, const SpecialIds& special) {
  switch (kind) {
    case DecoderStart::padding:
      return special.filler();
    case DecoderStart::beginning_of_text:
      return special.cls >= 0 ? special.cls : special.sep;
    case DecoderStart::end_of_text:
      return special.sep;
  }
  return special.sep;
}

}  // namespace

int64_t needed_sentinels(const Objectives& objectives) {
  constexpr int64_t of_t5 = 100;
  const bool are_needed = std::any_of(objectives.begin(), objectives.end(), [](const auto& objective) {
    return as_kind(objective).blank() == Placeholder::sentinel;
  });
  return are_needed ? of_t5 : 0;
}

void take_special_ids(ModelConfig& model, const SpecialIds& special) {
  auto& m = backbone_of(model);
  m.pad_token_id = special.filler();
  m.eos_token_id = special.sep;
  if (auto* both = as<EncoderDecoderConfig>(model))
    both->decoder_start_token_id = decoder_start_id(both->decoder_start, special);
}

void require_special_tokens(const Objectives& objectives, const BackboneConfig& model, const Tokenizer& tokenizer,
                            const std::string& tokens) {
  if (objectives.empty()) return;
  const auto* generative = generative_of(objectives);
  const bool rows_of_clm = model.is_decoder() && as_kind(objectives[0]).predicts_shifted();
  const bool are_framed = task_head_of(objectives[0]) != nullptr;  // by the task, which asks for what its frame has
  const NeededTokens needs = generative
                                 ? generative_needs(as_kind(*generative), model)
                                 : NeededTokens{.pad = model.freeze_pad_embedding || model.positions_after_padding,
                                                .cls = model.prepend_bos || !(rows_of_clm || are_framed),
                                                .sep = !are_framed,
                                                .mask = !maskings_of(objectives).empty()};
  const auto kind = kind_of(generative ? *generative : objectives[0]);
  const auto& special = tokenizer.special();
  const auto require_one = [&](bool needed, int64_t id, const char* name, const char* use) {
    require<ConfigError>(!needed || id >= 0, "the tokenizer of ", tokens, " has no ", name, ", ", use, ", which ", kind,
                         " needs; prepare the text again with --special-tokens");
  };
  require_one(needs.cls, special.cls, "[CLS] or <s>", "the token that begins a text");
  require_one(needs.sep, special.sep, "[SEP] or </s>", "the token that ends a text");
  require_one(needs.mask, special.mask, "[MASK] or <mask>", "the token that replaces a masked one");
  require_one(needs.pad, special.pad, "[PAD] or <pad>", "the token that pads a batch");
}

}  // namespace cloze
