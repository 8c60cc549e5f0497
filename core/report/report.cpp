#include "core/report/report.h"

#include "core/error.h"
#include "core/report/page_style.h"
#include "core/text.h"

namespace cloze {

namespace {

/// A paragraph whose later lines are indented by two.
std::string paragraph(const std::string& text, int64_t columns) { return wrapped("", in_one_line(text), columns, 2); }

bool has_content(const ReportPart& part, Shown shown) {
  const bool has_chart = shown == Shown::pages && !part.chart.empty();
  return part.shown <= shown &&
         (has_chart || !part.tables.empty() || !part.sentences.empty() || !part.commands.empty());
}

/// What `body` writes for each part that has something to show there.
template <class Body>
std::string of_parts(const Report& report, Shown shown, const Body& body) {
  std::string text;
  for (const auto& part : report.parts)
    if (has_content(part, shown)) text += body(part);
  return text;
}

std::string html_of(const ReportPart& part) {
  auto html = part.chart;
  for (const auto& table : part.tables) html += table.picture + to_html(table, part.is_tall);
  std::string list, code;
  for (const auto& sentence : part.sentences) list += "<li>" + escaped_html(sentence) + "</li>\n";
  for (const auto& command : part.commands) code += escaped_html(command) + "\n";
  if (!list.empty()) html += "<ul>\n" + list + "</ul>\n";
  if (!code.empty()) html += "<div class=\"scroll tall\" tabindex=\"0\"><pre><code>" + code + "</code></pre></div>\n";
  return html_section(part.heading, html);
}

}  // namespace

std::string to_text(const Report& report, int64_t columns) {
  std::string facts;
  for (const auto& [name, value] : report.facts) facts += (facts.empty() ? "" : "; ") + name + ": " + value;
  auto text = paragraph(report.title + ": " + report.question, columns);
  if (!facts.empty()) text += paragraph(facts, columns);
  return text + of_parts(report, Shown::everywhere, [&](const ReportPart& part) {
           auto body = part.tables.empty() ? "\n" + in_one_line(part.heading) + "\n" : "\n";
           for (auto table : part.tables) {
             table.title = part.heading;
             body += to_text(table, static_cast<size_t>(columns));
           }
           if (!part.tables.empty() && !part.sentences.empty()) body += "\n";
           for (const auto& sentence : part.sentences) body += paragraph(sentence, columns);
           for (const auto& command : part.commands) body += in_one_line(command) + "\n";
           return body;
         });
}

std::string to_markdown(const Report& report) {
  auto text = concat("# ", escaped_markdown(report.title), "\n\n", escaped_markdown(report.question), "\n");
  if (!report.facts.empty()) text += "\n";
  for (const auto& [name, value] : report.facts) text += concat("- ", name, ": ", escaped_markdown(value), "\n");
  return text + of_parts(report, Shown::documents, [](const ReportPart& part) {
           auto body = "\n## " + escaped_markdown(part.heading) + "\n\n";
           for (const auto& table : part.tables) body += to_markdown(table);
           if (!part.tables.empty() && !part.sentences.empty()) body += "\n";
           for (const auto& sentence : part.sentences) body += "- " + escaped_markdown(sentence) + "\n";
           if (part.commands.empty()) return body;
           body += "```sh\n";
           for (const auto& command : part.commands) body += in_one_line(command) + "\n";
           return body + "```\n";
         });
}

std::string to_html(const Report& report) {
  auto head =
      concat("<header>\n", report.kicker.empty() ? "" : "<p class=\"kicker\">" + report.kicker + "</p>\n", "<h1>",
             escaped_html(report.title), "</h1>\n<p class=\"question\">", escaped_html(report.question), "</p>\n");
  if (!report.facts.empty()) head += "<dl class=\"facts\">\n";
  for (const auto& [name, value] : report.facts)
    head += concat("<div><dt>", escaped_html(name), "</dt><dd>", escaped_html(value), "</dd></div>\n");
  if (!report.facts.empty()) head += "</dl>\n";
  return html_page(report.title + ": " + report.question,
                   head + "</header>\n" + of_parts(report, Shown::pages, html_of));
}

std::string html_page(const std::string& title, const std::string& body) {
  return concat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" ",
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" content=\"cloze\">\n<title>",
      escaped_html(title), "</title>\n<style>", page_style, "</style>\n</head>\n<body>\n<main>\n", body,
      "</main>\n</body>\n</html>\n");
}

std::string html_section(const std::string& heading, const std::string& body) {
  return concat("<section>\n<h2>", escaped_html(heading), "</h2>\n", body, "</section>\n");
}

std::string html_note(const std::string& text) { return "<p class=\"soft\">" + escaped_html(text) + "</p>\n"; }

}  // namespace cloze
