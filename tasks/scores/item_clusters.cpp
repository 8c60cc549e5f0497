#include "tasks/scores/item_clusters.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace cloze {

namespace {

/// Items numbered by a text of theirs from 0, an empty one as a number of its own.
struct NumberedTexts {
  std::vector<uint64_t> of{};
  uint64_t count = 0;

  NumberedTexts(const std::vector<const TaskItem*>& items, std::string TaskItem::* text) {
    std::unordered_map<std::string_view, uint64_t> numbers;
    for (const auto* item : items) {
      const std::string_view own = item->*text;
      const auto number = own.empty() ? count : numbers.try_emplace(own, count).first->second;
      of.push_back(number);
      count += number == count;
    }
  }
};

}  // namespace

std::vector<uint64_t> clusters_of_items(const std::vector<const TaskItem*>& items) {
  size_t first = 0, second = 0;
  for (const auto* item : items) {
    first += item->text.size();
    second += item->second.size();
  }
  NumberedTexts texts(items, second > first ? &TaskItem::second : &TaskItem::text);
  const bool have_groups = std::ranges::none_of(items, [](const auto* item) { return item->group.empty(); });
  if (!have_groups) return texts.of;
  NumberedTexts groups(items, &TaskItem::group);
  return groups.count > 1 && groups.count < texts.count ? groups.of : texts.of;
}

}  // namespace cloze
