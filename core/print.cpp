#include "core/print.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/spelling.h"

namespace cloze {

namespace {

void put_out(const std::string& text, bool at_once) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && (!at_once || std::fflush(stdout) == 0);
  require<Error>(written, "cannot write to standard output (", system_reason(), "); the output is incomplete");
}

}  // namespace

void print_text(const std::string& text, bool at_once) { put_out(printable(text), at_once); }

void print_data(const std::string& text) { put_out(isatty(STDOUT_FILENO) == 1 ? printable(text) : text, false); }

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

std::string printable(const std::string& text) {
  constexpr std::string_view colours[] = {"\033[0m",  "\033[1m",  "\033[31m", "\033[32m",
                                          "\033[33m", "\033[34m", "\033[35m", "\033[36m"};
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t plain = std::min(text.find_first_of("\n\t\033", at), text.size()) - at;
    out += visible(text.substr(at, plain));
    at += plain;
    const auto rest = std::string_view(text).substr(at);
    if (rest.empty()) break;
    const auto* colour =
        std::find_if(std::begin(colours), std::end(colours), [&](auto c) { return rest.starts_with(c); });
    const size_t kept = colour != std::end(colours) ? colour->size() : rest[0] == '\033' ? 0 : 1;
    out += kept > 0 ? std::string(rest.substr(0, kept)) : visible("\033");
    at += std::max<size_t>(kept, 1);
  }
  return out;
}

}  // namespace cloze
