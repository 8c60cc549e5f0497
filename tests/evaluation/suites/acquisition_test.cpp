// Suites of words that children know, and the ages at which a run knows them.
#include "evaluation/suites/acquisition.h"

#include "evaluation/suites/babylm.h"
#include "tests/evaluation/suites/reference.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;
using Catch::Contains;

namespace {

constexpr const char* words_file =
    R"({"cats": [{"context": "the old"}, {"context": " a dog and the "}], "a": [{"context": "see"}], )"
    R"("river": [{"context": "by the"}]})";

AcquisitionSuite suite_in(const TempDir& dir) {
  dir.write("cdi_childes/cdi_childes.json", words_file);
  return *read_acquisition(dir / "cdi_childes");
}

/// Words with as many contexts as the curves of regressions.json, and the surprisals of ten checkpoints.
struct Learned {
  AcquisitionSuite suite;
  std::vector<CheckpointSurprisals> checkpoints;
  nlohmann::json curves = reference("regressions.json", "learning");
  Learned() {
    const std::vector<std::string> names{"owl", "spoon", "lamp", "falls", "late"};
    for (size_t k = 0; k < 10; ++k) checkpoints.push_back({.name = "chck", .words = 0, .surprisals = {}});
    for (size_t w = 0; w < names.size(); ++w) {
      const auto surprisals = numbers_of(curves[w]["surprisals"]);
      const size_t contexts = surprisals.size() / 10;
      suite.words.push_back({names[w], std::vector<std::string>(contexts, "x")});
      for (size_t k = 0; k < 10; ++k) {
        checkpoints[k].words = curves[w]["words"][k * contexts];
        for (size_t c = 0; c < contexts; ++c) checkpoints[k].surprisals.push_back(surprisals[k * contexts + c]);
      }
    }
    suite.ages = {{"owl", 25}, {"spoon", 18.5}, {"lamp", 21}, {"falls", 20}, {"cup", 16}};
  }
  /// Pearson's correlation of the ages that SciPy's curves give, by the chance at this index.
  double correlation(size_t chance) const {
    AcquisitionAges ages;
    for (const size_t w : {0, 1, 2}) {
      ages.words.push_back(suite.words[w].word);
      ages.model.push_back(curves[w]["ages"][chance]["age"]);
      ages.child.push_back(suite.ages.at(suite.words[w].word));
    }
    return ages.correlation();
  }
};

}  // namespace

TEST_CASE("words are read in their order without those of one character, with the ages beside their file",
          "[suites][acquisition]") {
  const TempDir dir;
  auto suite = suite_in(dir);
  REQUIRE(suite.words.size() == 2);
  CHECK(suite.words[0].word == "cats");
  CHECK(suite.words[0].contexts == std::vector<std::string>{"the old", " a dog and the "});
  CHECK(suite.size() == 3);
  CHECK(suite.ages.empty());
  dir.write("aoa/aoa_word_list.csv", "word_clean,aoa\ncats,19\n");
  CHECK((suite_in(dir).ages == ChildAges{{"cats", 19}}));
  dir.write("cdi_childes/aoa_word_list.csv", "word_clean,aoa\nriver,24\n");
  CHECK((suite_in(dir).ages == ChildAges{{"river", 24}}));
  CHECK_FALSE(read_acquisition(dir.write("list.json", "[1, 2]")));
  CHECK_FALSE(read_acquisition(dir.write("other.json", "{\"cats\": [{\"text\": \"x\"}]}")));
  CHECK_FALSE(read_acquisition(dir.write("words.txt", words_file)));
}

TEST_CASE("a damaged file of words is refused with its place", "[suites][acquisition]") {
  const TempDir dir;
  const auto refused = [&](const std::string& text, const std::string& sentence) {
    const auto file = dir.write("words.json", text);
    CHECK_THROWS_AS(read_acquisition(file), DataError);
    CHECK_THROWS_WITH(read_acquisition(file), Contains(sentence));
  };
  refused("{\"cats\": [{\"context\":\n \"the", "words.json:2: the JSON ends in the middle");
  refused(R"({"cats": [{"context": "a"}, {"text": "b"}]})", "context 1 of 'cats' has no text under `context`");
  refused(R"({"cats": [{"context": 3}]})", "context 0 of 'cats' has no text under `context`");
  refused(R"({"cats": []})", "words.json: has no contexts");
}

