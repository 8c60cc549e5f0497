// The table of evaluation suites in a report.
#include "study/report/report_rows.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

/// A report of two arms with these accuracies, one for each seed.
struct Answers {
  TempDir folder{};
  StudyReport report{.name = "s", .unit = "nats", .metric = "mlm", .baseline = "plain"};
  void add(const std::string& arm, const std::vector<double>& accuracies) {
    auto& one = report.arms.emplace_back(ArmReport{.name = arm});
    for (size_t i = 0; i < accuracies.size(); ++i) {
      const auto run = arm + "-" + std::to_string(i);
      std::filesystem::create_directories(folder / run);
      const nlohmann::json score{{"value", accuracies[i]}, {"count", 10}, {"ties", 0}};
      const nlohmann::json suite{{"accuracy", score}, {"groups", {{"islands", {{"accuracy", 1}}}}}};
      folder.write(run + "/summary.json", nlohmann::json{{"suites", {{"pairs", suite}}}}.dump());
      one.runs.push_back({{}, {}, arm, static_cast<int64_t>(i), folder / run});
    }
  }
};

}  // namespace

TEST_CASE("a report shows what every arm answered to a suite, and its paired difference to the baseline") {
  Answers answers;
  answers.add("plain", {0.5, 0.6, 0.7});
  answers.add("other", {0.6, 0.7, 0.9});
  const auto table = suite_table(answers.report);
  REQUIRE(table);
  REQUIRE(table->rows.size() == 2);
  const auto &plain = table->rows[0], &other = table->rows[1];
  CHECK(plain == std::vector<std::string>{"pairs accuracy %", "plain", "3", "60", "10", "", "", ""});
  CHECK(other[0] == "pairs accuracy %");
  CHECK(other[5] == "13.3");
  // scipy.stats.ttest_rel of the two lists: p = 0.0572, interval [-0.0101, 0.2768]
  CHECK(other[6] == "[-1.01, 27.7]");
  CHECK(other[7] == "0.057");
}

TEST_CASE("runs that answered alike differ by what so many items leave open") {
  Answers answers;
  answers.add("plain", {0.75, 0.75});
  answers.add("other", {0.75, 0.75});
  const nlohmann::json score{{"value", 0.75}, {"higher_is_better", true}, {"floor", 0.5},       {"asked", "x"},
                             {"items", 20},   {"sum", {5, 5, 5}},         {"count", {10, 5, 5}}};
  const nlohmann::json suites{{"pairs", {{"accuracy", score}}}};
  for (const std::string run : {"plain-0", "plain-1", "other-0", "other-1"})
    answers.folder.write(
        run + "/suites.json",
        json_text(nlohmann::json{{"step", 1}, {"suites", suites}, {"xxh3", hash_hex(json_text(suites))}}));
  const auto table = suite_table(answers.report);
  REQUIRE(table);
  // Clopper and Pearson's bound of none of 20: 1 - 0.025^(1 / 20).
  CHECK(table->rows[1] ==
        std::vector<std::string>{"pairs accuracy %", "other", "2", "75", "0", "0", "[-16.8, 16.8]", "1"});
}

TEST_CASE("an arm of another budget has what it answered to a suite, and no difference to the baseline") {
  Answers answers;
  answers.add("plain", {0.5, 0.6, 0.7});
  answers.add("longer", {0.6, 0.7, 0.9});
  answers.report.arms[1].other_budget = "40 steps";
  const auto table = suite_table(answers.report);
  REQUIRE(table);
  CHECK(table->rows[1][3] == "73.33");
  CHECK(table->rows[1][5] == "");
}

TEST_CASE("correlations of suites keep their unit in a report") {
  Answers answers;
  answers.add("plain", {0.5, 0.75});
  for (const std::string run : {"plain-0", "plain-1"})
    answers.folder.write(run + "/summary.json", R"({"suites": {"wug": {"spearman": {"value": 0.25}}}})");
  const auto table = suite_table(answers.report);
  REQUIRE(table);
  CHECK(table->rows[0][0] == "wug spearman");
  CHECK(table->rows[0][3] == "0.25");
}

TEST_CASE("runs of other seeds than the baseline's are shown without a difference") {
  Answers answers;
  answers.add("plain", {0.5, 0.6});
  answers.add("other", {0.6});
  answers.report.arms[1].runs[0].seed = 7;
  const auto table = suite_table(answers.report);
  REQUIRE(table);
  CHECK(table->rows[1][5].empty());
}

TEST_CASE("a report of runs that answered no suite has no table of suites") {
  Answers answers;
  answers.add("plain", {});
  CHECK_FALSE(suite_table(answers.report));
}

TEST_CASE("a damaged summary is named") {
  Answers answers;
  answers.add("plain", {0.5});
  answers.folder.write("plain-0/summary.json", "{\"suites\": ");
  CHECK_THROWS_AS(suite_table(answers.report), DataError);
}
