// From logits to answers, against a slow search over all pairs.
#include "tasks/scores/span_answer.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// A row whose context tokens are the characters [from, to) of a text, after `before` tokens.
TaskRow window_of(int64_t from, int64_t to, int64_t before, int64_t class_token) {
  TaskRow row{.ids = std::vector<int32_t>(static_cast<size_t>(before + to - from + 1))};
  row.second_begin = before;
  row.second_end = before + to - from;
  row.class_token = class_token;
  row.bytes.assign(row.ids.size(), {-1, -1});
  for (auto i = from; i < to; ++i) row.bytes[static_cast<size_t>(before + i - from)] = {i, i + 1};
  return row;
}

}  // namespace

TEST_CASE("the mean of windows is that of their logits, and of one window these", "[tasks]") {
  const std::vector<std::vector<double>> logits{{1, 2}, {3, -2}, {5, 3}};
  CHECK((mean_of_windows(logits) == std::vector<double>{3, 1}));
  CHECK(mean_of_windows(std::span(logits).first(1)) == logits[0]);
}

TEST_CASE("the best answers over all windows are those of a search through all pairs", "[tasks]") {
  const std::string context = "abcdefghijklmnopqrstuvwxyz";
  auto stream = Rng(1).stream("logits");
  for (int trial = 0; trial < 40; ++trial) {
    const std::vector<TaskRow> windows{window_of(0, 12, 3, 0), window_of(8, 20, 3, 0), window_of(16, 26, 3, 0)};
    std::vector<SpanLogits> logits;
    for (const auto& row : windows) {
      auto& one = logits.emplace_back();
      for (size_t i = 0; i < row.ids.size(); ++i) {
        one.start.push_back(stream.normal());
        one.end.push_back(stream.normal());
      }
    }
    std::vector<std::pair<double, std::string>> all;
    double null_score = 1e9;
    for (size_t w = 0; w < windows.size(); ++w) {
      null_score = std::min(null_score, logits[w].start[0] + logits[w].end[0]);
      for (auto i = windows[w].second_begin; i < windows[w].second_end; ++i)
        for (auto j = i; j < std::min(windows[w].second_end, i + 4); ++j)
          all.emplace_back(logits[w].start[static_cast<size_t>(i)] + logits[w].end[static_cast<size_t>(j)],
                           context.substr(static_cast<size_t>(windows[w].bytes[static_cast<size_t>(i)][0]),
                                          static_cast<size_t>(j - i + 1)));
    }
    std::sort(all.rbegin(), all.rend());
    std::vector<std::pair<double, std::string>> best;
    for (const auto& one : all)
      if (best.size() < 5 && std::none_of(best.begin(), best.end(), [&](auto& b) { return b.second == one.second; }))
        best.push_back(one);
    const auto found = answer_of(context, windows, logits, {.n_best = 5, .max_answer_length = 4});
    REQUIRE(found.n_best.size() == 5);
    double sum = found.null_probability;
    for (size_t i = 0; i < 5; ++i) {
      CHECK(found.n_best[i].text == best[i].second);
      CHECK(found.n_best[i].score == best[i].first);
      sum += found.n_best[i].probability;
    }
    CHECK(sum == Approx(1));
    CHECK(found.null_score == null_score);
    CHECK(found.margin == Approx(null_score - best[0].first));
  }
}

TEST_CASE("the null score stands at the class token, wherever the family has it", "[tasks]") {
  const auto row = window_of(0, 2, 1, 3);
  const SpanLogits logits{.start = {50, 1, 2, 7}, .end = {50, 3, 4, 8}};
  const auto found = answer_of("ab", std::vector{row}, std::vector{logits});
  CHECK(found.null_score == 15);
  CHECK(found.n_best.at(0).text == "b");
  CHECK(found.margin == 9);
}

TEST_CASE("an answer keeps the marks of its last character, and a context without tokens has none", "[tasks]") {
  auto row = window_of(0, 1, 1, 0);
  const SpanLogits logits{.start = {0, 1, 0}, .end = {0, 1, 0}};
  CHECK(answer_of("e\u0301 x", std::vector{row}, std::vector{logits}).n_best.at(0).text == "e\u0301");
  row.second_end = row.second_begin;
  const auto none = answer_of("", std::vector{row}, std::vector{logits});
  CHECK(none.n_best.empty());
  CHECK(none.margin == 0);
  CHECK(none.null_probability == 1);
}
