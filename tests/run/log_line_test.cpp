// Lines of metrics.jsonl, and the plot of the loss.
#include <cmath>
#include <fstream>

#include "tests/support/runs.h"
#include "core/json_fields.h"
#include "objectives/kinds.h"
#include "run/records/log_line.h"
#include "run/records/loss_curve.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE("a line of metrics gives means over the steps since the previous line, also across a resume",
          "[train][metrics][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 12);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  pretrain(config, {.run = dir / "each"});
  config.checkpoint.log_every = 5;
  pretrain(config, {.run = dir / "fifth"});
  config.train.budget.steps = 8;  // the run stops between two lines
  pretrain(config, {.run = dir / "resumed"});
  config.train.budget.steps = 12;
  pretrain(config, {.run = dir / "resumed", .resume = true});

  const auto logged = [](const std::string& run) {
    std::vector<nlohmann::json> rows;
    for (const auto& row : metrics(run))
      if (row.contains("loss")) rows.push_back(row);
    return rows;
  };
  const auto each = logged(dir / "each"), fifth = logged(dir / "fifth");
  REQUIRE(each.size() == 12);
  REQUIRE(fifth.size() == 3);  // steps 1, 5, 10
  CHECK(logged(dir / "resumed") == fifth);
  for (const auto& [line, first, end] : {std::tuple{0, 0, 1}, {1, 1, 5}, {2, 5, 10}}) {
    const auto& row = fifth[static_cast<size_t>(line)];
    INFO(row.dump());
    CHECK(row["step"] == end);
    double norms = 0, all = 0;
    for (const std::string name : {"mlm", "nsp"}) {
      double loss = 0, right = 0;
      int64_t count = 0;
      for (int k = first; k < end; ++k) {
        const auto& part = each[static_cast<size_t>(k)][name];
        const auto n = part["count"].get<int64_t>();
        loss += part["loss"].get<double>() * static_cast<double>(n);
        right += part["accuracy"].get<double>() * static_cast<double>(n);
        count += n;
      }
      CHECK(row[name]["count"] == count);
      CHECK(row[name]["loss"].get<double>() == Approx(loss / static_cast<double>(count)));
      CHECK(row[name]["accuracy"].get<double>() == Approx(right / static_cast<double>(count)));
      all += loss / static_cast<double>(count);
    }
    for (int k = first; k < end; ++k) norms += each[static_cast<size_t>(k)]["grad_norm"].get<double>();
    CHECK(row["grad_norm"].get<double>() == Approx(norms / (end - first)));
    CHECK(row["loss"].get<double>() == Approx(all));
  }
}

TEST_CASE("a line that a checkpoint saves keeps its counts, and F1 of what is detected", "[train][metrics][resume]") {
  const BinaryCounts of_pairs{.positives = 2, .predicted = 1, .true_positives = 1};
  LogLine line;
  line.add({{.name = "nsp", .sum = at::tensor(2.0), .count = 4, .counts = counts_of(3, of_pairs)},
            {.name = "rtd", .sum = at::tensor(3.0), .count = 4, .counts = counts_of(2, of_pairs), .detects = true}},
           0.5);
  const nlohmann::json saved = line;
  auto loaded = saved.get<LogLine>();
  CHECK((nlohmann::json(loaded) == saved));
  REQUIRE(loaded.parts.size() == 2);
  CHECK_FALSE(loaded.parts[0].binary->detects);
  CHECK(loaded.parts[1].binary->detects);
  auto earlier = saved;  // of a version that did not save it: known again with the next step
  earlier["parts"][1]["yes_no"].erase("detects");
  loaded = earlier.get<LogLine>();
  CHECK_FALSE(loaded.parts[1].binary->detects);
  loaded.add({{.name = "rtd", .sum = at::tensor(3.0), .count = 4, .counts = counts_of(2, of_pairs), .detects = true}},
             0.5);
  CHECK(loaded.parts[1].binary->detects);
  CHECK(loaded.parts[1].binary->positives == 4);
}

TEST_CASE("the smoothed loss follows the mean of a noisy falling loss, from the first point to the last",
          "[train][metrics]") {
  std::vector<LossPoint> points;
  std::vector<double> truth;
  for (int k = 0; k < 200; ++k) {
    const double step = 10 * (k + 1), noise = 0.3 * std::sin(12.9898 * k) * std::cos(78.233 * k);
    truth.push_back(2.5 + 7 * std::exp(-step / 150));
    points.push_back({step, truth.back() + noise});
  }
  const auto found = smoothed(points);
  REQUIRE(found.size() == points.size());
  double above = 0;
  for (size_t k = 0; k < found.size(); ++k) {
    INFO("point " << k);
    CHECK(std::abs(found[k] - truth[k]) < 0.3);
    above += found[k] - truth[k];
  }
  CHECK(std::abs(above) / 200 < 0.02);
  // A straight line and a single point stay as they are.
  std::vector<LossPoint> line;
  for (int k = 0; k < 30; ++k) line.push_back({static_cast<double>(k * k), 5 - 0.01 * k * k});
  const auto same = smoothed(line);
  for (size_t k = 0; k < line.size(); ++k) CHECK(same[k] == Approx(line[k].y).margin(1e-9));
  CHECK(smoothed({{3, 7}}) == std::vector<double>{7});
}

