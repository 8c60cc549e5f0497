#include "inference/generation/fill.h"

#include "models/families/xlnet.h"
#include "tests/support/catch.h"
#include "tests/support/trained.h"

using namespace cloze;

TEST_CASE("an XLNet fills masked positions by its query stream, several at once", "[fill][learning]") {
  TempDir dir;
  auto config = tiny_run(dir, 600);
  XlnetConfig model;
  model.hidden_size = 32, model.num_hidden_layers = 2, model.num_attention_heads = 2, model.intermediate_size = 64;
  config.model = model, config.objectives = {default_objective<PlmConfig>()}, config.data.packing = RowPacking::full,
  config.data.short_seq_prob = 0;
  pretrain(config, {.run = dir / "run"});
  const auto run = open_run(dir / "run");
  const auto masks =
      fill(run, "wb we wn [MASK] wj wm wf wa wb we [MASK] wi wj wm", 3);  // ... n -> i -> j ..., e -> n -> i
  REQUIRE(masks.size() == 2);
  CHECK(masks[0][0].token == "wi");
  CHECK(masks[1][0].token == "wn");
  CHECK(masks[0][0].probability > 0.5);
  CHECK(filled_text(run.tokenizer, "wb we wn [MASK] wj", masks[0]) == "wb we wn wi wj");
  CHECK(filled_text(run.tokenizer, "[MASK] wj [MASK]", {masks[0][0], masks[1][0]}, {"<", ">"}) == "<wi> wj <wn>");
}

TEST_CASE("masks are filled with the tokens that the language requires", "[fill]") {
  const auto run = open_run(trained());
  const auto masks = fill(run, "wb we wn [MASK] wc wh", 3);  // b -> e -> n -> i -> ... ; i is 8: (3 * 13 + 1) mod 16
  REQUIRE(masks.size() == 1);
  CHECK(masks[0].size() == 3);
  CHECK(masks[0][0].probability >= masks[0][1].probability);
  CHECK(filled_text(run.tokenizer, "wb we wn [MASK]", masks[0]).find("[MASK]") == std::string::npos);
  CHECK_THROWS_WITH(fill(run, "no blank", 3), "'no blank' has no [MASK] to fill; write [MASK] for each blank");
  std::string lengthy = "[MASK]";
  for (int i = 0; i < 50; ++i) lengthy += " wa";
  CHECK_THROWS_WITH(fill(run, lengthy, 3), "the text has 53 tokens, the model reads at most 32; shorten it");
}
