// Surprisals of words in reading-time suites against single rows of the plain network.
#include "evaluation/suites/reading.h"

#include "tests/evaluation/suites/reading_table.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;
using Catch::Contains;

namespace {

ReadingSuite suite_of(int rows) { return {.times = reading_times_of(parse_csv(reading_table(rows), "times.csv"))}; }

/// A row up to the predicted token, three masks and [SEP]: the log-probability of the token, nats.
double before_masks(const LoadedRun& run, const Ids& begin, int64_t target, bool shifted) {
  const auto& special = run.tokenizer.special();
  const Ids masks(3, special.mask);
  const auto row = joined({{special.cls}, begin, masks, {special.sep}});
  return log_probability(
      logits_of(run, {.input_ids = row_of(row)})[static_cast<int64_t>(begin.size()) + (shifted ? 0 : 1)], target);
}

/// A word after its context, token by token, tokenized as one text.
double masked_surprisal(const LoadedRun& run, const WordInContext& word, bool shifted) {
  const auto before = ids_of(run, word.context).size();
  const auto ids = ids_of(run, word.context + " " + word.word);
  double sum = 0;
  for (size_t i = before; i < ids.size(); ++i)
    sum -= before_masks(run, Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i)), ids[i], shifted);
  return sum;
}

/// What `slow` says of each word and of each previous word.
template <class Slow>
void check_surprisals(const ReadingSurprisals& surprisals, const ReadingSuite& suite, const Slow& slow) {
  REQUIRE(surprisals.words.size() == suite.times.words.size());
  REQUIRE(surprisals.previous.size() == suite.times.words.size());
  for (size_t i = 0; i < surprisals.words.size(); ++i) {
    INFO(suite.times.words[i].context << " | " << suite.times.words[i].word);
    CHECK(surprisals.words[i] == Approx(slow(suite.times.words[i])).epsilon(1e-4));
    const auto& previous = suite.times.previous[i];
    if (previous)
      CHECK(surprisals.previous[i] == Approx(slow(*previous)).epsilon(1e-4));
    else
      CHECK(std::isnan(surprisals.previous[i]));
  }
}

}  // namespace

TEST_CASE("a masked model predicts a word before three masks, from left to right", "[suites][reading]") {
  const bool shifted = GENERATE(false, true);
  const TempDir dir;
  const auto objectives =
      shifted ? Objectives{default_objective<MntpConfig>()} : Objectives{default_objective<MlmConfig>()};
  const auto suite = suite_of(6);
  // The space before a word is a token of its own in the second one.
  for (const auto& tokenizer : {small_tokenizer(dir), byte_tokenizer(dir)}) {
    const auto run = random_run(tokenizer, family("bert").model, objectives);
    check_surprisals(reading_surprisals(run, suite, {}), suite,
                     [&](const WordInContext& word) { return masked_surprisal(run, word, shifted); });
  }
}

TEST_CASE("a decoder's surprisal of a word is that of its tokens after the context", "[suites][reading]") {
  const TempDir dir;
  const auto run = random_run(dir, "gpt2");
  const auto suite = suite_of(6);
  check_surprisals(reading_surprisals(run, suite, {}), suite, [&](const WordInContext& word) {
    auto before = joined({{run.tokenizer.special().sep}, ids_of(run, word.context)});
    double sum = 0;
    for (const auto id : ids_of(run, word.word)) {
      sum -= log_probability(logits_of(run, {.input_ids = row_of(before)})[-1], id);
      before.push_back(id);
    }
    return sum;
  });
}

TEST_CASE("the published program tokenizes a word alone, and of its later tokens their texts", "[suites][reading]") {
  const auto name = GENERATE("bert", "gpt2");
  const TempDir dir;
  const auto run = random_run(dir, name);
  const bool masked = std::string(name) == "bert";
  const auto suite = suite_of(6);
  const auto found = babylm_reading_surprisals(run, suite, masked ? BabylmBackend::mlm : BabylmBackend::causal);
  REQUIRE(found);
  check_surprisals(*found, suite, [&](const WordInContext& word) {
    auto text = word.context;
    double sum = 0;
    for (const auto id : ids_of(run, word.word)) {
      const auto piece = run.tokenizer.piece(id);  // `##s`, which is read as other tokens than `s` in `cats`
      const auto target = ids_of(run, piece)[0], begin = int64_t{0};
      const auto ids = ids_of(run, text);
      sum -= masked ? before_masks(run, ids, target, false)
                    : log_probability(logits_of(run, {.input_ids = row_of(ids)})[begin - 1], target);
      text += piece;
    }
    return sum;
  });
  CHECK_FALSE(babylm_reading_surprisals(run, suite, BabylmBackend::enc_dec_prefix));  // no bos
}

