// Forms of a report, made of runs that are made up here.
#include "study/report/report.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/log.h"
#include "core/random.h"
#include "core/spelling.h"
#include "core/text.h"
#include "study/report/report_rows.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// A report of arms whose runs differ by 0.1 from one arm to the next.
StudyReport made_up(const std::vector<std::string>& arms, int64_t seeds, int64_t points = 20) {
  StudyReport report{.name = "made up", .unit = "nats", .metric = "mlm", .baseline = arms.front()};
  report.rules.margin = 0.01;
  for (size_t a = 0; a < arms.size(); ++a) {
    report.arms.push_back({.name = arms[a], .differs = {"key: " + arms[a]}});
    for (int64_t seed = 1; seed <= seeds; ++seed) {
      auto stream = Rng(static_cast<uint64_t>(seed)).stream("loss", a);
      ReportedRun run{.state = RunState::done};
      run.result = {{}, {}, arms[a], seed, "runs/" + arms[a]};
      run.result.value = 3 + 0.1 * static_cast<double>(a) + 0.01 * stream.normal();
      for (int64_t point = 1; point <= points; ++point) {
        const auto i = static_cast<double>(point);
        const Usage used{.step = i, .tokens = 10 * i, .predicted_tokens = 2 * i, .seconds = 0.5 * i};
        run.curve.push_back({used, point, run.result.value + 5.0 / i + 0.01 * stream.normal()});
      }
      run.result.examples = {{run.result.value, run.result.value}, {1, 1}};
      run.command = "cloze pretrain " + shell_word("runs/" + arms[a] + ".yaml");
      run.budget = "20 steps";
      add_usage(run.result, run.curve);
      report.runs.push_back(run);
    }
  }
  return report;
}

StudyReport compared(StudyReport report) {
  check_comparable(report);
  compare_arms(report);
  describe_comparison(report);
  return report;
}

/// The first mistake in a page: a tag that is not closed, a quote that is open, a bare `&` or `<`; empty for none.
std::string mistake_in(const std::string& html) {
  std::vector<std::string> open;
  size_t i = html.find('\n') + 1;  // behind the doctype
  while (i < html.size()) {
    if (html[i] == '&') {
      const auto end = html.find(';', i);
      if (end == std::string::npos || end - i > 6) return "bare & at " + html.substr(i, 40);
    }
    if (html[i] == '>') return "bare > at " + html.substr(i, 40);
    if (html[i++] != '<') continue;
    const bool closes = html[i] == '/';
    const auto begin = i + closes;
    i = html.find_first_of(" >/\n", begin);
    const auto name = html.substr(begin, i - begin);
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string::npos)
      return "no tag: " + html.substr(begin, 40);
    bool quoted = false;
    for (; i < html.size() && (quoted || html[i] != '>'); ++i) {
      quoted ^= html[i] == '"';
      if (html[i] == '<') return "< in the tag " + name;
    }
    const bool alone = html[i - 1] == '/' || name == "meta" || name == "input" || name == "br";
    ++i;
    if (name == "style" && !closes) i = html.find("</style>", i);
    if (closes && (open.empty() || open.back() != name)) return "</" + name + "> closes nothing";
    if (closes)
      open.pop_back();
    else if (!alone)
      open.push_back(name);
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const std::string hostile = "<script>alert(\"1\")</script> & 'x' a_b 50% $x$ {#} ~^\\ | `c` *d*\nend";

}  // namespace

TEST_CASE("a page is well formed and names nothing outside it") {
  const auto html = to_html(compared(made_up({"token", "word", "span"}, 5)));
  CHECK(mistake_in(html) == "");
  for (const std::string outside : {"http://", "https://", "src=", "href=", "@import", "url(", "<script"})
    CHECK(count(html, outside) == 0);
  CHECK_THAT(html, Catch::Contains("prefers-color-scheme: dark") && Catch::Contains("@media print") &&
                       Catch::Contains("name=\"viewport\""));
}

