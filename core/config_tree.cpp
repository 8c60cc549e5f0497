#include "core/config_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/named_config.h"
#include "core/spelling.h"

namespace cloze {

namespace {

using config_detail::element_words;
using config_detail::shown;
using Type = ConfigNode::Type;

constexpr size_t max_bytes = 1 << 20, max_nodes = 100000, max_keys = 10000;
constexpr int max_depth = 64, max_bases = 16, max_files = 64;

std::string location(const std::string& name, int line, int column) { return concat(name, ":", line, ":", column); }

void check_size(size_t bytes, const std::string& name) {
  require<ConfigError>(bytes <= max_bytes, name, ": ", bytes, " bytes are too many for a config (at most ", max_bytes,
                       "); name the YAML file of a run");
}

/// Finds the quotations and comments of a YAML text, whose brackets nest nothing. In a plain scalar or a block it may
/// take an apostrophe for a quotation; the depth of what was parsed is checked too.
class Quotations {
 public:
  /// Whether the next character belongs to a quotation or a comment.
  bool contains(char c) {
    const char before = std::exchange(before_, c);
    if (std::exchange(escaped_, false)) return true;
    if (open_ == '#') {
      if (c == '\n') open_ = 0;
      return true;
    }
    if (open_ != 0) {
      escaped_ = open_ == '"' && c == '\\';
      if (c == open_) open_ = 0;
      return true;
    }
    const bool after_space = std::string_view(" \t\r\n").find(before) != std::string_view::npos;
    const bool begins_value = after_space || std::string_view("[{,:").find(before) != std::string_view::npos;
    const bool goes_on = c == '\'' && before == '\'';  // '' within single quotes
    if (((c == '"' || c == '\'') && (begins_value || goes_on)) || (c == '#' && after_space)) open_ = c;
    return open_ != 0;
  }

 private:
  char open_ = 0, before_ = '\n';
  bool escaped_ = false;
};

/// Rejects input that is unsafe for a YAML parser: binary content and unbounded nesting.
void check_text(const std::string& text, const std::string& name) {
  check_size(text.size(), name);
  const bool is_wide = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
  require<ConfigError>(!is_wide, name, ": is UTF-16; save it as UTF-8");
  Quotations quotations;
  int line = 1, column = 0, open = 0;
  for (const char c : text) {
    ++column;
    if (c == '\n') {
      ++line;
      column = 0;
    }
    const bool control = static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t';
    require<ConfigError>(!control, location(name, line, column),
                         ": a control character; this does not look like a YAML file");
    if (quotations.contains(c)) continue;
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    require<ConfigError>(open <= max_depth, location(name, line, column), ": brackets are nested deeper than ",
                         max_depth, "; flatten them");
  }
}

struct Converter {
  const std::string& name;
  size_t nodes = 0;

