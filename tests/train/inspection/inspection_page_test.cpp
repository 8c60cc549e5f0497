// The page of inspected rows.
#include "train/inspection/inspect.h"
#include "data/store/token_store.h"
#include "models/families/bart.h"
#include "models/families/electra.h"
#include "models/families/gpt2.h"
#include "models/families/t5.h"
#include "models/families/xlnet.h"
#include "core/error.h"
#include "objectives/kinds.h"
#include "tests/support/catch.h"
#include "tests/support/objective.h"
#include "tests/support/tiny.h"

using namespace cloze;

namespace {

/// A run of `Model` with an objective, over the tiny language.
template <class Model>
RunConfig shown_run(const TempDir& dir, const std::string& yaml) {
  auto config = tiny_run(dir, 1);
  config.model = tiny_model<Model>();
  config.objectives = {objective(yaml)};
  config.data.short_seq_prob = 0;
  return config;
}

Inspection shown(const RunConfig& config, int64_t rows = 2) { return inspect_objective(config, rows, 40, {}, true); }

std::vector<std::string> titles_of(const InspectedExample& row) {
  std::vector<std::string> titles;
  for (const auto& part : row.shown) titles.push_back(part.title);
  return titles;
}

using Titles = std::vector<std::string>;

}  // namespace

TEST_CASE("a page shows each token of a masked row, what became of it, and what is predicted there",
          "[inspect][page]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  const auto found = shown(config, 8);
  const auto tokenizer = TokenStore(config.data.tokens, "train").tokenizer();
  for (const auto& e : found.examples) {
    CHECK(titles_of(e) == Titles{"reads, segment A", "segment B"});
    auto tokens = e.shown[0].tokens;
    tokens.insert(tokens.end(), e.shown[1].tokens.begin(), e.shown[1].tokens.end());
    REQUIRE(tokens.size() == e.input_ids.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto id = e.input_ids[i], label = e.labels[i];
      CHECK(tokens[i].piece == tokenizer.piece(id));
      CHECK(tokens[i].below == (label == -100 ? "" : tokenizer.piece(label)));
      const auto chosen = id == tokenizer.special().mask ? TokenRole::masked
                          : id == label                  ? TokenRole::kept
                                                         : TokenRole::random;
      const auto other = tokenizer.is_special(id) ? TokenRole::special : TokenRole::text;
      CHECK((tokens[i].role == (label == -100 ? other : chosen)));
    }
  }
}

TEST_CASE("a page shows the parts of a row by what reads them", "[inspect][page]") {
  TempDir dir;
  const auto electra = shown(shown_run<ElectraConfig>(dir, "{kind: rtd}")).examples[0];
  CHECK(titles_of(electra) == Titles{"generator reads", "discriminator reads, drawn by the first weights"});
  size_t sampled = 0;
  for (size_t i = 0; i < electra.input_ids.size(); ++i) {
    const auto& token = electra.shown[1].tokens[i];
    if (electra.labels[i] == -100) {
      CHECK(token.below.empty());
      continue;
    }
    const bool replaced = electra.replacements[sampled++] != electra.labels[i];
    CHECK(token.below == (replaced ? "replaced" : "original"));
    CHECK((token.role == (replaced ? TokenRole::replaced : TokenRole::restored)));
  }
  CHECK(sampled > 0);

  const auto t5 = shown(shown_run<T5Config>(dir, "{kind: span_corruption}")).examples[0];
  CHECK(titles_of(t5) == Titles{"encoder reads", "decoder reads, and predicts"});
  const auto& source = t5.shown[0].tokens;
  const auto sentinel = std::ranges::find(source, TokenRole::placeholder, &ShownToken::role);
  REQUIRE(sentinel != source.end());
  CHECK(sentinel->piece == "<extra_id_0>");
  const auto& target = t5.shown[1].tokens;
  CHECK(target.front().below == "<extra_id_0>");
  CHECK(target[1].piece == "<extra_id_0>");
  CHECK(target.back().below == "[SEP]");

  const auto causal = shown(shown_run<Gpt2Config>(dir, "{kind: clm}")).examples[0].shown;
  REQUIRE(causal.size() == 1);
  for (size_t i = 0; i + 1 < causal[0].tokens.size(); ++i)
    CHECK(causal[0].tokens[i].below == causal[0].tokens[i + 1].piece);
  CHECK_FALSE(causal[0].tokens.back().below.empty());

  const auto plm = shown(shown_run<XlnetConfig>(dir, "{kind: plm}")).examples[0];
  CHECK(titles_of(plm) == Titles{"reads", "predicts, in this order"});
  const auto& ordered = plm.shown[1].tokens;
  for (size_t i = 0; i < ordered.size(); ++i) CHECK(ordered[i].below == std::to_string(i + 1));

  const auto bart = shown(shown_run<BartConfig>(dir, "{kind: denoising}")).examples[0];
  CHECK(titles_of(bart) == Titles{"encoder reads", "decoder reads, and predicts"});
  CHECK(std::ranges::count(bart.shown[0].tokens, TokenRole::placeholder, &ShownToken::role) > 0);

  const auto hybrid = shown(shown_run<Gpt2Config>(dir, "{kind: mntp, causal_share: 0.5}"), 8).examples;
  for (const auto& e : hybrid) {
    const auto& tokens = e.shown[0].tokens;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const bool chosen = tokens[i + 1].role >= TokenRole::masked && tokens[i + 1].role <= TokenRole::kept;
      CHECK((e.prefix == 0 ? !chosen && !tokens[i].below.empty() : chosen == !tokens[i].below.empty()));
    }
  }
}

