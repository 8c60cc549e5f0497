#include "core/config/config_tree.h"
#include "core/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/config/named_config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/spelling.h"

namespace cloze {

namespace {

using config_detail::element_words;
using config_detail::shown;
using Type = ConfigNode::Type;

constexpr int max_bases = 16, max_files = 64;

/// Merges `over` into `under`: maps are merged, everything else is replaced. A different `kind` replaces the whole map.
void merge(ConfigNode& under, ConfigNode over) {
  const auto kind = [](const ConfigNode& node) {
    const auto* k = node.find("kind");
    return k ? k->text : std::string();
  };
  const bool same_kind = kind(over).empty() || kind(under).empty() || kind(over) == kind(under);
  if (under.type != Type::map || over.type != Type::map || !same_kind) {
    if (under.type != Type::absent) {
      over.overridden.push_back(shown(under) + " (" + under.where + ")");
      over.overridden.insert(over.overridden.end(), under.overridden.begin(), under.overridden.end());
    }
    under = std::move(over);
    return;
  }
  for (auto& [key, value] : over.items) {
    auto same_key =
        std::find_if(under.items.begin(), under.items.end(), [&](const auto& item) { return item.first == key; });
    if (same_key == under.items.end())
      under.items.emplace_back(key, std::move(value));
    else
      merge(same_key->second, std::move(value));
  }
  under.where = over.where;
}

/// A file, the files that lead to it by `base:`, and the number of files read so far.
ConfigNode load_file(const std::string& path, std::vector<std::string> chain, int& files);

/// Replaces a top-level `base:` by the content of the files it names.
ConfigNode with_bases(ConfigNode node, const std::string& path, const std::vector<std::string>& chain, int& files) {
  require<ConfigError>(node.type == Type::map || node.type == Type::absent, node.where,
                       ": 'the file' must be a map of keys, not ",
                       node.type == Type::scalar ? "'" + shown(node) + "'" : shown(node));
  const auto base =
      std::find_if(node.items.begin(), node.items.end(), [](const auto& item) { return item.first == "base"; });
  if (node.type != Type::map || base == node.items.end()) return node;
  std::vector<ConfigNode> names;
  if (base->second.type == Type::scalar) names.push_back(base->second);
  if (base->second.type == Type::list)
    for (const auto& [key, item] : base->second.items) names.push_back(item);
  require<ConfigError>(!names.empty(), base->second.where, ": 'base' must be a file name or a list of them");
  node.items.erase(base);
  ConfigNode merged;
  for (const auto& name : names) {
    require<ConfigError>(name.type == Type::scalar, name.where, ": 'base' must be a file name or a list of them");
    auto file = (std::filesystem::path(path).parent_path() / name.text).lexically_normal().string();
    std::error_code error, ignored;
    const auto shipped = std::filesystem::is_regular_file(file, ignored) ? "" : config_of_name(name.text);
    if (!shipped.empty()) file = shipped;
    const auto shown_name = shortened(name.text), near = did_you_mean_config(name.text);
    require<ConfigError>(
        std::filesystem::exists(file, error), name.where, ": base file '", shown_name, "' was not found (",
        error                     ? error.message()
        : shown_name == name.text ? "looked for " + file
                                  : "no file has such a name",
        ")", near.empty() ? "; name a file by its path from here, or a config that ships: bert/tiny" : near);
    require<ConfigError>(++files <= max_files, name.where, ": more than ", max_files,
                         " base files are read; name each of them once");
    require<ConfigError>(std::find(chain.begin(), chain.end(), file) == chain.end(), name.where, ": base file '",
                         shown_name, "' extends itself; remove one of the `base:` lines");
    require<ConfigError>(chain.size() < max_bases, name.where, ": base file '", shown_name, "' ends a chain of ",
                         "more than ", max_bases, " files that extend one another; merge some of them");
    merge(merged, load_file(file, chain, files));
  }
  merge(merged, std::move(node));
  return merged;
}

/// The node of one file, `base:` and all. Throws Error with the system's reason where it cannot be read.
ConfigNode read_file(const std::string& path) {
  std::error_code ignored;
  require<ConfigError>(std::filesystem::exists(path, ignored), path,
                       ": no such file; name a YAML config (configs/ has some)");
  require<ConfigError>(!std::filesystem::is_directory(path, ignored), path, ": is a folder; name a YAML config in it");
  const auto bytes = std::filesystem::file_size(path, ignored);
  if (!ignored) check_config_size(bytes, path);
  auto text = read_text(path, max_config_bytes + 1);  // what the system cannot read is no fault of the config
  if (text.find('\n') == text.npos) std::replace(text.begin(), text.end(), '\r', '\n');  // of an old Macintosh
  return parse_config(text, path);
}

ConfigNode load_file(const std::string& path, std::vector<std::string> chain, int& files) {
  auto node = read_file(path);
  require<ConfigError>(node.type != Type::absent, path,
                       ": is empty; write a config into it, or name another (configs/ has some)");
  chain.push_back(std::filesystem::path(path).lexically_normal().string());
  return with_bases(std::move(node), path, chain, files);
}

/// For an element that is named by its kind: the path with its number.
std::string numbered(const ConfigNode& list, const std::string& path, const std::string& kind) {
  for (size_t i = 0; i < list.items.size(); ++i) {
    const auto* found = list.items[i].second.find("kind");
    if (found == nullptr || found->text != kind) continue;
    const auto at = path.find("." + kind);
    if (at + 1 + kind.size() == path.size())
      return concat("; ", kind, " is ", path.substr(0, at), ".", i, ", of which a key is to be named, such as ",
                    path.substr(0, at), ".", i, ".weight");
    return concat("; did you mean '", path.substr(0, at), ".", i, path.substr(at + 1 + kind.size()), "'?");
  }
  return "";
}

/// Lays `value` over what stands at a dotted path.
void lay_over(ConfigNode& root, const std::string& path, ConfigNode value) {
  const std::string where = value.key_where.empty() ? value.where : value.key_where;
  ConfigNode empty, empty_map;
  empty.where = empty.key_where = empty_map.where = empty_map.key_where = where;
  empty_map.type = Type::map;
  ConfigNode* at = &root;
  std::string rest = path;
  while (true) {
    const auto dot = rest.find('.');
    const std::string key = rest.substr(0, dot);
    require<ConfigError>(!key.empty(), where, ": '", shortened(path), "' is no key; write it as key.of.value");
    ConfigNode* next = nullptr;
    if (at->type == Type::list) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      require<ConfigError>(error == std::errc() && end == key.data() + key.size() && index < at->items.size(), where,
                           ": ", element_words(key, at->items.size()), numbered(*at, path, key));
      next = &at->items[index].second;
    } else {
      if (at->type != Type::map) *at = empty_map;
      auto child =
          std::find_if(at->items.begin(), at->items.end(), [&](const auto& item) { return item.first == key; });
      if (child == at->items.end()) child = at->items.insert(child, {key, empty});
      next = &child->second;
    }
    if (dot == std::string::npos) {
      merge(*next, std::move(value));
      return;
    }
    at = next;
    rest = rest.substr(dot + 1);
  }
}

void apply_override(ConfigNode& root, const std::string& assignment, const std::string& of = "") {
  const std::string where = "--set " + shortened(of + assignment);
  const auto equals = assignment.find('=');
  const auto path = assignment.substr(0, equals);
  require<ConfigError>(equals != std::string::npos && equals > 0 && path.front() != '.' && path.back() != '.' &&
                           path.find("..") == std::string::npos,
                       where, ": write it as --set key.of.value=value");
  auto dotted = path;
  std::replace(dotted.begin(), dotted.end(), '[', '.');
  std::erase(dotted, ']');
  const bool is_numbered = dotted.find("..") == std::string::npos && !dotted.ends_with('.');
  require<ConfigError>(dotted == path, where, ": an element of a list is named by its number after a dot; write ",
                       is_numbered ? shortened(dotted) : "key.0");
  require<ConfigError>(std::count(path.begin(), path.end(), '.') < max_config_depth, where,
                       ": its key is nested deeper than ", max_config_depth, "; no config has such a key");
  ConfigNode value = parse_config(assignment.substr(equals + 1), where);
  std::function<void(ConfigNode&)> mark = [&](ConfigNode& node) {
    node.where = node.key_where = where;
    for (auto& [key, item] : node.items) mark(item);
  };
  mark(value);
  lay_over(root, path, std::move(value));
}

}  // namespace

