// Tables as text, Markdown and LaTeX.
#include "core/table.h"

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("a table of numbers is aligned to the right behind its first column, any other to the left", "[core]") {
  Table table{.title = "Figures", .header = {"what", "value"}, .rows = {{"a_b", "-0.5"}, {"c", "12.25"}}};
  CHECK(to_text(table) == "Figures\n\nwhat  value\na_b   -0.5\nc     12.25\n");
  CHECK_THAT(to_markdown(table), Catch::Contains("|---|---|\n"));
  table.of_numbers = true;
  CHECK(to_text(table) == "Figures\n\nwhat  value\na_b    -0.5\nc     12.25\n");
  CHECK(to_markdown(table) == "## Figures\n\n| what | value |\n|---|--:|\n| a\\_b | -0.5 |\n| c | 12.25 |\n");
  CHECK(to_latex(table) ==
        "% Figures\n\\begin{tabular}{lr}\n\\toprule\nwhat & value \\\\\n\\midrule\n"
        "a\\_b & $-$0.5 \\\\\nc & 12.25 \\\\\n\\bottomrule\n\\end{tabular}\n");
}

TEST_CASE("names with control characters do not reach the terminal", "[core]") {
  const Table table{.title = "of \x1b[2J", .header = {"a\nb", "n"}, .rows = {{"x\x1b[31m", "1"}}};
  CHECK(to_text(table) == "of \\x1b[2J\n\na\\nb       n\nx\\x1b[31m  1\n");
}

TEST_CASE("a cell that is indented by spaces is indented in Markdown and LaTeX, too", "[core]") {
  const Table table{.title = "T", .header = {"what", "n"}, .rows = {{"all", "3"}, {"  p_1", "-1"}, {"    q", "2"}}};
  CHECK_THAT(to_text(table), Catch::Contains("\n  p_1"));
  CHECK_THAT(to_markdown(table), Catch::Contains("\n| &nbsp;&nbsp;p\\_1 | -1 |\n| &nbsp;&nbsp;&nbsp;&nbsp;q | 2 |\n"));
  CHECK_THAT(to_latex(table), Catch::Contains("\n\\quad p\\_1 & $-$1 \\\\\n\\quad \\quad q & 2 \\\\\n"));
}
