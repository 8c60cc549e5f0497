#include "train/inspection/inspect.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"
#include "models/families/gpt2.h"
#include "models/families/t5.h"
#include "models/families/xlnet.h"
#include "objectives/collator.h"
#include "objectives/kinds.h"
#include "tests/support/catch.h"
#include "tests/support/tiny.h"

using namespace cloze;

namespace {

/// Checks that p-values are uniform: 1 % are below 0.01. Of 200, at least 10 are with probability 4e-5.
void check_uniform(const std::vector<double>& p) {
  REQUIRE(p.size() >= 200);
  const auto below = [&](double limit) {
    return static_cast<double>(std::count_if(p.begin(), p.end(), [&](double x) { return x < limit; })) /
           static_cast<double>(p.size());
  };
  CHECK(below(0.01) < 0.05);
  CHECK(below(0.5) > 0.3);
  CHECK(below(0.5) < 0.65);
}

const RuleCheck& named(const Inspection& inspection, const std::string& name) {
  const auto check =
      std::find_if(inspection.checks.begin(), inspection.checks.end(), [&](const auto& c) { return c.name == name; });
  INFO(name);
  REQUIRE(check != inspection.checks.end());
  return *check;
}

/// A run on a tiny language with words of two or three tokens.
RunConfig subword_run(const TempDir& dir) {
  auto config = tiny_run(dir, 1);
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nw\n", text;
  for (char c = 'a'; c < 'a' + 16; ++c) vocabulary += std::string("##") + c + "\n";
  auto stream = Rng(3).stream("language");
  for (int d = 0; d < 40; ++d) {
    for (int k = 0; k < 200; ++k)
      text +=
          "w" + std::string(1 + stream.below(2), static_cast<char>('a' + stream.below(16))) + (k % 9 == 8 ? "\n" : " ");
    text += "\n\n";
  }
  PrepareOptions options;
  options.inputs = {dir.write("pieces.txt", text)};
  options.tokenizer = dir.write("pieces-vocab.txt", vocabulary);
  options.out = config.data.tokens = dir / "pieces";
  options.format = TextFormat::lines;
  options.threads = 1;
  options.sentinels = 20;
  if (!std::filesystem::exists(options.out)) prepare(options);
  return config;
}

}  // namespace

TEST_CASE("a fair die passes, a loaded one fails, and p-values follow the chi-square distribution", "[inspect]") {
  // Two degrees of freedom: P(x or more) = exp(-x / 2).
  const auto check = fit_check("three", {120, 90, 90}, {100, 100, 100});
  CHECK(check.observed == Approx(6));
  CHECK(check.expected == 2);
  CHECK(check.p_value == Approx(std::exp(-3.0)));
  CHECK(check.passed);
  CHECK_FALSE(fit_check("loaded", {160, 70, 70}, {100, 100, 100}).passed);
  std::vector<double> p;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    auto stream = Rng(seed).stream("die");
    std::vector<double> counts(6);
    for (int i = 0; i < 600; ++i) ++counts[stream.below(6)];
    p.push_back(fit_check("die", counts, std::vector<double>(6, 100)).p_value);
  }
  check_uniform(p);
}

TEST_CASE("cells with fewer than five expected counts are merged, and impossible values violate the rule",
          "[inspect]") {
  // (12 of 10), (3 + 2 of 6), and the rest is merged with the latter: one degree of freedom.
  const auto check = fit_check("tail", {12, 3, 2, 0, 1}, {10, 3, 3, 1, 1});
  CHECK(check.expected == 1);
  CHECK(check.observed == Approx(4.0 / 10 + 4.0 / 8));
  CHECK(check.p_value == Approx(std::erfc(std::sqrt(0.9 / 2))));
  CHECK(fit_check("one cell", {4}, {3}).p_value == 1);
  CHECK(fit_check("nothing", {}, {}).passed);
  CHECK(fit_check("impossible", {0, 50, 50, 1}, {0, 50, 50}).p_value == 0);
  CHECK_FALSE(fit_check("impossible", {1, 50, 50}, {0, 50, 50}).passed);
}

TEST_CASE("a sum is tested by the normal distribution, and with variance 0 it must be exact", "[inspect]") {
  CHECK(sum_check("sum", 1019.6, 1000, 100).p_value == Approx(0.05).epsilon(0.01));
  CHECK(sum_check("sum", 7, 7, 0).passed);
  CHECK_FALSE(sum_check("sum", 8, 7, 0).passed);
  CHECK_FALSE(strict_check("strict", 1).passed);
}

