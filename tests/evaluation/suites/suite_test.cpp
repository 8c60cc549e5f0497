// Suites of every kind, and what a run says of bad ones.
#include "evaluation/suites/suite.h"

#include <nlohmann/json.hpp>

#include "tests/evaluation/suites/reading_table.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

std::string pair_line(const std::string& good, const std::string& bad) {
  return json{{"sentence_good", good}, {"sentence_bad", bad}}.dump() + "\n";
}

/// A suite of minimal pairs with these lines.
Suite pairs_in(const TempDir& dir, const std::string& lines) { return open_suite(dir.write("pairs.jsonl", lines)); }

void check_refused(const TempDir& dir, const std::string& name, const std::string& content,
                   const std::string& sentence) {
  const auto path = dir.write(name, content);
  CHECK_THROWS_AS(open_suite(path), DataError);
  CHECK_THROWS_WITH(open_suite(path), Contains(sentence));
}

}  // namespace

TEST_CASE("the kind of a suite is known by its content", "[suites]") {
  const TempDir dir;
  const auto index = [&](const std::string& path) { return open_suite(path).items.index(); };
  CHECK(index(dir.write("pairs.jsonl", pair_line("a cat", "cat a"))) == 0);
  dir.write("lama/facts.jsonl", "{\"predicate_id\": \"R\", \"sub_label\": \"a\", \"obj_label\": \"cat\"}\n");
  dir.write("lama/templates.jsonl", "{\"predicate_id\": \"R\", \"pattern\": \"[X] [Y]\"}\n");
  CHECK(index(dir / "lama") == 1);
  CHECK(index(dir.write("reading.csv", reading_table(3))) == 2);
  CHECK(index(dir.write("words.json", R"({"cats": [{"context": "the old"}]})")) == 3);
  CHECK(index(dir.write("similar.txt", "cat dog 9\ncat river 1\nbird sing 5\nold see 2\n")) == 4);
  CHECK(index(dir.write("analogies.txt", ": animals\ncat dog bird river\n")) == 5);
  CHECK(index(dir.write("sts.tsv",
                        "sentence1\tsentence2\tscore\na cat\ta dog\t3\na\tb\t1\nsee\tsing\t2\nold\tolder\t4\n")) == 4);
  CHECK(open_suite(dir / "pairs.jsonl").name == "pairs");
}

TEST_CASE("a file that is no suite, is cut or is empty is refused with its place", "[suites][bad]") {
  const TempDir dir;
  CHECK_THROWS_WITH(open_suite(dir / "none.jsonl"), Contains("none.jsonl: no such suite"));
  const auto whole = pair_line("the cats see", "the cats sees");
  check_refused(dir, "cut.jsonl", whole + whole.substr(0, 20), "cut.jsonl:2: not a JSON object");
  check_refused(dir, "cut.jsonl", whole + whole.substr(0, 20), "the file is cut off, get it again");
  check_refused(dir, "first.jsonl", whole.substr(0, 20), "first.jsonl:1: not a JSON object");
  check_refused(dir, "empty.jsonl", "", "empty.jsonl: is empty; get it again");
  check_refused(dir, "keys.jsonl", R"({"prompt": "a", "reply": "b"})",
                "keys.jsonl:1: no kind of suite has lines with the keys prompt, reply; docs/evaluation.md lists");
  check_refused(dir, "notes.md", "# Notes\n",
                "notes.md: is no suite of a known kind, for it begins with '# Notes'; docs");
  check_refused(dir, "empty.txt", "\n", "empty.txt: is empty; get it again");
  const std::string judged = "\nred blue 4\ncup mug 9\nsun moon 5\nsea tree 1\n";
  CHECK(std::holds_alternative<SimilaritySuite>(open_suite(dir.write("judged.txt", judged)).items));
  check_refused(dir, "head.txt", "\nword1 word2 score\n" + judged,
                "head.txt:2: is not two words and a number, as line 4 is; write these, or remove the line");
  check_refused(dir, "question.txt", "a b c d\n: capitals\na b c d\n",
                "question.txt:1: comes before the first section of analogies, line 2; write `: NAME` before it");
  check_refused(dir, "nameless.txt", ": capitals\na b c d\n:\na b c d\n",
                "nameless.txt:3: the section has no name; write `: NAME`, or remove the line");
  dir.write("pairs/a.txt", judged);
  dir.write("pairs/b.txt", "");
  CHECK_THROWS_WITH(open_suite(dir / "pairs"), Contains("b.txt: is empty; get it again"));
  check_refused(dir, "ages.csv", "word_clean,aoa\ncat,20.5\n", "ages.csv: has ages of words, but no contexts");
  const auto table = reading_table(4);
  check_refused(dir, "cut.csv", table.substr(0, table.size() - 10),
                "cut.csv:5: has 11 of the 13 fields of the header; the file may be cut");
  check_refused(dir, "cut.json", R"({"cats": [{"context": "the )", "cut.json: the JSON ends in the middle");
  dir.write("folder/readme", "x");
  CHECK_THROWS_WITH(open_suite(dir / "folder"), Contains("folder: holds no suite, for it has no *.jsonl, and no"));
  dir.write("small/fast_eval/blimp_fast/agreement.jsonl", whole);
  CHECK_THROWS_WITH(open_suite(dir / "small"), Contains("small: is BabyLM's evaluation data, which `cloze evaluate RUN "
                                                        "--suite ") &&
                                                   Contains("such as full_eval/blimp_filtered"));
  CHECK(open_suite(dir / "small/fast_eval/blimp_fast").name == "blimp_fast");
  dir.write("damaged/a.jsonl", whole.substr(0, 20));
  dir.write("damaged/b.jsonl", whole);
  CHECK_THROWS_WITH(open_suite(dir / "damaged"), Contains("a.jsonl:1: not a JSON object"));
  dir.write("damaged/a.jsonl", "");
  CHECK_THROWS_WITH(open_suite(dir / "damaged"), Contains("a.jsonl: is empty; remove it, or get it again"));
  check_refused(dir, "pairs.json", whole + whole,
                "pairs.json: has JSON lines, and files of these are called NAME.jsonl");
  check_refused(dir, "pairs.txt", whole, "pairs.txt: has JSON lines, and files of these are called NAME.jsonl");
}

