// Evaluation suites that a run answers while it trains.
#include "train/callbacks/suites.h"

#include "core/fingerprint.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "evaluation/evaluate.h"
#include "evaluation/suites/suite.h"
#include "run/records/held_out_record.h"
#include "run/records/suite_record.h"
#include "run/run.h"
#include "tests/evaluation/suites/reading_table.h"
#include "tests/support/runs.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

/// Minimal pairs of two paradigms in the words of tiny_run, the first of a true pair of the language.
std::string pairs_file(const TempDir& dir) {
  std::string lines;
  for (const std::string paradigm : {"near", "far"})
    for (const std::string good : {"wa wb we", "wc wh wg", "wd wk wf"})
      lines +=
          json{
              {"UID", paradigm}, {"pairID", good}, {"sentence_good", good}, {"sentence_bad", good.substr(0, 5) + " wa"}}
              .dump() +
          "\n";
  return dir.write("pairs.jsonl", lines);
}

/// Pairs with shares of people, whose correlation with a model changes with its weights.
std::string judged_file(const TempDir& dir) {
  auto stream = Rng(5).stream("judged");
  const auto word = [&] { return std::string("w") + static_cast<char>('a' + stream.below(16)); };
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += json{{"sentences", word() + " " + word() + "\t" + word() + " " + word()}, {"ratio", (i * 17 % 41) / 41.0}}
                 .dump() +
             "\n";
  return dir.write("judged.jsonl", lines);
}

/// Pairs that a run is asked for seconds.
std::string long_suite(const TempDir& dir) {
  auto stream = Rng(6).stream("long");
  std::string lines;
  for (int i = 0; i < 1500; ++i) {
    std::string good;
    for (int k = 0; k < 12; ++k) good += std::string(k > 0 ? " w" : "w") + static_cast<char>('a' + stream.below(16));
    lines +=
        json{{"UID", "long"}, {"pairID", i}, {"sentence_good", good}, {"sentence_bad", good.substr(0, 32)}}.dump() +
        "\n";
  }
  return dir.write("long.jsonl", lines);
}

/// The rows of metrics.jsonl with answers to suites, by step.
std::map<int64_t, json> answers_of(const std::string& run) {
  std::map<int64_t, json> found;
  for (const auto& row : metrics(run))
    if (row.contains("suites")) found[row["step"]] = row["suites"];
  return found;
}

json suites_summary(const std::string& run) { return json::parse(read_file(run + "/summary.json"))["suites"]; }

void check_refused(const RunConfig& config, const TempDir& dir, const std::string& sentence) {
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "refused"}), Contains(sentence));
  CHECK_FALSE(std::filesystem::exists(dir / "refused/metrics.jsonl"));
}

}  // namespace

TEST_CASE("suites are answered at their steps and at the end, in metrics and in the summary", "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 7);
  config.evaluation.suites = {pairs_file(dir)};
  config.evaluation.suite_every = 3;
  config.evaluation.suite_items = 2;
  pretrain(config, {.run = dir / "run"});
  const auto answers = answers_of(dir / "run");
  REQUIRE(answers.size() == 3);
  for (const int64_t step : {3, 6, 7}) {
    REQUIRE(answers.contains(step));
    const auto& accuracy = answers.at(step)["pairs"]["accuracy"];
    CHECK(accuracy["count"] == 4);  // two of each paradigm
    CHECK(answers.at(step)["pairs"]["groups"].contains("near"));
  }
  CHECK(suites_summary(dir / "run") == answers.at(7));
  auto suite = open_suite(dir / "pairs.jsonl");
  keep_first(std::get<RankingSuite>(suite.items), 2);
  const auto again = run_suite(open_run(dir / "run"), suite, {});
  CHECK(answers.at(7)["pairs"]["accuracy"]["value"] == again.scores[0].value);
  CHECK(answers.at(7)["pairs"]["groups"]["far"]["accuracy"] == again.scores.back().value);
}

TEST_CASE("a suite that is only asked for at the end is answered once", "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 4);
  config.evaluation.suites = {pairs_file(dir)};
  pretrain(config, {.run = dir / "run"});
  const auto answers = answers_of(dir / "run");
  REQUIRE(answers.size() == 1);
  CHECK(answers.at(4)["pairs"]["accuracy"]["count"] == 6);
}

TEST_CASE("suites are asked of the averaged weights, which a checkpoint has", "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 20);
  config.optimizer.learning_rate = 0.02;
  config.train.ema_decay = 0.9;
  config.evaluation.suites = {judged_file(dir)};
  pretrain(config, {.run = dir / "run"});
  const auto again = run_suite(open_run(dir / "run"), open_suite(dir / "judged.jsonl"), {});
  REQUIRE(again.scores[0].metric == "spearman");
  CHECK(suites_summary(dir / "run")["judged"]["spearman"]["value"].get<double>() ==
        Approx(again.scores[0].value).epsilon(1e-9));
}

