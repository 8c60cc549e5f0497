// The studies of configs/studies plan without mistakes.
#include <algorithm>
#include <filesystem>

#include "core/log.h"
#include "study/plan.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> ready_studies() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(SOURCE_DIR "/configs/studies")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("every ready study plans without mistakes, under the name of its file, with five seeds and a yardstick") {
  set_log_level(LogLevel::quiet);
  const TempDir folder;
  const auto files = ready_studies();
  CHECK(files.size() >= 10);
  for (const auto& file : files) {
    INFO(file);
    CHECK(file.extension() == ".yaml");
    const auto plan = make_plan(file, folder / "out");
    CHECK(plan.study.study == file.stem());
    CHECK(plan.seeds.size() >= 5);
    CHECK(plan.study.metric.better_by > 0);
    CHECK(plan.runs.size() == plan.arms.size() * plan.seeds.size());
  }
}

TEST_CASE("the arms of a ready study train on prepared tokens, for the same budget of tokens") {
  const TempDir folder;
  for (const auto& file : ready_studies()) {
    INFO(file);
    const auto plan = make_plan(file, folder / "out");
    for (const auto& run : plan.runs) {
      CHECK(run.config.data.tokens == "tokens");
      CHECK(run.config.train.budget.tokens == plan.study.budget.tokens);
      CHECK(run.config.train.budget.tokens > 0);
    }
  }
}
