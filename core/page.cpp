#include "core/page.h"

#include "core/error.h"
#include "core/page_style.h"
#include "core/text.h"

namespace cloze {

std::string html_page(const std::string& title, const std::string& body) {
  return words("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" ",
               "content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" content=\"cloze\">\n<title>",
               escaped_html(title), "</title>\n<style>", page_style, "</style>\n</head>\n<body>\n<main>\n", body,
               "</main>\n</body>\n</html>\n");
}

std::string html_section(const std::string& heading, const std::string& body) {
  return words("<section>\n<h2>", escaped_html(heading), "</h2>\n", body, "</section>\n");
}

std::string html_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                       size_t first_number) {
  const auto row = [&](const std::vector<std::string>& cells, const std::string& tag) {
    std::string html = "<tr>";
    for (size_t i = 0; i < cells.size(); ++i)
      html += words("<", tag, i < first_number ? ">" : " class=\"n\">", escaped_html(cells[i]), "</", tag, ">");
    return html + "</tr>\n";
  };
  auto html = "<div class=\"scroll\"><table>\n<thead>" + row(header, "th") + "</thead>\n<tbody>\n";
  for (const auto& cells : rows) html += row(cells, "td");
  return html + "</tbody>\n</table></div>\n";
}

std::string html_list(const std::vector<std::string>& sentences) {
  std::string html = "<ul>\n";
  for (const auto& sentence : sentences) html += "<li>" + escaped_html(sentence) + "</li>\n";
  return html + "</ul>\n";
}

std::string html_legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<ul class=\"key\">";
  for (const auto& [style, name] : entries)
    html += words("<li><svg aria-hidden=\"true\"><line class=\"", style,
                  "\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/></svg>", escaped_html(name), "</li>");
  return html + "</ul>\n";
}

}  // namespace cloze
