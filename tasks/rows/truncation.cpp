#include "tasks/rows/truncation.h"

#include <algorithm>

namespace cloze {

namespace {

void require_few(const std::vector<TokenWindow>& windows, int64_t count) {
  require<TooManyWindows>(windows.size() <= most_windows, "a text of ", count, " tokens has more than ", most_windows,
                          " windows; raise `stride` or `max_length`, or divide the text");
}

}  // namespace

std::array<int64_t, 2> kept_tokens(const Truncation& truncation, int64_t first, int64_t second, int64_t room) {
  room = std::max<int64_t>(room, 0);
  if (first + second <= room) return {first, second};
  if (std::holds_alternative<FirstTruncation>(truncation)) {
    const auto kept = std::min(second, room);
    return {room - kept, kept};
  }
  if (std::holds_alternative<SecondTruncation>(truncation)) {
    const auto kept = std::min(first, room);
    return {kept, room - kept};
  }
  const auto kept = std::min(first, std::max(room - second, (room + 1) / 2));
  return {kept, room - kept};
}

int64_t step_of(const Truncation& truncation, int64_t room) {
  const auto* windows = std::get_if<Windows>(&truncation);
  return windows && windows->stride <= room ? windows->stride : std::max<int64_t>(room / 2, 1);
}

std::vector<TokenWindow> stride_windows(int64_t count, int64_t room, int64_t step) {
  step = std::clamp<int64_t>(step, 1, std::max<int64_t>(room, 1));
  std::vector<TokenWindow> windows;
  for (int64_t begin = 0; windows.empty() || windows.back().end < count; begin += step) {
    windows.push_back({begin, std::min(count, begin + std::max<int64_t>(room, 1))});
    require_few(windows, count);
  }
  return windows;
}

std::vector<TokenWindow> word_windows(const std::vector<int64_t>& starts, int64_t count, int64_t room, int64_t step) {
  if (count <= room || starts.empty()) return {{0, count}};
  const auto end_of = [&](size_t word) { return word + 1 < starts.size() ? starts[word + 1] : count; };
  std::vector<TokenWindow> windows;
  for (size_t first = 0; first < starts.size();) {
    const auto begin = starts[first];
    size_t after = first + 1;  // the first word that is not in the window
    while (after < starts.size() && end_of(after) - begin <= room) ++after;
    windows.push_back({begin, std::min(end_of(after - 1), begin + room)});
    require_few(windows, count);
    if (after == starts.size()) break;
    size_t next = first + 1;
    while (next < after && starts[next] < begin + step) ++next;
    first = next;
  }
  return windows;
}

}  // namespace cloze
