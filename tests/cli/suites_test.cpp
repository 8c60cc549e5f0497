// `evaluate --suite` and the files of a BabyLM submission.
#include <filesystem>

#include "tests/cli/program.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* pairs = R"({"UID": "agreement", "pairID": "0", "field": "syntax", "linguistics_term": "number", )"
                              R"("sentence_good": "The cat sat.", "sentence_bad": "The cat sits."})"
                              "\n"
                              R"({"UID": "agreement", "pairID": "1", "field": "syntax", "linguistics_term": "number", )"
                              R"("sentence_good": "It woke.", "sentence_bad": "It woke."})"
                              "\n"
                              R"({"UID": "order", "pairID": "0", "field": "syntax", "linguistics_term": "words", )"
                              R"("sentence_good": "The mat slept.", "sentence_bad": "mat The slept."})"
                              "\n";

/// A run with checkpoints at numbers of words, the first of which two numbers share.
const std::string& run_by_words() {
  static const std::string run = [] {
    const auto& w = world();
    const auto trained =
        cloze("pretrain " + w.config() + " --set checkpoint.at_words=[50,60,120] --run " + w.dir / "words");
    INFO(trained.text);
    REQUIRE(trained.code == 0);
    return w.dir / "words";
  }();
  return run;
}

const json& figure(const json& run, size_t number) { return run["suites"][0]["figures"][number]; }

