#include "core/progress_line.h"

#include "core/log.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

const Progress half{{"step  5/10", "loss 6.1234", "eta 12s", "1,234 tok/s"}, 0.5};

}  // namespace

TEST_CASE("a line of progress never reaches the last column of the terminal", "[progress]") {
  for (size_t columns = 0; columns < 200; ++columns) {
    INFO(columns);
    CHECK(fitted_line(half, columns).size() <= (columns > 0 ? columns - 1 : 0));
  }
}

TEST_CASE("fields that do not fit are dropped from the right, and the first one is cut", "[progress]") {
  CHECK(fitted_line(half, 45) == "step  5/10  loss 6.1234  eta 12s");
  CHECK(fitted_line(half, 46) == "step  5/10  loss 6.1234  eta 12s  1,234 tok/s");
  CHECK(fitted_line(half, 33) == "step  5/10  loss 6.1234  eta 12s");
  CHECK(fitted_line(half, 5) == "step");
  CHECK(fitted_line({{"\u00e4\u00f6\u00fc"}}, 3) == "\u00e4\u00f6");
}

TEST_CASE("a bar of the share that is done follows where all fields and ten marks fit", "[progress]") {
  const auto text = whole_line(half);
  CHECK(fitted_line(half, text.size() + 14) == text);
  CHECK(fitted_line(half, text.size() + 15) == text + "  [#####.....]");
  CHECK(fitted_line(half, 500) == text + "  [" + std::string(15, '#') + std::string(15, '.') + "]");
  CHECK(fitted_line({half.fields, 2}, 500) == text + "  [" + std::string(30, '#') + "]");
  CHECK(fitted_line({half.fields}, 500) == text);
}

TEST_CASE("a file that is no terminal has no colours and the width that is asked for", "[progress]") {
  CHECK_FALSE(has_colours(-1));
  CHECK(terminal_columns(-1, 77) == 77);
}
