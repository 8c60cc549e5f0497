// Items and reports of every task against those of the published program, from the same scores.
#include "evaluation/babylm/results.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tests/evaluation/babylm/published.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

const BabylmDataset& dataset_of(const std::string& folder) {
  for (const auto& one : babylm_datasets(false))
    if (one.folder == folder) return one;
  throw std::runtime_error("no dataset " + folder);
}

/// The items and the scores of a report of published.json.
struct Scored {
  const BabylmDataset& dataset;
  std::vector<BabylmItem> items;
  std::vector<std::vector<float>> sums;
  explicit Scored(const nlohmann::json& one) : dataset(dataset_of(one["folder"])), sums(one["sums"]) {
    const TempDir dir;
    write_files(dir, "data", one["files"]);
    items = read_babylm_items(dir / "data", dataset);
  }
};

}  // namespace

TEST_CASE("predictions and reports have the bytes of the published program's", "[babylm]") {
  for (const auto& one : published()["reports"]) {
    INFO(one["folder"]);
    const Scored scored(one);
    REQUIRE(scored.items.size() == scored.sums.size());
    const auto report = babylm_report(scored.dataset, scored.items, scored.sums);
    CHECK(report.average == one["average"].get<double>());
    CHECK(report_text(scored.dataset, report) == one["report"].get<std::string>());
    CHECK(python_json(report.predictions) == one["predictions"].get<std::string>());
  }
}

TEST_CASE("a report is of as many scores as items have candidates", "[babylm]") {
  Scored scored(published()["reports"][0]);
  auto cut = scored.sums;
  cut[2].pop_back();
  CHECK_THROWS_AS(babylm_report(scored.dataset, scored.items, cut), DataError);
  CHECK_THROWS_WITH(babylm_report(scored.dataset, scored.items, cut),
                    Contains("blimp_filtered: item 2 has 2 candidates and scores of 1"));
  scored.sums.pop_back();
  CHECK_THROWS_WITH(babylm_report(scored.dataset, scored.items, scored.sums),
                    Contains("blimp_filtered: has 14 items and scores of 13"));
}

TEST_CASE("a correlation that is not defined is printed as Python prints it", "[babylm]") {
  Scored scored(published()["reports"][4]);
  for (auto& sums : scored.sums) sums = {-1, -1};
  const auto report = babylm_report(scored.dataset, scored.items, scored.sums);
  CHECK(std::isnan(report.average));
  CHECK_THAT(report_text(scored.dataset, report), Contains("### AVERAGE SPEARMAN'S RHO\nnan\n\n"));
}
