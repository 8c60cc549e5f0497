// BabyLM's tasks answered by runs of random weights.
#include "evaluation/babylm/evaluate.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "evaluation/suites/babylm.h"
#include "evaluation/suites/suite.h"
#include "tests/evaluation/suites/reading_table.h"
#include "tests/inference/scoring/random_run.h"
#include "tests/support/objective.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

std::string pair_line(const std::string& good, const std::string& bad) {
  return json{{"sentence_good", good},
              {"sentence_bad", bad},
              {"field", "syntax"},
              {"UID", "agreement"},
              {"linguistics_term", "number"}}
             .dump() +
         "\n";
}

/// Evaluation data in the words of the small tokenizer.
void write_data(const TempDir& dir, const std::string& part, const std::string& pairs) {
  dir.write(part + "/" + pairs + "/agreement.jsonl", pair_line("the cats see a dog", "the cats sees a dog") +
                                                         pair_line("a bird", "a bird") +
                                                         pair_line("the old river", "the river old"));
  const std::string wug = "wug_adj_nominalization";
  dir.write(part + "/" + wug + "/" + wug + ".jsonl",
            "{\"sentences\": \"a catling\\ta cats\", \"ratio\": 0.75}\n{\"sentences\": \"a dogling\\ta dogs\", "
            "\"ratio\": 0.25}\n"
            "{\"sentences\": \"a birdling\\ta birds\", \"ratio\": 0.5}\n");
  dir.write(part + "/reading/reading_data.csv", reading_table(72));
}

/// The answers to data of which every task can be answered.
std::vector<SuiteResult> answers_to(const BabylmData& data, const LoadedRun& run, BabylmBackend backend,
                                    const std::vector<ResultsFolder>& folders = {}) {
  std::vector<std::string> skipped;
  auto results = evaluate_babylm(run, data, backend, {}, folders, skipped);
  CHECK(skipped.empty());
  return results;
}

/// A question about boxes, whose text begins with this one.
std::string boxes_line(const std::string& prefix) {
  return json{{"numops", 0}, {"input_prefix", prefix}, {"options", json::array({" see a cat", " see a dog"})}}.dump() +
         "\n";
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += (i > 0 ? " " : "") + text;
  return all;
}

/// The token log-probabilities of a masked model, summed in fp32.
float mlm_sum(const LoadedRun& run, const std::string& text) {
  const auto passages = whole({text});
  return babylm_sum(passages[0], Scorer(run, {.form = ScoringForm::pll}).score(passages)[0]);
}

}  // namespace

TEST_CASE("what is there of the evaluation data is read, and what is missing is reported", "[babylm]") {
  const TempDir dir;
  CHECK_FALSE(is_babylm_data(dir.path.string()));
  write_data(dir, "data/full_eval", "blimp_filtered");
  dir.write("data/full_eval/cdi_childes/cdi_childes.json", R"({"cats": [{"context": "the old"}]})");
  CHECK(is_babylm_data(dir / "data"));
  const auto data = read_babylm_data(dir / "data", false);
  REQUIRE(data.tasks.size() == 2);
  CHECK(data.tasks[0].dataset.folder == "blimp_filtered");
  CHECK(data.tasks[0].items.size() == 3);
  CHECK(data.tasks[1].dataset.task == "wug_adj");
  REQUIRE(data.reading);
  CHECK(data.reading->times.words.size() == 72);
  REQUIRE(data.acquisition);
  CHECK(data.acquisition->size() == 1);
  REQUIRE(data.missing.size() == 5);
  CHECK_THAT(data.missing[0], Catch::EndsWith("full_eval/supplement_filtered"));
  CHECK_THROWS_AS(read_babylm_data(dir / "data", true), DataError);
  CHECK_THROWS_WITH(read_babylm_data(dir / "data", true),
                    Contains("fast_eval: has none of BabyLM's tasks; docs/babylm.md says where they come from"));
}

