#pragma once
// Pages that need nothing outside them: no script, no font, no picture from elsewhere.
#include <string>
#include <vector>

namespace cloze {

/// A whole page. `title` is text; `body` is HTML, as are the bodies below.
std::string html_page(const std::string& title, const std::string& body);

/// A part of a page under its heading, which is text.
std::string html_section(const std::string& heading, const std::string& body);

/// A table of text, which scrolls where it is wider than the page. Numbers, from column `first_number` on, are aligned
/// to the right.
std::string html_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                       size_t first_number);

/// A list of sentences.
std::string html_list(const std::vector<std::string>& sentences);

/// The name of something that a chart draws by these classes.
struct LegendEntry {
  std::string style, name;
};
std::string html_legend(const std::vector<LegendEntry>& entries);

}  // namespace cloze
