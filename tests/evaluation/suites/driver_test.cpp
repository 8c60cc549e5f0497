// What is evaluated when, and what one failure costs.
#include "evaluation/suites/driver.h"

#include "core/error.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("tasks are evaluated after all checks, and one that fails costs no other", "[suites][driver]") {
  std::vector<std::string> seen;
  const auto note = [&](const std::string& what) { return [&seen, what] { seen.push_back(what); }; };
  const std::vector<SuiteTask> tasks{{.check = note("fits"), .evaluate = note("first")},
                                     {.check = [] { fail<DataError>("too long"); }, .evaluate = note("never")},
                                     {.evaluate = [] { throw std::runtime_error("no memory"); }},
                                     {.check = note("fits, too"), .evaluate = note("last")}};
  evaluate_tasks(tasks, [&](size_t task, const std::exception& e) { seen.push_back(concat(task, ": ", e.what())); });
  CHECK(seen == std::vector<std::string>{"fits", "1: too long", "fits, too", "first", "2: no memory", "last"});
}

TEST_CASE("a failure may be thrown again, and an interruption always passes", "[suites][driver]") {
  const auto again = [](size_t, const std::exception&) { throw; };
  const std::vector<SuiteTask> damaged{{.evaluate = [] { fail<DataError>("damaged"); }}};
  CHECK_THROWS_AS(evaluate_tasks(damaged, again), DataError);
  const std::vector<SuiteTask> stopped{{.evaluate = [] { throw Interrupted("stopped"); }}};
  CHECK_THROWS_AS(evaluate_tasks(stopped, [](size_t, const std::exception&) {}), Interrupted);
}