TEST_CASE("the page shows the question, verdicts, every run, keys, commands and methods") {
  auto report = made_up({"token", "word", "span"}, 5);
  report.runs.push_back({.result = {{}, {}, "span", 6, "runs/span-6"},
                         .state = RunState::failed,
                         .message = "the loss is not finite at step 3"});
  const auto html = to_html(compared(report));
  CHECK_THAT(html, Catch::Contains("Does word or span lower the held-out mlm loss of token?"));
  CHECK_THAT(html, Catch::Contains("15 of 16 finished") && Catch::Contains("20 steps a run"));
  CHECK_THAT(html, Catch::Contains("run span/6 failed: the loss is not finite at step 3; it is not in the table"));
  CHECK(count(html, "<code>runs/") == 16);
  CHECK_THAT(html, Catch::Contains("<code>key: word</code>") && Catch::Contains("cloze pretrain runs/word.yaml"));
  CHECK_THAT(html, Catch::Contains("Banerjee 1960") && Catch::Contains("Holm 1979"));
  CHECK(count(html, "worse by") >= 4);  // two arms, next to the forest plot and in the table
}

TEST_CASE("curves are shown by the currencies that are known, by steps without a choice") {
  auto report = made_up({"token", "word"}, 3);
  const auto html = to_html(compared(report));
  CHECK_THAT(html, Catch::Contains("id=\"by-steps\" checked") && Catch::Contains("id=\"by-tokens\"") &&
                       Catch::Contains("id=\"by-time\"") && !Catch::Contains("id=\"by-flops\""));
  for (auto& run : report.runs)
    for (auto& point : run.curve) point.flops = 1e9 * point.step;
  CHECK_THAT(to_html(compared(report)), Catch::Contains("id=\"by-flops\""));
}

