#include "core/spelling.h"
#include "study/statistics/fit.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "study/report/fit_report.h"
#include "tests/study/study_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const json& reference() {
  static const json all = json::parse(std::ifstream(SOURCE_DIR "/tests/study/fit.json"));
  return all;
}

const ScalingLaw known{.E = 1.7, .A = 400, .B = 1500, .alpha = 0.34, .beta = 0.36};

/// Points of the known law with noise of this standard deviation on the logarithm of the loss.
std::vector<ScalingPoint> points_of(const std::vector<double>& sizes, const std::vector<double>& ratios, double noise,
                                    uint64_t seed = 1) {
  auto stream = Rng(seed).stream("points");
  std::vector<ScalingPoint> points;
  for (const double size : sizes)
    for (const double ratio : ratios) {
      const double tokens = ratio * size;
      points.push_back({size, tokens, known.loss(size, tokens) * std::exp(noise * stream.normal())});
    }
  return points;
}

const std::vector<double> six_sizes{3e7, 1e8, 3e8, 1e9, 3e9, 1e10};

/// A finished run of a model with 800 parameters of a table and 136 others, that read 5,000 tokens.
std::string make_run(const TempDir& dir, const std::string& name, double loss, const std::string& measured) {
  const auto run = dir / name;
  fs::create_directories(run + "/step-00000010");
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("backbone.embeddings.word":{"dtype":"F32","shape":[100,8],"data_offsets":[0,3200]},)"
                             R"("backbone.embeddings.norm.weight":{"dtype":"F32","shape":[8],"data_offsets":[0,0]},)"
                             R"("backbone.stack.0.output.weight":{"dtype":"F32","shape":[8,16],"data_offsets":[0,0]}})";
  const uint64_t length = header.size();
  std::ofstream weights(run + "/step-00000010/weights.safetensors", std::ios::binary);
  weights.write(reinterpret_cast<const char*>(&length), 8) << header;
  dir.write(name + "/latest", "step-00000010\n");
  dir.write(name + "/run.yaml", small_run_yaml);
  dir.write(name + "/summary.json", json{{"tokens", 5000}, {"held_out_loss", loss}}.dump());
  dir.write(name + "/held_out.json", json{{"measured", measured}}.dump());
  return run;
}

