// How often the verdicts of a study are wrong, by studies whose true differences are known.
//
//   verdicts [STUDIES [POOL]]      2,000 of each kind; a minute or so on two cores
//
// A study has a baseline and 1, 3 or 9 arms over 2, 3, 5 or 10 seeds and 200 examples. The true difference of every arm
// is 0, the margin or twice it. The rule is that of the library (study/statistics/statistics.h): example_error,
// deciding_interval, verdict_of.
//
// Without a pool, studies are made up. Runs are in nats: 0.01 of a run's noise is of its seed, so that a paired
// difference has 0.014, a level that was chosen, and the noise of an example in a run is its own. Examples also differ
// by what an arm does to them, whatever the seed: next to nothing, or so much that five seeds and the examples add the
// same to the error.
//
// A pool has the single losses of real runs: a baseline and nine arms of other configs, each with the same seeds
// (tests/bench/calibration.py trains them). A study draws seeds, none twice, and examples, which may come twice; an
// arm's losses are moved until the difference is true. What is true is the mean over a resample of all seeds of the
// pool, which makes up for its being finite: n of P seeds without repetition have a mean of variance s^2 (1/n - 1/P)
// around that of the pool, and the resample adds s^2 / P.
//
// Two more tables are of studies without a difference, with what they say without a rule and by it.
//
// Documents: 100 of 1 to 60 rows each. An arm moves rows by 0.11 nats (one standard deviation), of which a share is
// that of their documents: the correlation of the rows of a document, which real arms of other texts have at 0.10 to
// 0.12. Verdicts are by rows, as if all were independent, and by documents.
//
// Survivors: runs fail where they would end among the worst 40 %, those of one arm or those of both. Verdicts are on
// the pairs that are left, and by the rule that holds them back (study/report/report.h, compare_arms).
//
// A line a kind: the share of studies in which an arm of difference 0 is called better, in which one is called better
// or worse, in which one of the margin or more is called tied, of intervals of single arms that hold the truth, of
// studies in which all intervals do, and of arms called better at the difference that the rule says is found with 80 %.
// Ends with 1 where one of them is further from what is promised than chance explains.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "core/error.h"
#include "study/report/report.h"
#include "study/statistics/statistics.h"

namespace {

using namespace cloze;

struct Kind {
  int64_t seeds = 5, arms = 1;
  bool is_noisy = false;  ///< made-up examples
};

using Runs = std::vector<ExampleLosses>;

struct DrawnArm {
  Runs runs{};
  double gain = 0;  ///< by which its loss is truly lower
};

struct DrawnStudy {
  Runs baseline{};
  std::vector<DrawnArm> arms{};
};

/// Where runs come from.
struct Source {
  virtual ~Source() = default;
  virtual double margin() const = 0;
  /// What is found with the stated power where the noise is known, by arm that may be drawn.
  virtual std::vector<double> detectable(const Kind& kind) const = 0;
  /// Study `number`; `gains`: of each arm that may be drawn.
  virtual DrawnStudy draw(const Kind& kind, const std::vector<double>& gains, uint64_t number) const = 0;
};

double detectable_gain(const Kind& kind, double seeds_sd, const ExampleError& examples) {
  const ComparisonRules rules{.arms = kind.arms};
  return detectable_difference(seeds_sd, kind.seeds, rules.level(), rules.power, examples);
}

/// Standard normal draws.
struct Normal {
  std::mt19937_64 bits;
  std::normal_distribution<double> distribution{};
  double operator()() { return distribution(bits); }
};

struct MadeUp final : Source {
  static constexpr double of_run = 0.01, of_example_in_run = 0.05;
  static constexpr int64_t example_count = 200;

  double margin() const override { return 0.01; }

  /// Of the mean over examples of what an arm does to them.
  static double examples_sd(const Kind& kind) { return kind.is_noisy ? of_run * std::sqrt(2.0 / 5) : of_run / 20; }