TEST_CASE("the official figures stand beside the corrected ones, in results and in the published program's files",
          "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto run = random_run(dir, "bert");
  const auto data = read_babylm_data(dir / "data", true);
  const std::vector<std::string> folders{dir / "results/baby/main/zero_shot/mlm",
                                         dir / "results/baby/chck_1M/zero_shot/mlm"};
  const auto results =
      answers_to(data, run, BabylmBackend::mlm, {{folders[0], {{"main", "a"}}}, {folders[1], {{"chck_1M", "a"}}}});
  REQUIRE(results.size() == 3);
  // The pair of equal sides is a tie, which the published program gives to the first.
  const auto& pairs = results[0];
  CHECK(pairs.suite == "blimp_fast");
  int64_t right = 0;
  const auto& items = data.tasks[0].items;
  for (const auto& item : items)
    right += mlm_sum(run, item.candidates[0].sentence) > mlm_sum(run, item.candidates[1].sentence);
  CHECK(pairs.scores[0].value == Approx((static_cast<double>(right) + 0.5) / 3));
  CHECK(pairs.scores[0].ties == 1);
  CHECK(*pairs.scores[0].official == Approx(static_cast<double>(right + 1) / 3));
  for (const auto& result : results)
    for (const auto& score : result.scores) CHECK(score.official.has_value());
  CHECK(pairs.items[1]["official_choice"] == 0);
  CHECK(results[2].suite == "reading");
  CHECK(results[2].scored_by == "surprisal of words by backend mlm");
  // Both revisions have the same files, with the choices above.
  const auto report = read_file(folders[0] + "/blimp/blimp_fast/best_temperature_report.txt");
  char accuracy[64];
  std::snprintf(accuracy, sizeof accuracy, "### AVERAGE ACCURACY\n%.2f\n\n",
                100.0 * static_cast<double>(right + 1) / 3);
  CHECK_THAT(report, Catch::EndsWith(accuracy));
  for (const std::string file :
       {"blimp/blimp_fast/predictions.json", "blimp/blimp_fast/best_temperature_report.txt",
        "wug_adj/wug_adj_nominalization/predictions.json", "reading/predictions.json", "reading/report.txt"}) {
    CHECK(fs::exists(folders[0] + "/" + file));
    CHECK(read_file(folders[0] + "/" + file) == read_file(folders[1] + "/" + file));
  }
  for (const std::string file : {"blimp/blimp_fast/", "wug_adj/wug_adj_nominalization/", "reading/"})
    CHECK(noted_weights(folders[1] + "/" + file + "predictions.json") == RevisionWeights{{"chck_1M", "a"}});
  const auto predictions = json::parse(read_file(folders[0] + "/blimp/blimp_fast/predictions.json"));
  CHECK(predictions["agreement"]["predictions"][1] == json{{"id", "agreement_1"}, {"pred", "a bird"}});
}

TEST_CASE("judgements of people are correlated with probabilities in both ways", "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto run = random_run(dir, "bert");
  const auto data = read_babylm_data(dir / "data", true);
  const auto result = answers_to(data, run, BabylmBackend::mlm)[1];
  CHECK(result.scores[0].metric == "spearman");
  std::vector<double> probabilities;
  for (const auto& item : data.tasks[1].items)
    probabilities.push_back(babylm_first_probability(
        std::vector<float>{mlm_sum(run, item.candidates[0].sentence), mlm_sum(run, item.candidates[1].sentence)}));
  CHECK(*result.scores[0].official == Approx(babylm_spearman(probabilities, {0.75, 0.25, 0.5})));
  CHECK(result.items[0]["preference"] == 0.75);
}

TEST_CASE("a decoder is answered by the sums of its own backend", "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto run = random_run(dir, "gpt2");
  const auto data = read_babylm_data(dir / "data", true);
  const auto result = answers_to(data, run, BabylmBackend::causal)[0];
  for (size_t i = 0; i < 3; ++i) {
    const auto sums = babylm_sums(run, data.tasks[0].items[i].candidates, BabylmBackend::causal, {});
    CHECK(result.items[i]["official_choice"] == babylm_choice(sums));
  }
  CHECK_THROWS_AS(answers_to(data, run, BabylmBackend::mlm), ConfigError);
  CHECK_THROWS_WITH(answers_to(data, run, BabylmBackend::mlm), Contains("runs/random: backend mlm scores runs of mlm"));
}

