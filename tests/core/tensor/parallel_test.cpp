// The parts of a step, and who computes them.
#include "core/tensor/parallel.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// While one exists, so many threads compute; afterwards two, as in other tests.
struct Threads {
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(2); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

}  // namespace

TEST_CASE("every part is computed once, by any number of threads", "[parallel]") {
  for (const int threads : {1, 2, 3, 5}) {
    const Threads use(threads);
    for (const int64_t count : {0, 1, 2, 3, 1000})
      for (int again = 0; again < 20; ++again) {  // threads that sleep, and threads that still look for work
        std::vector<std::atomic<int>> computed(static_cast<size_t>(count));
        each_part(count, [&](int64_t part) { ++computed[static_cast<size_t>(part)]; });
        INFO(threads << " threads, " << count << " parts");
        CHECK(std::all_of(computed.begin(), computed.end(), [](const auto& times) { return times == 1; }));
      }
  }
}

TEST_CASE("ranges are of the size that is asked for, and the last ends with the items", "[parallel]") {
  const Threads use(3);
  std::mutex adding;
  std::set<std::pair<int64_t, int64_t>> found;
  each_range(10, 4, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(adding);
    found.emplace(begin, end);
  });
  CHECK((found == std::set<std::pair<int64_t, int64_t>>{{0, 4}, {4, 8}, {8, 10}}));
  each_range(0, 4, [](int64_t, int64_t) { FAIL("there is nothing"); });
}

TEST_CASE("within a part LibTorch has one thread, on which parts of the part run", "[parallel]") {
  const Threads use(3);
  std::atomic<int> elsewhere{0}, more_threads{0};
  each_part(60, [&](int64_t) {
    const auto here = std::this_thread::get_id();
    more_threads += at::get_num_threads() != 1;
    each_part(4, [&](int64_t) { elsewhere += std::this_thread::get_id() != here; });
    more_threads += at::get_num_threads() != 1;
  });
  CHECK(elsewhere == 0);
  CHECK(more_threads == 0);
  CHECK(at::get_num_threads() == 3);
  each_part(1, [&](int64_t) { more_threads += at::get_num_threads() != 1; });
  CHECK(more_threads == 0);
  CHECK(at::get_num_threads() == 3);
}

TEST_CASE("the exception of a part is thrown by the whole, and other work goes on", "[parallel]") {
  for (const int threads : {1, 2, 3}) {
    const Threads use(threads);
    CHECK_THROWS_WITH(each_part(50,
                                [](int64_t part) {
                                  if (part == 7) throw std::runtime_error("the seventh");
                                }),
                      "the seventh");
    CHECK(at::get_num_threads() == threads);
    std::atomic<int> computed{0};
    each_part(50, [&](int64_t) { ++computed; });
    CHECK(computed == 50);
  }
}

TEST_CASE("two threads may have parts at once", "[parallel]") {
  const Threads use(3);
  std::atomic<int64_t> sum{0};
  const auto add = [&] {
    for (int again = 0; again < 50; ++again) each_part(20, [&](int64_t part) { sum += part; });
  };
  std::thread other(add);
  add();
  other.join();
  CHECK(sum == 2 * 50 * 190);
}

TEST_CASE("threads that are told to end while they look for work end", "[parallel]") {
  const int before = at::get_num_threads();
  std::atomic<int64_t> parts{0};
  for (int round = 0; round < 3000; ++round) {
    at::set_num_threads(2 + round % 2);
    each_part(3, [&](int64_t) { ++parts; });
  }
  at::set_num_threads(before);
  CHECK(parts == 9000);
}
