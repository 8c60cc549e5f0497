// Widths, paragraphs and escapes of reports.
#include "core/text.h"

#include "core/shown_character.h"

#include <sys/resource.h>

#include <fstream>
#include <vector>

#include "core/spelling.h"

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("a name is not compared letter by letter with one that is far longer") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const std::string name = "backbone.stack.0.norm";
  const std::vector<std::string> candidates{std::string(1 << 25, 'b'), "backbone.stack.0.nrm"};
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit room{.rlim_cur = pages * 4096 + (uint64_t{1} << 29), .rlim_max = before.rlim_max};  // 5 GB would be taken
  REQUIRE(setrlimit(RLIMIT_AS, &room) == 0);
  const auto near = nearest(name, candidates);
  setrlimit(RLIMIT_AS, &before);
  CHECK(near == candidates[1]);
}

TEST_CASE("names are listed with commas, and a word before the last one") {
  using Names = std::vector<std::string>;
  CHECK(listed(Names{}).empty());
  CHECK(listed(Names{"a", "b", "c"}) == "a, b, c");
  CHECK(listed(Names{"a"}, "or") == "a");
  CHECK(listed(Names{"a", "b", "c"}, "or") == "a, b or c");
}

TEST_CASE("a text is separated into what stands around each separator, which may be nothing") {
  using Texts = std::vector<std::string>;
  CHECK(separated("a, b,c", ", ") == Texts{"a", "b,c"});
  CHECK(separated(".a..b.", ".") == Texts{"", "a", "", "b", ""});
  CHECK(separated("a", ",") == Texts{"a"});
  CHECK(separated("", ",") == Texts{""});
}

TEST_CASE("texts are padded by their characters, and longer ones stay as they are") {
  CHECK(padded("ä", 3) == "ä  ");
  CHECK(aligned_right("±1", 4) == "  ±1");
  CHECK(padded("longer", 3) == "longer");
}

TEST_CASE("a paragraph is broken between words, and keeps the spaces of its head and its indent") {
  CHECK(wrapped("key   ", "one two three", 13, 6) == "key   one two\n      three\n");
  CHECK(wrapped("      ", "one two", 80, 6) == "      one two\n");
  CHECK(wrapped("", "unbreakable", 4, 2) == "unbreakable\n");
  CHECK(wrapped("", "a bb ccc", 4, 2) == "a bb\n  ccc\n");
  CHECK(wrapped("", "ok  a    1.5  b", 7, 2) == "ok  a\n  1.5\n  b\n");
  CHECK(wrapped("", "  a  b", 80, 2) == "  a  b\n");
}

TEST_CASE("a text of several lines keeps them, and each is broken between words") {
  CHECK(wrapped_lines("[a]  ", "one two three\nfour", 13, 5) == "[a]  one two\n     three\nfour");
  CHECK(wrapped_lines("", "one\n  two three\n", 8, 4) == "one\n  two\n    three\n");
  CHECK(wrapped_lines("[a]  ", "", 13, 5) == "[a]  ");
}

TEST_CASE("one thing is counted in the singular, none and several in the plural") {
  CHECK(counted(1, "document") == "1 document");
  CHECK(counted(0, "document") == "0 documents");
  CHECK(counted(7201, "held-out document") == "7,201 held-out documents");
}

TEST_CASE("escapes leave no character that the form would read as its own") {
  CHECK(escaped_csv("a") == "a");
  for (const auto* number : {"-1.5", "+0.25", "-1e-05", "-inf", "12", ""}) CHECK(escaped_csv(number) == number);
  CHECK(escaped_csv("=1+1") == "'=1+1");
  CHECK(escaped_csv("@SUM(A1)") == "'@SUM(A1)");
  CHECK(escaped_csv("+1-2") == "'+1-2");
  CHECK(escaped_csv("-cmd") == "'-cmd");
  CHECK(escaped_csv("\t=1") == "'\t=1");
  CHECK(escaped_csv("\r=1") == "\"'\r=1\"");
  CHECK(escaped_csv("=HYPERLINK(\"a\",1)") == "\"'=HYPERLINK(\"\"a\"\",1)\"");
  for (const std::string cell : {"=1+1", "-cmd", "@A", "+", "-", "-1.5", "'a", "a"})
    CHECK(unescaped_tsv(escaped_tsv(cell)) == cell);
  CHECK(escaped_tsv("=A\t1") == "'=A 1");
  CHECK(escaped_tsv("-") == "-");  // a label of polarity
  CHECK(escaped_csv("-") == "-");
  CHECK(escaped_csv("a;b", ';') == "\"a;b\"");
  CHECK(escaped_csv("a,b", ';') == "a,b");
  CHECK(escaped_latex("[1ex] a") == "{[}1ex] a");  // after the end of a row
  CHECK(escaped_latex("*a") == "{*}a");
  CHECK(escaped_latex("a[1]*") == "a[1]*");
  CHECK(escaped_csv("a,\"b\"\r") == "\"a,\"\"b\"\"\r\"");
  CHECK(escaped_latex("50 % of a_b {x} ^~\\ <|>\"\n") ==
        "50 \\% of a\\_b \\{x\\} \\textasciicircum{}\\textasciitilde{}\\textbackslash{} "
        "\\textless{}\\textbar{}\\textgreater{}\\textquotedbl{} ");
  CHECK(escaped_markdown("a|b_*<i>&`\n") == "a\\|b\\_\\*&lt;i&gt;&amp;\\` ");
  // A line separator of old, a turn of direction, no character, and a byte that is no UTF-8.
  for (const std::string hidden : {"a\u0085b", "a\u202Eb", "a\u2066b", "a\u2028b", "a\uFFFEb",
                                   "a\x80"
                                   "b"})
    for (const auto& shown : {escaped_markdown(hidden), escaped_html(hidden), escaped_latex(hidden)})
      CHECK(shown == "a\uFFFDb");
  CHECK(escaped_html("a\tb\u00E9\u200F") == "a b\u00E9\u200F");
  CHECK(visible("a\u202Eb\uFFFE\u0085") == "a\\xe2\\x80\\xaeb\\xef\\xbf\\xbe\\xc2\\x85");
  CHECK(escaped_html("<a href=\"x\">&'").find_first_of("<>\"'") == std::string::npos);
}