TEST_CASE("an encoder-decoder is scored by the form of its official number, which a note names", "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto run =
      random_run(small_tokenizer(dir, "<s>\n</s>\n"), family("bart").model, {default_objective<DenoisingConfig>()});
  const auto data = read_babylm_data(dir / "data", true);
  const auto sums_of = [&](ScoringForm form) {
    return Scorer(run, {.form = form}).score(whole({"the cats see a dog"}))[0].sum;
  };
  const auto prefix = answers_to(data, run, BabylmBackend::enc_dec_prefix),
             mask = answers_to(data, run, BabylmBackend::enc_dec_mask);
  CHECK(prefix[0].items[0]["candidates"][0]["score"].get<double>() == Approx(sums_of(ScoringForm::likelihood)));
  CHECK(mask[0].items[0]["candidates"][0]["score"].get<double>() == Approx(sums_of(ScoringForm::pll)));
  REQUIRE(prefix[0].notes.size() == 1);
  CHECK_THAT(prefix[0].notes[0], Contains("by backend enc_dec_prefix: prefix form (likelihood), whose decoder reads"));
  REQUIRE(mask[0].notes.size() == 1);
  CHECK_THAT(mask[0].notes[0], Contains("by backend enc_dec_mask: mask form (pll), whose decoder reads"));
  // Both predict words of reading times by the decoder.
  CHECK(prefix[2].items[0]["surprisal"] == mask[2].items[0]["surprisal"]);
  SuiteOptions options;
  options.scoring.form = ScoringForm::pll_span;
  std::vector<std::string> skipped;
  const auto asked = evaluate_babylm(run, data, BabylmBackend::enc_dec_prefix, options, {}, skipped)[0];
  CHECK(asked.items[0]["candidates"][0]["score"].get<double>() == Approx(sums_of(ScoringForm::pll_span)));
  CHECK(asked.notes == prefix[0].notes);
}

TEST_CASE("a run that the published program cannot score has the corrected numbers alone, and notes say why",
          "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto data = read_babylm_data(dir / "data", true);
  struct Case {
    std::string family;
    ScoringForm of_pairs, of_words;
    std::string why;
  };
  const auto one = GENERATE(
      Case{"xlnet", ScoringForm::likelihood, ScoringForm::likelihood, "has no backend for runs of plm"},
      Case{"electra", ScoringForm::detection, ScoringForm::pll, "has no backend for runs of rtd"},
      Case{"t5", ScoringForm::likelihood, ScoringForm::likelihood, "needs a tokenizer with a mask token and a bos"});
  INFO(one.family);
  const auto run = random_run(dir, one.family);
  REQUIRE_FALSE(official_backend(run));
  std::vector<std::string> skipped;
  const auto results = evaluate_babylm(run, data, std::nullopt, {}, {}, skipped);
  CHECK(skipped.empty());
  REQUIRE(results.size() == 3);
  for (const auto& result : results) {
    for (const auto& score : result.scores) {
      CHECK(std::isfinite(score.value));
      CHECK((score.official && std::isnan(*score.official)));
    }
    REQUIRE_FALSE(result.notes.empty());
    CHECK_THAT(result.notes.back(), Catch::StartsWith("no official number: ") && Contains(one.why));
    for (const auto* key : {"official_choice", "official_probability", "official_surprisal"})
      CHECK_FALSE(result.items[0].contains(key));
  }
  const auto pair = Scorer(run, {.form = one.of_pairs}).score(whole({"the cats see a dog"}))[0].sum;
  CHECK(results[0].items[0]["candidates"][0]["score"].get<double>() == Approx(pair));
  const auto& [context, word] = data.reading->times.words[0];
  const std::vector<Passage> passages{{.left = context + " ", .scored = word}};
  const auto of_word = Scorer(run, {.form = one.of_words}).score(passages)[0].sum;
  CHECK(results[2].items[0]["surprisal"].get<double>() == Approx(-of_word));
}