TEST_CASE("a pair with an empty side and an item that is there twice are refused with their lines", "[suites][bad]") {
  const TempDir dir;
  check_refused(dir, "empty.jsonl", pair_line("a cat", "a dog") + pair_line("a cat", ""),
                "empty.jsonl:2: `sentence_bad` is empty");
  const std::string named = R"({"UID": "u", "pairID": "4", "sentence_good": "a cat", "sentence_bad": "a dog"})"
                            "\n";
  check_refused(dir, "twice.jsonl", named + named, "twice.jsonl:2: the item 'u/4' is there twice, first in ");
}

TEST_CASE("a pair whose sides are the same counts as a tie, and is named", "[suites][bad]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto result = run_suite(run, pairs_in(dir, pair_line("a cat", "a cat")), {});
  CHECK(result.scores[0].value == 0.5);
  CHECK(result.scores[0].ties == 1);
  CHECK(result.scores[0].official == 1.0);  // the published programs take the first
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0], Contains("1 of 1 items have candidates that are the same, first pairs/0"));
}

TEST_CASE("a suite that the program of BabyLM does not have has no official figure", "[suites]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto result =
      run_suite(run, open_suite(dir.write("cats.jsonl", R"({"sentences": ["a cat", "a cat"], "answer": 1})")), {});
  CHECK(result.scores[0].value == 0.5);
  for (const auto& score : result.scores) CHECK_FALSE(score.official);
  CHECK_FALSE(result.items[0].contains("official_choice"));
}

TEST_CASE("a sentence that is longer than the model is refused with its item", "[suites][bad]") {
  const auto name = GENERATE("bert", "gpt2");
  const TempDir dir;
  const auto run = random_run(dir, name);
  std::string longest = "the";
  for (int i = 0; i < 60; ++i) longest += " old";
  const auto suite = pairs_in(dir, pair_line("a cat", "a dog") + pair_line("a bird", longest));
  const auto start = Catch::StartsWith("item pairs/1: the text 'the old old");
  const auto reason = Contains("' has 61 tokens, and runs/random reads at most ");
  CHECK_THROWS_AS(run_suite(run, suite, {}), DataError);
  CHECK_THROWS_WITH(run_suite(run, suite, {}), start && reason);
  CHECK_THROWS_WITH(check_fit(run, suite, {}), start && reason);  // without a forward pass
  check_fit(run, pairs_in(dir, pair_line("a cat", "a dog")), {});
}

TEST_CASE("texts of facts and of words with ages that are longer than the model are known before any is scored",
          "[suites][bad]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  std::string longest = "the";
  for (int i = 0; i < 60; ++i) longest += " old";
  dir.write("lama/templates.jsonl", "{\"predicate_id\": \"R\", \"pattern\": \"[X] [Y]\"}\n");
  const std::string fact = R"({"predicate_id": "R", "sub_label": "cat", "obj_label": ")";
  dir.write("lama/facts.jsonl", fact + "dog\"}\n");
  check_fit(run, open_suite(dir / "lama"), {});
  dir.write("lama/facts.jsonl", fact + "dog\"}\n" + fact + longest + "\"}\n");
  CHECK_THROWS_WITH(check_fit(run, open_suite(dir / "lama"), {}), Contains("' has 62 tokens, and runs/random reads"));
  const auto ages = open_suite(dir.write("words.json", R"({"cats": [{"context": ")" + longest + "\"}]}"));
  CHECK_THROWS_WITH(check_fit(run, ages, {}), Contains(" tokens, and runs/random reads at most"));
}

