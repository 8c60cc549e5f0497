// Expected values are those of sacrebleu 2.6.0 and rouge_score 0.1.2 with their defaults.
#include "data/text_metrics.h"

#include <stdexcept>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

using Lines = std::vector<std::string>;

Approx near(double value) { return Approx(value).epsilon(1e-12).margin(1e-12); }

// Of texts with one reference each.
Bleu bleu(const Lines& hypotheses, const Lines& references) { return bleu(text_sums(hypotheses, references)); }
double chrf(const Lines& hypotheses, const Lines& references) { return chrf(text_sums(hypotheses, references)); }
Rouge rouge(const Lines& hypotheses, const Lines& references) { return rouge(text_sums(hypotheses, references)); }
double exact_match(const Lines& hypotheses, const Lines& references) {
  return exact_match(text_sums(hypotheses, references));
}

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

TEST_CASE("BLEU and chrF add up counts over a corpus, ROUGE averages examples", "[data][text-metrics]") {
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
          "[data][text-metrics]") {
  const Lines hypotheses{"It costs 1,250.75 euros, or 3-5 coins."},
      references{"It costs 1,250 .75 euros , or 3 - 5 coins ."};
  check_bleu(bleu(hypotheses, references), 61.85985276068634, {90.9090909090909, 80.0, 66.66666666666667, 62.5},
             0.8337529180751805);
  CHECK(chrf(hypotheses, references) == near(100.0));
  const auto b = bleu({"Wait.... no,,,, never"}, {"Wait . . . . no , , , , never"});
  CHECK(b.score == near(100.0));
  CHECK(b.hypothesis_length == 11);
}

TEST_CASE("BLEU splits symbols from words, but no dash or apostrophe within one", "[data][text-metrics]") {
  const auto b = bleu({"The baker's well-known (and cheap) rye bread; 50% off @ 9."},
                      {"The baker's well-known ( and cheap ) rye bread ; 50 % off @ 9 ."});
  CHECK(b.score == near(100.0));
  CHECK(b.hypothesis_length == 16);
  CHECK(bleu({"The baker's well-known rye"}, {"The baker 's well - known rye"}).hypothesis_length == 4);
}

TEST_CASE("BLEU undoes HTML entities in turn and joins what a line break hyphenates", "[data][text-metrics]") {
  const auto b =
      bleu({"He wrote &quot;salt &amp;amp; pepper&quot; on &lt;p&gt;."}, {"He wrote \"salt & pepper\" on <p>."});
  check_bleu(b, 69.97522298221911, {85.71428571428571, 76.92307692307692, 66.66666666666667, 54.54545454545455}, 1.0);
  CHECK(b.hypothesis_length == 14);  // &amp;amp; is &amp;, three tokens
  CHECK(bleu({"a &amp;lt; b <skipped>and c"}, {"a < b and c"}).score == near(100.0));
  CHECK(bleu({"The light-\nhouse stood\nalone here."}, {"The lighthouse stood alone here."}).score == near(100.0));
}

TEST_CASE("BLEU halves the credit of each further order that has no match", "[data][text-metrics]") {
  check_bleu(bleu({"green apples fall in late autumn"}, {"late green pears hang in spring"}), 10.682175159905853,
             {50.0, 10.0, 6.25, 4.166666666666667}, 1.0);
}

TEST_CASE("BLEU is 0 if no hypothesis has four words", "[data][text-metrics]") {
  check_bleu(bleu({"Stop here now", "Go"}, {"Stop here now", "Go"}), 0.0, {100.0, 100.0, 100.0, 0.0}, 1.0);
  check_bleu(bleu({""}, {"word"}), 0.0, {0.0, 0.0, 0.0, 0.0}, 0.0);
}

TEST_CASE("a short hypothesis is penalised by the brevity penalty in BLEU and by recall in the other metrics",
          "[data][text-metrics]") {
  const Lines hypotheses{"The ferry leaves at dawn"},
      references{"The ferry leaves at dawn from the northern pier today"};
  check_bleu(bleu(hypotheses, references), 36.78794411714425, {100.0, 100.0, 100.0, 100.0}, 0.36787944117144233);
  CHECK(chrf(hypotheses, references) == near(47.58342044590244));
  check_rouge(rouge(hypotheses, references), 0.6666666666666666, 0.6153846153846153, 0.6666666666666666);
}

TEST_CASE("an empty hypothesis scores 0, and its reference still counts", "[data][text-metrics]") {
  const Lines hypotheses{"", "The lamp is lit ."}, references{"Nothing was said .", "The lamp is lit ."};
  check_bleu(bleu(hypotheses, references), 44.932896411722176, {100.0, 100.0, 100.0, 100.0}, 0.44932896411722156);
  CHECK(chrf(hypotheses, references) == near(51.119072633296305));
  check_rouge(rouge(hypotheses, references), 0.5, 0.5, 0.5);
  CHECK(exact_match(hypotheses, references) == 0.5);
}

TEST_CASE("chrF counts code points, not bytes", "[data][text-metrics]") {
  CHECK(chrf({"山の上に雪が降る"}, {"山の下に雪が降った"}) == near(27.687875290615015));
  const Lines hypotheses{"Žluťoučký kůň 😀 běží"}, references{"Žlutý kůň 🐎 běžel"};
  CHECK(chrf(hypotheses, references) == near(26.72263199209398));
  CHECK(bleu(hypotheses, references).score == near(15.97357760615681));
}