TEST_CASE("suites change nothing of the training", "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 8);
  pretrain(config, {.run = dir / "without"});
  config.evaluation.suites = {pairs_file(dir)};
  config.evaluation.suite_every = 2;
  pretrain(config, {.run = dir / "with"});
  CHECK(same_files(dir / "without/step-00000008/weights.safetensors", dir / "with/step-00000008/weights.safetensors"));
}

TEST_CASE("a run that is killed and resumed has the same answers, each once", "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 40);
  config.checkpoint.every = 7;
  config.checkpoint.keep = 1;
  config.evaluation.suites = {pairs_file(dir)};
  config.evaluation.suite_every = 7;
  check_killed_run(config, dir, "step-00000014", "step-00000040", {"weights.safetensors"});
  CHECK(answers_of(dir / "a").size() == 6);
  CHECK(suites_summary(dir / "a") == suites_summary(dir / "b"));
}

TEST_CASE("a signal ends the answers to a suite, and the resumed run gives them and all that was due",
          "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 7);
  config.evaluation.every = 3;
  config.evaluation.suites = {long_suite(dir)};
  config.evaluation.suite_every = 3;
  for (const std::string run : {"a", "b"}) std::ofstream(dir / (run + ".yaml")) << to_yaml(config);
  REQUIRE(wait_for(train_in_child({.run = dir / "a"})) == 0);
  const auto stopped = train_in_child({.run = dir / "b"});
  const auto evaluates = [&] {
    const auto rows = metrics(dir / "b");
    return std::any_of(rows.begin(), rows.end(), [](const json& row) { return row.contains("held_out"); });
  };
  CHECK(wait_until(evaluates));
  kill(stopped, SIGTERM);
  REQUIRE(wait_for(stopped) == 130);
  const auto state = load_state(find_checkpoint(dir / "b"), nullptr);
  CHECK(state.step == 3);
  CHECK(state.suites_due);
  CHECK_FALSE(state.held_out_due);
  CHECK(answers_of(dir / "b").empty());
  REQUIRE(wait_for(train_in_child({.run = dir / "b", .resume = true})) == 0);
  CHECK(metrics(dir / "a") == metrics(dir / "b"));
  CHECK(answers_of(dir / "b").size() == 3);
  CHECK(suites_summary(dir / "a") == suites_summary(dir / "b"));
}

TEST_CASE("a resumed run makes the evaluation that was due after its checkpoint, whether it goes on or ends there",
          "[train][resume]") {
  const int64_t stopped_at = GENERATE(3, 6);
  INFO(stopped_at);
  const TempDir dir;
  auto config = tiny_run(dir, 6);
  config.evaluation.every = 3;
  config.checkpoint.every = 3;
  pretrain(config, {.run = dir / "a"});
  namespace fs = std::filesystem;
  fs::copy(dir / "a", dir / "b", fs::copy_options::recursive);
  const auto step = dir / ("b/step-0000000" + std::to_string(stopped_at));
  const auto run = open_run(step);
  StateDict moments;
  auto state = load_state(step, &moments);
  state.held_out_due = true;
  state.evaluated_at = stopped_at - 3;
  state.best_step = stopped_at - 3;
  state.best_loss = stopped_at > 3 ? metrics(dir / "a")[3]["held_out_loss"].get<double>() : 0;
  state.evaluations_without_gain = 0;
  const auto lines = read_file(dir / "a/metrics.jsonl");
  size_t at = 0;
  for (int64_t row = 0; row < stopped_at + stopped_at / 3 - 1; ++row) at = lines.find('\n', at) + 1;
  state.metrics_bytes = at;  // without the row of the evaluation
  for (int64_t later = stopped_at; later <= 6; later += 3)
    fs::remove_all(dir / ("b/step-0000000" + std::to_string(later)));
  save_checkpoint(dir / "b", state, collect_params(*run.network), moments);
  CHECK_FALSE(pretrain(config, {.run = dir / "b", .resume = true}).had_finished);
  CHECK(metrics(dir / "a") == metrics(dir / "b"));
  CHECK(same_files(dir / "a/step-00000006/weights.safetensors", dir / "b/step-00000006/weights.safetensors"));
  CHECK(same_files(dir / "a/best", dir / "b/best"));
  const auto last = load_state(dir / "b/step-00000006", nullptr);
  CHECK_FALSE(last.held_out_due);
  CHECK_FALSE(last.suites_due);
  CHECK(pretrain(config, {.run = dir / "b", .resume = true}).had_finished);
}

