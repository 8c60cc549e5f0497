#include "core/progress_line.h"

#include <algorithm>

namespace cloze {

namespace {

constexpr size_t shortest_bar = 10, longest_bar = 30;  // between its brackets
constexpr size_t bar_frame = 4;                        // two spaces and the brackets

size_t columns_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

/// The first `columns` characters of a text.
std::string cut(const std::string& text, size_t columns) {
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) == 0x80) continue;
    if (seen == columns) break;
    ++seen;
  }
  return text.substr(0, end);
}

std::string bar(double share, size_t width) {
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return "  [" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

}  // namespace

std::string whole_line(const Progress& progress) {
  std::string line;
  for (const auto& field : progress.fields) line += (line.empty() ? "" : "  ") + field;
  return line;
}

std::string fitted_line(const Progress& progress, size_t columns) {
  const size_t room = columns > 0 ? columns - 1 : 0;
  auto shown = progress;
  while (shown.fields.size() > 1 && columns_of(whole_line(shown)) > room) shown.fields.pop_back();
  const auto line = cut(whole_line(shown), room);
  const size_t left = room - columns_of(line);
  const bool has_bar = progress.share >= 0 && shown.fields.size() == progress.fields.size();
  if (!has_bar || left < bar_frame + shortest_bar) return line;
  return line + bar(progress.share, std::min(left - bar_frame, longest_bar));
}

}  // namespace cloze