TEST_CASE("part lengths match an enumeration of all compositions", "[inspect]") {
  for (const auto& [total, parts] : {std::pair{1, 1}, {5, 1}, {5, 5}, {7, 2}, {9, 3}, {12, 4}}) {
    std::vector<double> counted(static_cast<size_t>(total) + 1);
    double ways = 0;
    for (int ends = 0; ends < 1 << (total - 1); ++ends) {  // bit i: a part ends after position i
      if (std::popcount(static_cast<unsigned>(ends)) != parts - 1) continue;
      int first = 1;
      while (first < total && !(ends >> (first - 1) & 1)) ++first;
      ++counted[static_cast<size_t>(first)], ++ways;
    }
    const auto p = part_lengths(total, parts);
    REQUIRE(p.size() == counted.size());
    for (size_t n = 0; n < p.size(); ++n) CHECK(p[n] == Approx(counted[n] / ways));
  }
}

TEST_CASE("every objective passes its own tests, whatever the seed", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  std::string rule;
  int64_t rows = 100;
  MlmConfig mlm;
  SECTION("n-grams") { mlm.unit = MaskingUnit::ngram, rule = "drawn n-gram lengths in words (chi-square)"; }
  SECTION("spans") {
    mlm.unit = MaskingUnit::span;
    mlm.count = CountRule::ceil;
    rule = "drawn span lengths in words (chi-square)";
  }
  SECTION("independent tokens") { mlm.count = CountRule::bernoulli, rule = "predicted tokens"; }
  SECTION("independent words") {
    mlm.count = CountRule::bernoulli;
    mlm.unit = MaskingUnit::word;
    rule = "predicted tokens";
  }
  SECTION("a stochastically rounded share") {
    mlm.count = CountRule::stochastic;
    mlm.mlm_probability = 0.17;
    rule = "predicted tokens";
  }
  SECTION("a mixture") {
    mlm.mixture.resize(3);
    mlm.mixture[1].unit = MaskingUnit::span;
    mlm.mixture[1].share = 2;
    rule = "rows per masking (chi-square)";
  }
  SECTION("the spans of one part of a mixture") {
    mlm.mixture.resize(2);
    mlm.mixture[1].unit = MaskingUnit::span;
    rule = "mixture.1: drawn span lengths in words (chi-square)";
  }
  config.objectives = {mlm};
  const auto use_t5 = [&](const ObjectiveConfig& objective) {
    config.model = T5Config{};
    config.objectives = {objective};
    auto& model = *as<T5Config>(config.model);
    model.hidden_size = 32;
    model.num_hidden_layers = 1;
  };
  SpanCorruptionConfig spans;
  SECTION("masked spans of T5") {
    spans.noise_density = 0.4;
    spans.mean_noise_span_length = 2;
    use_t5(spans);
    rule = "masked span lengths in tokens, one span per text (chi-square)";
    rows = 200;
  }
  SECTION("kept spans of T5") {
    spans.noise_density = 0.4;
    spans.mean_noise_span_length = 2;
    use_t5(spans);
    rule = "kept span lengths in tokens, one span per text (chi-square)";
    rows = 200;
  }
  SECTION("independent tokens of T5") { spans.corruption = Corruption::iid, use_t5(spans), rule = "corrupted tokens"; }
  SECTION("tokens masked as in BERT") { spans.corruption = Corruption::bert, use_t5(spans), rule = "masked tokens"; }
  SECTION("prefixes") { spans.corruption = Corruption::prefix_lm, use_t5(spans), rule = "prefix tokens"; }
  SECTION("spans of BART") { use_t5(DenoisingConfig{}), rule = "drawn span lengths in words (chi-square)"; }
  std::vector<double> p;
  for (int64_t seed = 1; seed <= 200; ++seed) {
    config.train.seed = seed;
    const auto found = inspect_objective(config, 0, rows);
    p.push_back(named(found, rule).p_value);
    for (const auto& check : found.checks) {
      INFO(check.name << " " << check.observed << " " << check.expected << " seed " << seed);
      CHECK(check.p_value > 1e-7);
    }
  }
  check_uniform(p);
}