TEST_CASE("a signal ends a held-out evaluation and a score, and not a run that has been asked for nothing",
          "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 2);
  config.evaluation.suites = {pairs_file(dir)};
  pretrain(config, {.run = dir / "run"});
  const auto run = open_run(dir / "run");
  const TokenStore store(config.data.tokens, "valid");
  const auto measures = held_out_measures(run.config, store);
  const auto suite = open_suite(dir / "pairs.jsonl");
  CHECK_NOTHROW(evaluate(*run.network, measures, 8, at::kCPU));
  interrupts().requested = true;
  CHECK_THROWS_AS(evaluate(*run.network, measures, 8, at::kCPU), Interrupted);
  CHECK_THROWS_AS(run_suite(run, suite, {}), Interrupted);
  interrupts().requested = false;
  CHECK_NOTHROW(run_suite(run, suite, {}));
}

TEST_CASE("a suite that has no answer when it is asked is left out, and the run ends with its weights",
          "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 4);
  config.evaluation.suites = {dir.write("reading.csv", reading_table(3)), pairs_file(dir)};  // too few to regress
  config.evaluation.suite_every = 2;
  pretrain(config, {.run = dir / "run"});
  CHECK(std::filesystem::exists(dir / "run/step-00000004/weights.safetensors"));
  for (const int64_t step : {2, 4}) {
    CHECK_FALSE(answers_of(dir / "run").at(step).contains("reading"));
    CHECK(answers_of(dir / "run").at(step).contains("pairs"));
  }
  CHECK_THAT(read_file(dir / "run/log.txt"),
             Contains("suite reading is left out at step 4: ") && Contains("regression"));
}

TEST_CASE("suites that are damaged, not there or not for the run are said before it trains", "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 4);
  config.evaluation.suites = {dir / "none.jsonl"};
  check_refused(config, dir, "none.jsonl: no such file");
  config.evaluation.suites = {
      dir.write("cut.jsonl", "{\"sentence_good\": \"wa wb\", \"sentence_bad\": \"wb wa\"}\n{\"sen")};
  check_refused(config, dir, "cut.jsonl:2: not a JSON object");
  dir.write("other/pairs.jsonl", json{{"sentence_good", "wa wb"}, {"sentence_bad", "wb wa"}}.dump() + "\n");
  config.evaluation.suites = {pairs_file(dir), dir / "other/pairs.jsonl"};
  check_refused(config, dir, " are both called pairs; rename one of them");
  config.evaluation.suites = {pairs_file(dir), pairs_file(dir)};
  check_refused(config, dir, "pairs.jsonl; leave one out");
  config.evaluation.suites = {pairs_file(dir)};
  std::string text = "wa";
  for (int i = 0; i < 40; ++i) text += " wb";
  config.evaluation.suites.push_back(
      dir.write("long.jsonl", json{{"sentence_good", text}, {"sentence_bad", "wa"}}.dump() + "\n"));
  check_refused(config, dir, "evaluation.suites: long: item long/0: the text 'wa wb");
  config.evaluation.suites.pop_back();
  auto table = reading_table(40);
  table.insert(table.find("\ncats see,") + 1, text + " ");
  config.evaluation.suites.push_back(dir.write("reading.csv", table));
  check_refused(config, dir, "reads at most 32 tokens; a text has 48; shorten it, or take a model that reads more");
  config.evaluation.suites.pop_back();
  config.objectives = {default_objective<NspConfig>()};
  check_refused(config, dir, "evaluation.suites: the run cannot be scored: it has no head that gives probabilities");
}

TEST_CASE("a run keeps what it answered at its end with the sums of its paradigms", "[train][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 6);
  config.evaluation.suites = {pairs_file(dir)};
  pretrain(config, {.run = dir / "run"});
  const auto text = json::parse(read_file(dir / "run/suites.json"));
  const auto record = text.get<SuiteRecord>();
  CHECK(record.step == 6);
  CHECK(record.xxh3 == hash_hex(json_text(text["suites"])));
  const auto& score = record.suites.at("pairs").at("accuracy");
  CHECK(score.value == suites_summary(dir / "run")["pairs"]["accuracy"]["value"]);
  CHECK((score.sum[0] + score.sum[1]) / 2 == Approx(score.value));
  CHECK(score.count == std::vector<double>{1, 1});
  CHECK(score.floor == Approx(0.5));
}

TEST_CASE("held-out losses say from which document each is") {
  const TempDir dir;
  auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  const auto record = json::parse(read_file(dir / "run/held_out.json")).get<HeldOutRecord>();
  const TokenStore held_out(config.data.tokens, "valid");
  for (const auto& [name, losses] : record.losses) {
    REQUIRE(losses.document.size() == losses.sum.size());
    for (const auto document : losses.document) CHECK(document < held_out.num_documents());
    CHECK(std::set<uint64_t>(losses.document.begin(), losses.document.end()).size() > 1);
  }
}
