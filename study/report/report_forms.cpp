// The forms of a report that people read.
#include "core/text.h"
#include "study/report/report_rows.h"

namespace cloze {

namespace {

/// All parts of a report; those of a page have figures.
Report document_of(const StudyReport& study, bool has_figures) {
  Report report{.title = study.name,
                .question = question_of(study),
                .kicker = study.source.empty() ? "Comparison of runs" : "Study"};
  const auto of_tables = [&] {
    for (const auto& table : study.tables) {
      auto& part = report.parts.emplace_back(ReportPart{.heading = table.title, .tables = {table}});
      part.tables[0].title.clear();
    }
  };
  const ReportPart notes{.heading = "Notes", .sentences = study.notes};
  if (study.arms.empty()) {  // a search has trials alone
    of_tables();
    report.parts.push_back(notes);
    return report;
  }
  const auto figure = [&](std::string (*draw)(const StudyReport&)) { return has_figures ? draw(study) : ""; };
  report.facts = facts_of(study);
  report.parts = {{.heading = "Verdicts",
                   .tables = {verdict_table(study)},
                   .sentences = tied_words(study),
                   .figure = figure(difference_figure)},
                  notes};
  of_tables();
  report.parts.push_back({.heading = "Along training", .figure = figure(curve_figure), .shown = Shown::pages});
  report.parts.push_back({.heading = "Runs",
                          .tables = {run_table(study)},
                          .figure = figure(value_figure),
                          .shown = Shown::pages,
                          .is_tall = true});
  auto& usage = report.parts.emplace_back(ReportPart{.heading = "What a run used up, mean of each arm"});
  if (auto table = usage_table(study); !table.rows.empty()) usage.tables = {std::move(table)};
  report.parts.push_back(
      {.heading = "What the arms differ in", .tables = {key_table(study)}, .shown = Shown::documents});
  report.parts.push_back({.heading = "Every run again, in the working directory of the runs",
                          .commands = study.commands,
                          .shown = Shown::documents});
  report.parts.push_back({.heading = "How it was computed", .sentences = methods_of(study), .shown = Shown::pages});
  return report;
}

}  // namespace

std::string to_text(const StudyReport& report, int64_t columns) { return to_text(document_of(report, false), columns); }

std::string to_markdown(const StudyReport& report) { return to_markdown(document_of(report, false)); }

std::string to_latex(const StudyReport& report) {
  auto text = report.arms.empty() ? "" : to_latex(paper_table(report));
  for (const auto& table : report.tables) text += (text.empty() ? "" : "\n") + to_latex(table);
  auto notes = tied_words(report);
  notes.insert(notes.end(), report.notes.begin(), report.notes.end());
  return text + to_latex(notes);
}

std::string to_html(const StudyReport& report) { return to_html(document_of(report, true)); }

}  // namespace cloze