TEST_CASE("lengths and examples of a mixture are reported by the masking of their rows", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  MlmConfig mlm;
  mlm.mixture.resize(2);
  mlm.mixture[0].unit = MaskingUnit::ngram;
  mlm.mixture[1].mlm_probability = 0.5;
  config.objectives = {mlm};
  const auto found = inspect_objective(config, 40, 200);
  REQUIRE(found.lengths.size() == 2);
  CHECK((found.lengths[0].name == "mixture.0" && found.lengths[1].name == "mixture.1"));
  CHECK((found.lengths[0].expected.size() == 4 && found.lengths[1].expected.empty() && found.lengths[1].drawn.empty()));
  const auto sum = [](const std::vector<double>& counts) { return std::accumulate(counts.begin(), counts.end(), 0.0); };
  CHECK(sum(found.lengths[0].expected) == Approx(sum(found.lengths[0].drawn)));
  CHECK(found.facts["mixture"][0]["sequences"].get<int64_t>() + found.facts["mixture"][1]["sequences"].get<int64_t>() ==
        200);
  CHECK(found.facts["mixture"][1]["predicted_share"].get<double>() == Approx(0.5).margin(0.01));
  for (const auto& e : found.examples) {
    const auto predicted = static_cast<double>(
                   std::count_if(e.labels.begin(), e.labels.end(), [](auto label) { return label != -100; })),
               n = static_cast<double>(e.labels.size());
    CHECK((predicted > 0.3 * n) == (e.masking == 1));
  }
  const auto text = to_text(found, false);
  CHECK_THAT(text, Catch::Contains("mixture.1  ") && Catch::Contains("masking    mixture.0") &&
                       Catch::Contains("ok   mixture.0: drawn n-gram lengths in words") &&
                       Catch::Contains("expected   words   1: 54.55 %"));
  const auto json = to_json(found);
  CHECK(json["lengths"][0]["unit"] == "words");
  CHECK(json["examples"][0]["masking"].is_number());
}

TEST_CASE("the share of corrupted tokens is that of the rule", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  T5Config model;
  model.hidden_size = 32;
  model.num_hidden_layers = 1;
  config.model = model;
  const auto share = [&](const ObjectiveConfig& objective) {
    config.objectives = {objective};
    const auto facts = inspect_objective(config, 0, 400).facts;
    return facts.contains("hidden_share") ? facts["hidden_share"].get<double>() : -1;
  };
  for (const auto kind : {Corruption::spans, Corruption::iid, Corruption::drop}) {
    SpanCorruptionConfig spans;
    spans.corruption = kind;
    spans.noise_density = 0.3;
    INFO(kind);
    CHECK(share(spans) == Approx(0.3).epsilon(0.03));
  }
  for (const auto kind : {Corruption::mass, Corruption::bert, Corruption::deshuffle,
                          Corruption::prefix_lm}) {  // these do not corrupt a share of the text
    SpanCorruptionConfig spans;
    spans.corruption = kind;
    CHECK(share(spans) == -1);
  }
  DenoisingConfig noise;
  noise.mask_length = MaskLength::subword;
  noise.mask_ratio = 0.3;
  for (const int64_t masks : {-1, 0, 1})
    for (const double random : {0.0, 1.0}) {
      noise.replace_length = masks;
      noise.random_ratio = random;
      CHECK(share(noise) == Approx(10.0 / 31).epsilon(0.005));  // rounded up in each text of 31 tokens
    }
  noise.mask_ratio = 0;
  noise.insert_ratio = 0.2;
  CHECK(share(noise) == 0);
}

TEST_CASE("texts shortened to make room for a long target, or for both parts in a decoder, violate no rule",
          "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  SpanCorruptionConfig spans;
  SECTION("targets that are longer than their sources") {
    spans.noise_density = 0.8;
    T5Config model;
    model.hidden_size = 32;
    model.num_hidden_layers = 1;
    config.model = model;
  }
  SECTION("a decoder with source and target in one sequence") {
    spans.corruption = GENERATE(Corruption::spans, Corruption::iid, Corruption::drop, Corruption::mass,
                                Corruption::bert, Corruption::deshuffle, Corruption::prefix_lm);
    Gpt2Config model;
    model.hidden_size = 32;
    model.num_hidden_layers = 1;
    config.model = model;
  }
  config.objectives = {spans};
  for (const auto& check : inspect_objective(config, 1, 1000).checks) {
    INFO(check.name);
    CHECK(check.passed);
  }
}