TEST_CASE("the plot of a run has a panel for each loss, a title, and the baselines", "[train][metrics]") {
  TempDir dir;
  fs::create_directories(dir / "run's_first");
  std::ofstream out(dir / "run's_first/metrics.jsonl");
  for (int step = 1; step <= 60; ++step) {
    const double mlm = 4 + 5 * std::exp(-step / 15.0), nsp = 0.4 + 0.3 * std::exp(-step / 30.0);
    out << nlohmann::json{{"step", step},
                          {"loss", mlm + nsp},
                          {"time", {{"seconds", 1}}},
                          {"mlm", {{"loss", mlm}, {"count", 30}}},
                          {"nsp", {{"loss", nsp}, {"count", 8}}}}
        << "\n";
    if (step % 20 == 0)
      out << nlohmann::json{{"step", step},
                            {"held_out_loss", 9},
                            {"held_out",
                             {{"mlm:0.15_loss", mlm + 0.2},
                              {"mlm:0.15_accuracy", 0.2},
                              {"mlm:0.15_baseline_loss", 6.5},
                              {"nsp_loss", nsp},
                              {"nsp_baseline_loss", 0.66}}}}
          << "\n";
  }
  out.close();
  REQUIRE(draw_loss(dir / "run's_first", {default_objective<MlmConfig>(), default_objective<NspConfig>()}, 0));
  const auto svg = read_file(dir / "run's_first/loss.svg");
  for (const auto* words : {">run&#39;s_first<", ">mlm<", ">nsp<", ">training, smoothed<", ">held out<",
                            ">unigram, held out<", ">majority, held out<", ">step<"})
    CHECK_THAT(svg, Catch::Contains(words));
  CHECK(std::distance(fs::directory_iterator(dir / "run's_first"), fs::directory_iterator{}) == 2);
  std::ofstream(dir / "run's_first/metrics.jsonl")
      << R"({"step": 1, "loss": 3, "mlm": {"loss": 3, "count": 2}})" << "\n";
  CHECK_FALSE(draw_loss(dir / "run's_first", {default_objective<MlmConfig>()}, 0));  // one point is not a curve
}

TEST_CASE("the plot of a long run is as small as that of a short one, and shows every peak", "[train][metrics]") {
  TempDir dir;
  fs::create_directories(dir / "run");
  std::ofstream out(dir / "run/metrics.jsonl");
  for (int step = 1; step <= 30000; ++step)
    out << R"({"step":)" << step << R"(,"mlm":{"loss":)" << (step == 17000 ? 90 : 4 + 5 * std::exp(-step / 3000.0))
        << R"(,"count":30}})" << "\n";
  out.close();
  REQUIRE(draw_loss(dir / "run", {default_objective<MlmConfig>()}, 0));
  CHECK(fs::file_size(dir / "run/loss.svg") < 200000);
  CHECK_THAT(read_file(dir / "run/loss.svg"), Catch::Contains(">100</text>"));  // the axis reaches the peak
}

TEST_CASE("names in a log and the name of a run are text in the plot, and nothing is run", "[train][metrics]") {
  TempDir dir;
  const auto canary = dir / "canary", run = dir / "run\n!touch canary\n#";
  const std::string key = "x\n!touch " + canary + "\n#'; system(\"touch " + canary + "\")";
  fs::create_directories(run);
  std::ofstream out(run + "/metrics.jsonl");
  for (int step = 1; step <= 3; ++step)
    out << nlohmann::json{{"step", step},
                          {key, {{"loss", 3}, {"count", 2}}},
                          {"held_out", {{key + "_loss", 3}, {key + ":</text><script>_loss", 2}}}}
        << "\n";
  out.close();
  REQUIRE(draw_loss(run, {default_objective<MlmConfig>()}, 0));
  const auto svg = read_file(run + "/loss.svg");
  CHECK_THAT(svg, Catch::Contains("x\\n!touch ") && !Catch::Contains("<script>") && !Catch::Contains("\n!touch"));
  CHECK_FALSE(fs::exists(canary));
  CHECK(std::distance(fs::directory_iterator(run), fs::directory_iterator{}) == 2);
}
