// Reports of parts.
#include "core/report/report.h"

#include "tests/support/catch.h"

using namespace cloze;

namespace {

const Report small_report{.title = "a <b>",
                          .question = "Is it so?",
                          .facts = {{"metric", "loss_x"}},
                          .parts = {{.heading = "Results",
                                     .tables = {{.header = {"arm", {"n", ColumnKind::number}}, .rows = {{"x", "1"}}}},
                                     .sentences = {"so it is"},
                                     .chart = "<svg></svg>\n"},
                                    {.heading = "Nothing"},
                                    {.heading = "Again", .commands = {"cloze x"}, .shown = Shown::documents},
                                    {.heading = "How", .sentences = {"by hand"}, .shown = Shown::pages}}};

}  // namespace

TEST_CASE("a report has its parts where they are shown, and those without content nowhere", "[core][report]") {
  CHECK(to_text(small_report, 80) == "a <b>: Is it so?\nmetric: loss_x\n\nResults\n\narm  n\nx    1\n\nso it is\n");
  CHECK(
      to_markdown(small_report) ==
      "# a &lt;b&gt;\n\nIs it so?\n\n- metric: loss\\_x\n\n## Results\n\n| arm | n |\n|---|--:|\n| x | 1 |\n\n- so it "
      "is\n\n## Again\n\n```sh\ncloze x\n```\n");
  const auto page = to_html(small_report);
  CHECK_THAT(page, Catch::Contains("<h1>a &lt;b&gt;</h1>") && Catch::Contains("<dt>metric</dt><dd>loss_x</dd>") &&
                       Catch::Contains("<h2>Results</h2>\n<svg></svg>\n<div class=\"scroll\"") &&
                       Catch::Contains("<li>so it is</li>") && Catch::Contains("cloze x\n</code>") &&
                       Catch::Contains("<h2>How</h2>") && !Catch::Contains("Nothing"));
}