  std::vector<double> detectable(const Kind& kind) const override {
    const double own = of_example_in_run / std::sqrt(static_cast<double>(example_count));
    const double gain = detectable_gain(kind, std::sqrt(2.0) * std::hypot(of_run, own),
                                        {.error = examples_sd(kind), .freedom = example_count - 1});
    return std::vector<double>(static_cast<size_t>(kind.arms), gain);
  }

  /// The runs of an arm that lowers the loss by `gain`, and each example by what is in `shared` besides.
  static Runs runs_of(Normal& normal, const Kind& kind, double gain, const std::vector<double>& shared) {
    Runs runs(static_cast<size_t>(kind.seeds));
    for (auto& run : runs) {
      const double of_seed = of_run * normal();
      for (const double one : shared) {
        run.sum.push_back(3 - gain + of_seed + one + of_example_in_run * normal());
        run.count.push_back(1);
      }
    }
    return runs;
  }

  DrawnStudy draw(const Kind& kind, const std::vector<double>& gains, uint64_t number) const override {
    Normal normal{.bits = std::mt19937_64(number)};
    DrawnStudy study{.baseline = runs_of(normal, kind, 0, std::vector<double>(example_count))};
    for (const double gain : gains) {
      std::vector<double> shared(example_count);
      for (auto& one : shared) one = examples_sd(kind) * std::sqrt(static_cast<double>(example_count)) * normal();
      study.arms.push_back({.runs = runs_of(normal, kind, gain, shared), .gain = gain});
    }
    return study;
  }
};

std::vector<const ExampleLosses*> pointers_to(const Runs& runs) {
  std::vector<const ExampleLosses*> all;
  for (const auto& run : runs) all.push_back(&run);
  return all;
}

std::vector<double> values_of(const Runs& runs) {
  std::vector<double> values;
  for (const auto& run : runs) values.push_back(run.value());
  return values;
}

struct Pool final : Source {
  std::vector<Runs> configs{};                ///< the baseline first
  std::vector<std::vector<double>> values{};  ///< of their runs
  std::vector<double> sds{};                  ///< over seeds, of each arm's difference
  std::vector<ExampleError> examples{};       ///< of each arm's difference

  explicit Pool(const char* path) {
    std::ifstream in(path);
    size_t config_count = 0, seed_count = 0, example_count = 0;
    in >> config_count >> seed_count >> example_count;
    require<DataError>(in && config_count > 1 && seed_count > 1, path,
                       ": is no pool; tests/bench/calibration.py makes it");
    configs.assign(config_count, Runs(seed_count));
    for (auto& runs : configs)
      for (auto& run : runs)
        for (auto* part : {&run.sum, &run.count}) {
          part->resize(example_count);
          for (auto& one : *part) in >> one;
        }
    require<DataError>(!in.fail(), path, ": is cut off; make it again");
    for (const auto& runs : configs) values.push_back(values_of(runs));
    for (size_t a = 1; a < config_count; ++a) {
      sds.push_back(paired_t_test(values[a], values[0], {}).sd);
      examples.push_back(example_error(pointers_to(configs[a]), pointers_to(configs[0])));
    }
  }

  double margin() const override {
    return std::accumulate(sds.begin(), sds.end(), 0.0) / static_cast<double>(sds.size()) / std::sqrt(2.0);
  }

  std::vector<double> detectable(const Kind& kind) const override {
    std::vector<double> gains;
    for (size_t a = 0; a < sds.size(); ++a) gains.push_back(detectable_gain(kind, sds[a], examples[a]));
    return gains;
  }

  /// A run on drawn examples, whose loss is `shift` higher.
  static ExampleLosses moved(const ExampleLosses& run, const std::vector<size_t>& drawn, double shift) {
    ExampleLosses losses;
    for (const auto e : drawn) {
      losses.sum.push_back(run.sum[e] + shift * run.count[e]);
      losses.count.push_back(run.count[e]);
    }
    return losses;
  }