const ConfigNode* ConfigNode::find(const std::string& key) const {
  if (type != Type::map) return nullptr;
  for (const auto& [name, node] : items)
    if (name == key) return &node;
  return nullptr;
}

ConfigTree ConfigTree::load(const std::string& path, const std::vector<std::string>& overrides, const std::string& of) {
  ConfigTree tree;
  int files = 0;
  tree.root_ = load_file(path, {}, files);
  for (const auto& assignment : overrides) apply_override(tree.root_, assignment, of);
  return tree;
}

ConfigTree ConfigTree::load_alone(const std::string& path) {
  ConfigTree tree;
  tree.root_ = read_file(path);
  return tree;
}

ConfigTree ConfigTree::parse(const std::string& text, const std::string& name,
                             const std::vector<std::string>& overrides) {
  ConfigTree tree;
  int files = 0;
  tree.root_ = with_bases(parse_config(text, name), name, {}, files);
  for (const auto& assignment : overrides) apply_override(tree.root_, assignment);
  return tree;
}

void ConfigTree::set(const std::string& path, ConfigNode value) { lay_over(root_, path, std::move(value)); }

std::string one_line(const AnyKeys& keys) {
  std::string text;
  for (const auto& [key, node] : keys.items) text += (text.empty() ? "" : ", ") + key + ": " + one_line(node);
  return "{" + text + "}";
}

