#include "train/schedule.h"

#include <array>
#include <cmath>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

ScheduleConfig schedule_of(const ScheduleShape& shape, double warmup) {
  return {.like = "", .shape = shape, .warmup = warmup};
}

}  // namespace

TEST_CASE("wsd stays at its peak and decays over the last share of the budget", "[train][schedule]") {
  ScheduleConfig s{.like = "", .shape = WsdSchedule{}, .warmup = 100};
  auto& wsd = std::get<WsdSchedule>(s.shape);
  wsd.decay = 0.2;
  CHECK(schedule_factor(s, 50, 1000) == 0.5);
  for (const double done : {100.0, 400.0, 799.0, 800.0}) CHECK(schedule_factor(s, done, 1000) == 1);
  wsd.decay_form = DecayForm::linear;
  CHECK(schedule_factor(s, 850, 1000) == Approx(0.75));
  wsd.decay_form = DecayForm::cosine;
  CHECK(schedule_factor(s, 850, 1000) == Approx(0.5 + 0.5 * std::cos(std::acos(-1) / 4)));
  wsd.decay_form = DecayForm::one_minus_sqrt;
  CHECK(schedule_factor(s, 850, 1000) == Approx(0.5));
  CHECK(schedule_factor(s, 1000, 1000) == 0);
  wsd.end_factor = 0.1;
  CHECK(schedule_factor(s, 800, 1000) == 1);
  CHECK(schedule_factor(s, 850, 1000) == Approx(0.1 + 0.9 * 0.5));
  CHECK(schedule_factor(s, 1000, 1000) == Approx(0.1));
}

TEST_CASE("wsd_s is at the end of every budget where wsd with that budget is, and goes on at the peak",
          "[train][schedule]") {
  auto s = schedule_of(WsdSSchedule{}, 10), single = schedule_of(WsdSchedule{}, 10);
  std::get<WsdSSchedule>(s.shape).decays = 3;
  for (auto* schedule : {&s, &single}) part_in<FinalDecay>(schedule->shape)->decay = 0.2;
  for (int done = 0; done < 25; ++done) CHECK(schedule_factor(s, done, 100) == schedule_factor(single, done, 25));
  for (int done = 25; done < 50; ++done) CHECK(schedule_factor(s, done, 100) == schedule_factor(single, done, 50));
  for (int done = 50; done <= 100; ++done) CHECK(schedule_factor(s, done, 100) == schedule_factor(single, done, 100));
  CHECK(schedule_factor(s, 24.999, 100) < 0.001);
  CHECK(schedule_factor(s, 25, 100) == 1);
}

TEST_CASE("one_cycle has the factors of PyTorch's OneCycleLR", "[train][schedule]") {
  // PyTorch 2.13.0+cpu: OneCycleLR(max_lr=1, total_steps=21, pct_start=6/21), defaults otherwise.
  const std::array<double, 21> expected{0.040000000000000036,
                                        0.1316718427000253,
                                        0.3716718427000253,
                                        0.6683281572999747,
                                        0.9083281572999747,
                                        1.0,
                                        0.9890738440717014,
                                        0.9567729017303851,
                                        0.904508879153485,
                                        0.8345659649182164,
                                        0.750001,
                                        0.654509879153485,
                                        0.5522660225769003,
                                        0.4477379774230999,
                                        0.3454941208465151,
                                        0.2500030000000001,
                                        0.16543803508178376,
                                        0.09549512084651508,
                                        0.04323109826961479,
                                        0.010930155928298624,
                                        4e-06};
  OneCycleSchedule cycle;
  cycle.start_factor = 1.0 / 25;
  cycle.end_factor = 1.0 / 25 / 1e4;
  const auto s = schedule_of(cycle, 6 - 1);
  for (size_t k = 0; k < expected.size(); ++k)
    CHECK(schedule_factor(s, static_cast<double>(k), 21 - 1) == Approx(expected[k]).epsilon(1e-12));
}

TEST_CASE("transformer follows equation 3 of Vaswani et al. 2017", "[train][schedule]") {
  const double d_model = 512, warmup = 4000, peak = 1 / std::sqrt(d_model * warmup);
  const auto s = schedule_of(TransformerSchedule{}, warmup);
  for (const double step : {1.0, 2.0, 3999.0, 4000.0, 4001.0, 100000.0}) {
    const double rate = std::pow(d_model, -0.5) * std::min(std::pow(step, -0.5), step * std::pow(warmup, -1.5));
    CHECK(peak * schedule_factor(s, step - 1, 100000) == Approx(rate).epsilon(1e-12));
  }
}

TEST_CASE("a schedule says how long it is the same for every budget", "[train][schedule]") {
  CHECK(stable_fraction(schedule_of(WsdSchedule{}, 10)) == 0.8);
  CHECK(stable_fraction(schedule_of(WsdSSchedule{}, 10)) == Approx(0.2));
  for (const ScheduleShape& shape : std::initializer_list<ScheduleShape>{
           WsdSchedule{}, WsdSSchedule{}, ConstantSchedule{}, InverseSqrtSchedule{}, TransformerSchedule{}}) {
    const auto s = schedule_of(shape, 10);
    const double until = stable_fraction(s) * 400;
    for (double done = 0; done <= until; ++done) CHECK(schedule_factor(s, done, 400) == schedule_factor(s, done, 800));
  }
  CHECK(stable_fraction(schedule_of(LinearSchedule{}, 10)) == 0);
}

TEST_CASE("rates follow the budget where another one would have given a step so far another rate",
          "[train][schedule]") {
  for (const ScheduleShape& shape : std::initializer_list<ScheduleShape>{
           LinearSchedule{}, CosineSchedule{}, WsdSchedule{}, WsdSSchedule{}, OneCycleSchedule{}, ConstantSchedule{},
           InverseSqrtSchedule{}, TransformerSchedule{}}) {
    const auto s = schedule_of(shape, 10);
    INFO(kind_in(shape));
    for (const int64_t step : {1, 10, 30, 95, 100}) {
      bool other = false;  // among the rates of the steps until then, by budgets of 100 and 200 steps
      for (int64_t done = 0; done <= step; ++done) {
        const auto at = static_cast<double>(done);
        other = other || schedule_factor(s, at, 100) != schedule_factor(s, at, 200);
      }
      CHECK(follows_budget(s, step, static_cast<double>(step) / 100) == other);
    }
  }
  CHECK(follows_budget(schedule_of(ConstantSchedule{}, 0.1), 50, 0.5));
}

TEST_CASE("a cosine to a tenth after a warm-up in steps is that of BabyLM's program, step by step",
          "[train][schedule]") {
  const auto s = schedule_of(CosineSchedule{{.end_factor = 0.1}, {}}, 6);
  for (int step = 0; step < 100; ++step) {
    const double part = (step - 6) / 94.0;
    const double wanted = step < 6 ? step / 6.0 : std::max(0.1, 0.1 + 0.9 * 0.5 * (1 + std::cos(std::acos(-1) * part)));
    CHECK(schedule_factor(s, step, 100) == Approx(wanted).epsilon(1e-12));
  }
}