void check_law(const ScalingLaw& law, const json& expected) {
  for (size_t k = 0; k < law_names.size(); ++k) {
    INFO(law_names[k]);
    CHECK(values_of(law)[k] == Approx(expected[law_names[k]].get<double>()).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("a fit is the optimum that SciPy finds, and so is the fit of each resample", "[study][fit]") {
  for (const auto& one : reference()["cases"]) {
    std::vector<ScalingPoint> points;
    for (size_t i = 0; i < one["size"].size(); ++i)
      points.push_back({one["size"][i].get<double>(), one["tokens"][i].get<double>(), one["loss"][i].get<double>()});
    const auto fit = fit_scaling_law(
        points, {.huber_delta = one["delta"], .resamples = static_cast<int64_t>(one["resampled"].size()), .seed = 5});
    CHECK(fit.objective == Approx(one["fit"]["objective"].get<double>()).epsilon(1e-9));
    check_law(fit.law, one["fit"]);
    for (size_t b = 0; b < fit.resampled.size(); ++b) check_law(fit.resampled[b], one["resampled"][b]);
  }
}

TEST_CASE("points without noise give back the law that made them", "[study][fit]") {
  const auto fit = fit_scaling_law(points_of(six_sizes, {5, 20, 80}, 0), {.resamples = 0});
  for (size_t k = 0; k < law_names.size(); ++k)
    CHECK(values_of(fit.law)[k] == Approx(values_of(known)[k]).epsilon(1e-5));
}

TEST_CASE("a fit with a tiny delta goes on to the least sum of absolute deviations, where no step gains anything") {
  const auto points = points_of(six_sizes, {2, 5, 20, 80, 200}, 0.01);
  const double delta = 1e-9;
  const auto fit = fit_scaling_law(points, {.huber_delta = delta, .resamples = 0});
  const auto deviations = [&](const ScalingLaw& law) {
    double sum = 0;
    for (const auto& point : points) sum += std::abs(std::log(law.loss(point.size, point.tokens) / point.loss));
    return sum;
  };
  const double least = deviations(fit.law);
  CHECK(fit.objective / delta == Approx(least).epsilon(1e-6));
  auto stream = Rng(4).stream("steps");
  for (int step = 0; step < 3000; ++step) {
    const double scale = std::pow(10, -2 - 5 * stream.uniform());
    auto law = fit.law;
    for (double* value : {&law.E, &law.A, &law.B, &law.alpha, &law.beta}) *value *= std::exp(scale * stream.normal());
    CHECK(deviations(law) > least - 1e-8);
  }
}

TEST_CASE("points of one run are drawn together, so that intervals know that they share its noise") {
  auto points = points_of(six_sizes, {2, 5, 20, 80, 200}, 0.0005);
  auto noise = Rng(1).stream("runs");
  for (size_t i = 0; i < points.size(); i += 5) {
    const double of_run = std::exp(0.01 * noise.normal());
    for (size_t k = i; k < i + 5; ++k) points[k].loss *= of_run;
  }
  const auto width_of_alpha = [&] {
    const auto fit = fit_scaling_law(points, {.resamples = 200, .confidence = 0.8});
    const auto interval = fit.interval([](const ScalingLaw& law) { return law.alpha; });
    return interval.high - interval.low;
  };
  const double by_points = width_of_alpha();
  for (size_t i = 0; i < points.size(); ++i) points[i].run = std::to_string(i / 5);
  CHECK(width_of_alpha() > 1.3 * by_points);
}

TEST_CASE("runs are counted in the order of their points") {
  const auto point = [](const std::string& run) { return ScalingPoint{.size = 1, .tokens = 1, .loss = 1, .run = run}; };
  CHECK(runs_of({point("b"), point(""), point("a"), point("b"), point("")}) == std::vector<size_t>{0, 1, 2, 0, 3});
}

TEST_CASE("intervals hold the law that made the points, about as often as they say", "[study][fit]") {
  int held = 0, asked = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const auto fit = fit_scaling_law(points_of(six_sizes, {2, 5, 20, 80, 200}, 0.005, seed),
                                     {.resamples = 200, .seed = seed, .confidence = 0.8});
    held += fit.interval(size_exponent).holds(size_exponent(known));
    held += fit.interval([](const ScalingLaw& law) { return law.E; }).holds(known.E);
    asked += 2;
  }
  CHECK(asked == 24);
  CHECK(held >= 14);  // 19 are expected; fewer than 14 of 24 have a probability of 1 %
  CHECK(held < 24);   // all of them: 0.5 %
}

TEST_CASE("the compute-optimal size has the smallest loss of its budget", "[study][fit]") {
  const double flops = 1e21;
  const auto best = compute_optimal(known, flops);
  CHECK(training_flops(best.size, best.tokens) == Approx(flops));
  double least = INFINITY, at = 0;
  for (double size = best.size / 10; size < best.size * 10; size *= 1.0001) {
    const double loss = known.loss(size, flops / 6 / size);
    if (loss < least) least = loss, at = size;
  }
  CHECK(best.size == Approx(at).epsilon(1e-3));
  CHECK(best.loss == Approx(least).epsilon(1e-9));
  CHECK(compute_optimal(known, 10 * flops).size / best.size == Approx(std::pow(10, size_exponent(known))));
  CHECK(size_exponent(known) == Approx(0.36 / 0.70));
  CHECK(size_exponent(known) + tokens_exponent(known) == Approx(1));
}

TEST_CASE("points that cannot determine a law are refused in words", "[study][fit]") {
  const auto refused = [](const std::vector<ScalingPoint>& points, const std::string& why) {
    CHECK_THROWS_AS(fit_scaling_law(points, {}), DataError);
    CHECK_THROWS_WITH(fit_scaling_law(points, {}), Contains(why));
  };
  refused(points_of({1e8}, {20}, 0), "1 point does not determine the 5 parameters of a scaling law; give 6 or more");
  refused(points_of({1e8, 1e9, 1e10}, {20}, 0), "3 points do not determine the 5 parameters");
  refused(points_of({1e8}, {1, 2, 5, 10, 20, 50}, 0),
          "all points have the same size, which does not tell A, alpha and E");
  refused(points_of({1e8, 1e9}, {5, 20, 80}, 0), "the points have 2 sizes");
  std::vector<ScalingPoint> equal_tokens;
  for (const double size : six_sizes) equal_tokens.push_back({size, 1e9, known.loss(size, 1e9)});
  refused(equal_tokens, "all points have the same tokens, which does not tell B, beta and E apart");
}

TEST_CASE("what the points do not support is said in words", "[study][fit]") {
  const auto said = [](const std::vector<ScalingPoint>& points) {
    std::string all;
    for (const auto& line : doubts(fit_scaling_law(points, {.resamples = 50}), points)) all += line + "\n";
    return all;
  };
  CHECK(said(points_of(six_sizes, {2, 5, 20, 80, 200}, 1e-4)).empty());
  CHECK_THAT(said(points_of(six_sizes, {20}, 0.01)), Contains("sizes and tokens move together (correlation of their "
                                                              "logarithms 1)"));
  CHECK_THAT(said(points_of({1e9, 2e9, 3e9}, {10, 20}, 0.02)), Contains("is uncertain by more than its value"));
  auto flat = points_of(six_sizes, {5, 20, 80}, 0);
  for (auto& point : flat) point.loss = 2 + 1500 * std::pow(point.tokens, -0.36);
  CHECK_THAT(said(flat), Contains("the loss does not fall with the size"));
  auto bottomless = points_of(six_sizes, {2, 20, 200}, 0);
  for (auto& point : bottomless) point.loss = 40 * std::pow(point.size, -0.2) + 90 * std::pow(point.tokens, -0.21);
  CHECK_THAT(said(bottomless), Contains("the points show no floor of the loss"));
}

TEST_CASE("a fit says which runs were changed on their way", "[study][fit][history]") {
  TempDir dir;
  const auto never = make_run(dir, "a", 3.5, "mlm"), changed = make_run(dir, "b", 3.25, "mlm");
  dir.write("b/provenance.json", R"({"history": [{"step": 40, "changed": [)"
                                 R"({"key": "optimizer.learning_rate", "was": "1e-04", "is": "0.5"}]}]})");
  auto points = points_of_runs({never, changed}, SizeCount::all);
  CHECK(points[0].changed.empty());
  CHECK(points[1].changed == "changed at step 40 with optimizer.learning_rate 0.5 (was 1e-04)");
  const auto others = points_of(six_sizes, {2, 5, 20, 80, 200}, 1e-4);
  const auto fit = fit_scaling_law(others, {.resamples = 50});
  CHECK(doubts(fit, others).empty());
  auto with_change = others;
  with_change[3].name = "runs/b";
  with_change[3].changed = points[1].changed;
  CHECK(doubts(fit, with_change) ==
        std::vector<std::string>{"runs/b was changed at step 40 with optimizer.learning_rate 0.5 (was 1e-04): its loss "
                                 "is not that of a run that never changed"});
}

TEST_CASE("points are read from the named columns of a table", "[study][fit]") {
  TempDir dir;
  const auto path = dir.write("a.csv",
                              "name,params,flops,\"loss, held out\"\r\n"
                              "\"a, \"\"b\"\"\",1e6,1.2e14,3.5\r\n\r\nc,2e6,6e14,3.25\r\n");
  const auto points = read_points(path, {.size = "params", .flops = "flops", .loss = "loss, held out"});
  REQUIRE(points.size() == 2);
  CHECK(points[0].size == 1e6);
  CHECK(points[0].tokens == Approx(2e7));
  CHECK(points[1].loss == 3.25);
  CHECK(points[1].name == path + ":4");
}

TEST_CASE("a table that cannot be read says where", "[study][fit]") {
  TempDir dir;
  const auto refused = [&](const std::string& text, const std::string& why) {
    const auto path = dir.write("a.csv", text);
    CHECK_THROWS_AS(read_points(path, {}), DataError);
    CHECK_THROWS_WITH(read_points(path, {}), path + why);
  };
  refused("", ": is empty; its first line names the columns");
  refused("sizes,tokens,loss\n",
          ": has no column 'size'; did you mean 'sizes'? its columns are sizes, tokens, loss; name one "
          "with --size");
  refused("size,tokens,loss\n1,2,3\n1,2,x3\n", ":3: loss is 'x3', which is not a number");
  refused("size,tokens,loss\n1,,3\n", ":2: tokens is '', which is not a number");
  refused("size,tokens,loss\n1,nan,3\n", ":2: tokens is 'nan', which is not a number");
  refused("size,tokens,loss\n-1,2,3\n", ":2: size is -1; it must be above 0");
  refused("size,tokens,loss\n1,2\n", ":2: has 2 cells, the first line has 3");
  refused("size,tokens,loss\n1,2,3\n1,2,\"3\n1,2,3\n",
          ":3: a cell in quotes does not end; close its quotes, or double those inside of it");
}

TEST_CASE("points of runs count the parameters of their weights", "[study][fit]") {
  TempDir dir;
  const auto a = make_run(dir, "a", 3.5, "mlm"), b = make_run(dir, "b", 3.25, "mlm"), c = make_run(dir, "c", 3, "clm");
  const auto points = points_of_runs({a, b}, SizeCount::all);
  REQUIRE(points.size() == 2);
  CHECK(points[0].size == 800 + 8 + 128);
  CHECK(points[0].tokens == 5000);
  CHECK(points[1].loss == 3.25);
  CHECK(points_of_runs({a}, SizeCount::non_embedding)[0].size == 8 + 128);
  CHECK_THROWS_WITH(points_of_runs({a, c}, SizeCount::all),
                    Contains("were scored differently, so that their losses cannot be compared: by clm, and by mlm; "));
  const auto resume = "/held_out.json: is damaged; resume the run, which writes it again";
  for (const auto* damaged : {"{}", R"({"measured": 3})"}) {
    dir.write("c/held_out.json", damaged);
    CHECK_THROWS_WITH(points_of_runs({c}, SizeCount::all), c + resume);
  }
  dir.write("c/held_out.json", R"({"measured": "clm"})");
  for (const std::string entry : {"3", "{}", R"({"shape": 8})", R"({"shape": ["8"]})", R"({"shape": [-8]})"}) {
    const auto header = R"({"backbone.stack.0.output.weight":)" + entry + "}";
    const uint64_t length = header.size();
    std::ofstream weights(c + "/step-00000010/weights.safetensors", std::ios::binary);
    weights.write(reinterpret_cast<const char*>(&length), 8) << header << std::flush;
    CHECK_THROWS_WITH(points_of_runs({c}, SizeCount::all),
                      Contains("weights.safetensors: is damaged; `cloze verify run " + c + "` says more"));
  }
  fs::remove(b + "/summary.json");
  CHECK_THROWS_WITH(points_of_runs({b}, SizeCount::all), b + "/summary.json: is missing; give runs that are finished");
}

TEST_CASE("a run of wsd_s gives a point for the end of each decay at which it was evaluated", "[study][fit]") {
  TempDir dir;
  const auto run = make_run(dir, "a", 3, "mlm");
  dir.write("a/run.yaml", std::string(small_run_yaml) + "schedule: {shape: wsd_s, decays: 3}\n");
  std::string metrics;
  for (const int64_t step : {10, 13, 20, 25, 26, 51, 52, 100})  // of 100; budgets end at 25, 50 and 100
    metrics += json{{"step", step},
                    {"tokens", 50 * step},
                    {"time", {{"budget_share", static_cast<double>(step) / 100}}},
                    {"held_out_loss", 4 - 0.01 * static_cast<double>(step)}}
                   .dump() +
               "\n";
  dir.write("a/metrics.jsonl", metrics);
  const auto points = points_of_runs({run}, SizeCount::all);
  REQUIRE(points.size() == 2);  // the evaluations next to step 50 are in the stable share
  CHECK(points[0].tokens == 1250);
  CHECK(points[0].loss == Approx(3.75));
  CHECK(points[0].size == 936);
  CHECK(points[0].name == run + " at 1.25 k tokens");
  CHECK(points[1].tokens == 5000);
  CHECK(points[1].loss == 3);
  CHECK((points[0].run == run && points[1].run == run));
  dir.write("a/run.yaml", std::string(small_run_yaml) + "schedule: {shape: wsd}\n");
  CHECK(points_of_runs({run}, SizeCount::all).size() == 1);
}

TEST_CASE("the forms of a fit agree, and the page needs nothing outside it", "[study][fit]") {
  const auto report = make_fit_report(points_of(six_sizes, {5, 20, 80}, 0.003),
                                      {.budgets = {1e22}, .sizes = {{1e10, 1e12}}, .options = {.resamples = 40}});
  const auto fields = to_json(report);
  const auto& law = report.fit.law;
  CHECK(fields["law"]["alpha"]["value"] == law.alpha);
  CHECK(fields["law"]["alpha"]["interval"][0].get<double>() <= law.alpha);
  CHECK(fields["exponents"]["a"]["value"] == size_exponent(law));
  CHECK(fields["optimal"][0]["size"]["value"] == compute_optimal(law, 1e22).size);
  CHECK(fields["predicted"][0]["loss"]["value"] == law.loss(1e10, 1e12));
  CHECK(fields["predicted"][0]["flops"] == 6e22);
  CHECK_THAT(to_csv(report), Contains("\nalpha,," + shortest(law.alpha) + ","));
  const auto text = to_text(report, 120);
  CHECK_THAT(text, Contains("points: 18, N 30 M to 10 G parameters"));
  CHECK_THAT(text, Contains("1.25 times the largest point"));
  const auto page = to_page(report);
  CHECK_THAT(page, Contains("IsoFLOP curves"));
  for (const auto* outside : {"http", "<script", "<link", "@import", "nan", "inf\""})
    CHECK(page.find(outside) == std::string::npos);
  size_t dots = 0;
  for (size_t at = page.find("<circle class=\"dot a"); at != std::string::npos;
       at = page.find("<circle class=\"dot a", at + 1))
    ++dots;
  CHECK(dots == 18);
  CHECK_THAT(page, Catch::Contains("<circle class=\"dot ring a2\"") && Catch::Contains("prefers-color-scheme: dark"));
}
