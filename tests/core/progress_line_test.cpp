#include "core/log.h"

#include "tests/support/catch.h"

using namespace cloze;

namespace {

const Progress half{{"step  5/10", "loss 6.1234", "eta 12s", "1,234 tok/s"}, 0.5};

}  // namespace

TEST_CASE("a line of progress leaves room for the cursor and a ^C before the end of the row", "[progress]") {
  for (size_t columns = 0; columns < 200; ++columns) {
    INFO(columns);
    CHECK(fitted_line(half, columns).size() <= (columns > 3 ? columns - 3 : 0));
  }
}

TEST_CASE("fields that do not fit are dropped from the right, and the first one is cut", "[progress]") {
  CHECK(fitted_line(half, 47) == "step  5/10  loss 6.1234  eta 12s");
  CHECK(fitted_line(half, 48) == "step  5/10  loss 6.1234  eta 12s  1,234 tok/s");
  CHECK(fitted_line(half, 35) == "step  5/10  loss 6.1234  eta 12s");
  CHECK(fitted_line(half, 7) == "step");
  CHECK(fitted_line({{"\u00e4\u00f6\u00fc"}}, 5) == "\u00e4\u00f6");
}

TEST_CASE("a bar of the share that is done follows where all fields and ten marks fit", "[progress]") {
  const auto text = whole_line(half);
  CHECK(fitted_line(half, text.size() + 16) == text);
  CHECK(fitted_line(half, text.size() + 17) == text + "  [#####.....]");
  CHECK(fitted_line(half, 500) == text + "  [" + std::string(15, '#') + std::string(15, '.') + "]");
  CHECK(fitted_line({half.fields, 2}, 500) == text + "  [" + std::string(30, '#') + "]");
  CHECK(fitted_line({half.fields}, 500) == text);
}

TEST_CASE("a progress line that a narrower window shows in several rows is erased in all of them", "[progress]") {
  CHECK(erasure(50, 80) == "\r\033[K");
  CHECK(erasure(0, 80) == "\r\033[K");
  CHECK(erasure(80, 80) == "\r\033[K");
  CHECK(erasure(81, 80) == "\033[1A\r\033[J");
  CHECK(erasure(77, 30) == "\033[2A\r\033[J");
  CHECK(erasure(77, 0) == "\r\033[K");
}

TEST_CASE("a file that is no terminal has no colours and the width that is asked for", "[progress]") {
  CHECK_FALSE(has_colours(-1));
  CHECK(terminal_columns(-1, 77) == 77);
}