TEST_CASE("a word is scored after its context, as the published program does and as the Scorer does",
          "[suites][acquisition]") {
  const TempDir dir;
  const auto suite = suite_in(dir);
  const auto run = random_run(dir, "gpt2");
  const std::vector<std::pair<std::string, std::string>> texts{
      {"the old ", "cats"}, {"a dog and the ", "cats"}, {"by the ", "river"}};
  const auto scored = acquisition_surprisals(run, suite, {});
  const auto official = babylm_acquisition_surprisals(run, suite, BabylmBackend::causal, {});
  REQUIRE(scored.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const auto& [context, word] = texts[i];
    const auto at = ids_of(run, context), target = ids_of(run, word);
    double sum = 0;
    for (size_t k = 0; k < target.size(); ++k) {
      const auto row = joined(
          {{run.tokenizer.special().sep}, at, Ids(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(k))});
      sum -= log_probability(logits_of(run, {.input_ids = row_of(row)})[-1], target[k]);
    }
    CHECK(scored[i] == Approx(sum).epsilon(1e-5));
    const auto sums = babylm_sums(run, {{.sentence = context + word, .completion = word, .prefix = context}},
                                  BabylmBackend::causal, {});
    CHECK(official[i] == Approx(-sums[0]).epsilon(1e-6));
  }
  const auto result = run_suite(run, suite, {});
  CHECK(result.scores[0].metric == "surprisal");
  CHECK(result.scores[0].value == Approx((scored[0] + scored[1] + scored[2]) / 3));
  CHECK(result.items[1]["context_id"] == 1);
  CHECK(result.items[2]["word"] == "river");
}

TEST_CASE("ages of a run over its checkpoints are correlated with those of children", "[suites][acquisition]") {
  const Learned learned;
  const auto result = acquisition_result(learned.suite, learned.checkpoints, std::log(30000));
  REQUIRE(result.scores.size() == 1);
  CHECK(result.scores[0].metric == "pearson");
  CHECK(result.scores[0].count == 3);  // what falls is never known, and the last has no child
  CHECK(result.scores[0].value == Approx(learned.correlation(0)).epsilon(1e-5));
  REQUIRE(result.scores[0].official);
  CHECK(*result.scores[0].official == Approx(learned.correlation(1)).epsilon(1e-5));
  auto checkpoints = learned.checkpoints;
  for (auto& one : checkpoints) {
    one.official = one.surprisals;
    for (auto& surprisal : one.surprisals) surprisal *= 0.9;
  }
  const auto both = acquisition_result(learned.suite, checkpoints, std::log(30000));
  CHECK(*both.scores[0].official == *result.scores[0].official);
  CHECK(both.scores[0].value != result.scores[0].value);
  REQUIRE(result.items.size() == 3);
  CHECK(result.items[1]["word"] == "spoon");
  CHECK(result.items[1]["months"] == 18.5);
  CHECK(std::log10(result.items[0]["words_of_training"].get<double>()) ==
        Approx(learned.curves[0]["ages"][0]["age"].get<double>()).epsilon(1e-6));
}

TEST_CASE("fewer than three words with both ages have no correlation, where the published program says 0",
          "[suites][acquisition]") {
  Learned learned;
  for (const ChildAges& ages : {ChildAges{{"cup", 16}}, ChildAges{{"owl", 25}, {"spoon", 18.5}}}) {
    learned.suite.ages = ages;
    const auto result = acquisition_result(learned.suite, learned.checkpoints, std::log(30000));
    REQUIRE(result.scores.size() == 1);
    CHECK(std::isnan(result.scores[0].value));
    CHECK(result.scores[0].official.value_or(1) == 0);
    CHECK(result.scores[0].count == static_cast<int64_t>(result.items.size()));
    REQUIRE(result.notes.size() == 1);
    CHECK_THAT(result.notes[0], Contains("needs 3 words that children and the run both learn, and there are "));
  }
}

TEST_CASE("learning curves need ages of children, three checkpoints and a surprisal of every context",
          "[suites][acquisition]") {
  const Learned whole;
  const auto refused = [](const Learned& learned, const std::string& sentence) {
    CHECK_THROWS_AS(acquisition_result(learned.suite, learned.checkpoints, 10), DataError);
    CHECK_THROWS_WITH(acquisition_result(learned.suite, learned.checkpoints, 10), Contains(sentence));
  };
  auto no_ages = whole, two = whole, cut = whole;
  no_ages.suite.ages.clear();
  refused(no_ages, "words without ages of children; put cdi_human.csv next to its file");
  two.checkpoints.resize(2);
  refused(two, "a learning curve needs 3 checkpoints or more; there are 2");
  cut.checkpoints[4].name = "chck_8M";
  cut.checkpoints[4].surprisals.pop_back();
  refused(cut, "chck_8M: has 7 surprisals of the 8 contexts of the suite");
}

TEST_CASE("ages are not asked of a discriminator, nor of a run without a head of tokens", "[suites][acquisition]") {
  const TempDir dir;
  const auto suite = suite_in(dir);
  CHECK_THAT(reason_unsupported(random_run(dir, "electra").config, suite, {}),
             Contains("a discriminator of rtd gives none"));
  CHECK_THAT(
      reason_unsupported(random_run(dir, family("bert").model, {default_objective<NspConfig>()}).config, suite, {}),
      Contains("has no head that gives probabilities of tokens"));
  CHECK(reason_unsupported(random_run(dir, "bert").config, suite, {}).empty());
}
