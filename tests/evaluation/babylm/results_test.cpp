// Folders and files of results.
#include "evaluation/babylm/results.h"

#include "core/error.h"
#include "tests/evaluation/suites/reading_table.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

TEST_CASE("a model in results is called by the last part of its path without an extension", "[babylm]") {
  CHECK(babylm_model_name("runs/baby") == "baby");
  CHECK(babylm_model_name("runs/baby/") == "baby");
  CHECK(babylm_model_name("runs/baby.v2") == "baby");  // as pathlib's stem
  CHECK(babylm_model_name("org/baby-100M") == "baby-100M");
  for (const std::string name : {".", "..", "/", "a/.."}) {
    INFO(name);
    CHECK_THROWS_AS(babylm_model_name(name), ConfigError);
  }
  CHECK_THROWS_WITH(babylm_model_name("."), Contains("'.' is no name of a model; give one with --model"));
}

TEST_CASE("results are by model, revision and backend", "[babylm]") {
  CHECK(zero_shot_folder("results", "baby", "chck_7M", BabylmBackend::enc_dec_mask) ==
        "results/baby/chck_7M/zero_shot/enc_dec_mask");
}

TEST_CASE("surprisals of reading times are written with the scores that they give", "[babylm]") {
  const TempDir dir;
  const ReadingSuite suite{.times = reading_times_of(parse_csv(reading_table(72), "times.csv"))};
  ReadingSurprisals surprisals;
  for (size_t i = 0; i < 72; ++i) {
    surprisals.words.push_back(0.25 * static_cast<double>(i * 5 % 13));
    surprisals.previous.push_back(suite.times.previous[i] ? 0.5 * static_cast<double>(i * 3 % 7) : NAN);
  }
  write_reading({dir / "zero_shot/mlm"}, suite, surprisals);
  const auto text = read_file(dir / "zero_shot/mlm/reading/predictions.json");
  CHECK_THAT(text, Catch::StartsWith(R"({"reading": {"predictions": [{"id": 0, "pred": 0.0, "prev_pred": NaN}, )"
                                     R"({"id": 1, "pred": 1.25, "prev_pred": NaN}, )"
                                     R"({"id": 2, "pred": 2.5, "prev_pred": 3.0}, )"));
  const auto gains = reading_gains(suite.times, surprisals.words, surprisals.previous);
  char report[200];
  std::snprintf(report, sizeof report, "EYE TRACKING SCORE: %.2f\nSELF-PACED READING SCORE: %.2f\n",
                100 * gains.eye_tracking_mean(), 100 * gains.self_paced.value());
  CHECK(read_file(dir / "zero_shot/mlm/reading/report.txt") == report);
}

TEST_CASE("surprisals of acquisition are by checkpoint, word and context, indented by two", "[babylm]") {
  const TempDir dir;
  const AcquisitionSuite suite{.words = {{"owl", {"the", "an"}}, {"cup", {"a"}}}, .ages = {}};
  write_acquisition({dir / "mlm"}, "baby", suite,
                    {{.name = "chck_1M", .words = 1e6 + 0.4, .surprisals = {1.5, 2, 0.25}},
                     {.name = "chck_2M", .words = 2e6, .surprisals = {1, 1, 1}}});
  const auto text = read_file(dir / "mlm/AoA_word/surprisal.json");
  CHECK_THAT(text,
             Catch::StartsWith("{\n  \"metadata\": {\n    \"model_name\": \"baby\",\n    \"use_bos_only\": false,\n"
                               "    \"total_steps\": 2,\n    \"completed_steps\": 2\n  },\n  \"results\": [\n"
                               "    {\n      \"step\": \"chck_1M\",\n      \"word_count\": 1000000,\n"
                               "      \"target_word\": \"owl\",\n      \"context_id\": 0,\n"
                               "      \"context\": \"the\",\n      \"surprisal\": 1.5\n    },\n"));
  const auto lines = *parse_python_json(text, "surprisal.json").find("results")->list();
  REQUIRE(lines.size() == 6);
  CHECK(*lines[2].find("target_word")->text() == "cup");
  CHECK(lines[2].find("context_id")->number() == 0);
  CHECK(lines[4].find("context_id")->number() == 1);
  CHECK(*lines[5].find("step")->text() == "chck_2M");
}