TEST_CASE("configs stand side by side on a page that refers to nothing outside it", "[inspect][page]") {
  TempDir dir;
  std::vector<InspectedConfig> inspected;
  const auto add = [&](const std::string& name, const RunConfig& config) {
    inspected.push_back({name, config, shown(config)});
  };
  add("configs/<mlm> & nsp.yaml", tiny_run(dir, 1));
  add("clm.yaml", shown_run<Gpt2Config>(dir, "{kind: clm}"));
  add("t5.yaml", shown_run<T5Config>(dir, "{kind: span_corruption}"));
  add("electra.yaml", shown_run<ElectraConfig>(dir, "{kind: rtd}"));
  const auto page = to_html(inspected);
  for (const std::string part :
       {"<h1>Rows of mlm, nsp, clm, span_corruption and rtd</h1>", "configs/&lt;mlm&gt; &amp; nsp.yaml",
        "encoder reads", "discriminator reads", "segment B", "became the mask", "&lt;extra_id_0&gt;", "<h2>Row 2</h2>",
        "clm predicts every token from those before it.",
        "mlm predicts 15 % of the tokens: 80 % [MASK], 10 % random, 10 % kept.",
        "pair: ", "labels that are not the next token"})
    CHECK_THAT(page, Catch::Contains(part));
  CHECK_THAT(page, !Catch::Contains("<script") && !Catch::Contains("http") && !Catch::Contains("<extra_id_0>") &&
                       !Catch::Contains("<mlm>") && !Catch::Contains("<h2>Row 3</h2>"));
  CHECK_THROWS_WITH(inspect_objective(inspected[0].config, 101, 1, {}, true),
                    Catch::StartsWith("--examples 101 are too many for a page (at most 100); lower it"));
}

TEST_CASE("what has no lengths is refused a picture by its config, and what has some gets one", "[inspect]") {
  TempDir dir;
  const auto file = dir / "lengths.svg";
  const auto check = [&](const RunConfig& config, bool has_lengths) {
    INFO(kind_of(config.objectives[0]));
    const auto found = inspect_objective(config, 0, 40);
    if (has_lengths) {
      CHECK_NOTHROW(check_picture(config.objectives, file));
      CHECK_NOTHROW(draw_lengths(found, file));
    } else {
      CHECK_THROWS_WITH(check_picture(config.objectives, file),
                        Catch::Contains("no lengths to plot; leave --picture out"));
      CHECK_THROWS_AS(draw_lengths(found, file), ConfigError);
    }
  };
  check(tiny_run(dir, 1), true);
  check(shown_run<ElectraConfig>(dir, "{kind: rtd}"), true);
  check(shown_run<XlnetConfig>(dir, "{kind: plm}"), true);
  check(shown_run<Gpt2Config>(dir, "{kind: mntp}"), true);
  check(shown_run<Gpt2Config>(dir, "{kind: clm}"), false);
  auto pairs = shown_run<BertConfig>(dir, "{kind: nsp}");
  check(pairs, false);
  for (const auto& [corruption, has] : {std::pair{"spans", true},
                                        {"iid", true},
                                        {"drop", false},
                                        {"mass", false},
                                        {"bert", false},
                                        {"deshuffle", false},
                                        {"prefix_lm", false}})
    check(shown_run<T5Config>(dir, concat("{kind: span_corruption, corruption: ", corruption, "}")), has);
  for (const auto& [unit, has] : {std::pair{"span-poisson", true}, {"word", false}, {"subword", false}})
    check(shown_run<BartConfig>(dir, concat("{kind: denoising, mask_length: ", unit, "}")), has);
  CHECK_THROWS_WITH(check_picture(tiny_run(dir, 1).objectives, dir / "lengths.pdf"),
                    Catch::Contains("must end in .svg"));
}
