// The file of a submission, and the scores in it, against those of the published program.
#include "evaluation/babylm/collate.h"

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "evaluation/babylm/fast_scores.h"
#include "tests/evaluation/babylm/published.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

const json& given() { return published()["collation"]; }

std::map<std::string, TaskSize> sizes_of(const json& tasks) {
  std::map<std::string, TaskSize> sizes;
  for (const auto& [task, size] : tasks.items())
    sizes[task] = size.is_object() ? TaskSize{.each = 0, .parts = size} : TaskSize{.each = size};
  return sizes;
}

/// Results of a model that is complete, with the data of the fast evaluation; `fast`: with that of all checkpoints.
struct Results {
  TempDir dir;
  BabylmSizes sizes{.full = sizes_of(given()["full_sizes"]), .fast = sizes_of(given()["fast_sizes"]), .acquisition = 2};
  CollateRequest options{.results = dir / "results",
                         .model = "baby",
                         .backend = BabylmBackend::mlm,
                         .track = BabylmTrack::strict_small,
                         .data = dir.path.string()};
  const std::string main = "results/baby/main/";
  explicit Results(bool fast = false) {
    for (const auto& [folder, files] : given()["data"].items()) write_files(dir, "fast_eval/" + folder, files);
    write_predictions(main + "zero_shot/mlm/", given()["full"]);
    write_predictions(main + "finetune/", given()["tuned"]);
    dir.write(main + "zero_shot/mlm/AoA_word/surprisal.json", given()["surprisals"]);
    options.fast = fast;
    if (!fast) return;
    for (const auto& revision : babylm_revisions(BabylmTrack::strict_small))
      write_predictions("results/baby/" + revision + "/zero_shot/mlm/", given()["fast"]);
  }
  void write_predictions(const std::string& begin, const json& tasks) const {
    for (const auto& [task, content] : tasks.items())
      dir.write(begin + task + "/predictions.json", content.get<std::string>());
  }
  void remove(const std::string& path) const { fs::remove_all(dir.path / path); }
  /// Removes a part of predictions.
  void remove_part(const std::string& folder, const std::string& part) const {
    const auto file = folder + "/predictions.json";
    auto predictions = json::parse(read_file(dir / file));
    REQUIRE(predictions.erase(part) == 1);
    dir.write(file, predictions.dump());
  }

  /// What a collation throws.
  std::string refusal() const {
    try {
      collate_babylm(options, sizes);
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  }
};

/// The member of an object that can be changed.
PythonJson& member(PythonJson& json, const std::string& key) {
  for (auto& [name, value] : std::get<PythonJson::Dict>(json.value))
    if (name == key) return value;
  throw std::runtime_error("no member " + key);
}

void check_gains(const PythonJson& found, const PythonJson& wanted) {
  for (const char* key : {"spr", "rt"})
    CHECK(found.find(key)->number() == Approx(wanted.find(key)->number()).epsilon(1e-9));
}

}  // namespace

TEST_CASE("fast scores have the bytes of the published program's, gains of reading times their value", "[babylm]") {
  const Results results;
  const std::map<std::string, std::string> folders{{"blimp", "blimp/blimp_fast"},
                                                   {"blimp_supplement", "blimp/supplement_fast"},
                                                   {"ewok", "ewok/ewok_fast"},
                                                   {"entity_tracking", "entity_tracking/entity_tracking_fast"},
                                                   {"wug_adj", "wug_adj/wug_adj_nominalization"},
                                                   {"wug_past", "wug_past/wug_past_tense"},
                                                   {"reading", "reading"}};
  REQUIRE(given()["scores"].size() == folders.size());
  for (const auto& [task, folder] : folders) {
    INFO(task);
    const auto predictions = parse_python_json(given()["fast"][folder].get<std::string>(), folder);
    const auto wanted = given()["scores"][task].get<std::string>();
    const auto found = fast_scores(task, predictions, results.options.data + "/fast_eval");
    if (task == "reading")
      check_gains(found, parse_python_json(wanted, "wanted"));
    else
      CHECK(python_json(found) == wanted);
  }
}

TEST_CASE("the file of a submission has the bytes of the published program's", "[babylm]") {
  const Results results(true);
  const auto collation = collate_babylm(results.options, results.sizes);
  CHECK(collation.faults.empty());
  CHECK(collation.file == results.dir / "results/baby/all_full_preds_and_fast_scores_mlm.json");
  const auto text = given()["text"].get<std::string>(), found_text = read_file(collation.file);
  auto wanted = parse_python_json(text, "wanted"), found = parse_python_json(found_text, "found");
  CHECK(python_json(wanted) == text);
  auto& gains = member(member(found, "fast_eval_results"), "reading");
  auto& wanted_gains = member(member(wanted, "fast_eval_results"), "reading");
  REQUIRE(gains.list()->size() == 19);
  for (size_t i = 0; i < 19; ++i) check_gains((*gains.list())[i], (*wanted_gains.list())[i]);
  gains = wanted_gains;  // whose last digits another library of regressions may have otherwise
  CHECK(python_json(found) == text);
}