  DrawnStudy draw(const Kind& kind, const std::vector<double>& gains, uint64_t number) const override {
    std::mt19937_64 bits(number);
    const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(bits); };
    const auto shuffled = [&](size_t n) {
      std::vector<size_t> order(n);
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), bits);
      return order;
    };
    auto seeds = shuffled(values[0].size());
    std::vector<size_t> population(seeds.size()), drawn(configs[0][0].sum.size());
    for (auto& one : population) one = below(seeds.size());
    for (auto& one : drawn) one = below(drawn.size());
    seeds.resize(static_cast<size_t>(kind.seeds));
    const auto runs_of = [&](size_t config, double shift) {
      Runs runs;
      for (const auto s : seeds) runs.push_back(moved(configs[config][s], drawn, shift));
      return runs;
    };
    DrawnStudy study{.baseline = runs_of(0, 0)};
    auto arms = shuffled(sds.size());
    arms.resize(static_cast<size_t>(kind.arms));
    for (const auto a : arms) {
      double true_difference = 0;
      for (const auto s : population)
        true_difference += (values[a + 1][s] - values[0][s]) / static_cast<double>(population.size());
      study.arms.push_back({.runs = runs_of(a + 1, -gains[a] - true_difference), .gain = gains[a]});
    }
    return study;
  }
};

struct Found {
  bool is_one_lower = false, is_one_apart = false, is_one_tied = false, do_all_hold = true;
  int64_t held = 0, better = 0;
};

Difference compared(const Runs& arm, const Runs& baseline, const ComparisonRules& rules) {
  auto found = paired_t_test(values_of(arm), values_of(baseline), rules);
  found.examples = example_error(pointers_to(arm), pointers_to(baseline));
  found.interval = deciding_interval(found, rules);
  found.verdict = verdict_of(*found.interval, rules);
  return found;
}

Found judged(const DrawnStudy& study, const ComparisonRules& rules) {
  Found found;
  for (const auto& arm : study.arms) {
    const auto difference = compared(arm.runs, study.baseline, rules);
    const double alone = error_of(difference).reach(1 - rules.confidence);
    found.held += std::abs(difference.mean + arm.gain) <= alone;
    found.do_all_hold = found.do_all_hold && difference.interval->holds(-arm.gain);
    found.is_one_tied =
        found.is_one_tied || difference.verdict == Verdict::tied || difference.verdict == Verdict::smaller;
    found.is_one_lower = found.is_one_lower || difference.interval->high < 0;
    found.is_one_apart = found.is_one_apart || !difference.interval->holds(0);
    found.better += difference.verdict == Verdict::better;
  }
  return found;
}

/// The shares of all studies of a kind, in percent.
struct Shares {
  double lower = 0, apart = 0, tied = 0, held = 0, all_held = 0, better = 0;
};

Shares shares_of(const Source& source, const Kind& kind, const std::vector<double>& gains, int studies) {
  const ComparisonRules rules{.margin = source.margin(), .arms = kind.arms};
  Shares shares;
  const double one = 100.0 / studies, of_arm = one / static_cast<double>(kind.arms);
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 0; i < studies; ++i) {
    const auto found = judged(source.draw(kind, gains, static_cast<uint64_t>(i)), rules);
#pragma omp critical
    {
      shares.lower += one * found.is_one_lower;
      shares.apart += one * found.is_one_apart;
      shares.tied += one * found.is_one_tied;
      shares.held += of_arm * static_cast<double>(found.held);
      shares.all_held += one * found.do_all_hold;
      shares.better += of_arm * static_cast<double>(found.better);
    }
  }
  return shares;
}

