// What objectives say that they predict.
#include "objectives/kinds.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("an objective says what it predicts in its own words", "[objectives]") {
  const auto says = [](const ObjectiveConfig& objective, const std::string& text) {
    INFO(kind_of(objective));
    CHECK(as_kind(objective).prediction() == text);
  };
  says(MlmConfig{}, "15 % of the tokens: 80 % [MASK], 10 % random, 10 % kept");
  says(NspConfig{}, "whether segment B follows A, as it does in 50 % of the pairs");
  says(SopConfig{}, "whether two segments are swapped, as they are in 50 % of the pairs");
  says(RtdConfig{}, "which tokens are replaced, where a generator fills 15 % of the tokens: 85 % [MASK], 15 % kept");
  says(SboConfig{}, "the tokens of a masked span, at most 15, from the two beside it");
  MntpConfig hybrid;
  hybrid.causal_share = 0.0625;
  says(
      hybrid,
      "30 % and in the end 15 % of the tokens, spans of up to 3 tokens: 80 % [MASK], 10 % random, 10 % kept, each from "
      "the position before it; in 6.25 % of the rows every token from those before it");
  says(ClmConfig{}, "every token from those before it");
  says(SpanCorruptionConfig{}, "15 % of the tokens, in spans of 3 on average, each behind a sentinel");
  says(
      DenoisingConfig{},
      "the whole text, damaged: 30 % of the words in spans of 3.5 on average, one [MASK] each, 10 % of these by random "
      "tokens, 100 % of the sentences permuted");
  says(GapSentencesConfig{}, "30 % of the sentences, each masked in the source");
  says(PairsConfig{}, "the target of each source");
  says(PlmConfig{}, "a sixth of the tokens, each from those that come before it in a random order");
}

TEST_CASE("a masking names its unit, and a mixture the share of each of its maskings", "[objectives]") {
  MlmConfig mlm;
  mlm.mlm_probability = 0.125;
  mlm.unit = MaskingUnit::word;
  mlm.mask_prob = 1;
  mlm.random_prob = 0;
  CHECK(mlm.prediction() == "12.5 % of the tokens, whole words: 100 % [MASK]");
  MaskingPart spans{mlm, 1}, tokens{mlm, 3};
  spans.unit = MaskingUnit::span;
  tokens.unit = MaskingUnit::token;
  mlm.mixture = {spans, tokens};
  CHECK(
      mlm.prediction() ==
      "in 25 % of the rows 12.5 % of the tokens, spans of up to 10 words: 100 % [MASK]; in 75 % of the rows 12.5 % of "
      "the tokens: 100 % [MASK]");
}
