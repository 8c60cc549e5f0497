// How often the verdicts of a study are wrong, by made-up studies whose true differences are known.
//
//   verdicts [STUDIES]      2,000 of each kind; a minute or so on two cores
//
// A study has a baseline and 1, 3 or 9 arms over 2, 3, 5 or 10 seeds and 200 examples. The true difference of every arm
// is 0, the margin or twice it. Runs are in nats: 0.01 of a run's noise is of its seed, so that a paired difference has
// 0.014, a level that was chosen, and the noise of an example in a run is its own. Examples also differ by
// what an arm does to them, whatever the seed: next to nothing, or so much that five seeds and the examples add the
// same to the error. The rule is that of the library (study/statistics.h): example_error, deciding_interval,
// verdict_of.
//
// A line a kind: the share of studies in which an arm of difference 0 is called better or worse, in which one of the
// margin or more is called tied, of intervals of single arms that hold the truth, of studies in which all intervals do,
// and of arms called better at the difference that the rule says is found with 80 %.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "study/statistics.h"

namespace {

using namespace cloze;

constexpr double margin = 0.01, of_run = 0.01, of_example_in_run = 0.05;
constexpr int64_t example_count = 200;

struct Kind {
  int64_t seeds = 5, arms = 1;
  bool is_noisy = false;
  /// Of the mean over examples of what an arm does to them.
  double examples_sd() const { return is_noisy ? of_run * std::sqrt(2.0 / 5) : of_run / 20; }
  /// Of a paired difference over seeds, with the share of the examples' own noise.
  double seeds_sd() const {
    const double own = of_example_in_run / std::sqrt(static_cast<double>(example_count));
    return std::sqrt(2.0) * std::hypot(of_run, own);
  }
};

struct Found {
  bool is_one_apart = false, is_one_tied = false, do_all_hold = true;
  int64_t held = 0, better = 0;
};

/// Standard normal draws.
struct Normal {
  std::mt19937_64 bits;
  std::normal_distribution<double> distribution{};
  double operator()() { return distribution(bits); }
};

using Runs = std::vector<ExampleLosses>;

/// The runs of an arm that lowers the loss by `gain`, and each example by what is in `shared` besides.
Runs runs_of(Normal& normal, const Kind& kind, double gain, const std::vector<double>& shared) {
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

Difference compared(const Runs& arm, const Runs& baseline, const ComparisonRules& rules) {
  std::vector<const ExampleLosses*> of_arm, of_baseline;
  std::vector<double> values, others;
  for (size_t s = 0; s < arm.size(); ++s) {
    of_arm.push_back(&arm[s]);
    of_baseline.push_back(&baseline[s]);
    values.push_back(arm[s].value());
    others.push_back(baseline[s].value());
  }
  auto found = paired_t_test(values, others, rules);
  found.examples = example_error(of_arm, of_baseline);
  found.interval = deciding_interval(found, rules);
  found.verdict = verdict_of(*found.interval, rules);
  return found;
}

Found study(const Kind& kind, double gain, uint64_t number) {
  Normal normal{.bits = std::mt19937_64(number)};
  const ComparisonRules rules{.margin = margin, .arms = kind.arms};
  const auto baseline = runs_of(normal, kind, 0, std::vector<double>(example_count));
  Found found;
  for (int64_t a = 0; a < kind.arms; ++a) {
    std::vector<double> shared(example_count);
    for (auto& one : shared) one = kind.examples_sd() * std::sqrt(static_cast<double>(example_count)) * normal();
    const auto difference = compared(runs_of(normal, kind, gain, shared), baseline, rules);
    const double alone = error_of(difference).reach(1 - rules.confidence);
    found.held += std::abs(difference.mean + gain) <= alone;
    found.do_all_hold = found.do_all_hold && difference.interval->holds(-gain);
    found.is_one_tied =
        found.is_one_tied || difference.verdict == Verdict::tied || difference.verdict == Verdict::smaller;
    found.is_one_apart = found.is_one_apart || !difference.interval->holds(0);
    found.better += difference.verdict == Verdict::better;
  }
  return found;
}

/// The shares of all studies of a kind, in percent.
struct Shares {
  double apart = 0, tied = 0, held = 0, all_held = 0, better = 0;
};

Shares shares_of(const Kind& kind, double gain, int studies) {
  Shares shares;
  const double one = 100.0 / studies, of_arm = one / static_cast<double>(kind.arms);
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 0; i < studies; ++i) {
    const auto found = study(kind, gain, static_cast<uint64_t>(i));
#pragma omp critical
    {
      shares.apart += one * found.is_one_apart;
      shares.tied += one * found.is_one_tied;
      shares.held += of_arm * static_cast<double>(found.held);
      shares.all_held += one * found.do_all_hold;
      shares.better += of_arm * static_cast<double>(found.better);
    }
  }
  return shares;
}

void print_kind(const Kind& kind, int studies) {
  const ComparisonRules rules{.margin = margin, .arms = kind.arms};
  const ExampleError examples{.error = kind.examples_sd(), .count = example_count};
  const double detectable = detectable_difference(kind.seeds_sd(), kind.seeds, rules.level(), rules.power, examples);
  const auto none = shares_of(kind, 0, studies), small = shares_of(kind, margin, studies),
             large = shares_of(kind, 2 * margin, studies), found = shares_of(kind, detectable, studies);
  std::printf("| %s | %ld | %ld | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n",
              kind.is_noisy ? "noisy" : "quiet", kind.seeds, kind.arms, none.apart, small.tied, large.tied, none.held,
              none.all_held, small.better, found.better);
}

}  // namespace

int main(int argc, char** argv) {
  const int studies = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::printf(
      "| examples | seeds | arms | false better or worse | false tied at the margin | at twice the margin | "
      "single intervals that hold | all intervals of a study | better at the margin | better at the detectable |\n");
  for (const bool is_noisy : {false, true})
    for (const int64_t seeds : {2, 3, 5, 10})
      for (const int64_t arms : {1, 3, 9}) print_kind({seeds, arms, is_noisy}, studies);
}
