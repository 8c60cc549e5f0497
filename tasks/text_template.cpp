#include "tasks/text_template.h"

#include "core/error.h"
#include "core/spelling.h"

namespace cloze {

TextTemplate parse_template(const std::string& text, const std::string& key) {
  if (text.find_first_of("{}") == std::string::npos) return {{"", ""}, {text}};
  TextTemplate parsed;
  for (size_t at = 0; at < text.size();) {
    const auto begin = text.find_first_of("{}", at);
    parsed.between.back() += text.substr(at, begin - at);
    if (begin == std::string::npos) break;
    const auto end = text.find_first_of("{}", begin + 1);
    const bool is_column = text[begin] == '{' && end != std::string::npos && text[end] == '}' && end > begin + 1;
    require<ConfigError>(is_column, "'", key, "' is '", shortened(text),
                         "', whose braces hold no column; write each as {COLUMN}");
    parsed.columns.push_back(text.substr(begin + 1, end - begin - 1));
    parsed.between.emplace_back();
    at = end + 1;
  }
  return parsed;
}

}  // namespace cloze
