// The studies of configs/studies plan without mistakes.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/log.h"
#include "models/transformer_config.h"
#include "study/search/stages.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

namespace fs = std::filesystem;

/// The studies that compare arms: all but the one whose runs are the points of a fit.
std::vector<fs::path> ready_studies() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(SOURCE_DIR "/configs/studies"))
    if (entry.path().stem() != "scaling") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// The files that ready studies are judged on, where they are looked for; a plan reads no item of them.
struct TaskData {
  TaskData() {
    for (const auto* file : {"SICK/SICK_train.txt", "SICK/SICK_trial.txt", "SICK/SICK_test_annotated.txt",
                             "TREC/train_5500.label", "TREC/TREC_10.label"}) {
      fs::create_directories(fs::path(folder / file).parent_path());
      folder.write(file, "made up");
    }
    setenv("CLOZE_TASKS", folder.path.c_str(), 1);
  }
  ~TaskData() { unsetenv("CLOZE_TASKS"); }
  TaskData(const TaskData&) = delete;
  TaskData& operator=(const TaskData&) = delete;
  const TempDir folder{};
};

}  // namespace

TEST_CASE("every ready study plans without mistakes, under the name of its file, with five seeds and a threshold") {
  set_log_level(LogLevel::quiet);
  const TaskData data;
  const TempDir folder;
  const auto files = ready_studies();
  CHECK(files.size() >= 10);
  for (const auto& file : files) {
    INFO(file);
    CHECK(file.extension() == ".yaml");
    const auto plan = make_stages(file, folder / "out").compared();
    CHECK(plan.study.study == file.stem());
    CHECK(plan.seeds.size() >= 5);
    CHECK(plan.study.metric.better_by > 0);
    CHECK(plan.runs.size() == plan.arms.size() * plan.seeds.size());
  }
}

TEST_CASE("the arms of a ready study train on prepared tokens, for the same budget of tokens or epochs") {
  const TaskData data;
  const TempDir folder;
  for (const auto& file : ready_studies()) {
    INFO(file);
    const auto plan = make_stages(file, folder / "out").plans.front();  // before any probes
    const auto& study = plan.study;
    const double trained = 1 - study.probe_head.share;
    CHECK((study.budget.tokens > 0) != (study.budget.epochs > 0));
    for (const auto& run : plan.runs) {
      const auto& budget = run.config.train.budget;
      CHECK(run.config.data.tokens == (study.budget.epochs > 0 ? "tokens-small" : "tokens"));
      CHECK(static_cast<double>(budget.tokens) == Approx(trained * static_cast<double>(study.budget.tokens)).margin(1));
      CHECK(budget.epochs == Approx(trained * study.budget.epochs));
    }
  }
}

TEST_CASE("arms without a head for the metric get a new one, and so do all arms of their study") {
  const TempDir folder;
  const auto stages = make_stages(SOURCE_DIR "/configs/studies/electra-generators.yaml", folder / "out");
  REQUIRE(stages.plans.size() == 2);
  CHECK(stages.compared().stage == "runs, probes");
  REQUIRE(stages.plans[1].runs.size() == stages.plans[0].runs.size());
  for (const auto& probe : stages.plans[1].runs) {
    CHECK(probe.config.init.probe);
    CHECK(as<MlmConfig>(probe.config.objectives.at(0)));
  }
}

TEST_CASE("studies that are judged by tasks have the arms of those by a loss, and search as much for each of them") {
  const TaskData data;
  const TempDir folder;
  for (const std::string name : {"spanbert-masking", "masking-rate", "t5-objectives", "electra-generators"}) {
    INFO(name);
    const auto study = [&](const std::string& file) {
      return make_stages(SOURCE_DIR "/configs/studies/" + file + ".yaml", folder / "out");
    };
    const auto by_loss = study(name), by_tasks = study(name + "-tasks");
    REQUIRE(by_tasks.task_tuning);
    CHECK(std::holds_alternative<TaskMetric>(by_tasks.compared().metric));
    const auto& arms = by_tasks.compared().arms;
    for (const auto& arm : by_loss.compared().arms)
      CHECK(std::ranges::any_of(arms, [&](const Arm& other) { return other.name == arm.name; }));
    const auto& tried = by_tasks.plans[*by_tasks.task_tuning];
    CHECK(tried.runs.size() == arms.size() * 5 * 2 * 3);  // seeds, tasks, rates
  }
}

TEST_CASE("the runs of the scaling study have eight sizes, and are evaluated at the end of every decay") {
  const TempDir folder;
  const auto plan = make_stages(SOURCE_DIR "/configs/studies/scaling.yaml", folder / "out").compared();
  std::set<int64_t> widths;
  for (const auto& run : plan.runs) {
    const auto& schedule = run.config.schedule;
    const auto* repeated = part_in<WsdSSchedule>(schedule.shape);
    REQUIRE(repeated);
    CHECK(run.config.evaluation.points % (int64_t{1} << (repeated->decays - 1)) == 0);
    const int64_t width = backbone_of(run.config.model).hidden_size;
    widths.insert(width);
    CHECK(run.config.optimizer.learning_rate * static_cast<double>(width) == Approx(0.1).epsilon(0.02));
  }
  CHECK(widths.size() == 8);
}

TEST_CASE("the masks of static masking return within the budget of its study, each as often as in the paper") {
  const TempDir folder;
  const auto plan = make_stages(SOURCE_DIR "/configs/studies/roberta-masking.yaml", folder / "out").compared();
  std::set<double> seen;
  for (const auto& run : plan.runs)
    if (const auto maskings = dupe_factor_of(run.config.objectives); maskings > 0)
      seen.insert(run.config.train.budget.epochs / static_cast<double>(maskings));
  CHECK(seen == std::set<double>{4, 20});
}
