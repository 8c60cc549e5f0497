#include "core/readable.h"

#include <algorithm>

#include "core/spelling.h"

namespace cloze {

std::string readable(const std::string& message) {
  constexpr size_t longest_word = 1000, longest_message = 10'000;
  std::string text;
  for (size_t at = 0; at < message.size() && text.size() <= longest_message;) {
    const auto end = std::min(message.find_first_of(" \n", at), message.size());
    const auto word = message.substr(at, end - at);
    const auto last = std::min(word.find_last_not_of("',;:.)") + 1, word.size());  // where a quotation ends
    const bool is_long = word.size() > longest_word;
    text += is_long ? shortened(word) + visible(word.substr(std::max(last, word.size() - 3))) : visible(word);
    if (end < message.size()) text += message[end];
    at = end + 1;
  }
  if (text.size() <= longest_message) return text;
  size_t end = longest_message;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // no cut character
  return text.substr(0, end) + "...";
}

}  // namespace cloze
