#include "core/config/leaf_overrides.h"

#include <algorithm>

#include "core/config/config_tree.h"
#include "core/spelling.h"

namespace cloze {

namespace {

void add_leaves(const std::string& path, const ConfigNode& value, std::vector<std::string>& leaves) {
  const auto has_dot = [](const auto& item) { return item.first.find('.') != std::string::npos; };
  if (value.type != ConfigNode::Type::map || value.items.empty() || std::ranges::any_of(value.items, has_dot)) {
    leaves.push_back(path + "=" + one_line(value));
    return;
  }
  auto items = value.items;
  std::ranges::stable_partition(items, [](const auto& item) { return item.first == "kind"; });
  for (const auto& [key, item] : items) add_leaves(path + "." + key, item, leaves);
}

}  // namespace

std::vector<std::string> leaf_overrides(const std::vector<std::string>& overrides) {
  std::vector<std::string> leaves;
  for (const auto& one : overrides) {
    const auto equals = std::min(one.find('='), one.size());
    const auto value =
        equals == one.size() ? ConfigNode{} : parse_config(one.substr(equals + 1), "--set " + shortened(one));
    if (value.type == ConfigNode::Type::map)
      add_leaves(one.substr(0, equals), value, leaves);
    else
      leaves.push_back(one);
  }
  return leaves;
}

}  // namespace cloze
