// The page of inspected rows.
#include <algorithm>
#include <array>
#include <sstream>

#include "train/inspection/inspect.h"
#include "core/error.h"
#include "core/log.h"
#include "core/report/chart.h"
#include "core/contains.h"
#include "core/report/report.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze {

namespace {

/// How a role is drawn, and what it means.
struct RoleStyle {
  TokenRole role;
  const char* name;     ///< class of the token
  const char* style;    ///< classes of the page: a colour, and dashes
  const char* meaning;  ///< empty: needs no words
};
constexpr std::array role_styles{
    RoleStyle{TokenRole::text, "", "", ""},
    RoleStyle{TokenRole::special, "special", "", ""},
    RoleStyle{TokenRole::masked, "marked", "a2", "became the mask; below, what is predicted"},
    RoleStyle{TokenRole::random, "marked", "a4 d1", "became a random token; below, what is predicted"},
    RoleStyle{TokenRole::kept, "marked", "a1 d2", "stayed as it was, and is predicted"},
    RoleStyle{TokenRole::ordered, "marked", "a3", "predicted; below, its rank in the order"},
    RoleStyle{TokenRole::placeholder, "marked", "a5", "stands for tokens that are generated"},
    RoleStyle{TokenRole::replaced, "marked", "a6", "a sample, to be distinguished from the original"},
    RoleStyle{TokenRole::restored, "marked", "a1 d2", "a sample that is the original"}};

const RoleStyle& style_of(TokenRole role) { return *std::ranges::find(role_styles, role, &RoleStyle::role); }

/// What the style sheet of reports does not have.
constexpr const char* rows_style = R"css(<style>
.side { display: grid; gap: 1.5rem 2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 16rem), 1fr)); }
.side > div { min-width: 0; }
.side h3 { font-size: 1rem; line-height: 1.3; font-weight: 650; margin: 0 0 .3rem; overflow-wrap: anywhere; }
.tokens { display: flex; flex-wrap: wrap; gap: .3rem .25rem; margin: .1rem 0 1rem; max-width: none;
  font-size: .875rem; line-height: 1.3; }
.tokens > span { border: 1px solid transparent; border-radius: 4px; padding: 0 .2rem; min-width: 0;
  overflow-wrap: anywhere; }
.tokens b { display: block; font-weight: 400; color: var(--soft); font-size: .8rem; }
.tokens .special { color: var(--soft); }
.tokens .marked { border-color: var(--c); }
.tokens .marked b { color: var(--ink); font-weight: 650; }
.tokens .d1 { border-style: dashed; }
.tokens .d2 { border-style: dotted; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 1rem; }
</style>
)css";

std::string token_html(const ShownToken& token) {
  const auto& style = style_of(token.role);
  const std::string piece = escaped_html(visible(token.piece));
  const auto below = token.below.empty() ? "" : concat("<b>", escaped_html(visible(token.below)), "</b>");
  const auto classes = concat(style.name, *style.style ? " " : "", style.style);
  return concat("<span", classes.empty() ? "" : concat(" class=\"", classes, "\""),
                *style.meaning ? concat(" title=\"", style.meaning, "\"") : "", ">", piece, below, "</span>");
}

std::string row_html(const InspectedExample& row) {
  std::string html;
  for (const auto& [title, tokens] : row.shown) {
    html += "<p class=\"kicker\">" + escaped_html(title) + "</p>\n<p class=\"tokens\">";
    for (const auto& token : tokens) html += token_html(token);
    html += "</p>\n";
  }
  for (const auto& [name, value] : notes_of(row)) html += html_note(name + ": " + value);
  return html;
}

std::vector<std::string> kinds_of(const RunConfig& config) {
  std::vector<std::string> kinds;
  for (const auto& objective : config.objectives) kinds.push_back(kind_of(objective));
  return kinds;
}

/// A part of the page with a column for each config. `body`: of one, empty for none.
template <class Body>
std::string side_by_side(const std::vector<InspectedConfig>& inspected, const Body& body) {
  std::string html = "<div class=\"side\">\n";
  for (const auto& one : inspected) html += "<div>" + body(one) + "</div>\n";
  return html + "</div>\n";
}

std::string rules_html(const InspectedConfig& one) {
  auto html = concat("<h3>", escaped_html(one.name), "</h3>\n<p class=\"kicker\">",
                     escaped_html(kind_of(one.config.model) + ", " + listed(kinds_of(one.config), "and")), "</p>\n");
  for (const auto& objective : one.config.objectives)
    html += "<p>" + escaped_html(kind_of(objective) + " predicts " + as_kind(objective).prediction()) + ".</p>\n";
  return html;
}

/// The roles of the tokens of all rows, in the order of their styles.
std::string role_legend(const std::vector<InspectedConfig>& inspected) {
  std::vector<TokenRole> used;
  for (const auto& one : inspected)
    for (const auto& row : one.inspection.examples)
      for (const auto& part : row.shown)
        for (const auto& token : part.tokens) used.push_back(token.role);
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& style : role_styles)
    if (*style.meaning && contains(used, style.role)) names.emplace_back(style.style, style.meaning);
  return names.empty() ? "" : legend_html(names);
}

std::string rows_html(const std::vector<InspectedConfig>& inspected) {
  size_t rows = 0;
  for (const auto& one : inspected) rows = std::max(rows, one.inspection.examples.size());
  std::string html;
  for (size_t r = 0; r < rows; ++r)
    html += html_section(concat("Row ", r + 1), side_by_side(inspected, [&](const InspectedConfig& one) {
                           if (r >= one.inspection.examples.size()) return std::string();
                           const auto heading = inspected.size() > 1 ? "<h3>" + escaped_html(one.name) + "</h3>\n" : "";
                           return heading + row_html(one.inspection.examples[r]);
                         }));
  return html;
}

/// Lines of a report, whose columns stay.
std::string lines_html(const std::string& text) {
  std::string html = "<pre><code>";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) html += escaped_html(line) + "\n";
  return html + "</code></pre>\n";
}

std::string counts_html(const std::vector<InspectedConfig>& inspected) {
  std::string html;
  for (const auto& one : inspected)
    html += "<p class=\"kicker\">" + escaped_html(one.name) + "</p>\n" + lines_html(counts_text(one.inspection));
  return html_section("Counts over all rows that were read", html);
}

std::string checks_html(const std::vector<InspectedConfig>& inspected) {
  constexpr auto number = ColumnKind::number;
  Table table{.header = {"config", "", "rule", {"observed", number}, {"expected", number}, {"p", number}}};
  for (const auto& one : inspected)
    for (const auto& check : one.inspection.checks)
      table.rows.push_back({one.name, check.passed ? "ok" : "FAIL", check.name, significant(check.observed, 6),
                            significant(check.expected, 6), significant(check.p_value, 3)});
  return html_section("Tests against the rules of the config", to_html(table));
}

}  // namespace

std::string to_html(const std::vector<InspectedConfig>& inspected) {
  std::vector<std::string> kinds;
  for (const auto& one : inspected)
    for (const auto& kind : kinds_of(one.config))
      if (!contains(kinds, kind)) kinds.push_back(kind);
  const auto title = "Rows of " + listed(kinds, "and");
  auto body =
      concat(rows_style, "<header>\n<h1>", escaped_html(title),
             "</h1>\n<p class=\"question\">The first rows of training, as the network reads them. Below a token: "
             "what is predicted from its position.</p>\n</header>\n");
  body += side_by_side(inspected, rules_html) + role_legend(inspected) + rows_html(inspected) + counts_html(inspected) +
          checks_html(inspected);
  return html_page(title, body);
}

}  // namespace cloze
