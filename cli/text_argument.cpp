#include "cli/verbs.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

void check_text(const std::string& text) {
  const auto bad = find_invalid_utf8(text);
  require<ConfigError>(bad == std::string::npos, "byte ", bad + 1,
                       " of a text argument is not UTF-8; convert it to UTF-8");
}

}  // namespace cloze