size_t count_lines(const std::string& file) {
  const auto text = read_file(file);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("runs answer a suite in one table, with lines of results and of predictions", "[cli][suites]") {
  const auto& w = world();
  const auto& other = run_by_words();
  const auto file = w.dir.write("answered.jsonl", pairs), out = w.dir / "answers";
  const auto found = json_of(cloze("evaluate " + w.run + " " + other + " --suite " + file + " --json --out " + out));
  REQUIRE(found["runs"].size() == 2);
  CHECK(found["runs"][0]["run"] == w.run);
  CHECK(figure(found["runs"][0], 0)["metric"] == "accuracy");
  CHECK(figure(found["runs"][0], 0)["count"] == 3);
  CHECK(figure(found["runs"][0], 0)["ties"] == 1);
  CHECK_THAT(found["runs"][0]["suites"][0]["notes"][0].get<std::string>(),
             Catch::Contains("1 of 3 items have candidates that are the same"));
  CHECK(count_lines(out + "/predictions.jsonl") == 6);
  CHECK(count_lines(out + "/results.jsonl") ==
        found["runs"][0]["suites"][0]["figures"].size() + found["runs"][1]["suites"][0]["figures"].size());
  CHECK_THAT(read_file(out + "/table.md"), Catch::Contains("| suite | metric |"));
  CHECK_THAT(read_file(out + "/table.tex"), Catch::Contains("\\begin{tabular}"));
  const auto first = cloze("evaluate " + w.run + " --limit 1 --paradigms --suite answered",
                           "export CLOZE_SUITES=" + w.dir.path.string() + "; ");
  CHECK(first.code == 0);
  CHECK_THAT(first.text, Catch::Contains("order") && Catch::Contains("answered is scored by pseudo-log-likelihood"));
  const auto kept = json_of(cloze("evaluate " + w.run + " --suite " + file + " --json --keep " +
                                  w.dir.write("kept.tsv", "UID\tpairID\norder\t0\n")));
  CHECK(figure(kept["runs"][0], 0)["count"] == 1);
}

TEST_CASE("all checkpoints of a run answer, those by words where it keeps them", "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("pairs.jsonl", pairs);
  const auto found = json_of(cloze("evaluate " + run_by_words() + " --all-checkpoints --json --suite " + file));
  REQUIRE(found["runs"].size() == 2);  // of three numbers of words, two are one step
  CHECK(found["runs"][0]["step"] < found["runs"][1]["step"]);
  CHECK_THAT(cloze("evaluate " + run_by_words() + " --all-checkpoints --suite " + file).text,
             Catch::Contains("Suites answered by the checkpoints of ") && Catch::Contains("pairs accuracy %"));
}

TEST_CASE("what a run cannot answer is said before anything is scored, and others answer", "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("pairs.jsonl", pairs), pairs_only = w.dir / "pairs-only";
  const auto trained = cloze("pretrain " + w.config() + " --set 'objectives=[{kind: nsp}]' --run " + pairs_only);
  INFO(trained.text);
  REQUIRE(trained.code == 0);
  const std::string why =
      "cannot answer pairs: the run cannot be scored: it has no head that gives probabilities of tokens";
  check_refused("evaluate " + pairs_only + " --suite " + file, 2, why);
  const auto both = cloze("evaluate " + w.run + " " + pairs_only + " --json --suite " + file);
  CHECK_THAT(both.text, Catch::Contains("warning: " + pairs_only + ": " + why));
  const auto found = json_of(both);
  CHECK(found["runs"][0]["suites"].size() == 1);
  CHECK(found["runs"][1]["suites"].empty());
  CHECK_THAT(found["runs"][1]["unanswered"][0].get<std::string>(), Catch::Contains("cannot answer pairs"));
  const auto babylm = w.dir / "only/babylm";
  w.dir.write("only/babylm/fast_eval/blimp_fast/agreement.jsonl", pairs);
  const auto refused =
      cloze("evaluate " + w.run + " " + pairs_only + " --fast --suite " + babylm + " --results " + w.dir / "none");
  CHECK(refused.code == 2);
  CHECK_THAT(refused.text, Catch::Contains("the published program of BabyLM has no backend for its objectives"));
  CHECK_FALSE(fs::exists(w.dir / "none"));
}

TEST_CASE("an option that none of the suites uses is refused", "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("pairs.jsonl", pairs);
  const auto words = w.dir.write("words.txt", "cat mat 9\ncat sat 1\nmat sat 5\nthe cat 2\n");
  const auto evaluate = "evaluate " + w.run + " --suite ";
  check_refused(evaluate + file + " --layer 0", 2,
                "--layer is of suites of embeddings, which are similarities and analogies, and no suite that is asked "
                "for is one of these; leave it out");
  check_refused(evaluate + file + " --pooling mean", 2, "--pooling is of suites of embeddings");
  check_refused(evaluate + words + " --normalise token", 2, "--normalise is of minimal pairs and completions");
  check_refused(evaluate + words + " --as pll", 2, "--as is of suites of scores");
  CHECK(cloze(evaluate + words + " --suite " + file + " --layer 0 --as pll --normalise token").code == 0);
}

TEST_CASE("a suite with a text that is too long does not cost the answers to others", "[cli][suites]") {
  const auto& w = world();
  std::string longest = "The cat";
  for (int i = 0; i < 60; ++i) longest += " sat";
  const auto file = w.dir.write("short.jsonl", pairs),
             other = w.dir.write("long.jsonl",
                                 json{{"sentence_good", longest}, {"sentence_bad", "The cat sits."}}.dump() + "\n");
  const auto both = cloze("evaluate " + w.run + " --suite " + file + " --suite " + other + " --json");
  CHECK_THAT(both.text, Catch::Contains("warning: " + w.run + ": cannot answer long: item long/0: the text 'The cat"));
  CHECK(both.text.find("cannot answer long") < both.text.find(" items in "));  // before any suite is answered
  const auto found = json_of(both);
  REQUIRE(found["runs"][0]["suites"].size() == 1);
  CHECK(found["runs"][0]["suites"][0]["suite"] == "short");
  CHECK_THAT(found["runs"][0]["unanswered"][0].get<std::string>(), Catch::Contains(" reads at most "));
  check_refused("evaluate " + w.run + " --suite " + other, 1, "error: item long/0: the text 'The cat");
  check_refused("evaluate " + w.run + " " + w.run + " --suite " + other + " --out " + w.dir / "lost", 1,
                "no run has answered a suite; the warnings above say why");
  CHECK_FALSE(fs::exists(w.dir / "lost"));
}

TEST_CASE("runs of one name are not evaluated together for BabyLM, since their results have one folder",
          "[cli][babylm]") {
  const auto& w = world();
  w.dir.write("twins/data/fast_eval/blimp_fast/agreement.jsonl", pairs);
  const auto twin = fs::path(w.dir / "twins") / fs::path(w.run).filename();
  fs::copy(w.run, twin, fs::copy_options::recursive);
  check_refused("evaluate " + w.run + " " + twin.string() + " --fast --suite " + w.dir / "twins/data" + " --results " +
                    w.dir / "twins/results",
                2, " would both write results of the model " + twin.stem().string());
  CHECK_FALSE(fs::exists(w.dir / "twins/results"));
}

TEST_CASE("BabyLM's tasks are answered for every checkpoint, and collated as far as they go", "[cli][babylm]") {
  const auto& w = world();
  const auto& run = run_by_words();
  w.dir.write("suites/babylm/fast_eval/blimp_fast/agreement.jsonl", pairs);
  w.dir.write("suites/babylm/fast_eval/wug_past_tense/wug_past_tense.jsonl",
              "{\"sentences\": \"The cat sat.\\tThe cat sits.\", \"ratio\": 0.75}\n"
              "{\"sentences\": \"The mat slept.\\tThe mat sleep.\", \"ratio\": 0.25}\n"
              "{\"sentences\": \"It woke.\\tIt waked.\", \"ratio\": 0.5}\n");
  const auto results = w.dir / "results", suites = "export CLOZE_SUITES=" + w.dir / "suites; ";
  const auto fast = "evaluate " + run + " --suite babylm --fast --results " + results;
  const auto all = cloze(fast + " --all-checkpoints --json", suites);
  CHECK_THAT(all.text, Catch::Contains("ewok_fast: is not there, so its task is left out"));
  const auto found = json_of(all);
  REQUIRE(found["runs"].size() == 2);
  CHECK(found["runs"][0]["suites"][0]["suite"] == "blimp_fast");
  CHECK(found["runs"][0]["suites"][0]["figures"][0].contains("official"));
  const std::string file = "/zero_shot/mlm/blimp/blimp_fast/predictions.json";
  for (const std::string revision : {"chck_50", "chck_60", "chck_120"})
    CHECK(fs::exists(results + "/words/" + revision + file));
  CHECK(read_file(results + "/words/chck_50" + file) == read_file(results + "/words/chck_60" + file));
  REQUIRE(cloze(fast, suites).code == 0);
  const auto predictions = json::parse(read_file(results + "/words/main" + file));
  CHECK(predictions["agreement"]["predictions"].size() == 2);
  CHECK(predictions["order"]["predictions"][0]["id"] == "order_0");

  const auto collate = "babylm collate " + results + "/words";
  check_refused(collate, 1, "words: is no complete submission; --partial writes what is there");
  const auto partial = cloze(collate + " --partial");
  CHECK(partial.code == 0);
  const auto written = results + "/words/partial_full_preds_and_fast_scores_mlm.json";
  CHECK_THAT(partial.text, Catch::Contains(written) && Catch::Contains("comps/comps/predictions.json: is not there"));
  CHECK(json::parse(read_file(written))["wug_past"]["wug_past"]["predictions"].size() == 3);
  CHECK(cloze("babylm collate " + results + " --model words --backend mlm --partial").code == 0);
}
