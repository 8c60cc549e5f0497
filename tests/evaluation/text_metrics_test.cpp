// Expected values are those of sacrebleu 2.6.0 and rouge_score 0.1.2 with their defaults.
#include "evaluation/text_metrics.h"

#include <stdexcept>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

using Lines = std::vector<std::string>;

Approx near(double value) { return Approx(value).epsilon(1e-12).margin(1e-12); }

void check_bleu(const Bleu& b, double score, const std::array<double, 4>& precisions, double brevity_penalty) {
  CHECK(b.score == near(score));
  for (size_t n = 0; n < 4; ++n) CHECK(b.precisions[n] == near(precisions[n]));
  CHECK(b.brevity_penalty == near(brevity_penalty));
}

void check_rouge(const Rouge& r, double rouge1, double rouge2, double rouge_l) {
  CHECK(r.rouge1 == near(rouge1));
  CHECK(r.rouge2 == near(rouge2));
  CHECK(r.rougeL == near(rouge_l));
}

}  // namespace

TEST_CASE("BLEU and chrF add up counts over a corpus, ROUGE averages examples", "[train][text-metrics]") {
  const Lines hypotheses{"The baker sold seven loaves before noon.", "Rain fell on the harbour all night long."};
  const Lines references{"The baker sold nine loaves before the noon bell.", "Rain fell on the old harbour all night."};
  const auto b = bleu(hypotheses, references);
  check_bleu(b, 30.112567492561077, {88.23529411764706, 53.333333333333336, 30.76923076923077, 9.090909090909092},
             0.8890097654027757);
  CHECK(b.hypothesis_length == 17);
  CHECK(b.reference_length == 19);
  CHECK(chrf(hypotheses, references) == near(68.34159518000664));
  check_rouge(rouge(hypotheses, references), 0.8125, 0.5714285714285714, 0.8125);
  CHECK(exact_match(hypotheses, references) == 0);
}

TEST_CASE("BLEU keeps points, commas and dashes within numbers together and splits them elsewhere",
          "[train][text-metrics]") {
  const Lines hypotheses{"It costs 1,250.75 euros, or 3-5 coins."},
      references{"It costs 1,250 .75 euros , or 3 - 5 coins ."};
  check_bleu(bleu(hypotheses, references), 61.85985276068634, {90.9090909090909, 80.0, 66.66666666666667, 62.5},
             0.8337529180751805);
  CHECK(chrf(hypotheses, references) == near(100.0));
  const auto b = bleu({"Wait.... no,,,, never"}, {"Wait . . . . no , , , , never"});
  CHECK(b.score == near(100.0));
  CHECK(b.hypothesis_length == 11);
}

TEST_CASE("BLEU splits symbols from words, but no dash or apostrophe within one", "[train][text-metrics]") {
  const auto b = bleu({"The baker's well-known (and cheap) rye bread; 50% off @ 9."},
                      {"The baker's well-known ( and cheap ) rye bread ; 50 % off @ 9 ."});
  CHECK(b.score == near(100.0));
  CHECK(b.hypothesis_length == 16);
  CHECK(bleu({"The baker's well-known rye"}, {"The baker 's well - known rye"}).hypothesis_length == 4);
}

TEST_CASE("BLEU undoes HTML entities in turn and joins what a line break hyphenates", "[train][text-metrics]") {
  const auto b =
      bleu({"He wrote &quot;salt &amp;amp; pepper&quot; on &lt;p&gt;."}, {"He wrote \"salt & pepper\" on <p>."});
  check_bleu(b, 69.97522298221911, {85.71428571428571, 76.92307692307692, 66.66666666666667, 54.54545454545455}, 1.0);
  CHECK(b.hypothesis_length == 14);  // &amp;amp; is &amp;, three tokens
  CHECK(bleu({"a &amp;lt; b <skipped>and c"}, {"a < b and c"}).score == near(100.0));
  CHECK(bleu({"The light-\nhouse stood\nalone here."}, {"The lighthouse stood alone here."}).score == near(100.0));
}

TEST_CASE("BLEU halves the credit of each further order that has no match", "[train][text-metrics]") {
  check_bleu(bleu({"green apples fall in late autumn"}, {"late green pears hang in spring"}), 10.682175159905853,
             {50.0, 10.0, 6.25, 4.166666666666667}, 1.0);
}

TEST_CASE("BLEU is 0 if no hypothesis has four words", "[train][text-metrics]") {
  check_bleu(bleu({"Stop here now", "Go"}, {"Stop here now", "Go"}), 0.0, {100.0, 100.0, 100.0, 0.0}, 1.0);
  check_bleu(bleu({""}, {"word"}), 0.0, {0.0, 0.0, 0.0, 0.0}, 0.0);
}