TEST_CASE("the result has the gains of each measure, of both kinds and of the suite", "[suites][reading]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto suite = suite_of(72);
  const auto result = run_suite(run, suite, {});
  const auto surprisals = reading_surprisals(run, suite, {});
  const auto gains = reading_gains(suite.times, surprisals.words, surprisals.previous);
  const auto official = *babylm_reading_surprisals(run, suite, BabylmBackend::mlm);
  const auto official_gains = reading_gains(suite.times, official.words, official.previous);
  REQUIRE(result.scores.size() == 14);  // of each group the partial R2 and the increase
  for (size_t i = 0; i < result.scores.size(); ++i) {
    const auto& score = result.scores[i];
    CHECK(score.metric == (i % 2 == 0 ? "partial_r2" : "delta_r2"));
    if (score.value == 0)  // surprisal explains none of the self-paced times of these words, in any draw of them
      CHECK((score.interval->low == 0 && score.interval->high == 0));
    else
      CHECK((score.interval->low < score.value && score.value < score.interval->high));
  }
  CHECK(result.scores[0].value == Approx((gains.eye_tracking_mean() + gains.self_paced.value()) / 2));
  CHECK(result.scores[0].count == 72);
  CHECK(result.scores[2].group == "eye tracking");
  CHECK(result.scores[2].value == Approx(gains.eye_tracking_mean()));
  CHECK(*result.scores[2].official == Approx(official_gains.eye_tracking_mean()));
  CHECK(result.scores[4].group == "self-paced reading");
  CHECK(result.scores[4].value == Approx(gains.self_paced.value()));
  CHECK(result.scores[4].count == 24);  // those with a previous word
  CHECK(result.scores[5].value == Approx(gains.self_paced.r2 - gains.self_paced.baseline_r2));
  CHECK(result.scores[12].group == "RTrightbound");
  CHECK(result.scores[12].value == Approx(gains.eye_tracking[3].value()));
  REQUIRE(result.items.size() == 72);
  CHECK(result.items[0]["previous_surprisal"].is_null());
  CHECK(result.items[2]["word"] == "see");
  CHECK(result.items[2]["surprisal"].get<double>() == Approx(surprisals.words[2]));
  CHECK(result.items[2]["official_surprisal"].get<double>() == Approx(official.words[2]));
  CHECK_THAT(result.scored_by, Contains("before three masks"));
  CHECK(result.notes.empty());
  SuiteOptions kept;
  kept.scoring.cache = dir / "scores";
  const auto noted = run_suite(run, suite, kept);
  REQUIRE(noted.notes.size() == 1);
  CHECK_THAT(noted.notes[0], Contains("without --cache, --stride and --precision"));
  CHECK_FALSE(std::filesystem::exists(dir / "scores"));
}

TEST_CASE("reading times are known by their columns, in a file or in a folder", "[suites][reading]") {
  const TempDir dir;
  const auto file = dir.write("reading/reading_data.csv", reading_table(4));
  REQUIRE(read_reading(file));
  CHECK(read_reading(file)->times.words.size() == 4);
  CHECK(read_reading(dir / "reading")->times.words.size() == 4);
  CHECK_FALSE(read_reading(dir.write("other.csv", "a,b\n1,2\n")));
  CHECK_FALSE(read_reading(dir.write("words.txt", reading_table(4))));
  dir.write("empty/readme", "");
  CHECK_FALSE(read_reading(dir / "empty"));
}

TEST_CASE("reading times whose contexts are longer than the model are refused before anything is computed",
          "[suites][reading]") {
  const TempDir dir;
  for (const auto* name : {"bert", "gpt2", "t5"}) {
    INFO(name);
    const auto run = random_run(dir, name);
    auto suite = suite_of(6);
    CHECK_NOTHROW(check_fit(run, suite, {}));
    for (int i = 0; i < 60; ++i) suite.times.words.back().context += " the old river";
    if (backbone_of(run.config.model).max_input_length() < 180)
      CHECK_THROWS_WITH(check_fit(run, suite, {}), Contains("reads at most"));
    else
      CHECK_NOTHROW(check_fit(run, suite, {}));
  }
}

TEST_CASE("reading times are not asked of a discriminator, nor of a run without a head of tokens",
          "[suites][reading]") {
  const TempDir dir;
  const auto electra = random_run(dir, "electra");
  CHECK_THAT(reason_unsupported(electra.config, suite_of(6), {}), Contains("a discriminator of rtd gives none"));
  CHECK_THROWS_AS(run_suite(electra, suite_of(6), {}), ConfigError);
  const auto pairs = random_run(dir, family("bert").model, {default_objective<NspConfig>()});
  CHECK_THAT(reason_unsupported(pairs.config, suite_of(6), {}),
             Contains("has no head that gives probabilities of tokens"));
  const auto bert = random_run(dir, "bert");
  CHECK(reason_unsupported(bert.config, suite_of(6), {}).empty());
  CHECK_THAT(reason_unsupported(bert.config, suite_of(6), {.scoring = {.form = ScoringForm::likelihood}}),
             Contains("cannot be scored by likelihood"));
}
