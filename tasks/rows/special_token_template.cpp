#include "tasks/rows/special_token_template.h"

#include <algorithm>

#include "core/error.h"
#include "models/encoder_decoder_config.h"

namespace cloze {

namespace {

std::vector<int32_t> narrow_ids(const std::vector<int64_t>& ids) { return {ids.begin(), ids.end()}; }

/// The place of a special token in every row, as the frame has it: -1 for none.
struct SpecialPlace {
  bool exists = false;
  int64_t place = 0;
};

SpecialPlace place_of(const Tokenizer::Frame& frame, int64_t id) {
  if (id < 0) return {};
  const auto first = std::find(frame.before.begin(), frame.before.end(), id);
  if (first != frame.before.end()) return {true, first - frame.before.begin()};
  const auto last = std::find(frame.after.rbegin(), frame.after.rend(), id);
  if (last != frame.after.rend()) return {true, -1 - (last - frame.after.rbegin())};
  return {};
}

SpecialTokenTemplate special_token_template(const Tokenizer::Frame& frame) {
  return {.before = narrow_ids(frame.before),
          .between = narrow_ids(frame.between),
          .after = narrow_ids(frame.after),
          .has_segments = frame.segments,
          .last_segment_is_own = frame.segments && frame.pads_left};
}

}  // namespace

SpecialTokenTemplate special_token_template(const Tokenizer& tokenizer, const ModelConfig& model) {
  const auto& c = backbone_of(model);
  // The encoder of an encoder-decoder alone, as of T5's tags, reads the rows that both read together.
  const bool reads_end = as<EncoderDecoderConfig>(model) != nullptr && !c.is_decoder();
  const auto frame = tokenizer.frame(TextReader{.kind = kind_of(model),
                                                .segments = c.token_types && c.type_vocab_size > 1,
                                                .end = c.is_decoder() || reads_end ? c.eos_token_id : -1});
  auto made = special_token_template(frame);
  made.max_length = c.max_input_length();
  made.joins_target = c.is_decoder();
  made.end = static_cast<int32_t>(c.eos_token_id >= 0 ? c.eos_token_id : tokenizer.special().sep);
  const auto cls = place_of(frame, tokenizer.special().cls);
  if (c.is_decoder()) {
    made.class_place = -1;
  } else if (reads_end) {
    auto end = place_of(frame, c.eos_token_id);
    if (!end.exists) end = place_of(frame, tokenizer.special().sep);
    require<ConfigError>(end.exists, "the tokenizer of ", kind_of(model),
                         " puts no </s> after a text, at which an encoder-decoder reads its class; give it one as "
                         "model.eos_token_id, or import the model again with its tokenizer files");
    made.class_place = end.place;
  } else {
    require<ConfigError>(cls.exists, "the tokenizer of ", kind_of(model),
                         " puts no [CLS] or <s> around a text, at which ", kind_of(model),
                         " reads its class; prepare the text again with --special-tokens");
    made.class_place = cls.place;
  }
  made.no_answer_place = cls.exists ? cls.place : made.class_place;
  return made;
}

SpecialTokenTemplate special_token_template(const Tokenizer& tokenizer) {
  const auto frame = tokenizer.frame();
  auto made = special_token_template(frame);
  const auto cls = place_of(frame, tokenizer.special().cls);
  made.class_place = cls.exists ? cls.place : -1;
  made.no_answer_place = made.class_place;
  return made;
}

}  // namespace cloze