TEST_CASE("without fast scores a submission has the predictions alone", "[babylm]") {
  const Results results;
  const auto collation = collate_babylm(results.options, results.sizes);
  const auto found = parse_python_json(read_file(collation.file), "found");
  CHECK(found.find("fast_eval_results") == nullptr);
  CHECK(found.dict()->front().first == "blimp");
  CHECK(found.dict()->back().first == "glue");
}

TEST_CASE("what is missing or has another size is listed, and no file is written", "[babylm]") {
  const Results results(true);
  results.remove(results.main + "zero_shot/mlm/comps");
  results.remove(results.main + "finetune/rte");
  results.remove("results/baby/chck_7M");
  results.dir.write(results.main + "zero_shot/mlm/wug_past/wug_past_tense/predictions.json",
                    R"({"wug_past": {"predictions": [1, 2]}})");
  results.dir.write(results.main + "zero_shot/mlm/ewok/ewok_filtered/predictions.json",
                    R"({"rain": {"predictions": []}})");
  results.dir.write("results/baby/chck_2M/zero_shot/mlm/blimp/supplement_fast/predictions.json",
                    R"({"turns": {"predictions": [{"pred": "the owl"}]}})");
  const auto said = results.refusal();
  for (const std::string part :
       {"baby: is no complete submission; --partial writes what is there",
        "comps/comps/predictions.json: is not there; `cloze evaluate RUN --suite babylm` writes it",
        "finetune/rte/predictions.json: is not there; `cloze babylm finetune RUN DATA` writes it",
        "chck_7M/zero_shot/mlm: is not there; `cloze evaluate RUN --suite babylm --fast --all-checkpoints` writes it",
        "'wug_past' has 2 predictions, and the published data 6 items", "'rain' is no part of the published data",
        "'turns' has 1 predictions, and the published data 3 items"})
    CHECK_THAT(said, Contains(part));
  CHECK_FALSE(fs::exists(results.dir / "results/baby/all_full_preds_and_fast_scores_mlm.json"));
  CHECK_FALSE(fs::exists(results.dir / "results/baby/partial_full_preds_and_fast_scores_mlm.json"));
}

TEST_CASE("a paradigm without predictions is listed, of the full evaluation and of checkpoints", "[babylm]") {
  const Results results(true);
  results.remove_part(results.main + "zero_shot/mlm/blimp/blimp_filtered", "raising");
  results.remove_part("results/baby/chck_3M/zero_shot/mlm/blimp/blimp_fast", "npi_1");
  results.remove_part("results/baby/chck_3M/zero_shot/mlm/entity_tracking/entity_tracking_fast", "regular_1_ops");
  results.remove_part("results/baby/chck_3M/zero_shot/mlm/wug_past/wug_past_tense", "wug_past");
  const auto said = results.refusal();
  for (const std::string part :
       {"blimp_filtered/predictions.json: has no 'raising', of which the published data have 4 items",
        "chck_3M/zero_shot/mlm/blimp/blimp_fast/predictions.json: has no 'npi_1', which is in ",
        "entity_tracking_fast/predictions.json: has no 'regular_1_ops', of which the published data have 3 items",
        "wug_past_tense/predictions.json: has no predictions"})
    CHECK_THAT(said, Contains(part));
}

TEST_CASE("right answers are read from compressed files, too", "[babylm]") {
  const Results results;
  const auto compress =
      "cd '" + results.dir / "fast_eval" + "' && xz ewok_fast/*.jsonl && gzip reading/reading_data.csv";
  REQUIRE(std::system(compress.c_str()) == 0);
  const auto found = [&](const std::string& task, const std::string& folder) {
    const auto predictions = parse_python_json(given()["fast"][folder].get<std::string>(), folder);
    return fast_scores(task, predictions, results.options.data + "/fast_eval");
  };
  CHECK(python_json(found("ewok", "ewok/ewok_fast")) == given()["scores"]["ewok"].get<std::string>());
  check_gains(found("reading", "reading"),
              parse_python_json(given()["scores"]["reading"].get<std::string>(), "wanted"));
}

