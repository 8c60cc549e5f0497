// `evaluate --suite` and the files of a BabyLM submission.
#include <filesystem>
#include <fstream>

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

const json& score(const json& run, size_t number) { return run["suites"][0]["figures"][number]; }

/// A text that is longer than the models.
std::string longest() {
  std::string text = "The cat";
  for (int i = 0; i < 60; ++i) text += " sat";
  return text;
}

size_t count_lines(const std::string& file) {
  const auto text = read_file(file);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Damage that leaves the size of a file, and numbers that could be weights.
void change_last_byte(const std::string& file) {
  auto bytes = read_file(file);
  bytes.back() ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("runs answer a suite in one table, with lines of results and of predictions", "[cli][suites]") {
  const auto& w = world();
  const auto& other = run_by_words();
  const auto file = w.dir.write("answered.jsonl", pairs), out = w.dir / "answers";
  const auto found = json_of(cloze("evaluate " + w.run + " " + other + " --suite " + file + " --json --out " + out));
  REQUIRE(found["runs"].size() == 2);
  CHECK(found["runs"][0]["run"] == w.run);
  CHECK(score(found["runs"][0], 0)["metric"] == "accuracy");
  CHECK(score(found["runs"][0], 0)["count"] == 3);
  CHECK(score(found["runs"][0], 0)["ties"] == 1);
  CHECK_THAT(found["runs"][0]["suites"][0]["notes"][0].get<std::string>(),
             Catch::Contains("1 of 3 items have candidates that are the same"));
  REQUIRE(found["comparisons"].size() == 1);
  const auto& compared = found["comparisons"][0];
  CHECK(compared["items"] == 3);
  CHECK(compared["first"]["value"] == score(found["runs"][0], 0)["value"]);
  const double difference = compared["first"]["value"].get<double>() - compared["second"]["value"].get<double>();
  CHECK(compared["difference"].get<double>() == Approx(difference).margin(1e-12));
  CHECK_THAT(read_file(out + "/table.md"), Catch::Contains("run less words") && Catch::Contains("McNemar"));
  CHECK(count_lines(out + "/predictions.jsonl") == 6);
  CHECK(count_lines(out + "/results.jsonl") ==
        found["runs"][0]["suites"][0]["figures"].size() + found["runs"][1]["suites"][0]["figures"].size());
  CHECK_THAT(read_file(out + "/table.md"), Catch::Contains("| suite | metric |"));
  const auto markdown = read_file(out + "/table.md");
  CHECK_THAT(markdown, Catch::Contains(", with 95 % intervals\n") && Catch::Contains("\n| &nbsp;&nbsp;number | "));
  CHECK_THAT(read_file(out + "/table.tex"), Catch::Contains("\\begin{tabular}") &&
                                                Catch::Contains("\\quad number & ") &&
                                                Catch::Contains("\n% run, words: answered: scored by pseudo-log"));
  const auto first = cloze("evaluate " + w.run + " --limit 1 --paradigms --suite answered",
                           "export CLOZE_SUITES=" + w.dir.path.string() + "; ");
  CHECK(first.code == 0);
  CHECK_THAT(first.text, Catch::Contains("order") && Catch::Contains("answered: scored by pseudo-log-likelihood"));
  const auto kept = json_of(cloze("evaluate " + w.run + " --suite " + file + " --json --keep " +
                                  w.dir.write("kept.tsv", "UID\tpairID\norder\t0\n")));
  CHECK(score(kept["runs"][0], 0)["count"] == 1);
}

TEST_CASE("all checkpoints of a run answer, with their revisions where they are kept by words", "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("pairs.jsonl", pairs);
  const auto found = json_of(cloze("evaluate " + run_by_words() + " --all-checkpoints --json --suite " + file));
  REQUIRE(found["runs"].size() == 3);  // of three numbers of words, two are one step; the last step is none of them
  CHECK(found["runs"][0]["step"] < found["runs"][1]["step"]);
  CHECK(found["runs"][0]["revisions"] == json::array({"chck_50", "chck_60"}));
  CHECK(found["runs"][1]["revisions"] == json::array({"chck_120"}));
  CHECK(found["runs"][1]["words"].get<int64_t>() >= 120);
  CHECK(found["runs"][2]["step"] == 6);
  CHECK_FALSE(found["runs"][2].contains("revisions"));
  CHECK_THAT(cloze("evaluate " + run_by_words() + " --all-checkpoints --suite " + file).text,
             Catch::Contains("Suites evaluated on the checkpoints of ") && Catch::Contains("pairs accuracy %") &&
                 Catch::Contains("chck_50, chck_60"));
}

TEST_CASE("a run that has lost its tokenizer is told what brings it back", "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("pairs.jsonl", pairs), run = w.dir / "without-tokenizer";
  fs::copy(w.run, run, fs::copy_options::recursive);
  fs::remove_all(run + "/tokenizer");
  const auto remedy = "; restore " + run + "/tokenizer, or resume the run with its tokens";
  check_refused("evaluate " + run + " --suite " + file, 2,
                "cannot answer pairs: it has no tokenizer, so it cannot read text" + remedy);
  check_refused("score " + run + " " + w.dir.write("woke.txt", "It woke.\n"), 1, remedy);
  check_refused("fill " + run + " '[MASK] woke.'", 1, remedy);
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
  check_refused("evaluate " + pairs_only + " --fast --suite " + babylm + " --results " + w.dir / "none", 2,
                pairs_only + ": the run cannot be scored: it has no head that gives probabilities of tokens");
  // Nor is anything answered where no run can be.
  check_refused(
      "evaluate " + pairs_only + " " + pairs_only + " --fast --suite " + babylm + " --results " + w.dir / "none", 2,
      pairs_only + ": the run cannot be scored: it has no head that gives probabilities of tokens");
  check_refused("evaluate " + w.run + " --suite " + babylm + " --stride 4", 2,
                "in fp32 and without windows; leave out --stride and --precision");
  CHECK_FALSE(fs::exists(w.dir / "none"));
}

TEST_CASE("a run that cannot be scored does not cost BabyLM's answers of others", "[cli][babylm]") {
  const auto& w = world();
  const auto pairs_only = w.dir / "no-backend";
  const auto trained = cloze("pretrain " + w.config() + " --set 'objectives=[{kind: nsp}]' --run " + pairs_only);
  INFO(trained.text);
  REQUIRE(trained.code == 0);
  w.dir.write("backends/fast_eval/blimp_fast/agreement.jsonl", pairs);
  const std::string evaluate = "evaluate " + w.run + " " + pairs_only + " --json --fast --suite " + w.dir / "backends" +
                               " --results " + w.dir / "backends-results";
  const std::string none = "the run cannot be scored: it has no head that gives probabilities of tokens";
  const std::string other = "backend mlm scores runs of mlm, and the run is one of nsp; the published program has no ";
  for (const auto& [option, why] : {std::pair(std::string(), none), std::pair(std::string(" --backend mlm"), other)}) {
    const auto both = cloze(evaluate + option);
    INFO(both.text);
    CHECK(both.code == 0);
    const auto fault = "cannot answer " + w.dir / "backends" + ": " + why;
    CHECK_THAT(both.text, Catch::Contains("warning: " + pairs_only + ": " + fault));
    const auto found = json_of(both);
    REQUIRE(found["runs"].size() == 2);
    CHECK(found["runs"][0]["suites"].size() == 1);
    CHECK(found["runs"][1]["suites"].empty());
    REQUIRE(found["runs"][1]["unanswered"].size() == 1);
    CHECK_THAT(found["runs"][1]["unanswered"][0].get<std::string>(), Catch::StartsWith(fault));
  }
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
  const std::vector<std::string> of_scores{"--as pll", "--stride 4", "--precision bf16", "--cache " + w.dir / "unused"};
  for (const auto& option : of_scores)
    check_refused(evaluate + words + " " + option, 2,
                  option.substr(0, option.find(' ')) + " is of suites of scores, which are all but similarities");
  CHECK_FALSE(fs::exists(w.dir / "unused"));
  CHECK(cloze(evaluate + words + " --suite " + file + " --layer 0 --as pll --normalise token").code == 0);
}

TEST_CASE("texts of a suite that are longer than the model are scored in windows", "[cli][suites]") {
  const auto& w = world();
  std::string long_sentence = "The cat";
  for (int i = 0; i < 40; ++i) long_sentence += " sat on mat";
  const auto file = w.dir.write("windowed.jsonl", json({{"UID", "a"},
                                                        {"pairID", "0"},
                                                        {"field", "syntax"},
                                                        {"linguistics_term", "number"},
                                                        {"sentence_good", long_sentence + " and woke"},
                                                        {"sentence_bad", long_sentence + " mat"}})
                                                          .dump() +
                                                      "\n");
  const auto evaluate = "evaluate " + w.run + " --suite " + file + " --json";
  check_refused(evaluate, 1, "shorten it, or score it in windows with a stride");
  const auto plain = json_of(cloze(evaluate + " --stride 10")),
             half = json_of(cloze(evaluate + " --stride 10 --precision bf16 --cache " + w.dir / "windowed"));
  CHECK(score(plain["runs"][0], 0)["count"] == 1);
  CHECK(score(half["runs"][0], 0)["count"] == 1);
  CHECK(fs::file_size(fs::directory_iterator(w.dir / "windowed")->path()) > 0);
}

TEST_CASE("a suite with a text that is too long does not cost the answers to others", "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("short.jsonl", pairs),
             other = w.dir.write("long.jsonl",
                                 json{{"sentence_good", longest()}, {"sentence_bad", "The cat sits."}}.dump() + "\n");
  const auto both = cloze("evaluate " + w.run + " --suite " + file + " --suite " + other + " --json");
  CHECK_THAT(both.text, Catch::Contains("warning: " + w.run + ": cannot answer long: item long/0: the text 'The cat"));
  CHECK(both.text.find("cannot answer long") < both.text.find(" items in "));  // before any suite is answered
  const auto found = json_of(both);
  REQUIRE(found["runs"][0]["suites"].size() == 1);
  CHECK(found["runs"][0]["suites"][0]["suite"] == "short");
  CHECK_THAT(found["runs"][0]["unanswered"][0].get<std::string>(),
             Catch::Contains(" reads at most ") &&
                 Catch::EndsWith("shorten it, or score it in windows with a stride (--stride N)"));
  check_refused("evaluate " + w.run + " --suite " + other, 1, "error: item long/0: the text 'The cat");
  check_refused("evaluate " + w.run + " " + w.run + " --suite " + other + " --out " + w.dir / "lost", 1,
                "no suite was evaluated; the warnings above say why");
  CHECK_FALSE(fs::exists(w.dir / "lost"));
}

TEST_CASE("a checkpoint or a run that cannot be read does not cost the answers of others, and the program ends with 1",
          "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("pairs.jsonl", pairs), damaged = w.dir / "damaged", out = w.dir / "damaged-answers";
  fs::copy(run_by_words(), damaged, fs::copy_options::recursive);
  const auto whole = json_of(cloze("evaluate " + damaged + " --all-checkpoints --json --suite " + file));
  const auto last = whole["runs"][2]["checkpoint"].get<std::string>();
  change_last_byte(last + "/weights.safetensors");
  const auto all = cloze("evaluate " + damaged + " --all-checkpoints --json --suite " + file + " --out " + out);
  CHECK(all.code == 1);
  const auto unread = fs::path(last).filename().string() + " cannot be read: ";
  CHECK_THAT(all.text, Catch::Contains("warning: " + damaged + ": " + unread));
  const auto found = json_of(all);
  REQUIRE(found["runs"].size() == 3);
  CHECK(found["runs"][0]["suites"].size() == 1);
  CHECK(found["runs"][2]["suites"].empty());
  CHECK(found["runs"][2]["step"] > found["runs"][1]["step"]);
  CHECK_THAT(found["runs"][2]["unanswered"][0].get<std::string>(), Catch::StartsWith(unread));
  CHECK(count_lines(out + "/predictions.jsonl") == 6);
  const auto two = cloze("evaluate " + last + " " + w.run + " --json --suite " + file);
  CHECK(two.code == 1);
  CHECK(json_of(two)["runs"][1]["suites"].size() == 1);
  check_refused("evaluate " + last + " --suite " + file, 1, last);  // nothing else is asked
  const auto first = found["runs"][0]["checkpoint"].get<std::string>();
  fs::resize_file(first + "/state.json", 3);
  const auto more = cloze("evaluate " + damaged + " --all-checkpoints --suite " + file);
  CHECK(more.code == 1);
  CHECK_THAT(more.text, Catch::Contains(fs::path(first).filename().string() + " cannot be read: "));
}

TEST_CASE("a run whose config is damaged does not cost the answers of others", "[cli][suites]") {
  const auto& w = world();
  const auto file = w.dir.write("pairs.jsonl", pairs), damaged = w.dir / "damaged-config";
  w.dir.write("config-data/fast_eval/blimp_fast/agreement.jsonl", pairs);
  if (!fs::exists(damaged)) fs::copy(w.run, damaged, fs::copy_options::recursive);
  w.dir.write("damaged-config/run.yaml", "model: [");
  const auto of_babylm = w.dir / "config-data" + " --fast --results " + w.dir / "config-results";
  const auto suite = GENERATE_REF(file, of_babylm);
  INFO(suite);
  const auto two = cloze("evaluate " + damaged + " " + w.run + " --json --suite " + suite);
  CHECK(two.code == 1);
  CHECK_THAT(two.text,
             Catch::Contains("warning: " + damaged + ": cannot ") && Catch::Contains(": " + damaged + "/run.yaml"));
  const auto found = json_of(two);
  REQUIRE(found["runs"].size() == 2);
  CHECK_THAT(found["runs"][0]["unanswered"][0].get<std::string>(),
             Catch::StartsWith("cannot ") && Catch::Contains(damaged + "/run.yaml"));
  CHECK(found["runs"][0]["suites"].empty());
  CHECK(found["runs"][1]["suites"].size() == 1);
  const auto both = cloze("evaluate " + damaged + " " + damaged + " --suite " + suite);
  CHECK(both.code == 1);
  CHECK_THAT(both.text, Catch::Contains("; the warnings above say why"));
  const auto alone = cloze("evaluate " + damaged + " --suite " + suite);
  CHECK(alone.code != 0);
  CHECK_THAT(alone.text, Catch::Contains("error: " + damaged + "/run.yaml"));
}

TEST_CASE("ages of acquisition over the checkpoints are correlated with those of children", "[cli][suites]") {
  const auto& w = world();
  const auto run = w.dir / "stages";
  const auto trained =
      cloze("pretrain " + w.config() + " --set checkpoint.every=2 --set checkpoint.keep=9 --run " + run);
  INFO(trained.text);
  REQUIRE(trained.code == 0);
  w.dir.write("known/cdi_childes.json",
              R"({"cat": [{"context": "The"}], "mat": [{"context": "sat on"}], "woke": [{"context": "Then it"}]})");
  const auto evaluate = "evaluate " + run + " --suite " + w.dir / "known";
  const auto surprisals = json_of(cloze(evaluate + " --all-checkpoints --json"));
  CHECK(surprisals["runs"].back()["suites"][0]["figures"].size() == 1);  // no ages
  w.dir.write("known/aoa_word_list.csv", "word_clean,aoa\ncat,19\nmat,24\nwoke,30\n");
  const auto found = json_of(cloze(evaluate + " --all-checkpoints --json --out " + w.dir / "ages"));
  REQUIRE(found["runs"].size() == 3);
  CHECK(score(found["runs"][0], 0)["metric"] == "surprisal");
  CHECK(found["runs"][1]["suites"][0]["figures"].size() == 1);
  REQUIRE(found["runs"][2]["suites"][0]["figures"].size() == 2);
  CHECK(score(found["runs"][2], 1)["metric"] == "pearson");
  CHECK_FALSE(score(found["runs"][2], 1).contains("official"));
  CHECK_THAT(found["runs"][2]["suites"][0]["notes"].back().get<std::string>(),
             Catch::Contains(" words, by their surprisals at 3 checkpoints"));
  const auto words = score(found["runs"][2], 1)["count"].get<size_t>();
  CHECK(count_lines(w.dir / "ages/predictions.jsonl") == 9 + words);
  fs::remove_all(run + "/step-00000002");
  const auto few = json_of(cloze(evaluate + " --all-checkpoints --json"));
  CHECK_THAT(few["runs"].back()["suites"][0]["notes"].back().get<std::string>(),
             Catch::Contains("which need 3 checkpoints") && Catch::EndsWith("there are 2"));
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

TEST_CASE("a text that is too long costs its task of BabyLM alone, and the exit code says so", "[cli][babylm]") {
  const auto& w = world();
  const auto boxes = json{{"numops", 0}, {"input_prefix", longest()}, {"options", json::array({" sat.", " slept."})}};
  const std::string file = "/fast_eval/entity_tracking_fast/regular.jsonl", results = w.dir / "boxes/results";
  w.dir.write("boxes/both/fast_eval/blimp_fast/agreement.jsonl", pairs);
  w.dir.write("boxes/both" + file, boxes.dump() + "\n");
  w.dir.write("boxes/alone" + file, boxes.dump() + "\n");
  const auto evaluate = "evaluate " + w.run + " --fast --results " + results + " --suite " + w.dir / "boxes";
  const auto both = cloze(evaluate + "/both --json");
  CHECK(both.code == 1);
  const std::string why = "cannot answer entity_tracking_fast: item regular_0_ops/0: the text 'The cat";
  CHECK_THAT(both.text, Catch::Contains(": " + why) && !Catch::Contains("stride"));
  CHECK(both.text.find(why) < both.text.find(" items in "));  // before any task is answered
  const auto found = json_of(both);
  REQUIRE(found["runs"][0]["suites"].size() == 1);
  CHECK(found["runs"][0]["suites"][0]["suite"] == "blimp_fast");
  CHECK(found["runs"][0]["revisions"] == json::array({"main"}));
  REQUIRE(found["runs"][0]["unanswered"].size() == 1);
  CHECK_THAT(found["runs"][0]["unanswered"][0].get<std::string>(), Catch::StartsWith(why));
  check_refused(evaluate + "/alone --out " + w.dir / "boxes/out", 1,
                "no task of BabyLM was evaluated; the warnings above say why");
  CHECK_FALSE(fs::exists(w.dir / "boxes/out"));
}

TEST_CASE("BabyLM's data are found under another name among the suites, and a run does not answer them while it trains",
          "[cli][babylm]") {
  const auto& w = world();
  w.dir.write("named/mini/fast_eval/blimp_fast/agreement.jsonl", pairs);
  const auto named = "export CLOZE_SUITES=" + w.dir / "named; ";
  const auto answered =
      cloze("evaluate " + w.run + " --suite mini --fast --json --results " + w.dir / "named-results", named);
  CHECK(answered.code == 0);
  CHECK(json_of(answered)["runs"][0]["suites"][0]["suite"] == "blimp_fast");
  const auto trained =
      cloze("pretrain " + w.config() + " --set evaluation.suites=[mini] --run " + w.dir / "named-run", named);
  CHECK(trained.code == 1);
  CHECK_THAT(trained.text, Catch::Contains("mini: is BabyLM's evaluation data, which `cloze evaluate RUN --suite "));
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
  check_refused("babylm collate " + results + "/nobody", 2,
                "nobody: no such folder; `cloze evaluate RUN --suite babylm`");
  check_refused(collate, 1, "words: is no complete submission; --partial writes what is there");
  const auto partial = cloze(collate + " --partial");
  CHECK(partial.code == 0);
  const auto written = results + "/words/partial_full_preds_and_fast_scores_mlm.json";
  CHECK_THAT(partial.text, Catch::Contains(written) && Catch::Contains("comps/comps/predictions.json: is not there"));
  CHECK(json::parse(read_file(written))["wug_past"]["wug_past"]["predictions"].size() == 3);
  CHECK(cloze("babylm collate " + results + " --model words --backend mlm --partial").code == 0);
  w.dir.write("results/words/main/finetune/rte/predictions.json", "{}");
  w.dir.write("results/words/main/finetune/rte/weights.json", R"({"main": "of another"})");
  check_refused(collate + " --partial", 1, "rte/predictions.json: is of another network (weights of another) than ");
}

TEST_CASE("a checkpoint that cannot be read does not cost BabyLM's answers of the others", "[cli][babylm]") {
  const auto& w = world();
  const auto damaged = w.dir / "damaged-words";
  w.dir.write("one-task/fast_eval/blimp_fast/agreement.jsonl", pairs);
  fs::copy(run_by_words(), damaged, fs::copy_options::recursive);
  const auto fast = "evaluate " + damaged + " --suite " + w.dir / "one-task" + " --fast --all-checkpoints --json" +
                    " --results " + w.dir / "damaged-results";
  const auto last = json_of(cloze(fast))["runs"][1]["checkpoint"].get<std::string>();
  change_last_byte(last + "/weights.safetensors");
  const auto all = cloze(fast);
  CHECK(all.code == 1);
  const auto found = json_of(all);
  REQUIRE(found["runs"].size() == 2);
  CHECK(found["runs"][0]["suites"].size() == 1);
  CHECK(found["runs"][1]["suites"].empty());
  CHECK(found["runs"][1]["revisions"] == json{"chck_120"});
  CHECK_THAT(found["runs"][1]["unanswered"][0].get<std::string>(),
             Catch::StartsWith(fs::path(last).filename().string() + " cannot be read: "));
}