  ConfigNode convert(const YAML::Node& from, const std::string& fallback, int depth) {
    ConfigNode to;
    const auto mark = from.Mark();
    to.where = mark.line >= 0 ? location(name, mark.line + 1, mark.column + 1) : fallback;
    require<ConfigError>(++nodes <= max_nodes, name, ": more than ", max_nodes,
                         " values once aliases are followed; write fewer of them");
    require<ConfigError>(depth <= max_depth, to.where, ": values are nested deeper than ", max_depth, "; flatten them");
    if (from.IsScalar()) {
      to.type = Type::scalar;
      to.text = from.Scalar();
      to.quoted = from.Tag() == "!";
    } else if (from.IsSequence()) {
      to.type = Type::list;
      for (const auto& item : from) to.items.emplace_back("", convert(item, to.where, depth + 1));
    } else if (from.IsMap()) {
      to.type = Type::map;
      require<ConfigError>(from.size() <= max_keys, to.where, ": ", from.size(),
                           " keys are too many for a map (at most ", max_keys, "); name the YAML file of a run");
      for (const auto& item : from) {
        const auto key_mark = item.first.Mark();
        const std::string at = location(name, key_mark.line + 1, key_mark.column + 1);
        require<ConfigError>(item.first.IsScalar(), at, ": a key must be a plain word");
        const std::string key = item.first.Scalar();
        require<ConfigError>(to.find(key) == nullptr, at, ": key '", shortened(key),
                             "' is given twice; keep one of them");
        auto value = convert(item.second, at, depth + 1);
        value.key_where = at;
        to.items.emplace_back(key, std::move(value));
      }
    }
    return to;
  }
};

/// Refuses a second document that is not empty. A document begins where the one before did if the parser cannot pass
/// what stands there, such as a comma, which it would take for documents without end.
class OneDocument final : public YAML::EventHandler {
 public:
  explicit OneDocument(const std::string& name) : name_(name) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1 && mark.pos == begin_.pos) throw YAML::ParserException(mark, "a value was expected");
    begin_ = mark;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { value(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    value(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    value(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    value(mark);
  }
  void OnMapEnd() override {}

 private:
  void value(const YAML::Mark& mark) const {
    require<ConfigError>(documents_ < 2, location(name_, mark.line + 1, mark.column + 1),
                         ": here begins a second YAML document, of which a config has one; remove it");
  }

  const std::string& name_;
  YAML::Mark begin_;
  int documents_ = 0;
};

void check_documents(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  OneDocument one(name);
  while (parser.HandleNextDocument(one)) {
  }
}

/// Refuses a tab in the indentation of the line in which a parser stopped, or of the last one before it that has one.
void check_indentation(const std::string& text, const std::string& name, int last_line) {
  std::istringstream lines(text);
  int line = 0, found = 0, column = 0;
  for (std::string one; line < last_line && std::getline(lines, one);) {
    ++line;
    const auto tab = one.substr(0, one.find_first_not_of(" \t")).find('\t');
    if (tab == std::string::npos) continue;
    found = line;
    column = static_cast<int>(tab) + 1;
  }
  require<ConfigError>(found == 0, location(name, found, column),
                       ": a tab indents this line, and YAML is indented by spaces; replace it by spaces");
}

/// White space of Unicode, of some width or none, that YAML takes for letters.
constexpr std::array<std::string_view, 12> other_spaces = {"\u00A0", "\u2002", "\u2003", "\u2007", "\u2009", "\u200A",
                                                           "\u200B", "\u2028", "\u2029", "\u202F", "\u3000", "\uFEFF"};

/// The bytes of such white space where `text` begins; 0 for none.
size_t other_space_at(std::string_view text) {
  for (const auto space : other_spaces)
    if (text.starts_with(space)) return space.size();
  return 0;
}

/// The part of a line before its byte `at`, without white space at its end.
std::string_view part_before(std::string_view line, size_t at) {
  line = line.substr(0, at);
  const auto ends_in = [&](std::string_view space) { return line.ends_with(space); };
  for (;;) {
    const auto* other = std::find_if(other_spaces.begin(), other_spaces.end(), ends_in);
    if (other == other_spaces.end() && !line.ends_with(' ')) return line;
    line.remove_suffix(other == other_spaces.end() ? 1 : other->size());
  }
}

/// The part of a line from its byte `at` on, without white space at its beginning.
std::string_view part_from(std::string_view line, size_t at) {
  while (at < line.size()) {
    const auto bytes = line[at] == ' ' ? 1 : other_space_at(line.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return line.substr(at);
}

/// Whether YAML has a space, not a letter, between two parts of a line: at its ends, after the dash of an element and
/// the colon of a key, and in brackets beside them and commas.
bool has_space_between(std::string_view before, std::string_view after, bool in_brackets) {
  constexpr std::string_view of_keys = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.- \"'";
  if (after.empty() || after.front() == '#' || before.find_first_not_of("- ") == before.npos) return true;
  const std::string_view begins = "{[,", ends = "}],";
  if (in_brackets && (begins.find(before.back()) != begins.npos || ends.find(after.front()) != ends.npos)) return true;
  if (before.back() != ':') return false;
  const auto other = before.substr(0, before.size() - 1).find_last_not_of(of_keys);
  return other == before.npos || (in_brackets && begins.find(before[other]) != begins.npos);
}

/// Refuses other white space there.
void check_spaces(const std::string& text, const std::string& name) {
  Quotations quotations;
  std::istringstream lines(text);
  int line = 0, open = 0;
  for (std::string one; std::getline(lines, one); quotations.contains('\n')) {
    ++line;
    if (one.ends_with('\r')) one.pop_back();
    if (line == 1 && one.starts_with("\uFEFF")) one.erase(0, 3);  // a byte order mark
    for (size_t at = 0, passed = 0; at < one.size(); ++at) {
      if (quotations.contains(one[at])) continue;
      if (one[at] == '[' || one[at] == '{') ++open;
      if (one[at] == ']' || one[at] == '}') --open;
      if (at < passed || other_space_at(std::string_view(one).substr(at)) == 0) continue;
      const auto after = part_from(one, at);
      require<ConfigError>(!has_space_between(part_before(one, at), after, open > 0),
                           location(name, line, static_cast<int>(at) + 1),
                           ": an invisible character that YAML takes for a letter; replace it by a space");
      passed = one.size() - after.size();
    }
  }
}

ConfigNode parse_node(const std::string& text, const std::string& name) {
  check_text(text, name);
  check_spaces(text, name);
  try {
    check_documents(text, name);
    return Converter{name}.convert(YAML::Load(text), location(name, 1, 1), 0);
  } catch (const YAML::Exception& e) {
    check_indentation(text, name, e.mark.line + 1);
    fail<ConfigError>(location(name, e.mark.line + 1, e.mark.column + 1), ": not valid YAML: ", e.msg);
  }
}

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
    auto found =
        std::find_if(under.items.begin(), under.items.end(), [&](const auto& item) { return item.first == key; });
    if (found == under.items.end())
      under.items.emplace_back(key, std::move(value));
    else
      merge(found->second, std::move(value));
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
  const auto found =
      std::find_if(node.items.begin(), node.items.end(), [](const auto& item) { return item.first == "base"; });
  if (node.type != Type::map || found == node.items.end()) return node;
  std::vector<ConfigNode> names;
  if (found->second.type == Type::scalar) names.push_back(found->second);
  if (found->second.type == Type::list)
    for (const auto& [key, item] : found->second.items) names.push_back(item);
  require<ConfigError>(!names.empty(), found->second.where, ": 'base' must be a file name or a list of them");
  node.items.erase(found);
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
  if (!ignored) check_size(bytes, path);
  auto text = read_text(path, max_bytes + 1);  // what the system cannot read is no fault of the config
  if (text.find('\n') == text.npos) std::replace(text.begin(), text.end(), '\r', '\n');  // of an old Macintosh
  return parse_node(text, path);
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
      auto found =
          std::find_if(at->items.begin(), at->items.end(), [&](const auto& item) { return item.first == key; });
      if (found == at->items.end()) found = at->items.insert(found, {key, empty});
      next = &found->second;
    }
    if (dot == std::string::npos) {
      merge(*next, std::move(value));
      return;
    }
    at = next;
    rest = rest.substr(dot + 1);
  }
}

void apply_override(ConfigNode& root, const std::string& assignment) {
  const std::string where = "--set " + shortened(assignment);
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
  require<ConfigError>(std::count(path.begin(), path.end(), '.') < max_depth, where, ": its key is nested deeper than ",
                       max_depth, "; no config has such a key");
  ConfigNode value = parse_node(assignment.substr(equals + 1), where);
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

ConfigTree ConfigTree::load(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigTree tree;
  int files = 0;
  tree.root_ = load_file(path, {}, files);
  for (const auto& assignment : overrides) apply_override(tree.root_, assignment);
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
  tree.root_ = with_bases(parse_node(text, name), name, {}, files);
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
  for (size_t begin = 0; at && begin <= path.size();) {
    const auto dot = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, dot - begin);
    if (at->type == Type::list) {
      size_t index = at->items.size();
      std::from_chars(key.data(), key.data() + key.size(), index);
      at = index < at->items.size() ? &at->items[index].second : nullptr;
    } else {
      at = at->find(key);
    }
    begin = dot + 1;
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
