// Reports for terminals and papers: plain text, Markdown, LaTeX.
#include <algorithm>

#include "core/columns.h"
#include "core/text.h"
#include "study/report_rows.h"

namespace cloze {

namespace {

using Field = std::string ReportRow::*;

/// A paragraph whose later lines are indented by two.
std::string paragraph(const std::string& text, int64_t columns) { return wrapped("", text, columns, 2); }

std::string headline(const StudyReport& report) {
  std::string facts;
  for (const auto& [name, value] : facts_of(report)) facts += (facts.empty() ? "" : "; ") + name + ": " + value;
  return facts;
}

/// A table whose numbers stand below each other.
std::string table(const std::vector<ReportRow>& rows, const std::vector<Field>& fields) {
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (const auto field : fields) {
      size_t widest = 0;
      for (const auto& one : rows) widest = std::max(widest, width_of(one.*field));
      const bool left = field == &ReportRow::arm || field == &ReportRow::verdict;
      line += (line.empty() ? "" : "  ") + (left ? padded(row.*field, widest) : aligned_right(row.*field, widest));
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

int64_t table_width(const std::vector<ReportRow>& rows, const std::vector<Field>& fields) {
  size_t sum = 0;
  for (const auto field : fields) {
    size_t widest = 0;
    for (const auto& row : rows) widest = std::max(widest, width_of(row.*field));
    sum += widest + 2;
  }
  return static_cast<int64_t>(sum) - 2;
}

/// Code that may contain backticks.
std::string markdown_code(const std::string& text) {
  size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`'), space = longest > 0 ? " " : "";
  return fence + space + in_one_line(text) + space + fence;
}

/// A number or an interval of numbers as LaTeX typesets it.
std::string latex_math(std::string cell) {
  if (const auto at = cell.find("±"); at != std::string::npos) cell.replace(at, std::string("±").size(), "\\pm");
  return cell.empty() ? cell : "$" + cell + "$";
}

size_t table_width(const Table& table) {
  size_t sum = 0;
  for (size_t k = 0; k < table.header.size(); ++k) {
    size_t widest = width_of(table.header[k]);
    for (const auto& row : table.rows) widest = std::max(widest, width_of(row[k]));
    sum += widest + 2;
  }
  return sum - 2;
}

/// What runs used up, in as many currencies as fit.
std::string usage_text(const StudyReport& report, int64_t columns) {
  auto usage = usage_table(report);
  if (usage.rows.empty()) return "";
  while (usage.header.size() > 2 && static_cast<int64_t>(table_width(usage)) > columns) {
    usage.header.pop_back();
    for (auto& row : usage.rows) row.pop_back();
  }
  return "\n" + to_text(usage);
}

/// Notes as a list, and the tables of tuning, splits and searches.
std::string tables_and_notes(const StudyReport& report) {
  std::string text;
  for (const auto& note : report.notes) text += "- " + escaped_markdown(note) + "\n";
  for (const auto& one : report.tables) text += "\n" + to_markdown(one);
  return text;
}

}  // namespace

std::string to_text(const StudyReport& report, int64_t columns) {
  auto rows = rows_of(report);
  rows.insert(rows.begin(), row_heads(report));
  std::vector<Field> fields{&ReportRow::arm,      &ReportRow::runs, &ReportRow::value,  &ReportRow::difference,
                            &ReportRow::interval, &ReportRow::p,    &ReportRow::verdict};
  // In a narrow terminal verdicts get lines of their own, then columns go.
  const bool apart = table_width(rows, fields) > columns;
  if (apart) fields.pop_back();
  for (const auto dropped : {&ReportRow::runs, &ReportRow::p, &ReportRow::value, &ReportRow::interval})
    if (table_width(rows, fields) > columns) std::erase(fields, dropped);
  auto text = paragraph(in_one_line(report.name) + ": " + question_of(report), columns);
  if (!report.arms.empty()) text += paragraph(headline(report), columns) + "\n" + table(rows, fields);
  if (apart) {
    text += "\n";
    for (size_t i = 1; i < rows.size(); ++i) text += paragraph(rows[i].arm + ": " + rows[i].verdict, columns);
  }
  text += usage_text(report, columns);
  for (const auto& one : report.tables) text += "\n" + to_text(one);
  if (!report.tied.empty()) text += "\n";
  for (const auto& set : tied_words(report)) text += paragraph(set, columns);
  if (!report.notes.empty()) text += "\n";
  for (const auto& note : report.notes) text += paragraph(in_one_line(note), columns);
  return text;
}

std::string to_markdown(const StudyReport& report) {
  const auto cells = [](const ReportRow& row) {
    std::string line;
    for (const auto& cell : {row.arm, row.runs, row.value, row.difference, row.interval, row.bootstrap, row.p,
                             row.effect, row.equivalence, row.verdict})
      line += "| " + escaped_markdown(cell) + " ";
    return line + "|\n";
  };
  auto text = words("# ", escaped_markdown(report.name), "\n\n", escaped_markdown(question_of(report)), "\n\n");
  if (report.arms.empty()) return text + tables_and_notes(report);
  for (const auto& [name, value] : facts_of(report)) text += words("- ", name, ": ", escaped_markdown(value), "\n");
  text += "\n" + cells(row_heads(report)) + "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n";
  for (const auto& row : rows_of(report)) text += cells(row);
  text += "\n";
  for (const auto& set : tied_words(report)) text += "- " + escaped_markdown(set) + "\n";
  text += tables_and_notes(report);
  if (const auto usage = usage_table(report); !usage.rows.empty()) text += "\n" + to_markdown(usage);
  text += "\nThe arms differ in these keys:\n\n";
  for (const auto& arm : report.arms) {
    std::string keys;
    for (const auto& key : arm.differs) keys += (keys.empty() ? "" : ", ") + markdown_code(key);
    text += "- " + escaped_markdown(arm.name) + ": " + (keys.empty() ? "the base as it is" : keys) + "\n";
  }
  text += "\nEvery run again:\n\n```sh\n";
  for (const auto& command : report.commands) text += in_one_line(command) + "\n";
  return text + "```\n";
}

std::string to_latex(const StudyReport& report) {
  const auto heads = row_heads(report);
  auto text = words("% ", in_one_line(report.name), ": ", in_one_line(question_of(report)), "\n% ",
                    in_one_line(headline(report)), "\n\\begin{tabular}{lrrrrrl}\n\\toprule\n");
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : " & ") + cells[i];
    text += " \\\\\n";
  };
  line({heads.arm, "mean $\\pm$ sd", heads.difference, escaped_latex(heads.interval), escaped_latex(heads.bootstrap),
        "$p$ (Holm)", heads.verdict});
  text += "\\midrule\n";
  for (const auto& row : rows_of(report))
    line({escaped_latex(row.arm), latex_math(row.value), latex_math(row.difference), latex_math(row.interval),
          latex_math(row.bootstrap), latex_math(row.p), escaped_latex(row.verdict)});
  text += "\\bottomrule\n\\end{tabular}\n";
  if (report.arms.empty()) text.clear();
  for (const auto& one : report.tables) text += (text.empty() ? "" : "\n") + to_latex(one);
  return text;
}

}  // namespace cloze
