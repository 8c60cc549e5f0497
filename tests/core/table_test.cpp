// Tables as text, Markdown and LaTeX.
#include "core/report/table.h"

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("columns of numbers are aligned to the right, others to the left", "[core]") {
  Table table{.title = "Figures", .header = {"what", "value"}, .rows = {{"a_b", "-0.5"}, {"c", "12.25"}}};
  CHECK(to_text(table) == "Figures\n\nwhat  value\na_b   -0.5\nc     12.25\n");
  CHECK_THAT(to_markdown(table), Catch::Contains("|---|---|\n"));
  table.header = columns_of_numbers({"what", "value"});
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

TEST_CASE("where a table is wider than a terminal, columns go by their rank, sentences below the rows", "[core]") {
  const Table table{.header = {"arm",
                               {"runs", ColumnKind::number, 2},
                               {"mean", ColumnKind::number, 1},
                               {"verdict", ColumnKind::sentence, 3}},
                    .rows = {{"a", "5", "3.25", "better than all others"}, {"b", "5", "4.5", "worse"}}};
  CHECK(to_text(table, 60) ==
        "arm  runs  mean  verdict\na       5  3.25  better than all others\nb       5   4.5  worse\n");
  CHECK(to_text(table, 20) ==
        "arm  runs  mean\na       5  3.25\nb       5   4.5\n\na: better than all\n  others\nb: worse\n");
  CHECK(to_text(table, 10) == "arm  mean\na    3.25\nb     4.5\n\na: better\n  than all\n  others\nb: worse\n");
}

TEST_CASE("a table with a caption is a float of LaTeX, with the caption after it", "[core]") {
  const Table table{.caption = "In 5 %, -1 of a_b.",
                    .header = {"arm", {"interval", ColumnKind::number}},
                    .rows = {{"a-1", "[-0.5, +1.0]"}}};
  CHECK(to_latex(table) ==
        "\\begin{table}\n\\centering\n\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n\\begin{tabular}{lr}\n\\toprule\n"
        "arm & interval \\\\\n\\midrule\na-1 & {[}$-$0.5, +1.0] \\\\\n\\bottomrule\n\\end{tabular}\n"
        "\\caption{In 5 \\%, $-$1 of a\\_b.}\n\\end{table}\n");
}

TEST_CASE("notes are a list of LaTeX", "[core]") {
  CHECK(to_latex(std::vector<std::string>{"* of a_b", "5 %"}) ==
        "\\begin{itemize}\n\\footnotesize\n\\item {*} of a\\_b\n\\item 5 \\%\n\\end{itemize}\n");
  CHECK(to_latex(std::vector<std::string>{}).empty());
}

TEST_CASE("a table is CSV and HTML, too, and columns without a cell go", "[core]") {
  Table table{.header = {"a", {"n", ColumnKind::number}, "none", {"keys", ColumnKind::code}},
              .rows = {{"<x>", "-1", "", "k: 1\nl: 2"}, {"=y", "2", "", ""}}};
  drop_empty_columns(table);
  CHECK(to_csv(table) == "a,n,keys\n<x>,-1,\"k: 1\nl: 2\"\n'=y,2,\n");
  CHECK_THAT(to_html(table), Catch::Contains("<th scope=\"row\">&lt;x&gt;</th><td class=\"n\">−1</td>"
                                             "<td class=\"wide\"><code>k: 1</code><br><code>l: 2</code></td>"));
}