TEST_CASE("a discriminator without a generator has no reading times, and answers the other tasks of BabyLM",
          "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto uniform = objective("{kind: rtd, replace_by: uniform}");
  const auto run = random_run(dir, family("electra").model, {uniform});
  std::vector<std::string> skipped;
  const auto results = evaluate_babylm(run, read_babylm_data(dir / "data", true), std::nullopt, {}, {}, skipped);
  CHECK(results.size() == 2);
  REQUIRE(skipped.size() == 1);
  CHECK_THAT(skipped[0], Catch::StartsWith("cannot answer reading: reading times are explained by"));
}

TEST_CASE("a note names the form of the official number where another is asked for", "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto run = random_run(dir, "bert");
  const auto data = read_babylm_data(dir / "data", true);
  CHECK(answers_to(data, run, BabylmBackend::mlm)[0].notes.empty());
  SuiteOptions options;
  options.scoring.form = ScoringForm::pll_span;
  std::vector<std::string> skipped;
  CHECK(evaluate_babylm(run, data, BabylmBackend::mlm, options, {}, skipped)[0].notes ==
        std::vector<std::string>{"the official number is by backend mlm: pll"});
}

TEST_CASE("a task with a text longer than the model is reported before any is scored, and the others are answered",
          "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  dir.write("data/fast_eval/entity_tracking_fast/regular.jsonl",
            boxes_line("the river") + boxes_line(repeated("the old river", 20)));
  const auto run = random_run(dir, "gpt2");  // 40 positions
  const auto data = read_babylm_data(dir / "data", true);
  const auto folder = dir / "results/baby/main/zero_shot/causal";
  std::vector<std::string> skipped;
  std::optional<size_t> told;  // reasons that were there when scoring began
  SuiteOptions options;
  options.scoring.takes_stride = false;
  options.scoring.progress = [&](int64_t, int64_t) { told = told.value_or(skipped.size()); };
  const auto results = evaluate_babylm(run, data, BabylmBackend::causal, options, {{folder}}, skipped);
  REQUIRE(results.size() == 3);
  CHECK(results[0].suite == "blimp_fast");
  CHECK(results[2].suite == "reading");
  REQUIRE(skipped.size() == 1);
  CHECK_THAT(skipped[0],
             Catch::StartsWith("cannot answer entity_tracking_fast: item regular_0_ops/1: the text 'the old river") &&
                 Catch::EndsWith("reads at most 40 of a text; shorten it, or take a model that reads more"));
  REQUIRE(told);
  CHECK(*told == 1);
  CHECK(fs::exists(folder + "/blimp/blimp_fast/predictions.json"));
  CHECK_FALSE(fs::exists(folder + "/entity_tracking"));
}

TEST_CASE("reading times that are too long are left out when they are read", "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/fast_eval", "blimp_fast");
  const auto run = random_run(dir, "gpt2");
  auto data = read_babylm_data(dir / "data", true);
  data.reading->times.words[5].context = repeated("the old river", 20);
  std::vector<std::string> skipped;
  CHECK(evaluate_babylm(run, data, BabylmBackend::causal, {}, {}, skipped).size() == 2);
  REQUIRE(skipped.size() == 1);
  CHECK_THAT(skipped[0], Catch::StartsWith("cannot answer reading: ") && Contains(" reads at most 40 "));
}

TEST_CASE("compressed files of the evaluation data are read in place of plain ones", "[babylm]") {
  const TempDir dir;
  write_data(dir, "data/full_eval", "blimp_filtered");
  dir.write("data/full_eval/cdi_childes/cdi_childes.json", R"({"cats": [{"context": "the old"}]})");
  const auto plain = read_babylm_data(dir / "data", false);
  const auto compress = "cd '" + dir / "data/full_eval" +
                        "' && xz blimp_filtered/agreement.jsonl cdi_childes/cdi_childes.json && gzip reading/*.csv";
  REQUIRE(std::system(compress.c_str()) == 0);
  const auto compressed = read_babylm_data(dir / "data", false);
  CHECK(compressed.missing == plain.missing);
  CHECK(compressed.tasks[0].items.size() == 3);
  REQUIRE((compressed.reading && compressed.acquisition));
  CHECK(compressed.reading->times.words.size() == 72);
  CHECK(compressed.acquisition->size() == 1);
}