std::string one_line(const ConfigNode& node) {
  if (node.type == Type::scalar) return node.quoted ? "\"" + node.text + "\"" : node.text;
  if (node.type == Type::absent) return "";
  std::string text;
  for (const auto& [key, item] : node.items)
    text += (text.empty() ? "" : ", ") + (key.empty() ? "" : key + ": ") + one_line(item);
  return node.type == Type::list ? "[" + text + "]" : "{" + text + "}";
}

namespace {

void mark(ConfigNode& node, const std::string& location) {
  const bool is_marked = location.empty() ? !node.where.starts_with("--set") : node.where.starts_with(location);
  node.recorded = node.recorded || is_marked;
  for (auto& [key, item] : node.items) mark(item, location);
}

}  // namespace

void ConfigTree::mark_recorded(const std::string& location) { mark(root_, location); }

const ConfigNode* ConfigTree::find(const std::string& path) const {
  const ConfigNode* at = &root_;
  for (const auto& key : separated(path, ".")) {
    if (!at) break;
    if (at->type == Type::list) {
      size_t index = at->items.size();
      std::from_chars(key.data(), key.data() + key.size(), index);
      at = index < at->items.size() ? &at->items[index].second : nullptr;
    } else {
      at = at->find(key);
    }
  }
  return at;
}

namespace config_detail {

std::string element_words(const std::string& key, size_t count) {
  return "'" + shortened(key) +
         (count == 0 ? "' would be an element of an empty list; give the whole list"
                     : "' must be the number of an element, 0 to " + std::to_string(count - 1));
}

std::string shown(const ConfigNode& node) {
  if (node.type == Type::scalar) return shortened(node.text);
  if (node.type == Type::absent) return "nothing";
  return node.type == Type::list ? "a list" : "a map";
}

}  // namespace config_detail

}  // namespace cloze
