#include "core/chart.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

}  // namespace

TEST_CASE("a chart is one SVG picture in which names are text, whatever they hold", "[core][chart]") {
  const std::string hostile = "x\n!touch P\n#'\"`$(id)</title><script>alert(1)</script>\x1b[31m\xff\xef\xbf\xbf";
  const auto svg =
      chart_svg(hostile, {{.title = hostile,
                           .x_label = hostile,
                           .y_label = hostile,
                           .series = {{.title = hostile, .mark = ChartMark::dots, .points = {{1, 2}, {2, 3}}}}}});
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg.find('\x1b') == std::string::npos);
  CHECK(svg.find('\xff') == std::string::npos);
  CHECK(svg.find("\xef\xbf\xbf") == std::string::npos);  // no character of XML
  CHECK(svg.find("\n!touch") == std::string::npos);
  CHECK_THAT(svg, Catch::Contains("x\\n!touch P\\n#&#39;&quot;`$(id)&lt;/title&gt;"));
  CHECK(times(svg, "<svg") == 1);
  CHECK(times(svg, "<text") == times(svg, "</text>"));
  CHECK(times(svg, "<title>") == times(svg, "</title>"));
}

TEST_CASE("of a name that is far too long a chart has the beginning", "[core][chart]") {
  std::string name;
  while (name.size() < 1 << 20) name += "\xef\xbf\xbf";
  const auto svg = chart_svg(name, {{.title = name, .series = {{.title = name, .points = {{1, 2}, {2, 3}}}}}});
  CHECK(svg.size() < 10'000);
  CHECK_THAT(svg, Catch::Contains("???…"));
}

TEST_CASE("a chart has a legend with last values, ticks on both axes, and a mark for each point", "[core][chart]") {
  const auto svg = chart_svg(
      "run", {{.title = "mlm",
               .x_label = "step",
               .y_label = "loss",
               .series = {{.title = "training", .mark = ChartMark::faint, .points = {{0, 9}, {100, 4.5}}},
                          {.title = "held out", .mark = ChartMark::dots, .points = {{50, 5}, {100, 4.125}}},
                          {.title = "unigram", .mark = ChartMark::dashes, .points = {{0, 6.5}, {100, 6.5}}}}}});
  for (const auto* part :
       {">training<", ">held out<", ">4.125<", ">6.5<", ">step<", ">loss<", ">100<", ">mlm<", ">run<"})
    CHECK_THAT(svg, Catch::Contains(part));
  CHECK(times(svg, "<circle") == 2 + 1);  // and one in the legend
  CHECK_THAT(svg, Catch::Contains("<title>held out, step 100: 4.125</title>"));
  CHECK_THAT(svg, Catch::Contains("prefers-color-scheme: dark"));
}

TEST_CASE("bars stand on 0, and points that no axis can hold are left out", "[core][chart]") {
  const auto inf = std::numeric_limits<double>::infinity();
  const auto svg = chart_svg("", {{.series = {{.title = "bars", .mark = ChartMark::bars, .points = {{1, 20}, {2, 80}}},
                                              {.title = "odd",
                                               .mark = ChartMark::dots,
                                               .points = {{1, NAN}, {inf, 1}, {1, -inf}, {1e300, 1e300}, {1, 3}}}}}});
  CHECK(times(svg, "<rect class=\"bar") == 2 + 1);
  CHECK(times(svg, "<circle") == 1 + 1);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
  CHECK_THAT(svg, Catch::Contains(">0<"));
  CHECK(chart_svg("", {}).ends_with("</svg>\n"));
  CHECK(chart_svg("", {{.title = "nothing", .series = {{.title = "none"}}}}).ends_with("</svg>\n"));
}

TEST_CASE("a chart of thousands of panels and series draws the first and counts the others", "[core][chart]") {
  std::vector<ChartPanel> panels(1000,
                                 ChartPanel{.title = "p", .series = {{.title = "s", .points = {{0, 1}, {1, 2}}}}});
  panels[0].series.resize(100, {.title = "s", .points = {{0, 1}, {1, 2}}});
  const auto svg = chart_svg("many", panels);
  CHECK_THAT(svg, Catch::Contains(">976 more panels are not drawn<"));
  CHECK_THAT(svg, Catch::Contains("p (84 more series are not drawn)"));
  CHECK(svg.size() < 200'000);
}
