// Tables of rotary angles that several threads use.
#include "models/positions/scheme.h"

#include <ATen/ATen.h>

#include <atomic>
#include <thread>

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("threads that need more rotary angles at the same time do not disturb each other", "[models]") {
  constexpr int64_t longest = 1024, width = 8;
  const auto input = [](int64_t length) { return at::zeros({1, length, 2, width}); };
  const auto wanted = RotaryTable(1e4, width).of(input(longest));
  for (int repeat = 0; repeat < 200; ++repeat) {
    const RotaryTable table(1e4, width);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const at::NoGradGuard no_grad;
        for (int64_t length = 32; length <= longest; length *= 2)
          wrong += !table.of(input(length)).equal(wanted.narrow(0, 0, length));
      });
    for (auto& thread : threads) thread.join();
    REQUIRE(wrong == 0);
  }
}
