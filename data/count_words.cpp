#include "data/count_words.h"

#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

int64_t count_words(std::string_view text) {
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const bool space = is_white_space(next_code_point(text, at));
    count += !space && !inside;
    inside = !space;
  }
  return count;
}

}  // namespace cloze