TEST_CASE("XLNet predicts the number of tokens of its rule", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  PlmConfig plm;
  plm.num_predict = GENERATE(0, 6);
  XlnetConfig model;
  model.hidden_size = 32;
  model.num_hidden_layers = 1;
  config.data.packing = GENERATE(RowPacking::document, RowPacking::full);
  config.data.short_seq_prob = 0;
  config.model = model;
  config.objectives = {plm};
  const auto found = inspect_objective(config, 0, 100);
  CHECK(named(found, "sequences with a wrong number of predictions").passed);
  CHECK(found.facts["predicted_share"].get<double>() == Approx(0.16).margin(0.04));
  CHECK(named(found, "drawn n-gram lengths in tokens (chi-square)").passed);
  REQUIRE(found.lengths[0].expected.size() == 6);
  CHECK(found.lengths[0].expected[2] == Approx(found.lengths[0].expected[1] / 2));
}

TEST_CASE("XLNet predicts at most all candidates, unknown tokens included", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  PrepareOptions options;  // of a vocabulary that lacks most of the text
  options.inputs = {dir.write("strange.txt", "wa zz wb. qq wc wd ww. wa wb xx wc.\n")};
  options.tokenizer = config.data.tokens + "/tokenizer";
  options.out = dir / "strange";
  options.format = TextFormat::lines;
  options.held_out = 0;
  options.threads = 1;
  prepare(options);
  PlmConfig plm;
  plm.num_predict = 1000;
  XlnetConfig model;
  model.hidden_size = 32;
  model.num_hidden_layers = 1;
  config.data.short_seq_prob = 0;
  config.data.tokens = options.out;
  config.model = model;
  config.objectives = {plm};
  const auto found = inspect_objective(config, 0, 1);
  CHECK(found.facts["unknown_share"].get<double>() > 0.1);
  CHECK(found.facts["predicted_share_of_candidates"].get<double>() == 1);
}

TEST_CASE("inspection reports the share of the text used per epoch, and how full rows are", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  config.data.short_seq_prob = 0.2;
  const TokenStore store(config.data.tokens, "train");
  const auto epoch = [&] {
    const Collator collator(store, config.objectives, config.data, Rng(1), "train");
    const auto sequences = static_cast<int64_t>(collator.size());
    return inspect_objective(config, sequences, sequences);
  };
  const auto tokens_of = [](const Inspection& inspection) {
    double tokens = 0;
    for (const auto& row : inspection.examples) tokens += static_cast<double>(row.input_ids.size());
    return tokens;
  };
  config.objectives = {MlmConfig{}};
  const auto plain = epoch();
  const auto rows = static_cast<double>(plain.examples.size());
  CHECK(tokens_of(plain) - 2 * rows == static_cast<double>(store.num_tokens()));
  CHECK(plain.facts["read_share"] == 1.0);
  CHECK(plain.facts["full_share"].get<double>() ==
        Approx(tokens_of(plain) / rows / static_cast<double>(config.data.max_seq_length)));
  CHECK_THAT(to_text(plain, false), Catch::Contains("coverage   100.00 % of the text is used per epoch; rows are "));

  config.objectives = {MlmConfig{}, NspConfig{}};
  const auto pairs = epoch();
  const auto all = static_cast<double>(pairs.examples.size());
  double own = 0;  // all tokens of rows whose B follows A, only segment A of the others
  for (const auto& row : pairs.examples) {
    const auto second = std::count(row.token_type_ids.begin(), row.token_type_ids.end(), 1);
    const auto length = static_cast<int64_t>(row.input_ids.size());
    own += static_cast<double>(row.pair_label == 0 ? length - 3 : length - second - 2);
  }
  CHECK(pairs.facts["read_share"].get<double>() == Approx(own / static_cast<double>(store.num_tokens())));
  CHECK(pairs.facts["full_share"].get<double>() ==
        Approx(tokens_of(pairs) / all / static_cast<double>(config.data.max_seq_length)));
}

TEST_CASE("rows that static masking repeats are inspected once, and hold to the rules", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  MlmConfig mlm;
  mlm.dupe_factor = 2;
  config.objectives = {mlm};
  const TokenStore store(config.data.tokens, "train");
  const Collator collator(store, config.objectives, config.data, Rng(1), "train");
  const auto distinct = 2 * static_cast<int64_t>(collator.size());
  const auto all = inspect_objective(config, 0, 20 * distinct);
  CHECK(all.facts["sequences"] == distinct);
  CHECK_FALSE(all.checks.empty());
  for (const auto& check : all.checks) {
    INFO(check.name);
    CHECK(check.passed);
  }
  CHECK(inspect_objective(config, 0, distinct - 1).facts["sequences"] == distinct - 1);
  mlm.dupe_factor = 0;
  config.objectives = {mlm};
  CHECK(inspect_objective(config, 0, 2 * distinct).facts["sequences"] == 2 * distinct);
}

