#include "core/config/config_entries.h"

#include <cctype>

#include "core/error.h"
#include "core/spelling.h"

namespace cloze::config_detail {

std::string entries_to_yaml(const std::vector<Entry>& entries, bool with_words) {
  std::string out;
  bool first_of_element = false;
  for (const auto& e : entries) {
    std::string indent(2 * static_cast<size_t>(e.depth), ' ');
    const bool element = !e.leaf && !e.key.empty() && std::isdigit(static_cast<unsigned char>(e.key[0]));
    if (element) {
      first_of_element = true;
      continue;
    }
    if (first_of_element) indent.replace(indent.size() - 2, 2, "- ");
    if (with_words) {
      std::string comment = e.words + (e.rule.empty() ? "" : " (" + e.rule + ")");
      const std::string plain_indent(2 * static_cast<size_t>(e.depth), ' ');
      if (!first_of_element && !comment.empty()) out += plain_indent + "# " + comment + "\n";
    }
    first_of_element = false;
    out += indent + e.key + ":" + (e.leaf ? " " + e.value : "") + "\n";
  }
  return out;
}

std::string entries_to_markdown(const std::vector<Entry>& entries) {
  std::string out = "| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n";
  for (const auto& e : entries)
    if (e.leaf)
      out += "| `" + e.path + "` | " + e.type + " | " + (e.value == "\"\"" ? "" : "`" + e.value + "`") + " | " +
             e.rule + " | " + e.words + " |\n";
  return out;
}

namespace {

const Entry* find_entry(const std::vector<Entry>& list, const std::string& path) {
  const auto found = std::ranges::find(list, path, &Entry::path);
  return found == list.end() ? nullptr : &*found;
}

/// The preset of a key's struct, or of the nearest one around it.
std::string preset_of(const ConfigTree& tree, std::string path) {
  while (!path.empty()) {
    const auto dot = path.rfind('.');
    path = dot == std::string::npos ? "" : path.substr(0, dot);
    if (const auto* like = tree.find(join_path(path, "like")))
      return "preset '" + like->text + "' (" + like->where + ")";
  }
  return "a preset";
}

}  // namespace

std::string explain_entry(const ConfigTree& tree, const std::string& path, const std::vector<Entry>& now,
                          const std::vector<Entry>& defaults) {
  const Entry* entry = find_entry(now, path);
  if (!entry) {
    std::vector<std::string> known;
    for (const auto& e : now) known.push_back(e.path);
    const auto near = did_you_mean(path, known);
    fail<ConfigError>("unknown key '", path, "'", near.empty() ? "; cloze config lists those known" : near);
  }
  std::string out = path + (entry->leaf ? " = " + entry->value : "") + "\n";
  if (!entry->words.empty()) out += "  meaning  " + entry->words + "\n";
  if (!entry->rule.empty()) out += "  allowed  " + entry->rule + "\n";
  const Entry *standard = find_entry(defaults, path), *inherited = find_entry(now, entry->inherited);
  const ConfigNode* node = tree.find(path);
  if (node && node->type != ConfigNode::Type::absent) {
    out += "  set by   " + node->where + "\n";
    for (const auto& earlier : node->overridden) out += "  instead of " + earlier + "\n";
    if (standard && standard->leaf) out += "  default  " + standard->value + "\n";
  } else if (inherited && inherited->value == entry->value) {
    out += "  set by   " + inherited->path + ", which it inherits\n";
  } else if (entry->leaf && (inherited || (standard && standard->value != entry->value))) {
    // Not given, and yet not the default: a preset of its struct or of an enclosing one set it.
    out += "  set by   " + preset_of(tree, path) + "\n" + (standard ? "  default  " + standard->value + "\n" : "");
  } else {
    out += "  set by   default\n";
  }
  return out;
}

}  // namespace cloze::config_detail