TEST_CASE("a byte that is not UTF-8 is a character of its own", "[data][text-metrics]") {
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

TEST_CASE("chrF ignores n-grams that are longer than the reference", "[data][text-metrics]") {
  CHECK(chrf({"ab", "abcdefgh"}, {"a", "abcdefxh"}) == near(61.41747932456787));
}

TEST_CASE("white space is defined by Unicode", "[data][text-metrics]") {
  const Lines hypotheses{"snow\u3000falls\u00a0on the hill"}, references{"snow falls on the hill"};
  CHECK(bleu(hypotheses, references).score == near(100.0));
  CHECK(chrf(hypotheses, references) == near(100.0));
  CHECK(exact_match({"\u3000 blue\u00a0\n", "blue sky"}, {"blue", "bluesky"}) == 0.5);
}

TEST_CASE("ROUGE-L requires the order of words, ROUGE-1 does not", "[data][text-metrics]") {
  check_rouge(rouge({"one two three four five"}, {"five one three two four"}), 1.0, 0.0, 0.6);
  check_rouge(rouge({"The Old mill turns, slowly; the mill turns."}, {"The mill by the old bridge turns slowly."}),
              0.75, 0.42857142857142855, 0.5);
}

TEST_CASE("matches of a repeated word are clipped to its count in the reference", "[data][text-metrics]") {
  const Lines hypotheses{"so so so so"}, references{"so it is so"};
  check_bleu(bleu(hypotheses, references), 18.99589214128981, {50.0, 16.666666666666668, 12.5, 12.5}, 1.0);
  CHECK(chrf(hypotheses, references) == near(15.178571428571427));
  check_rouge(rouge(hypotheses, references), 0.5, 0.0, 0.5);
}

TEST_CASE("ROUGE splits words at non-ASCII letters, except for those with an ASCII lower case",
          "[data][text-metrics]") {
  check_rouge(rouge({"naïve Σ 5\u212A run in \u0130zmir"}, {"na ve 5k run in i zmir"}), 1.0, 1.0, 1.0);
}

TEST_CASE("each hypothesis needs a reference, and empty lists score 0", "[data][text-metrics]") {
  CHECK_THROWS_AS(text_sums(Lines{"one"}, Lines{}), std::invalid_argument);
  CHECK_THROWS_AS(text_sums(Lines{"one"}, Lines{"one", "two"}), std::invalid_argument);
  CHECK_THROWS_AS(text_sums(std::string("one"), Lines{}), std::invalid_argument);
  CHECK(bleu({}, {}).score == 0);
  CHECK(chrf({}, {}) == 0);
  check_rouge(rouge({}, {}), 0, 0, 0);
  CHECK(exact_match({}, {}) == 0);
}

TEST_CASE("of several references BLEU takes the most matches and the closest length, the others the best one",
          "[data][text-metrics]") {
  const std::vector<std::pair<std::string, Lines>> texts{
      {"The old mill turned slowly in the wind.",
       {"An old mill was turning in the slow wind.", "The mill turned slowly.",
        "In the wind the old mill turned, slowly and loudly."}},
      {"Rain fell on the harbour.\nThe boats stayed in.",
       {"The boats stayed in the harbour.\nRain fell all day.", "It rained, so the boats stayed in."}},
      {"Nothing grows here", {"Here nothing grows."}},
      {"Green boats sail out at dawn",
       {"At dawn the green boats sail out to sea", "Green boats sail out at dawn", "boats"}}};
  TextSums sums;
  for (const auto& [hypothesis, references] : texts) sums.add(text_sums(hypothesis, references));
  const auto b = bleu(sums);
  check_bleu(b, 49.445342931038134, {89.65517241379311, 72.0, 47.61904761904762, 29.41176470588235},
             0.9017226623630116);
  CHECK(b.reference_length == 32);
  CHECK(chrf(sums) == near(77.76641639697587));
  check_rouge(rouge(sums), 0.932748538011696, 0.7095588235294118, 0.7083333333333333);
  CHECK(rouge(sums).rougeLsum == near(0.793859649122807));
  CHECK(exact_match(sums) == 0.25);
}

TEST_CASE("ROUGE-Lsum unites what the lines have in common, and counts no word twice", "[data][text-metrics]") {
  const auto r = rouge({"the mill by the river turns\nthe river is slow\nslow is the mill"},
                       {"slow turns the river by the mill\n\nthe mill is slow\nthe the the mill"});
  check_rouge(r, 0.8275862068965518, 0.4444444444444445, 0.5517241379310344);
  CHECK(r.rougeLsum == near(0.7586206896551724));
  CHECK(rouge({"one\ntwo"}, {"\n"}).rougeLsum == 0);
}

TEST_CASE("a text that occurs twice counts twice", "[data][text-metrics]") {
  const auto one = text_sums(std::string("so it is"), Lines{"so it was"}),
             other = text_sums(std::string("a lamp"), Lines{"the lamp was lit"});
  TextSums weighted, repeated;
  weighted.add(one, 2);
  weighted.add(other);
  for (const auto* text : {&one, &one, &other}) repeated.add(*text);
  CHECK(chrf(weighted) == chrf(repeated));
  CHECK(bleu(weighted).score == bleu(repeated).score);
  CHECK(rouge(weighted).rouge1 == near(rouge(repeated).rouge1));
}

TEST_CASE("signatures are those of sacrebleu", "[data][text-metrics]") {
  CHECK(bleu_signature(1) == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  CHECK(chrf_signature(0) == "nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0");
}
