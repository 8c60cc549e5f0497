#include "core/progress_line.h"

#include <algorithm>

#include "core/text.h"

namespace cloze {

namespace {

constexpr size_t shortest_bar = 10, longest_bar = 30;  // between its brackets
constexpr size_t bar_frame = 4;                        // two spaces and the brackets
constexpr size_t free_columns = 3;                     // for the cursor and a ^C

std::string bar(double fraction, size_t width) {
  const auto full = static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width));
  return "  [" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

}  // namespace

std::string whole_line(const Progress& progress) {
  std::string line;
  for (const auto& field : progress.fields) line += (line.empty() ? "" : "  ") + field;
  return line;
}

std::string fitted_line(const Progress& progress, size_t columns) {
  const size_t room = columns > free_columns ? columns - free_columns : 0;
  auto shown = progress;
  while (shown.fields.size() > 1 && width_of(whole_line(shown)) > room) shown.fields.pop_back();
  const auto line = cut(whole_line(shown), room);
  const size_t left = room - width_of(line);
  const bool has_bar = progress.share >= 0 && shown.fields.size() == progress.fields.size();
  if (!has_bar || left < bar_frame + shortest_bar) return line;
  return line + bar(progress.share, std::min(left - bar_frame, longest_bar));
}

std::string erasure(size_t width, size_t columns) {
  const size_t rows_above = width > 0 && columns > 0 ? (width - 1) / columns : 0;
  if (rows_above == 0) return "\r\033[K";
  return "\033[" + std::to_string(rows_above) + "A\r\033[J";
}

}  // namespace cloze
