#pragma once
// Reports as a list of parts, written as text for a terminal, as Markdown and as one page of HTML.
#include <string>
#include <utility>
#include <vector>

#include "core/report/table.h"

namespace cloze {

/// Where a part of a report is shown.
enum class Shown { everywhere, documents, pages };  // documents: Markdown and pages

/// A part of a report: a picture, a table, sentences and commands under a heading.
struct ReportPart {
  std::string heading{};
  std::vector<Table> tables{};
  std::vector<std::string> sentences{};
  std::vector<std::string> commands{};
  std::string chart{};  ///< of a page: HTML above the tables
  Shown shown = Shown::everywhere;
  bool is_tall = false;  ///< its tables scroll on a page
};

/// Everything that the forms of a report say.
struct Report {
  std::string title{};
  std::string question{};                                    ///< what is asked, or what was computed: a sentence
  std::string kicker{};                                      ///< of a page: what kind of report it is
  std::vector<std::pair<std::string, std::string>> facts{};  ///< how it was asked: names and values
  std::vector<ReportPart> parts{};                           ///< those without content are left out
};

/// In lines of at most `columns`.
std::string to_text(const Report& report, int64_t columns);
std::string to_markdown(const Report& report);
/// One page that needs nothing outside it: no script, no font, no picture from elsewhere.
std::string to_html(const Report& report);

/// A whole page. `title` is text; `body` is HTML, as are the bodies below.
std::string html_page(const std::string& title, const std::string& body);
/// A part of a page under its heading, which is text.
std::string html_section(const std::string& heading, const std::string& body);
/// A paragraph of text in the soft colour.
std::string html_note(const std::string& text);

}  // namespace cloze
