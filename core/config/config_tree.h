#pragma once
// YAML files as trees: base files and overrides merged, with the location of every value.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cloze {

/// A parsed file with its base files and overrides merged; every value records where it came from.
struct ConfigNode {
  enum class Type { absent, scalar, list, map } type = Type::absent;
  std::string text;                                       ///< of a scalar
  bool quoted = false;                                    ///< a quoted scalar is a text
  std::vector<std::pair<std::string, ConfigNode>> items;  ///< of a list (keys empty) or a map
  std::string where;                                      ///< `file:line:column` or `--set a.b=c`
  std::string key_where;                                  ///< of its key
  std::vector<std::string> overridden;                    ///< `value (where)` of the values it replaced, newest first
  bool recorded = false;                                  ///< by a run, maybe one of an earlier version
  const ConfigNode* find(const std::string& key) const;
};

/// Keys that a config does not know beforehand, each with what the file says of it.
struct AnyKeys {
  std::vector<std::pair<std::string, ConfigNode>> items;
};

class ConfigTree {
 public:
  /// Reads a YAML file, the files of its `base:`, and overrides `a.b=c`, which messages call `--set {of}a.b=c`. Throws
  /// ConfigError with the location and the remedy.
  static ConfigTree load(const std::string& path, const std::vector<std::string>& overrides = {},
                         const std::string& of = "");
  /// Reads a YAML file alone: `base` is a key like any other.
  static ConfigTree load_alone(const std::string& path);
  /// The same for a text; messages use `name` as the file name.
  static ConfigTree parse(const std::string& text, const std::string& name,
                          const std::vector<std::string>& overrides = {});
  const ConfigNode& root() const { return root_; }
  /// Lays a value over what stands at a dotted path, as an override does. Throws ConfigError with the value's location.
  void set(const std::string& path, ConfigNode value);
  /// Marks the values whose location begins with `location`, all but overrides if that is empty, as those that a run
  /// recorded: earlier versions wrote options of every kind of optimizer and schedule.
  void mark_recorded(const std::string& location = "");
  /// The node at a dotted path, or null. List elements have their index as key.
  const ConfigNode* find(const std::string& path) const;

 private:
  ConfigNode root_;
};

constexpr size_t max_config_bytes = 1 << 20;
constexpr int max_config_depth = 64;  ///< of values within values

/// Throws ConfigError for a text that is larger than configs are.
void check_config_size(size_t bytes, const std::string& name);

/// The value of a YAML text; `name`: of its file, for messages. What a YAML parser would take in another sense than its
/// writer, or what would cost it time or memory without end, is refused before it is parsed. Throws ConfigError with
/// the location.
ConfigNode parse_config(const std::string& text, const std::string& name);

/// A value as YAML in one line: `[1, 2]`, `{kind: mlm}`.
std::string one_line(const ConfigNode& node);
std::string one_line(const AnyKeys& keys);

namespace config_detail {

/// A node in a message: its text, or what it is instead of one.
std::string shown(const ConfigNode& node);
/// What is said of a key that is no number of an element, of which a list has `count`.
std::string element_words(const std::string& key, size_t count);

}  // namespace config_detail

}  // namespace cloze
