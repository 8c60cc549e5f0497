#include "models/families/families.h"
#include "objectives/special_tokens.h"

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

TEST_CASE("an error names the special token that the tokenizer lacks", "[objectives]") {
  TempDir dir;
  const auto bare = Tokenizer::open(dir.write("a/vocab.txt", "[UNK]\n[CLS]\n[SEP]\nx\n"));
  CHECK_THROWS_WITH(require_special_tokens({default_objective<MlmConfig>()}, BertConfig{}, bare, "tokens"),
                    Catch::Equals("the tokenizer of tokens has no [MASK] or <mask>, the token that replaces a "
                                  "masked one, which mlm needs; prepare the text again with --special-tokens"));
  CHECK_NOTHROW(require_special_tokens({default_objective<ClmConfig>()}, Gpt2Config{}, bare, "tokens"));
  CHECK_THROWS_WITH(require_special_tokens({default_objective<SpanCorruptionConfig>()}, T5Config{}, bare, "tokens"),
                    Catch::Contains("has no [PAD] or <pad>, the token that pads a batch, which span_corruption needs"));
  const auto masked = Tokenizer::open(dir.write("b/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\nx\n"));
  CHECK_NOTHROW(require_special_tokens({default_objective<MlmConfig>()}, BertConfig{}, masked, "tokens"));
  CHECK_THROWS_WITH(require_special_tokens({default_objective<MlmConfig>()}, RobertaConfig{}, masked, "tokens"),
                    Catch::Contains("has no [PAD] or <pad>"));  // position ids start after it
  const auto none = Tokenizer::open(dir.write("c/vocab.txt", "[UNK]\nx\n"));
  CHECK_THROWS_WITH(require_special_tokens({default_objective<ClmConfig>()}, Gpt2Config{}, none, "tokens"),
                    Catch::Contains("has no [SEP] or </s>, the token that ends a text, which clm needs"));
  const auto padded = Tokenizer::open(dir.write("d/vocab.txt", "[UNK]\n[PAD]\nx\n"));  // T5's has no [CLS], either
  CHECK_NOTHROW(require_special_tokens({default_objective<ClassificationConfig>()}, T5Config{}, padded, "tokens"));
  CHECK_NOTHROW(
      require_special_tokens({default_objective<MlmConfig>()}, RobertaConfig{}, none.with_special_tokens(), "tokens"));
}
