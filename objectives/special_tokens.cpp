#include "objectives/special_tokens.h"

#include "core/error.h"
#include "objectives/masking.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

struct Needs {
  bool pad = false, cls = false, sep = true, mask = false;
};

Needs needs_of_writing(const ObjectiveConfig& objective, const BackboneConfig& model) {
  Needs needs{.pad = model.is_encoder_decoder(), .cls = model.texts_begin};
  if (std::holds_alternative<DenoisingConfig>(objective)) needs.cls = needs.mask = true;
  if (std::holds_alternative<GapSentencesConfig>(objective)) needs.mask = true;
  if (const auto* spans = std::get_if<SpanCorruptionConfig>(&objective))
    needs.mask = spans->corruption == Corruption::mass || spans->corruption == Corruption::bert;
  return needs;
}

}  // namespace

void require_special_tokens(const Objectives& objectives, const BackboneConfig& model, const Tokenizer& tokenizer,
                            const std::string& tokens) {
  if (objectives.empty()) return;
  const auto* writing = generative_of(objectives);
  const Needs needs = writing ? needs_of_writing(*writing, model)
                              : Needs{.pad = model.freeze_pad_embedding || model.positions_after_padding,
                                      .cls = true,
                                      .mask = masking_of(objectives) != nullptr};
  const auto kind = std::visit([](const auto& o) -> std::string { return o.kind; }, writing ? *writing : objectives[0]);
  const auto& special = tokenizer.special();
  const auto require_one = [&](bool needed, int64_t id, const char* name, const char* what) {
    require<ConfigError>(!needed || id >= 0, "the tokenizer of ", tokens, " has no ", name, ", ", what, ", which ",
                         kind, " needs; prepare the text again with --special-tokens");
  };
  require_one(needs.cls, special.cls, "[CLS] or <s>", "the token that begins a text");
  require_one(needs.sep, special.sep, "[SEP] or </s>", "the token that ends a text");
  require_one(needs.mask, special.mask, "[MASK] or <mask>", "the token in the place of one that is hidden");
  require_one(needs.pad, special.pad, "[PAD] or <pad>", "the token that fills a batch");
}

}  // namespace cloze