TEST_CASE("histograms of all kinds of lengths are plotted", "[inspect]") {
  TempDir dir;
  auto config = subword_run(dir);
  MlmConfig mlm;
  mlm.mixture.resize(2);
  mlm.mixture[1].unit = MaskingUnit::span;
  config.objectives = {mlm};
  draw_lengths(inspect_objective(config, 0, 50), dir / "lengths.svg");
  const auto svg = read_file(dir / "lengths.svg");
  CHECK_THAT(svg, Catch::Contains("mixture.0") && Catch::Contains("mixture.1") &&
                      Catch::Contains("expected of the draws, words"));
  CHECK_THROWS_WITH(draw_lengths({}, dir / "none.svg"),
                    Catch::Contains("there are no lengths to plot; leave --picture out"));
}

TEST_CASE("more examples than fit into memory, and more sequences than anybody counts, are refused at once",
          "[inspect]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  config.data.max_seq_length = 32;
  CHECK_THROWS_WITH(inspect_objective(config, 9'000'000'000'000'000'000, 1),
                    Catch::StartsWith("--examples 9000000000000000000 are too many to show (at most 2097152 of "
                                      "data.max_seq_length 32); lower it"));
  CHECK_THROWS_WITH(inspect_objective(config, 3, 9'000'000'000'000'000'000),
                    Catch::Contains("--sequences 9000000000000000000 are too many to count over"));
  CHECK_THROWS_AS(inspect_objective(config, 3, 1'000'000'001), ConfigError);
}

namespace {

/// A run on words of 12 pieces, of which the vocabulary shows only that they continue.
RunConfig long_word_run(const TempDir& dir) {
  auto config = tiny_run(dir, 1);
  std::string text;
  for (int d = 0; d < 40; ++d) {
    for (int k = 0; k < 60; ++k) text += "w" + std::string(11, static_cast<char>('a' + (d + k) % 16)) + " ";
    text += "\n\n";
  }
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nw\n";
  for (char c = 'a'; c < 'a' + 16; ++c) vocabulary += std::string("##") + c + "\n";
  PrepareOptions options;
  options.inputs = {dir.write("long.txt", text)};
  options.tokenizer = dir.write("long-vocab.txt", vocabulary);
  options.out = config.data.tokens = dir / "long";
  options.format = TextFormat::lines;
  options.threads = 1;
  prepare(options);
  return config;
}

}  // namespace

TEST_CASE("words longer than what a row predicts are predicted in part, as many tokens as single ones", "[inspect]") {
  TempDir dir;
  auto config = long_word_run(dir);
  for (const auto unit : {MaskingUnit::token, MaskingUnit::word, MaskingUnit::ngram}) {
    MlmConfig mlm;
    mlm.unit = unit;
    config.objectives = {mlm};
    const auto found = inspect_objective(config, 0, 200);
    CHECK(found.facts["sequences_without_prediction"] == 0);
    CHECK(found.facts["predicted_share"].get<double>() == Approx(0.15).epsilon(0.1));
    for (const auto& check : found.checks) {
      INFO(check.name);
      CHECK(check.passed);
    }
  }
}

TEST_CASE("a predicted share that is far from what was wanted fails the test of it", "[inspect]") {
  CHECK(enough_check("", 80, 100).passed);
  CHECK_FALSE(enough_check("", 3, 100).passed);
}

TEST_CASE("of a mixture of texts, the share of each in the rows is counted", "[inspect]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  CHECK_FALSE(inspect_objective(config, 0, 64).facts.contains("texts"));
  PrepareOptions options;
  options.inputs = {dir.write("short.txt", synthetic_text(20, 5))};
  options.tokenizer = dir / "vocab.txt";
  options.out = dir / "short";
  options.format = TextFormat::lines;
  options.threads = 1;
  prepare(options);
  config.data.mixture = {{config.data.tokens, 1}, {options.out, 3}};
  const auto found = inspect_objective(config, 0, 640);
  const auto& texts = found.facts["texts"];
  REQUIRE(texts.size() == 2);
  CHECK(texts[1]["tokens"] == options.out);
  CHECK(texts[1]["share"] == 0.75);
  CHECK(texts[1]["read_share"].get<double>() == Approx(0.75).margin(0.03));
  CHECK_THAT(counts_text(found), Catch::Contains(" of the tokens are of " + options.out + ", whose share is 75"));
}