TEST_CASE("names with the signs of HTML, LaTeX, Markdown and CSV are shown as they are") {
  const auto report = compared(made_up({"plain", hostile}, 3));
  const auto html = to_html(report);
  CHECK(mistake_in(html) == "");
  CHECK(count(html, "<script") == 0);
  CHECK_THAT(html, Catch::Contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;"));

  const auto latex = to_latex(report);
  CHECK_THAT(latex, Catch::Contains("\\textless{}script\\textgreater{}") &&
                        Catch::Contains("a\\_b 50\\% \\$x\\$ \\{\\#\\}") &&
                        Catch::Contains("\\textasciitilde{}\\textasciicircum{}\\textbackslash{}"));
  std::istringstream lines(latex);
  for (std::string line; std::getline(lines, line);)
    CHECK((line.starts_with("%") || line.starts_with("\\") || line.ends_with("\\\\")));

  const auto markdown = to_markdown(report);
  CHECK_THAT(markdown, Catch::Contains("| &lt;script&gt;alert") && Catch::Contains("`` key: <script>"));
  CHECK_THAT(markdown, Catch::Contains("a\\_b 50%") && Catch::Contains("\\| \\`c\\` \\*d\\* end"));
  CHECK_THAT(to_csv(report), Catch::Contains(",\"<script>alert(\"\"1\"\")</script> &"));
  CHECK_THAT(to_text(report, 80), Catch::Contains("*d* end"));
}

TEST_CASE("the LaTeX of a report is a float with metric, seeds and budget, and explains the marks of its verdicts") {
  const auto latex = to_latex(compared(made_up({"token", "word"}, 5)));
  CHECK_THAT(latex,
             Catch::Contains("\\begin{tabular}{lrrrl}") && Catch::Contains("arm & mean $\\pm$ sd & difference & ") &&
                 Catch::Contains("\\caption{Held-out mlm loss in nats, lower is better; seeds: 5, paired; budget: "
                                 "20 steps a run; differences of 0.01 nats matter. Differences are to token, ") &&
                 Catch::Contains("paired by seed, with the 95 \\% interval. It joins Student's over seeds with that "
                                 "over held-out examples. W worse.}") &&
                 Catch::Contains("] & W \\\\\n"));
  CHECK(count(latex, "worse by") == 0);
  auto failed = made_up({"token", "word"}, 5);
  failed.runs[3].state = RunState::failed;
  failed.runs[3].message = "the loss of 5 % is -1";
  CHECK_THAT(to_latex(compared(failed)),
             Catch::Contains("\\begin{itemize}") &&
                 Catch::Contains("\\item run token/4 failed: the loss of 5 \\% is $-$1; it is not in the table\n"));
}

TEST_CASE("every number of the table and of the curves stands in the CSV") {
  const auto report = compared(made_up({"token", "word"}, 3, 5));
  std::istringstream lines(to_csv(report));
  std::map<std::string, int> kinds;
  std::string line;
  std::getline(lines, line);
  const auto columns = std::count(line.begin(), line.end(), ',');
  std::string all;
  while (std::getline(lines, line)) {
    if (!line.starts_with("note,")) CHECK(std::count(line.begin(), line.end(), ',') == columns);
    ++kinds[line.substr(0, line.find(','))];
    all += line + "\n";
  }
  CHECK(kinds == std::map<std::string, int>{{"arm", 2},
                                            {"run", 6},
                                            {"setting", 5},
                                            {"mean_curve", 10},
                                            {"difference_curve", 5},
                                            {"curve", 30},
                                            {"note", 1}});
  char digits[40];
  const auto& arm = report.arms[1];
  for (const double value :
       {arm.summary.mean, arm.summary.sd, arm.difference.mean, arm.difference.t_interval->low,
        arm.difference.interval->high, *arm.difference.p_holm, *arm.difference.p_corrected, *arm.difference.effect_size,
        *arm.difference.p_equivalence, arm.runs[2].value, arm.curve.mean[3].loss, arm.curve.sd[2],
        arm.difference_curve.mean[1].loss, arm.difference_curve.t_interval[4].high}) {
    std::snprintf(digits, sizeof digits, "%.17g", value);
    CHECK_THAT(all, Catch::Contains(digits));
  }
}

TEST_CASE("what runs used up stands in every form, in the currencies that they logged") {
  auto report = made_up({"token", "word"}, 3);
  for (auto& run : report.runs)
    if (run.result.arm == "word") run.result.tokens = 400, run.result.words = 300;
  report = compared(report);
  const auto table = usage_table(report);
  CHECK(heads_of(table) == std::vector<std::string>{"arm", "time", "tokens", "steps", "predicted", "words"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1] == std::vector<std::string>{"word", duration(10), "400", "20", "40", "300"});
  CHECK_THAT(to_text(report, 100), Catch::Contains("What a run used up, mean of each arm\n\narm"));
  CHECK_THAT(to_markdown(report), Catch::Contains("| word | "));
  CHECK_THAT(to_html(report), Catch::Contains("<h2>What a run used up, mean of each arm</h2>"));
  std::istringstream lines(to_csv(report));
  std::string heads, line;
  std::getline(lines, heads);
  CHECK_THAT(heads, Catch::Contains(",step,tokens,predicted_tokens,words,epochs,seconds,flops,"));
  while (std::getline(lines, line) && !line.starts_with("arm,word,")) continue;
  CHECK_THAT(line, Catch::Contains(",20,400,40,300,0,10,0,"));
}

TEST_CASE("arms that no test tells apart stand together in every form") {
  auto report = made_up({"token", "word"}, 5);
  const std::vector<double> values{3.0, 3.1, 3.2, 3.1, 3.0, 3.1, 3.0, 3.1, 3.2, 3.0};  // differences of mean 0
  for (size_t i = 0; i < values.size(); ++i) report.runs[i].result.value = values[i];
  report = compared(report);
  REQUIRE(report.tied.size() == 1);
  CHECK(report.tied[0].size() == 2);
  for (const auto& text : {to_text(report, 100), to_markdown(report), to_html(report), to_csv(report)})
    CHECK_THAT(text, Catch::Contains("not told apart: "));
  CHECK(to_json(report)["tied"].size() == 1);
}

TEST_CASE("arms without a seed in common are neither paired nor not told apart") {
  auto report = made_up({"token", "word", "span"}, 3);
  for (auto& run : report.runs)
    if (run.result.arm != "token") run.result.seed += run.result.arm == "word" ? 10 : 20;
  report = compared(report);
  CHECK(report.tied.empty());
  CHECK(report.arms[1].verdict == "no seed in common with the baseline");
  CHECK_THAT(to_html(report), !Catch::Contains(", paired<"));
}

TEST_CASE("an arm that the verdict tells from the baseline is in no set with it") {
  auto report = made_up({"token", "word", "span"}, 5);
  for (auto& run : report.runs)
    if (run.result.arm == "span") run.result.value -= 0.1;  // as good as word
  report = compared(report);
  REQUIRE(report.tied.size() == 1);
  CHECK(std::set<std::string>(report.tied[0].begin(), report.tied[0].end()) == std::set<std::string>{"span", "word"});
}

TEST_CASE("every form shows the one interval that decides, and says that it holds for several arms at once") {
  const auto report = compared(made_up({"token", "word", "span"}, 5));
  const auto& difference = report.arms[1].difference;
  CHECK(report.rules.arms == 2);
  CHECK(difference.interval->high - difference.interval->low >
        difference.t_interval->high - difference.t_interval->low);
  const auto shown = fixed(difference.interval->low, decimals_of(report), true) + ", ";
  for (const auto& text : {to_text(report, 200), to_markdown(report), to_html(report), to_latex(report)})
    CHECK_THAT(text, Catch::Contains(shown));
  CHECK_THAT(report.arms[1].verdict, Catch::Contains("(simultaneous over 2 comparisons)"));
  CHECK_THAT(to_latex(report), Catch::Contains("interval, simultaneous over 2 comparisons."));
  const auto json = to_json(report);
  CHECK(json["simultaneous"] == 2);
  CHECK(json["arms"][1]["difference"]["interval"][0] == difference.interval->low);
}

namespace {

/// The report of arms whose runs could have had `floor` from word frequencies.
StudyReport above(double floor) {
  auto report = made_up({"token", "word"}, 3);
  for (auto& run : report.runs) run.result.floor = floor;
  return compared(report);
}

}  // namespace

TEST_CASE("word frequencies are a line of the table, the charts and the data") {
  const auto report = above(7.25);
  CHECK_THAT(report.arms[1].verdict, Catch::StartsWith("worse by"));
  for (const auto& text :
       {to_text(report, 200), to_markdown(report), to_html(report), to_latex(report), to_csv(report)})
    CHECK_THAT(text, Catch::Contains("word frequencies") && Catch::Contains("7.25"));
  CHECK_THAT(to_html(report), Catch::Contains("word frequencies (dashes)"));
  CHECK(to_json(report)["floor"]["value"] == 7.25);
  CHECK(to_json(compared(made_up({"token", "word"}, 3)))["floor"].is_null());
}

TEST_CASE("where no arm is below word frequencies there is no verdict, and one arm that is not is named") {
  const auto none = above(2.5);
  CHECK(none.arms[1].verdict == "no arm has left word frequencies");
  CHECK(none.tied.empty());
  CHECK_THAT(none.notes.front(), Catch::Contains("no arm has left word frequencies (2.5 nats), so that there is no"));
  const auto one = above(3.05);  // between 3 and 3.1
  CHECK_THAT(one.arms[1].verdict, Catch::StartsWith("worse by"));
  CHECK_THAT(one.notes.front(), Catch::Contains("no better than word frequencies (3.05 nats): word"));
}

TEST_CASE("arms that are no better than the words of a task are named, and their verdicts stand") {
  const auto with_words = [](double words) {
    auto report = made_up({"token", "word"}, 3);
    for (auto& run : report.runs) run.result.floor = 7.25;
    report.other_floors = {{.name = "words", .value = words}};
    return compared(report);
  };
  const auto none = with_words(2.5), one = with_words(3.05);  // below both, and between 3 and 3.1
  CHECK_THAT(none.arms[1].verdict, Catch::StartsWith("worse by"));
  CHECK(none.notes.front() == "no better than a regression on words (2.5 nats): token, word");
  CHECK(one.notes.front() == "no better than a regression on words (3.05 nats): word");
  const auto notes = with_words(8).notes;
  CHECK(std::ranges::none_of(notes, [](const auto& note) { return note.starts_with("no better"); }));
}

TEST_CASE("arms whose difference or loss has not come to rest are named") {
  const auto noted = [](double of_difference, double of_loss) {
    auto report = made_up({"token", "word"}, 3);
    for (auto& run : report.runs)
      for (auto& point : run.curve) {
        const bool is_last = point.point == 20;
        point.loss = run.result.value + (is_last ? 0 : of_loss + (run.result.arm == "word" ? of_difference : 0));
      }
    std::string all;
    for (const auto& note : compared(report).notes) all += note + "\n";
    return all;
  };
  CHECK(noted(0.005, 0) == "");
  CHECK_THAT(noted(0.02, 0), Catch::Contains("moves by more than the margin: word (by -0.0200); a longer budget"));
  CHECK_THAT(noted(0, 0.1), Catch::Contains("still falls by more than 2 %: token (by 0.1), word (by 0.1)") ||
                                Catch::Contains("token (by 0.1) and word (by 0.1)"));
}

TEST_CASE("of a figure of which more is better a curve that still rises is named, and none that falls") {
  const auto noted = [](double gained) {
    auto report = made_up({"token", "word"}, 3);
    report.by = SuiteMetric{.suite = "pairs", .name = "accuracy"};
    report.rules.higher_is_better = true;
    for (auto& run : report.runs)
      for (auto& point : run.curve) point.loss = run.result.value - (point.point == 20 ? 0 : gained);
    std::string all;
    for (const auto& note : compared(report).notes) all += note + "\n";
    return all;
  };
  CHECK_THAT(noted(0.1), Catch::Contains("the figure still rises by more than 2 %: token (by 0.1)"));
  CHECK(noted(-0.1) == "");
}

TEST_CASE("runs that answered other items are not compared") {
  auto report = made_up({"token", "word"}, 2);
  report.by = SuiteMetric{.suite = "pairs", .name = "accuracy"};
  report.runs[3].result.text = "of other items";
  CHECK_THROWS_WITH(compared(report),
                    Catch::Contains("answered other items of pairs accuracy; give all runs the same ones"));
}

TEST_CASE("a floor in another unit than the curves is not drawn among them") {
  auto report = made_up({"token", "word"}, 2);
  report.by = TaskMetric{.task = "cats", .name = "accuracy", .floor = "majority"};
  report.rules.higher_is_better = true;
  for (auto& run : report.runs) run.result.floor = 2;
  const auto found = compared(report);
  CHECK(found.floor == 2);
  CHECK_THAT(curve_chart(found), Catch::Contains("held-out loss [nats]") && !Catch::Contains("majority"));
  CHECK_THAT(value_chart(found), Catch::Contains("majority"));
}

TEST_CASE("losses of runs that are judged later are drawn by objective, each on an axis with its name") {
  auto report = made_up({"token", "word", "pairs"}, 2);
  report.by = TaskMetric{.task = "cats", .name = "accuracy"};
  for (auto& run : report.runs)
    for (auto& point : run.curve) point.of = run.result.arm == "pairs" ? "nsp" : "mlm";
  const auto found = compared(report);
  const auto chart = curve_chart(found);
  constexpr size_t currencies = 3;
  CHECK(count(chart, "held-out loss of mlm [nats]") == currencies);
  CHECK(count(chart, "held-out loss of nsp [nats]") == currencies);
  const auto second = chart.find("held-out loss of nsp by");
  const auto drawn_in_second = chart.substr(second, chart.find("</svg>", second) - second);
  CHECK_THAT(drawn_in_second, Catch::Contains("pairs, seed 2") && !Catch::Contains("word"));
  CHECK_THAT(to_csv(found), Catch::Contains(",nsp\n"));
}

TEST_CASE("runs of a changed source and arms of another precision are a note") {
  auto report = made_up({"token", "word"}, 2);
  report.runs[3].provenance.is_dirty = true;
  report.arms[1].differs = {"train.precision: bf16"};
  std::string all;
  for (const auto& note : compared(report).notes) all += note + "\n";
  CHECK_THAT(all, Catch::Contains("a program whose source had changes that no commit has, so that nobody else can make "
                                  "the runs again: word\n"));
  CHECK_THAT(all, Catch::Contains("arms differ in train.precision, which alone moves a loss: word (bf16)\n"));
}

TEST_CASE("the difference along training is that of pairs of runs, its end that of the table") {
  auto report = made_up({"token", "word"}, 4);
  for (auto& run : report.runs) run.curve.back().loss = run.result.value;
  report = compared(report);
  const auto& arm = report.arms[1];
  REQUIRE(arm.difference_curve.mean.size() == 20);
  CHECK(arm.difference_curve.mean.back().loss == Approx(arm.difference.mean).epsilon(1e-12));
  CHECK(arm.difference_curve.t_interval.back().low == Approx(arm.difference.t_interval->low).epsilon(1e-12));
}

namespace {

/// Fails the runs of these seeds of an arm, which ended at their own fault.
StudyReport with_failed(StudyReport report, const std::string& arm, const std::set<int64_t>& seeds) {
  for (auto& run : report.runs)
    if (run.result.arm == arm && seeds.contains(run.result.seed)) {
      run.state = RunState::failed;
      run.message = "its loss diverged";
    }
  return report;
}

}  // namespace

TEST_CASE("where an arm loses more runs its survivors are the better ones: a verdict in its favour is held back") {
  auto report = made_up({"token", "word"}, 10);
  CHECK_THAT(compared(report).arms[1].verdict, Catch::StartsWith("worse by"));
  const auto of_baseline = compared(with_failed(report, "token", {7, 8, 9, 10}));
  CHECK(of_baseline.arms[1].verdict ==
        "held back: 0 of 10 runs failed, of token 4 of 10, and those that are left are the better ones");
  CHECK(of_baseline.arms[1].difference.verdict == Verdict::held_back);
  CHECK_THAT(to_latex(of_baseline), Catch::Contains("& H") && Catch::Contains("H held back"));
  CHECK(of_baseline.tied.empty());
  CHECK_THAT(to_text(of_baseline, 200), Catch::Contains("held back: 0 of 10 runs failed"));
  // Against an arm that loses more the verdict stands, and so it does where both lose as many.
  CHECK_THAT(compared(with_failed(report, "word", {7, 8, 9, 10})).arms[1].verdict, Catch::StartsWith("worse by"));
  CHECK_THAT(compared(with_failed(with_failed(report, "word", {1, 2}), "token", {3, 4})).arms[1].verdict,
             Catch::StartsWith("worse by"));
  // A run that was killed is to be run again, and no failure of its arm.
  auto killed = with_failed(report, "token", {10});
  for (auto& run : killed.runs)
    if (!run.message.empty()) run.message = "ended by signal 9";
  CHECK_THAT(compared(killed).arms[1].verdict, Catch::StartsWith("worse by"));
}

TEST_CASE("failed runs stand in every form, and so do the seeds of a difference that has fewer than the means") {
  const auto report = compared(with_failed(made_up({"token", "word", "span"}, 10), "word", {7, 8, 9, 10}));
  for (const auto& form : {to_text(report, 100), to_markdown(report), to_html(report), to_latex(report)})
    CHECK_THAT(form, Catch::Contains("runs: word 4 of 10") || Catch::Contains("<dd>word 4 of 10"));
  CHECK(to_json(report)["arms"][1]["failed"] == nlohmann::json{7, 8, 9, 10});
  std::vector<double> values;
  for (int64_t seed = 1; seed <= 6; ++seed) values.push_back(report.arms[0].runs[static_cast<size_t>(seed - 1)].value);
  const auto summary = summarize(values);
  CHECK_THAT(notes_of(report),
             Catch::Contains(concat("the difference of word is over the 6 seeds that both have, on which "
                                    "token has ",
                                    fixed(summary.mean, decimals_of(report)), " ± ",
                                    fixed(summary.sd, decimals_of(report)), " and word has ")));
  CHECK_THAT(notes_of(report), !Catch::Contains("the difference of span"));
}

TEST_CASE("the deciding interval, and the p of every pair, are computed again from the JSON alone") {
  auto report = made_up({"token", "word", "span"}, 6);
  for (auto& run : report.runs) {  // 9 documents of 1 to 3 examples, which differ from arm to arm
    auto stream = Rng(3).stream(run.result.arm, 0, static_cast<uint64_t>(run.result.seed));
    run.result.examples = {};
    for (uint64_t e = 0; e < 18; ++e) {
      run.result.examples.documents.push_back(e % 9 + (e % 5 == 0 ? 1 : 0));
      run.result.examples.sum.push_back(run.result.value + 0.1 * stream.normal() +
                                        (run.result.arm == "word" ? 0.2 * static_cast<double>(e % 9) : 0));
      run.result.examples.count.push_back(1);
    }
    run.result.examples.items = 18000;
    run.result.value = run.result.examples.value();
  }
  const auto written = to_json(compared(report));
  const double level = (1 - written["confidence"].get<double>()) / written["simultaneous"].get<double>();
  const auto t = [](double freedom, double tail) {
    return boost::math::quantile(boost::math::complement(boost::math::students_t(freedom), tail / 2));
  };
  const auto reach = [&](const nlohmann::json& parts, double tail) {
    const double seeds = parts["seeds"], items = parts["examples"]["items"];
    const double of_seeds = t(seeds - 1, tail) * parts["sd"].get<double>() / std::sqrt(seeds);
    const double of_examples = t(parts["examples"]["freedom"], tail) * parts["examples"]["error"].get<double>();
    const double unseen = 100 * (1 - std::pow(tail / 2, 1 / items));
    return std::sqrt(of_seeds * of_seeds + of_examples * of_examples + unseen * unseen);
  };
  for (const size_t arm : {1, 2}) {
    const auto& parts = written["arms"][arm]["difference"];
    if (written["arms"][arm]["name"] == "word") CHECK(parts["examples"]["error"] > 0.1);
    const double mean = parts["mean"], half = reach(parts, level);
    CHECK(parts["interval"][0].get<double>() == Approx(mean - half));
    CHECK(parts["interval"][1].get<double>() == Approx(mean + half));
    double sum = 0;
    for (const size_t seed : {0, 1, 2, 3, 4, 5})
      sum += written["arms"][arm]["runs"][seed]["value"].get<double>() -
             written["arms"][0]["runs"][seed]["value"].get<double>();
    CHECK(mean == Approx(sum / 6));
  }
  REQUIRE(written["pairs"].size() == 1);
  const auto& pair = written["pairs"][0];
  CHECK((pair["arms"] == nlohmann::json{"word", "span"} || pair["arms"] == nlohmann::json{"span", "word"}));
  CHECK(reach(pair, pair["p"]) == Approx(std::abs(pair["mean"].get<double>())).epsilon(1e-6));
}

TEST_CASE("losses of one held-out document, and of few, are noted") {
  const auto noted = [](uint64_t documents) {
    auto report = made_up({"token", "word"}, 3);
    for (auto& run : report.runs) {
      run.result.examples = {.sum = std::vector<double>(40, run.result.value), .count = std::vector<double>(40, 1)};
      for (uint64_t e = 0; e < 40; ++e) run.result.examples.documents.push_back(e % documents);
    }
    return notes_of(compared(report));
  };
  CHECK_THAT(noted(1), Catch::Contains("all held-out examples are of one document and count as independent"));
  CHECK_THAT(noted(4), Catch::Contains("held-out examples are of 4 documents, of which intervals are wide"));
  CHECK_THAT(noted(40), !Catch::Contains("document"));
}

TEST_CASE("of a task an arm has left its floor where the interval of its mean has") {
  auto report = made_up({"token", "word"}, 5);
  report.by = TaskMetric{.task = "cats", .floor = "majority"};
  report.rules.higher_is_better = true;
  const auto token = compared(report).arms[0].summary;
  for (auto& run : report.runs) run.result.floor = token.mean - token.sd / std::sqrt(5);  // one standard error below
  CHECK_THAT(notes_of(compared(report)), Catch::Contains("no better than majority (") &&
                                             Catch::Contains(", by the 95 % interval of the mean): token"));
  for (auto& run : report.runs) run.result.floor = 2.9;
  CHECK_THAT(notes_of(compared(report)), !Catch::Contains("majority"));
}

TEST_CASE("a report of one seed has differences and no interval") {
  const auto report = compared(made_up({"token", "word"}, 1));
  CHECK(report.arms[1].verdict == "one seed: no interval");
  const auto arm = to_json(report)["arms"][1];
  CHECK(arm["difference"]["mean"] == report.arms[1].difference.mean);
  CHECK((arm["sd"].is_null() && arm["difference"]["t_interval"].is_null() && arm["difference"]["p_holm"].is_null()));
  CHECK(mistake_in(to_html(report)) == "");
}

TEST_CASE("a report without a finished run is a page of runs and notes") {
  auto report = made_up({"token", "word"}, 2);
  for (auto& run : report.runs) {
    run.state = RunState::waiting;
    run.curve.clear();
  }
  const auto html = to_html(compared(report));
  CHECK(mistake_in(html) == "");
  CHECK(count(html, "has not finished; it is not in the table") == 4);
}

TEST_CASE("an outlying run is named, marked and counted") {
  auto report = made_up({"token", "word"}, 6);
  report.runs[2].result.value = 9;
  report = compared(report);
  CHECK(report.runs[2].outlying);
  CHECK(report.arms[0].runs.size() == 6);
  CHECK_THAT(report.notes.front(), Catch::Contains("run token/3 is an outlier (9"));
  CHECK_THAT(to_html(report), Catch::Contains("run outlying"));
}

TEST_CASE("a text report fits its columns") {
  auto report = compared(made_up({"token", "word", "a_longer_name_of_an_arm"}, 5));
  report.notes.push_back(
      "a note that is longer than any terminal is wide, of many words, and has to be wrapped somewhere");
  for (const int64_t columns : {60, 80, 100, 160}) {
    std::istringstream lines(to_text(report, columns));
    for (std::string line; std::getline(lines, line);) {
      const auto width = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      CHECK(width <= columns);
    }
    CHECK(count(to_text(report, columns), "worse by") == 2);
  }
}

TEST_CASE("runs that were not made or scored alike are refused with both runs and the difference") {
  const auto error = [](const auto& change) {
    auto report = made_up({"token", "word"}, 2);
    for (auto& run : report.runs)
      run.result.measured = "mlm, 512 sequences of 128 tokens, seed 1", run.result.text = "abc",
      run.provenance.tokenizer = "t1";
    change(report.runs[3]);
    try {
      check_comparable(report);
    } catch (const DataError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(error([](ReportedRun&) {}) == "");
  CHECK(error([](ReportedRun& run) { run.result.measured = "mlm + nsp" + run.result.measured.substr(3); }) == "");
  CHECK_THAT(error([](ReportedRun& run) { run.provenance.tokenizer = "t2"; }),
             Catch::Contains("runs/token and runs/word: have different tokenizers (t1 and t2)"));
  CHECK_THAT(error([](ReportedRun& run) { run.result.text.back() = 'd'; }),
             Catch::Contains("different text or by different tokenizers (tokens abc and abd)"));
  CHECK_THAT(
      error([](ReportedRun& run) { run.result.measured[5] = '1'; }),
      Catch::Contains(
          "by mlm, 512 sequences of 128 tokens, seed 1, and by mlm, 112 sequences of 128 tokens, seed 1; give both"));
}

TEST_CASE("a page of 300 runs with long curves and 12 columns stays below 3 MB") {
  std::vector<std::string> arms;
  for (int a = 0; a < 30; ++a) arms.push_back("arm " + std::to_string(a));
  auto report = made_up(arms, 10, 1000);
  for (int metric = 1; metric < 12; ++metric)
    report.secondary.push_back(SuiteMetric{.suite = concat("pairs ", metric), .name = "accuracy"});
  for (auto& run : report.runs) {
    const MetricValue value{.value = 50 + run.result.value, .examples = run.result.examples};
    run.result.secondary.assign(report.secondary.size(), value);
  }
  report = compared(report);
  REQUIRE(report.arms.back().secondary.size() == 11);
  const auto html = to_html(report);
  CHECK(html.size() < 3'000'000);
  CHECK(mistake_in(html) == "");
}