/// Prints a line; whether it is what is promised, within two standard errors.
bool print_kind(const Source& source, const char* name, const Kind& kind, int studies) {
  const auto detectable = source.detectable(kind);
  const auto gain = [&](double margins) { return std::vector<double>(detectable.size(), margins * source.margin()); };
  const auto none = shares_of(source, kind, gain(0), studies), small = shares_of(source, kind, gain(1), studies),
             large = shares_of(source, kind, gain(2), studies), found = shares_of(source, kind, detectable, studies);
  std::printf("| %s | %ld | %ld | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name, kind.seeds,
              kind.arms, none.lower, none.apart, small.tied, large.tied, none.held, none.all_held, small.better,
              found.better);
  std::fflush(stdout);
  const auto chance = [&](double percent) { return 2 * std::sqrt(percent * (100 - percent) / studies); };
  const double rare = 5 + chance(5);
  return none.apart <= rare && small.tied <= rare && large.tied <= rare && none.held >= 93 - chance(93) &&
         none.held <= 97 + chance(97) && std::abs(found.better - 80) <= 5 + chance(80);
}

// -- Documents -------------------------------------------------------------------------------------------------------

/// A document for each of some rows, whose sizes are lognormal as those of articles.
std::vector<uint64_t> documents_of_rows() {
  Normal normal{.bits = std::mt19937_64(1)};
  std::vector<uint64_t> documents;
  for (uint64_t document = 0; document < 100; ++document) {
    const auto rows = std::clamp(static_cast<int>(std::exp(1.2 + 0.9 * normal())), 1, 60);
    documents.insert(documents.end(), static_cast<size_t>(rows), document);
  }
  return documents;
}

/// Runs of one level each over rows that an arm has moved by `moved`.
Runs runs_over(Normal& normal, int64_t seeds, double seeds_sd, const std::vector<double>& moved) {
  Runs runs(static_cast<size_t>(seeds));
  for (auto& run : runs) {
    const double level = 3 + seeds_sd / std::sqrt(2.0) * normal();
    for (const double one : moved) run.sum.push_back(level + one);
    run.count.assign(moved.size(), 1);
  }
  return runs;
}

/// In how many of the studies an arm without a true difference is called better or worse, in percent: by rows, and by
/// documents.
std::array<double, 2> false_verdicts(const std::vector<uint64_t>& documents, double correlation, int64_t seeds,
                                     double seeds_sd, int studies) {
  constexpr double of_row = 0.11;
  std::array<double, 2> percent{};
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 0; i < studies; ++i) {
    Normal normal{.bits = std::mt19937_64(static_cast<uint64_t>(i))};
    std::vector<double> of_documents(documents.back() + 1), moved;
    for (auto& one : of_documents) one = of_row * std::sqrt(correlation) * normal();
    for (const auto document : documents)
      moved.push_back(of_documents[document] + of_row * std::sqrt(1 - correlation) * normal());
    auto baseline = runs_over(normal, seeds, seeds_sd, std::vector<double>(documents.size()));
    auto arm = runs_over(normal, seeds, seeds_sd, moved);
    for (const size_t by_documents : {0, 1}) {
      for (auto* runs : {&baseline, &arm})
        for (auto& run : *runs)
          if (by_documents == 1) run.documents = documents;
      const bool is_apart = !compared(arm, baseline, {}).interval->holds(0);
#pragma omp critical
      percent[by_documents] += 100.0 / studies * is_apart;
    }
  }
  return percent;
}

bool print_documents(int studies) {
  std::printf("\n| correlation | seeds | sd over seeds | false by rows | false by documents |\n");
  const auto documents = documents_of_rows();
  double most = 0;
  for (const double correlation : {0.0, 0.12})
    for (const int64_t seeds : {3, 5, 10, 20})
      for (const double seeds_sd : {0.012, 0.02}) {
        const auto [by_rows, by_documents] = false_verdicts(documents, correlation, seeds, seeds_sd, studies);
        std::printf("| %.2f | %ld | %.3f | %.1f | %.1f |\n", correlation, seeds, seeds_sd, by_rows, by_documents);
        std::fflush(stdout);
        most = std::max(most, by_documents);
      }
  return most <= 5 + 2 * std::sqrt(5.0 * 95 / studies);
}