TEST_CASE("a short hypothesis is penalised by the brevity penalty in BLEU and by recall in the other metrics",
          "[train][text-metrics]") {
  const Lines hypotheses{"The ferry leaves at dawn"},
      references{"The ferry leaves at dawn from the northern pier today"};
  check_bleu(bleu(hypotheses, references), 36.78794411714425, {100.0, 100.0, 100.0, 100.0}, 0.36787944117144233);
  CHECK(chrf(hypotheses, references) == near(47.58342044590244));
  check_rouge(rouge(hypotheses, references), 0.6666666666666666, 0.6153846153846153, 0.6666666666666666);
}

TEST_CASE("an empty hypothesis scores 0, and its reference still counts", "[train][text-metrics]") {
  const Lines hypotheses{"", "The lamp is lit ."}, references{"Nothing was said .", "The lamp is lit ."};
  check_bleu(bleu(hypotheses, references), 44.932896411722176, {100.0, 100.0, 100.0, 100.0}, 0.44932896411722156);
  CHECK(chrf(hypotheses, references) == near(51.119072633296305));
  check_rouge(rouge(hypotheses, references), 0.5, 0.5, 0.5);
  CHECK(exact_match(hypotheses, references) == 0.5);
}

TEST_CASE("chrF counts code points, not bytes", "[train][text-metrics]") {
  CHECK(chrf({"山の上に雪が降る"}, {"山の下に雪が降った"}) == near(27.687875290615015));
  const Lines hypotheses{"Žluťoučký kůň 😀 běží"}, references{"Žlutý kůň 🐎 běžel"};
  CHECK(chrf(hypotheses, references) == near(26.72263199209398));
  CHECK(bleu(hypotheses, references).score == near(15.97357760615681));
}

TEST_CASE("a byte that is not UTF-8 is a character of its own", "[train][text-metrics]") {
  const std::string one =
                        "a\xFF"
                        "b",
                    other =
                        "a\xFE"
                        "b";
  CHECK(chrf({one}, {one}) == Approx(100));
  CHECK(chrf({one}, {other}) == Approx(100 * 2.0 / 9));  // 2 of 3 characters match, no bigram, no trigram
  CHECK(exact_match({one}, {other}) == 0);
}

TEST_CASE("chrF ignores n-grams that are longer than the reference", "[train][text-metrics]") {
  CHECK(chrf({"ab", "abcdefgh"}, {"a", "abcdefxh"}) == near(61.41747932456787));
}

TEST_CASE("white space is defined by Unicode", "[train][text-metrics]") {
  const Lines hypotheses{"snow\u3000falls\u00a0on the hill"}, references{"snow falls on the hill"};
  CHECK(bleu(hypotheses, references).score == near(100.0));
  CHECK(chrf(hypotheses, references) == near(100.0));
  CHECK(exact_match({"\u3000 blue\u00a0\n", "blue sky"}, {"blue", "bluesky"}) == 0.5);
}

TEST_CASE("ROUGE-L requires the order of words, ROUGE-1 does not", "[train][text-metrics]") {
  check_rouge(rouge({"one two three four five"}, {"five one three two four"}), 1.0, 0.0, 0.6);
  check_rouge(rouge({"The Old mill turns, slowly; the mill turns."}, {"The mill by the old bridge turns slowly."}),
              0.75, 0.42857142857142855, 0.5);
}

TEST_CASE("matches of a repeated word are clipped to its count in the reference", "[train][text-metrics]") {
  const Lines hypotheses{"so so so so"}, references{"so it is so"};
  check_bleu(bleu(hypotheses, references), 18.99589214128981, {50.0, 16.666666666666668, 12.5, 12.5}, 1.0);
  CHECK(chrf(hypotheses, references) == near(15.178571428571427));
  check_rouge(rouge(hypotheses, references), 0.5, 0.0, 0.5);
}

TEST_CASE("ROUGE splits words at non-ASCII letters, except for those with an ASCII lower case",
          "[train][text-metrics]") {
  check_rouge(rouge({"naïve Σ 5\u212A run in \u0130zmir"}, {"na ve 5k run in i zmir"}), 1.0, 1.0, 1.0);
}

TEST_CASE("each hypothesis needs a reference, and empty lists score 0", "[train][text-metrics]") {
  CHECK_THROWS_AS(bleu({"one"}, {}), std::invalid_argument);
  CHECK_THROWS_AS(chrf({"one"}, {"one", "two"}), std::invalid_argument);
  CHECK_THROWS_AS(rouge({}, {"one"}), std::invalid_argument);
  CHECK_THROWS_AS(exact_match({"one"}, {}), std::invalid_argument);
  CHECK(bleu({}, {}).score == 0);
  CHECK(chrf({}, {}) == 0);
  check_rouge(rouge({}, {}), 0, 0, 0);
  CHECK(exact_match({}, {}) == 0);
}
