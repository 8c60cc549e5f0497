// Cuts and windows against loops that take token by token.
#include "tasks/rows/truncation.h"

#include <algorithm>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("the longer of two texts loses token by token, and of equal ones the second, as in BERT's code", "[tasks]") {
  for (int64_t room = 0; room <= 12; ++room)
    for (int64_t first = 0; first <= 14; ++first)
      for (int64_t second = 0; second <= 14; ++second) {
        auto a = first, b = second;
        while (a + b > room) --(a > b ? a : b);
        CHECK(kept_tokens(LongestTruncation{}, first, second, room) == std::array{a, b});
      }
}

TEST_CASE("the text that is named loses its end, and the other one where that is not enough", "[tasks]") {
  CHECK(kept_tokens(FirstTruncation{}, 9, 4, 10) == std::array<int64_t, 2>{6, 4});
  CHECK(kept_tokens(FirstTruncation{}, 9, 14, 10) == std::array<int64_t, 2>{0, 10});
  CHECK(kept_tokens(SecondTruncation{}, 9, 4, 10) == std::array<int64_t, 2>{9, 1});
  CHECK(kept_tokens(SecondTruncation{}, 19, 4, 10) == std::array<int64_t, 2>{10, 0});
  CHECK(kept_tokens(SecondTruncation{}, 3, 4, 10) == std::array<int64_t, 2>{3, 4});
}

TEST_CASE("every token is in a window, whatever the stride, and no window is longer than the room", "[tasks]") {
  for (int64_t count = 0; count <= 30; ++count)
    for (int64_t room = 1; room <= 9; ++room)
      for (int64_t step = 1; step <= 11; ++step) {
        const auto windows = stride_windows(count, room, step);
        int64_t covered = 0;
        for (size_t i = 0; i < windows.size(); ++i) {
          const auto& window = windows[i];
          REQUIRE(window.size() <= room);
          REQUIRE(window.begin == static_cast<int64_t>(i) * std::min(step, room));
          REQUIRE(window.begin <= covered);
          REQUIRE((window.end > covered || count == 0));
          covered = window.end;
        }
        REQUIRE(covered == count);
      }
  // Of 10 tokens in windows of 6, tokenizers' overlap of 2 is this step of 4.
  CHECK((stride_windows(10, 6, 4) == std::vector<TokenWindow>{{0, 6}, {4, 10}}));
}

TEST_CASE("a text of more windows than anybody reads is refused", "[tasks]") {
  CHECK_NOTHROW(stride_windows(static_cast<int64_t>(most_windows), 1, 1));
  CHECK_THROWS_WITH(stride_windows(1'000'000'000, 512, 1),
                    "a text of 1000000000 tokens has more than 20000 windows; raise `stride` or `max_length`, or "
                    "divide the text");
  std::vector<int64_t> starts(30'000);
  for (size_t i = 0; i < starts.size(); ++i) starts[i] = static_cast<int64_t>(i);
  CHECK_THROWS_AS(word_windows(starts, 30'000, 8, 1), DataError);
}

TEST_CASE("a stride that is longer than the room is half of the room, so that windows overlap", "[tasks]") {
  CHECK(step_of(Windows{.stride = 4}, 10) == 4);
  CHECK(step_of(Windows{.stride = 10}, 10) == 10);
  CHECK(step_of(Windows{.stride = 11}, 10) == 5);
  CHECK(step_of(Windows{.stride = 2}, 1) == 1);
  CHECK(step_of(LongestTruncation{}, 10) == 5);
}

TEST_CASE("windows of words begin and end with words, and miss none", "[tasks]") {
  const std::vector<int64_t> sizes{1, 3, 1, 1, 7, 2, 1, 1, 1, 4, 1, 2};
  std::vector<int64_t> starts;
  int64_t count = 0;
  for (const auto size : sizes) {
    starts.push_back(count);
    count += size;
  }
  for (int64_t room = 4; room <= 30; ++room)
    for (int64_t step = 1; step <= room; ++step) {
      const auto windows = word_windows(starts, count, room, step);
      std::vector<bool> begins(starts.size());
      for (const auto& window : windows) {
        REQUIRE(std::count(starts.begin(), starts.end(), window.begin) == 1);
        const bool ends_word = window.end == count || std::count(starts.begin(), starts.end(), window.end) == 1;
        REQUIRE((ends_word || window.begin == starts[4]));  // only the word of seven is longer than a row
        REQUIRE(window.size() <= room);
        for (size_t i = 0; i < starts.size(); ++i)
          begins[i] = begins[i] || (starts[i] >= window.begin && starts[i] < window.end);
      }
      REQUIRE(std::count(begins.begin(), begins.end(), false) == 0);
    }
  CHECK(word_windows({}, 0, 5, 2) == std::vector<TokenWindow>{{0, 0}});
}
