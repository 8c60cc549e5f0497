#include "core/text_template.h"

#include "core/error.h"
#include "core/spelling.h"

namespace cloze {

TextTemplate parse_template(std::string_view text, const std::string& what) {
  TextTemplate parsed;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool is_brace = text[at] == '{' || text[at] == '}', is_double = text.substr(at + 1, 1) == text.substr(at, 1);
    if (!is_brace || is_double) {
      parsed.between.back() += text[at];
      at += is_brace ? 1 : 0;
      continue;
    }
    const auto end = text.find_first_of("{}", at + 1);
    const bool is_field = text[at] == '{' && end != text.npos && text[end] == '}' && end > at + 1;
    require<ConfigError>(is_field, what, " '", shortened(std::string(text)),
                         "' has a brace without a field; write {FIELD}, or {{ for the brace itself");
    parsed.fields.emplace_back(text.substr(at + 1, end - at - 1));
    parsed.between.emplace_back();
    at = end;
  }
  return parsed;
}

}  // namespace cloze
