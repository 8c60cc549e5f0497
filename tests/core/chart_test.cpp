#include "core/report/chart.h"

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
  CHECK(times(svg, "<svg") == times(svg, "</svg>"));
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
  std::vector<Chart> panels(1000, Chart{.title = "p", .series = {{.title = "s", .points = {{0, 1}, {1, 2}}}}});
  panels[0].series.resize(100, {.title = "s", .points = {{0, 1}, {1, 2}}});
  const auto svg = chart_svg("many", panels);
  CHECK_THAT(svg, Catch::Contains(">976 more panels are not drawn<"));
  CHECK_THAT(svg, Catch::Contains("p (84 more series are not drawn)"));
  CHECK(svg.size() < 200'000);
}

TEST_CASE("points of a page stand where their values are, and points that are not finite are left out") {
  const Chart chart{.title = "t",
                    .series = {{.points = {{0, 0}, {5, NAN}, {10, 10}}}},
                    .x = nice_axis(0, 10, 5, true),
                    .y = nice_axis(0, 10, 5, true)};
  CHECK_THAT(chart_html(chart), Catch::Contains("d=\"M0 1500l3000 -1500\""));
}

TEST_CASE("dots outside the axes, and points that a logarithm does not have, are left out") {
  const Chart chart{.title = "t",
                    .series = {{.mark = ChartMark::points, .points = {{10, 5}, {1000, 5}, {-1, 5}}},
                               {.points = {{0, 1}, {1, 0}, {100, 10}}}},
                    .x = log_axis(1, 100),
                    .y = nice_axis(0, 10, 5, true)};
  const auto svg = chart_html(chart);
  CHECK_THAT(svg, Catch::Contains("cx=\"50.00%\"") && Catch::Contains("d=\"M0 1500l3000 -1500\""));
  CHECK(times(svg, "<circle") == 1);
}

TEST_CASE("a band is the area between its edges, behind a line of its colour") {
  const auto svg = chart_html(
      {.series = {{.mark = ChartMark::band, .colour = 8, .points = {{0, 10}, {10, 10}}, .low = {{0, 0}, {10, 0}}},
                  {.colour = 8, .points = {{0, 5}, {10, 5}}}},
       .x = nice_axis(0, 10, 5, true),
       .y = nice_axis(0, 10, 5, true)});
  CHECK_THAT(svg, Catch::Contains("<path class=\"band a2 d1\" d=\"M0 0l3000 0l0 1500l-3000 0z\"/>"));
  CHECK_THAT(svg, Catch::Contains("<path class=\"line a2 d1\" d=\"M0 750l3000 0\""));
}

TEST_CASE("names in a chart of a page are escaped") {
  const auto svg =
      chart_html({.title = "<script> & \"q\" 'a'", .series = {{.title = "</title><b>", .points = {{0, 0}, {1, 1}}}}});
  CHECK_THAT(svg, Catch::Contains("&lt;script&gt; &amp; &quot;q&quot; &#39;a&#39;\"") &&
                      Catch::Contains("&lt;/title&gt;&lt;b&gt;"));
  CHECK_THAT(svg, !Catch::Contains("<script>") && !Catch::Contains("<b>"));
}

TEST_CASE("rows of a chart have their marks where the axis has the values") {
  RowChart chart{
      .title = "t", .axis = nice_axis(-1, 1, 4, true), .margin = 0.5, .has_zero = true, .sides = {"l", "<m>", "r"}};
  chart.rows = {{.name = "<a>",
                 .said = "b",
                 .colour = 1,
                 .marks = {{"interval", -0.5, 1}, {"mean", 0.5, 0.5}, {"dot", 0.5, 0.5, 4.5, "<hint>"}}}};
  const auto html = row_chart_html(chart);
  CHECK_THAT(html, Catch::Contains("<line class=\"interval\" x1=\"25.00%\" x2=\"100.00%\" y1=\"50%\"") &&
                       Catch::Contains("<line class=\"mean\" x1=\"75.00%\" x2=\"75.00%\" y1=\"20%\"") &&
                       Catch::Contains("<circle class=\"dot\" cx=\"75.00%\"") &&
                       Catch::Contains("<rect class=\"margin\" x=\"25.00%\" width=\"50.00%\"") &&
                       Catch::Contains("<title>&lt;hint&gt;</title>") && Catch::Contains("&lt;m&gt;") &&
                       Catch::Contains("<div class=\"name\">&lt;a&gt;</div>"));
}

TEST_CASE("a curve is thinned to so many points with both ends") {
  std::vector<int> points(1000);
  for (int i = 0; i < 1000; ++i) points[static_cast<size_t>(i)] = i;
  const auto few = thinned(points, 60);
  CHECK(few.size() == 60);
  CHECK(few.front() == 0);
  CHECK(few.back() == 999);
  CHECK(thinned(std::vector<int>{1, 2}, 60).size() == 2);
}