TEST_CASE("text that the tokenizer does not know is scored as unknown and reported; a side without tokens is refused",
          "[suites][bad]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto result = run_suite(run, pairs_in(dir, pair_line("a cat", "a dog") + pair_line("a % cat", "cat a")), {});
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0],
             Contains("1 of 2 items have text that the tokenizer does not know, such as '%'; it is scored as [UNK]"));
  const auto silent = pairs_in(dir, pair_line("a cat", "a dog") + pair_line("a cat", "\xE2\x80\x8B"));
  CHECK_THROWS_AS(run_suite(run, silent, {}), DataError);
  CHECK_THROWS_WITH(run_suite(run, silent, {}), Contains("item pairs/1: ") && Contains("has no token to score"));
}

TEST_CASE("a suite that is scored in parts has the answers of its items alone, and counts on", "[suites]") {
  const TempDir dir;
  const auto run = random_run(dir, "gpt2");
  std::string lines;
  for (int i = 0; i < 8191; ++i) lines += pair_line("a cat", "a dog");
  const std::vector<std::pair<std::string, std::string>> last{
      {"the old cats see", "cats the old see"}, {"a % river", "river a bird"}, {"birds sing", "sing birds"}};
  std::string alone;
  for (const auto& [good, bad] : last) alone += pair_line(good, bad);
  int64_t done = 0, all = 0;
  SuiteOptions options;
  options.scoring.progress = [&](int64_t now, int64_t of) {
    CHECK(now > done);
    done = now;
    all = of;
  };
  const auto whole = run_suite(run, pairs_in(dir, lines + alone), options);
  CHECK(done == 2 * 8194);
  CHECK(all == 2 * 8194);
  REQUIRE(whole.notes.size() == 1);
  CHECK_THAT(whole.notes[0], Contains("1 of 8,194 items have text that the tokenizer does not know, such as '%'"));
  const auto few = run_suite(run, pairs_in(dir, alone), {});
  REQUIRE(whole.items.size() == 8194);
  for (size_t i = 0; i < last.size(); ++i)
    for (size_t k = 0; k < 2; ++k)
      CHECK(whole.items[8191 + i]["candidates"][k]["score"].get<double>() ==
            Approx(few.items[i]["candidates"][k]["score"].get<double>()).epsilon(1e-6));
}

TEST_CASE("logits that are not finite are reported with the item at which they were found", "[suites][bad]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  {
    const at::NoGradGuard no_grad;
    for (const auto& [key, param] : collect_params(*run.network))
      if (key.ends_with("embeddings.word")) param.value()[8].fill_(std::nan(""));
  }
  const auto suite = pairs_in(dir, pair_line("a cat", "a cat s"));
  CHECK_THROWS_AS(run_suite(run, suite, {}), DataError);
  CHECK_THROWS_WITH(run_suite(run, suite, {}),
                    Catch::StartsWith("item pairs/0: runs/random: its logits for the text") &&
                        Contains("are not finite; the training diverged"));
}

TEST_CASE("a suite that a run cannot answer is known from its config, with the reason", "[suites][bad]") {
  const TempDir dir;
  const auto pairs = pairs_in(dir, pair_line("a cat", "a dog"));
  const auto reading = open_suite(dir.write("reading.csv", reading_table(3)));
  RunConfig nsp, electra, clm;
  nsp.objectives = {default_objective<NspConfig>()};
  electra.model = ElectraConfig{};
  electra.objectives = {default_objective<RtdConfig>()};
  clm.model = Gpt2Config{};
  clm.objectives = {default_objective<ClmConfig>()};
  CHECK_THAT(suite_fault(nsp, pairs, {}), Contains("has no head that gives probabilities of tokens, only that of nsp"));
  CHECK_THAT(suite_fault(nsp, reading, {}), Contains("has no head that gives probabilities of tokens"));
  CHECK(suite_fault(electra, pairs, {}).empty());
  CHECK_THAT(suite_fault(electra, reading, {}), Contains("a discriminator of rtd gives none"));
  CHECK_THAT(suite_fault(clm, pairs, {.scoring = {.form = ScoringForm::pll}}),
             Contains("because it was not trained to predict masked tokens; choose likelihood"));
  CHECK(suite_fault(clm, pairs, {}).empty());
  const auto run = random_run(dir, family("bert").model, {default_objective<NspConfig>()});
  CHECK_THROWS_AS(run_suite(run, pairs, {}), ConfigError);
  CHECK_THROWS_WITH(run_suite(run, pairs, {}),
                    Catch::StartsWith("runs/random: cannot answer pairs: the run cannot be"));
}