TEST_CASE("a partial submission is written under another name, with its faults", "[babylm]") {
  Results results;
  results.options.partial = true;
  results.remove(results.main + "zero_shot/mlm/comps");
  const auto collation = collate_babylm(results.options, results.sizes);
  CHECK(collation.faults.size() == 1);
  CHECK(collation.file == results.dir / "results/baby/partial_full_preds_and_fast_scores_mlm.json");
  CHECK(parse_python_json(read_file(collation.file), "found").find("comps") == nullptr);
}

TEST_CASE("a partial submission may be fine-tuning alone, whatever the backend", "[babylm]") {
  Results results;
  results.options.backend.reset();
  results.remove(results.main + "zero_shot");
  CHECK_THROWS_WITH(collate_babylm(results.options, results.sizes), Contains("has no results of any backend"));
  results.options.partial = true;
  const auto collation = collate_babylm(results.options, results.sizes);
  CHECK(collation.file == results.dir / "results/baby/partial_full_preds_and_fast_scores.json");
  CHECK(collation.faults.size() == 1);
  const auto found = parse_python_json(read_file(collation.file), "found");
  CHECK(found.find("blimp") == nullptr);
  CHECK(found.find("glue")->find("boolq") != nullptr);
}

TEST_CASE("results of different networks are no submission, not even a partial one", "[babylm]") {
  Results results(true);
  results.options.partial = true;
  const auto note = [&](const std::string& folder, const json& weights) {
    results.dir.write(folder + "/weights.json", weights.dump());
  };
  note(results.main + "zero_shot/mlm/ewok/ewok_filtered", {{"main", "a"}});
  note(results.main + "zero_shot/mlm/AoA_word", {{"main", "a"}, {"chck_7M", "c"}});
  note(results.main + "finetune/rte", {{"main", "a"}});
  note("results/baby/chck_7M/zero_shot/mlm/reading", {{"chck_7M", "c"}});
  CHECK(results.refusal().empty());
  const auto refused = [&](const std::string& folder, const std::string& revision, const std::string& other) {
    note(folder, {{revision, "b"}});
    CHECK_THAT(results.refusal(), Contains(folder) && Contains("json: is of another network (weights b) than ") &&
                                      Contains(other) && Contains("write both from one checkpoint"));
  };
  refused("results/baby/chck_7M/zero_shot/mlm/reading", "chck_7M", "main/zero_shot/mlm/AoA_word/surprisal.json (c)");
  refused(results.main + "finetune/rte", "main", "ewok_filtered/predictions.json (a)");
}

TEST_CASE("ages of acquisition are of every checkpoint of the track, each with all contexts", "[babylm]") {
  const Results results;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& sentence) {
    auto text = given()["surprisals"].get<std::string>();
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    results.dir.write(results.main + "zero_shot/mlm/AoA_word/surprisal.json", text);
    CHECK_THAT(results.refusal(), Contains(sentence));
  };
  refused("\"chck_7M\"", "\"chck_6M\"", "has 18 checkpoints, and track strict-small 19 (--track names another)");
  refused("\"chck_7M\"", "\"chck_11M\"", "has no checkpoint chck_7M");
  refused("\"step\"", "\"steps\"", "a result has no `step`");
  refused("\"results\"", "\"result\"", "has no list of `results`");
  refused("{\"step\": \"chck_7M\"", "{\"step\": \"chck_7M\"}, {\"step\": \"chck_7M\"",
          "has 4 surprisals of chck_7M, and the published data 2 contexts");
}

TEST_CASE("predictions of another form, and answers that are not there, are refused by their file", "[babylm]") {
  const Results results;
  const auto file = results.main + "zero_shot/mlm/reading/predictions.json";
  results.dir.write(file, "[1]");
  CHECK_THAT(results.refusal(), Contains("reading/predictions.json: is no JSON object of parts"));
  results.dir.write(file, R"({"reading": [1]})");
  CHECK_THAT(results.refusal(), Contains("part 'reading' has no list of `predictions`"));
  results.dir.write(file, R"({"reading": {"predic)");
  CHECK_THAT(results.refusal(), Contains("reading/predictions.json: the JSON ends in the middle"));
  const auto predictions = parse_python_json(given()["fast"]["ewok/ewok_fast"].get<std::string>(), "ewok");
  CHECK_THROWS_WITH(fast_scores("ewok", predictions, results.dir / "none"),
                    Contains("none/ewok_fast/heat.jsonl: is not there, and the right answers are read from it"));
  auto elsewhere = results.options;
  elsewhere.model = "other";
  CHECK_THROWS_WITH(collate_babylm(elsewhere, results.sizes),
                    Contains("other: is not there; `cloze evaluate RUN --suite babylm` writes results of a run"));
}