// -- Survivors -------------------------------------------------------------------------------------------------------

/// A study of two arms of one distribution, of which runs that would end among the worst 40 % fail.
StudyReport survivors(int64_t seeds, bool both_fail, uint64_t number) {
  constexpr double of_run = 0.02, worst = 0.2533;  // the 60th percentile of a standard normal
  Normal normal{.bits = std::mt19937_64(number)};
  StudyReport report{
      .name = "survivors", .unit = "nats", .metric = "mlm", .baseline = "a", .arms = {{.name = "a"}, {.name = "b"}}};
  report.rules.margin = of_run;
  for (const auto& arm : report.arms)
    for (int64_t seed = 1; seed <= seeds; ++seed) {
      const double noise = normal();
      auto& run = report.runs.emplace_back(ReportedRun{.state = RunState::done});
      run.result = {{.value = 3 + of_run * noise}, {}, arm.name, seed, arm.name};
      if (noise < worst || (arm.name == "a" && !both_fail)) continue;
      run.state = RunState::failed;
      run.message = "its loss diverged";
    }
  return report;
}

bool is_told_apart(const Difference& difference) {
  return difference.verdict == Verdict::better || difference.verdict == Verdict::worse;
}

/// By the pairs that are left, without a rule.
Difference of_survivors(const StudyReport& report) {
  std::map<int64_t, std::map<std::string, double>> by_seed;
  for (const auto& run : report.runs)
    if (run.state == RunState::done) by_seed[run.result.seed][run.result.arm] = run.result.value;
  std::vector<double> arm, baseline;
  for (const auto& [seed, values] : by_seed) {
    if (values.size() < 2) continue;
    arm.push_back(values.at("b"));
    baseline.push_back(values.at("a"));
  }
  return arm.empty() ? Difference{} : compare_seeds(arm, baseline, report.rules);
}

bool print_survivors(int studies) {
  std::printf("\n| failing | seeds | false better or worse | by the rule |\n");
  double most = 0;
  for (const bool both_fail : {false, true})
    for (const int64_t seeds : {5, 10, 20}) {
      double before = 0, after = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : before, after)
      for (int i = 0; i < studies; ++i) {
        auto report = survivors(seeds, both_fail, static_cast<uint64_t>(i));
        before += 100.0 / studies * is_told_apart(of_survivors(report));
        compare_arms(report);
        after += 100.0 / studies * is_told_apart(report.arms[1].difference);
      }
      std::printf("| %s | %ld | %.1f | %.1f |\n", both_fail ? "both" : "one", seeds, before, after);
      most = std::max(most, after);
    }
  return most <= 5 + 2 * std::sqrt(5.0 * 95 / studies);
}

}  // namespace

int main(int argc, char** argv) {
  const int studies = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::unique_ptr<Source> source = std::make_unique<MadeUp>();
  if (argc > 2) source = std::make_unique<Pool>(argv[2]);
  std::printf("margin %.4f nats\n", source->margin());
  std::printf(
      "| examples | seeds | arms | false better | false better or worse | false tied at the margin | at twice the "
      "margin | "
      "single intervals that hold | all intervals of a study | better at the margin | better at the detectable |\n");
  bool is_kept = true;
  for (const bool is_noisy : {false, true}) {
    if (argc > 2 && is_noisy) continue;
    for (const int64_t seeds : {2, 3, 5, 10})
      for (const int64_t arms : {1, 3, 9}) {
        const auto* name = argc > 2 ? "real" : is_noisy ? "noisy" : "quiet";
        is_kept = print_kind(*source, name, {seeds, arms, is_noisy}, studies) && is_kept;
      }
  }
  if (argc > 2) return is_kept ? 0 : 1;
  is_kept = print_documents(studies) && is_kept;
  is_kept = print_survivors(studies) && is_kept;
  return is_kept ? 0 : 1;
}
