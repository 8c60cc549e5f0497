#pragma once
// The typed config engine: a struct with its defaults, and one `describe` next to it.
//
//   enum class Heater { fan, grill };
//   constexpr auto choices(Heater) {
//     return std::array{Choice{Heater::fan, "fan", "hot air"}, Choice{Heater::grill, "grill", "from above"}};
//   }
//   struct Oven { double heat = 180; Heater heater = Heater::fan; };
//   template <class V> void describe(V& v, Oven& c) {
//     v("heat", c.heat, "temperature [C]", in_range(0, 300));
//     v("heater", c.heater, "what heats");
//   }
//   auto oven = decode<Oven>(ConfigTree::load("oven.yaml", {"heat=200"}));
//
// Decoding, encoding, documentation, explanations and checks are all derived from that description.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"

namespace cloze {

/// The constraint on a value.
struct Rule {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_high = false;              ///< `high` itself is not allowed
  int64_t multiple_of = 1;             ///< of whole numbers
  std::vector<std::string> allowed{};  ///< the only values of a text; empty: any
  bool may_be_none = false;            ///< a list may be empty
};
inline Rule multiples_of(int64_t step, double high) {
  return {.low = static_cast<double>(step), .high = high, .multiple_of = step};
}
inline Rule or_none(Rule of_each) {
  of_each.may_be_none = true;
  return of_each;
}
struct OpenEnd {};
inline constexpr OpenEnd open_end{};
inline Rule at_least(double low) { return {.low = low}; }
inline Rule in_range(double low, double high) { return {.low = low, .high = high}; }
inline Rule in_range(double low, double high, OpenEnd) { return {.low = low, .high = high, .open_high = true}; }
inline Rule one_of(std::vector<std::string> allowed) { return {.allowed = std::move(allowed)}; }

/// A value of an enum, its name in YAML and its meaning. An enum `E` of a config has a function `choices(E)` that
/// lists all of them in an array, in the order of documentation.
template <class E>
struct Choice {
  E value;
  const char* name;
  const char* words = "";
};
template <class T>
inline constexpr bool is_choice = std::is_enum_v<T> && requires(T value) { choices(value); };

/// The name of a choice in YAML.
template <class E>
  requires is_choice<E>
constexpr const char* name_of(E value) {
  for (const auto& choice : choices(value))
    if (choice.value == value) return choice.name;
  return "?";
}
template <class E>
  requires is_choice<E>
std::ostream& operator<<(std::ostream& out, E value) {
  return out << name_of(value);
}
/// A rule that allows all names of `E`.
template <class E>
  requires is_choice<E>
Rule any_of() {
  Rule rule;
  for (const auto& choice : choices(E{})) rule.allowed.emplace_back(choice.name);
  return rule;
}
/// The choice of this name. Throws ConfigError for an unknown name.
template <class E>
  requires is_choice<E>
E choice_of(const std::string& name) {
  std::string names;
  for (const auto& choice : choices(E{})) {
    if (name == choice.name) return choice.value;
    names += (names.empty() ? "" : ", ") + std::string(choice.name);
  }
  fail<ConfigError>("'", name, "' is not known; choose one of ", names);
}

/// Named presets of a struct `S` that has a field `like`.
template <class S>
using Presets = std::vector<std::pair<const char*, void (*)(S&)>>;

/// A parsed file with its base files and overrides merged; every value records where it came from.
struct ConfigNode {
  enum class Type { absent, scalar, list, map } type = Type::absent;
  std::string text;                                       ///< of a scalar
  bool quoted = false;                                    ///< a quoted scalar is a text
  std::vector<std::pair<std::string, ConfigNode>> items;  ///< of a list (keys empty) or a map
  std::string where;                                      ///< `file:line:column` or `--set a.b=c`
  std::string key_where;                                  ///< of its key
  std::vector<std::string> overridden;                    ///< `value (where)` of the values it replaced, newest first
  const ConfigNode* find(const std::string& key) const;
};

/// Keys that a config does not know beforehand, each with what the file says of it.
struct AnyKeys {
  std::vector<std::pair<std::string, ConfigNode>> items;
};

class ConfigTree {
 public:
  /// Reads a YAML file, the files of its `base:`, and overrides `a.b=c`. Throws ConfigError with the location and the
  /// remedy.
  static ConfigTree load(const std::string& path, const std::vector<std::string>& overrides = {});
  /// Reads a YAML file alone: `base` is a key like any other.
  static ConfigTree load_alone(const std::string& path);
  /// The same for a text; messages use `name` as the file name.
  static ConfigTree parse(const std::string& text, const std::string& name,
                          const std::vector<std::string>& overrides = {});
  const ConfigNode& root() const { return root_; }
  /// Lays a value over what stands at a dotted path, as an override does. Throws ConfigError with the value's place.
  void set(const std::string& path, ConfigNode value);
  /// The node at a dotted path, or null. List elements have their index as key.
  const ConfigNode* find(const std::string& path) const;

 private:
  ConfigNode root_;
};

/// A value as YAML in one line: `[1, 2]`, `{kind: mlm}`.
std::string one_line(const ConfigNode& node);
std::string one_line(const AnyKeys& keys);

/// The candidate most similar to a mistyped word, or empty if none is similar. Source: Damerau 1964.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);
/// `; did you mean 'x'?` or empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);
/// The shortest text of a number that parses to the same value.
std::string shortest(double value);

namespace config_detail {

struct Issue {
  std::string where, what;
};

/// One line of a described struct.
struct Entry {
  std::string path, key, type, value, words, rule;
  int depth = 0;
  bool leaf = true;
  std::string whole{};  ///< path of the value it inherits when it is not given; empty: it has a default
};

void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   int64_t& out);
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   double& out);
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   bool& out);
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   std::string& out);
/// One value or a list: `[1, 2]`; earlier versions wrote the text `1,2`.
void decode_list(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                 std::vector<int64_t>& out);
void unknown_keys(const ConfigNode& map, const std::string& path, const std::vector<std::string>& known,
                  const std::vector<std::string>& former, std::vector<Issue>& issues);
bool expect(const ConfigNode& node, ConfigNode::Type type, const std::string& path, std::vector<Issue>& issues);
[[noreturn]] void throw_issues(std::vector<Issue> issues);
std::string rule_words(const Rule& rule);
std::string scalar_text(int64_t v);
std::string scalar_text(double v);
std::string scalar_text(bool v);
std::string scalar_text(const std::string& v);
template <class E>
  requires is_choice<E>
std::string scalar_text(E v) {
  return name_of(v);
}

template <class T>
inline constexpr bool is_scalar = std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool> ||
                                  std::is_same_v<T, std::string> || is_choice<T>;

/// The rule of an entry: the given one, else that of the enum.
template <class T>
Rule rule_of(const Rule& given) {
  if constexpr (is_choice<T>)
    return given.allowed.empty() ? any_of<T>() : given;
  else
    return given;
}
template <class E>
  requires is_choice<E>
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   E& out) {
  std::string name = name_of(out);
  decode_scalar(node, path, rule_of<E>(rule), issues, name);
  out = choice_of<E>(name);
}
/// `words: name = meaning; name = meaning` for the choices that a rule allows.
template <class T>
std::string with_choices(const char* words, const Rule& rule) {
  std::string all = words;
  if constexpr (is_choice<T>) {
    const char* joint = all.empty() ? "" : ": ";
    for (const auto& choice : choices(T{})) {
      const auto& names = rule.allowed;
      const bool allowed = names.empty() || std::find(names.begin(), names.end(), choice.name) != names.end();
      if (!*choice.words || !allowed) continue;
      all += std::string(joint) + choice.name + " = " + choice.words;
      joint = "; ";
    }
  }
  return all;
}
template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, int64_t>)
    return "whole number";
  else if constexpr (std::is_same_v<T, double>)
    return "number";
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else
    return "text";
}
template <class T>
struct IsVariant : std::false_type {};
template <class... K>
struct IsVariant<std::variant<K...>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
/// A list of scalars, written in one line.
template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = is_scalar<T>;
template <class T>
std::string scalar_text(const std::vector<T>& list) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : ", ") + scalar_text(one);
  return list.size() == 1 ? text : "[" + text + "]";
}
inline std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

/// One choice or a list of them.
template <class E>
  requires is_choice<E>
void decode_list(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                 std::vector<E>& out) {
  out.clear();
  if (node.type != ConfigNode::Type::list) return decode_scalar(node, path, rule, issues, out.emplace_back());
  for (const auto& [key, item] : node.items)
    decode_scalar(item, join_path(path, std::to_string(out.size())), rule, issues, out.emplace_back());
}

template <class V, size_t I = 0>
bool emplace_kind(V& variant, const std::string& kind) {
  if constexpr (I == std::variant_size_v<V>) {
    return false;
  } else {
    if (kind == std::variant_alternative_t<I, V>::kind) {
      if (variant.index() != I) variant.template emplace<I>();
      return true;
    }
    return emplace_kind<V, I + 1>(variant, kind);
  }
}
template <class V, size_t I = 0>
void kinds_of(std::vector<std::string>& out) {
  if constexpr (I < std::variant_size_v<V>) {
    out.emplace_back(std::variant_alternative_t<I, V>::kind);
    kinds_of<V, I + 1>(out);
  }
}

/// Decodes a map into a struct.
class Decoder {
 public:
  Decoder(const ConfigNode* map, std::string path, std::string ambient, std::vector<Issue>& issues)
      : map_(map), path_(std::move(path)), ambient_(std::move(ambient)), issues_(issues) {}

  template <class S>
  void like(S& c, const char*, std::type_identity_t<Presets<S>> presets) {
    known_.emplace_back("like");
    std::vector<std::string> names;
    for (const auto& [name, apply] : presets) names.emplace_back(name);
    const ConfigNode* node = map_ ? map_->find("like") : nullptr;
    if (node && !node->text.empty()) {
      decode_scalar(*node, join_path(path_, "like"), one_of(names), issues_, c.like);
    } else if (!node && contains(ambient_, names)) {
      c.like = ambient_;
    }
    for (const auto& [name, apply] : presets)
      if (c.like == name) apply(c);
    if (!c.like.empty()) ambient_ = c.like;
  }

  /// The following parts inherit no preset from the enclosing struct.
  void standalone() { ambient_.clear(); }

  template <class T>
  void operator()(const char* key, T& field, const char*, const Rule& rule = {}) {
    known_.emplace_back(key);
    const ConfigNode* node = map_ ? map_->find(key) : nullptr;
    decode(node, join_path(path_, key), rule, field);
  }

  /// A key of earlier versions, replaced by `successor`: if it is given, `apply` takes its value T and returns an error
  /// text or "".
  template <class T, class Apply>
  void formerly(const char* key, const char* successor, const Apply& apply) {
    former_.emplace_back(key);
    const ConfigNode* node = map_ ? map_->find(key) : nullptr;
    if (!node) return;
    if (map_->find(successor)) {
      issues_.push_back({node->where, "'" + join_path(path_, key) + "' is the earlier form of '" + successor +
                                          "', and both are given; leave out '" + key + "'"});
      return;
    }
    T value{};
    const auto before = issues_.size();
    decode_scalar(*node, join_path(path_, key), {}, issues_, value);
    if (issues_.size() > before) return;
    if (const std::string mistake = apply(value); !mistake.empty())
      issues_.push_back({node->where, "'" + join_path(path_, key) + "' is " + node->text + ": " + mistake});
  }

  /// A list whose elements start as copies of `whole` and are changed by their own presets and keys.
  template <class T, class Whole>
  void parts(const char* key, std::vector<T>& field, const Whole& whole, const char*) {
    known_.emplace_back(key);
    const ConfigNode* node = map_ ? map_->find(key) : nullptr;
    const auto path = join_path(path_, key);
    if (!node || !expect(*node, ConfigNode::Type::list, path, issues_)) return;
    field.clear();
    for (const auto& [name, item] : node->items) {
      const auto at = join_path(path, std::to_string(field.size()));
      T& part = field.emplace_back();
      static_cast<Whole&>(part) = whole;
      part.like.clear();  // the preset of the whole is already in its values, which its own keys may have changed
      if (!expect(item, ConfigNode::Type::map, at, issues_)) continue;
      Decoder inner(&item, at, "", issues_);
      describe(inner, part);
      inner.finish(false);
      if (part.like.empty()) part.like = whole.like;
    }
  }

  template <class T>
  void decode(const ConfigNode* node, const std::string& path, const Rule& rule, T& field) {
    if constexpr (is_scalar<T>) {
      if (node) decode_scalar(*node, path, rule, issues_, field);
    } else if constexpr (std::is_same_v<T, AnyKeys>) {
      if (node && expect(*node, ConfigNode::Type::map, path, issues_)) field.items = node->items;
    } else if constexpr (is_list<T>) {
      if (node) decode_list(*node, path, rule, issues_, field);
    } else if constexpr (IsVector<T>::value) {
      if (!node) {
        for (size_t i = 0; i < field.size(); ++i) decode(nullptr, join_path(path, std::to_string(i)), rule, field[i]);
        return;
      }
      if (changes_elements(*node, field.size())) {  // --set list.0.key=value on a list that is in no file
        for (const auto& [index, change] : node->items) {
          partial_ = true;
          decode(&change, join_path(path, index), rule, field[std::stoul(index)]);
          partial_ = false;
        }
        return;
      }
      if (!expect(*node, ConfigNode::Type::list, path, issues_)) return;
      field.clear();
      for (size_t i = 0; i < node->items.size(); ++i)
        decode(&node->items[i].second, join_path(path, std::to_string(i)), rule, field.emplace_back());
    } else if constexpr (IsVariant<T>::value) {
      if (node && !expect(*node, ConfigNode::Type::map, path, issues_)) return;
      std::vector<std::string> kinds;
      kinds_of<T>(kinds);
      std::string kind = std::visit([](const auto& k) { return std::string(k.kind); }, field);
      if (node) {
        const ConfigNode* named = node->find("kind");
        if (named) {
          decode_scalar(*named, join_path(path, "kind"), one_of(kinds), issues_, kind);
        } else if (kinds.size() > 1 && !partial_) {
          issues_.push_back({node->where, "'" + path + "' needs a `kind:`, one of " + rule_words(one_of(kinds))});
          return;
        }
      }
      if (!emplace_kind(field, kind)) return;
      std::visit([&](auto& chosen) { nested(node, path, chosen, true); }, field);
    } else {
      if (node && !expect(*node, ConfigNode::Type::map, path, issues_)) return;
      nested(node, path, field, false);
    }
  }

  void finish(bool has_kind) {
    if (has_kind) known_.emplace_back("kind");
    if (map_) unknown_keys(*map_, path_, known_, former_, issues_);
  }

 private:
  static bool changes_elements(const ConfigNode& node, size_t size) {
    const auto is_index = [&](const auto& item) {
      return !item.first.empty() && item.first.size() < 6 &&
             item.first.find_first_not_of("0123456789") == std::string::npos && std::stoul(item.first) < size;
    };
    return node.type == ConfigNode::Type::map && !node.items.empty() &&
           std::all_of(node.items.begin(), node.items.end(), is_index);
  }
  static bool contains(const std::string& name, const std::vector<std::string>& names) {
    for (const auto& n : names)
      if (n == name) return true;
    return false;
  }
  template <class S>
  void nested(const ConfigNode* node, const std::string& path, S& c, bool has_kind) {
    Decoder inner(node, path, ambient_, issues_);
    describe(inner, c);
    inner.finish(has_kind);
  }

  const ConfigNode* map_;
  std::string path_, ambient_;
  std::vector<Issue>& issues_;
  std::vector<std::string> known_, former_;
  bool partial_ = false;  ///< the node changes an existing value, which keeps its kind
};

/// Changes every value of a struct, so that the values a preset sets can be told from those it leaves.
struct Perturber {
  template <class S>
  void like(S&, const char*, std::type_identity_t<Presets<S>>) {}
  void standalone() {}
  template <class T, class Apply>
  void formerly(const char*, const char*, const Apply&) {}
  template <class T>
  void operator()(const char*, T& field, const char*, const Rule& = {}) {
    if constexpr (is_choice<T>)
      field = field == choices(T{})[0].value ? choices(T{})[1].value : choices(T{})[0].value;
    else if constexpr (std::is_same_v<T, bool>)
      field = !field;
    else if constexpr (std::is_same_v<T, std::string>)
      field += "?";
    else if constexpr (is_scalar<T>)
      field += 1;
  }
};

/// Lists the entries of a struct.
class Walker {
 public:
  explicit Walker(std::vector<Entry>& found) : entries_(found) {}
  std::vector<std::string>* deviations = nullptr;

  template <class S>
  void like(S& c, const char* words, std::type_identity_t<Presets<S>> presets) {
    std::vector<std::string> names;
    for (const auto& [name, apply] : presets) {
      names.emplace_back(name);
      if (deviations && c.like == name) compare_with_preset(c, apply);
    }
    if (path_.empty()) whole_ = c.like;
    const bool has_no_preset =
        c.like.empty() && !whole_.empty() && std::find(names.begin(), names.end(), whole_) == names.end();
    if (deviations && has_no_preset)
      deviations->push_back(path_ + " has no preset " + whole_ + " and keeps its own defaults");
    leaf("like", c.like, words, one_of(names));
  }
  void standalone() { whole_.clear(); }
  template <class T, class Apply>
  void formerly(const char*, const char*, const Apply&) {}
  template <class T>
  void operator()(const char* key, T& field, const char* words, const Rule& rule = {}) {
    if constexpr (std::is_same_v<T, AnyKeys>)
      entries_.push_back({join_path(path_, key), key, "map", one_line(field), words, "", depth_, true});
    else if constexpr (is_scalar<T> || is_list<T>)
      leaf(key, field, with_choices<T>(words, rule), rule_of<T>(rule));
    else
      inside(key, field, words);
  }
  template <class T, class Whole>
  void parts(const char* key, std::vector<T>& field, const Whole&, const char* words) {
    const auto first = entries_.size();
    (*this)(key, field, words);
    for (auto i = first; i < entries_.size(); ++i)
      if (entries_[i].depth > depth_) entries_[i].whole = join_path(path_, entries_[i].key);
  }
  template <class T>
  void walk(T& c) {
    describe(*this, c);
  }

 private:
  template <class T>
  void leaf(const char* key, const T& field, const std::string& words, const Rule& rule) {
    entries_.push_back(
        {join_path(path_, key), key, type_name<T>(), scalar_text(field), words, rule_words(rule), depth_, true});
  }
  void section(const std::string& key, const std::string& words) {
    entries_.push_back({join_path(path_, key), key, "section", "", words, "", depth_, false});
  }
  template <class T>
  void inside(const std::string& key, T& field, const char* words) {
    if constexpr (IsVector<T>::value) {
      if (field.empty()) {
        entries_.push_back({join_path(path_, key), key, "list", "[]", words, "", depth_, true});
        return;
      }
    }
    section(key, words);
    const std::string kept = path_;
    path_ = join_path(path_, key);
    ++depth_;
    if constexpr (IsVector<T>::value) {
      for (size_t i = 0; i < field.size(); ++i) element(std::to_string(i), field[i]);
    } else {
      fields(field);
    }
    --depth_;
    path_ = kept;
  }
  template <class T>
  void element(const std::string& key, T& field) {
    section(key, "");
    const std::string kept = path_;
    path_ = join_path(path_, key);
    ++depth_;
    fields(field);
    --depth_;
    path_ = kept;
  }
  template <class T>
  void fields(T& field) {
    if constexpr (IsVariant<T>::value) {
      std::vector<std::string> kinds;
      kinds_of<T>(kinds);
      std::visit(
          [&](auto& chosen) {
            leaf("kind", std::string(chosen.kind), "which one", one_of(kinds));
            describe(*this, chosen);
          },
          field);
    } else {
      describe(*this, field);
    }
  }
  template <class S>
  void compare_with_preset(const S& c, void (*apply)(S&)) {
    S plain{}, perturbed{}, now = c;
    Perturber perturb;
    describe(perturb, perturbed);
    apply(plain);
    apply(perturbed);
    std::vector<Entry> a, b, n;
    Walker(a).walk(plain), Walker(b).walk(perturbed), Walker(n).walk(now);
    for (size_t i = 0; i < a.size() && i < b.size() && i < n.size(); ++i)
      if (a[i].leaf && a[i].depth == 0 && a[i].key != "like" && a[i].value == b[i].value && n[i].value != a[i].value)
        deviations->push_back(join_path(path_, a[i].path) + " is " + n[i].value + ", " + c.like + " has " + a[i].value);
  }

  std::vector<Entry>& entries_;
  std::string path_;
  std::string whole_;  ///< the preset of the root
  int depth_ = 0;
};

std::string entries_to_yaml(const std::vector<Entry>& entries, bool with_words);
std::string entries_to_markdown(const std::vector<Entry>& entries);
std::string explain_entry(const ConfigTree& tree, const std::string& path, const std::vector<Entry>& now,
                          const std::vector<Entry>& defaults);

}  // namespace config_detail

/// Every entry of a config: sections and values, in the order of the descriptions.
template <class T>
std::vector<config_detail::Entry> entries(T config) {
  std::vector<config_detail::Entry> found;
  config_detail::Walker walker(found);
  walker.walk(config);
  return found;
}

/// Decodes a tree into a struct. Throws ConfigError with all mistakes at once, one per line.
template <class T>
T decode(const ConfigTree& tree) {
  std::vector<config_detail::Issue> issues;
  T config{};
  const auto& root = tree.root();
  if (root.type != ConfigNode::Type::absent && !config_detail::expect(root, ConfigNode::Type::map, "the file", issues))
    config_detail::throw_issues(std::move(issues));
  config_detail::Decoder decoder(&root, "", "", issues);
  describe(decoder, config);
  decoder.finish(false);
  if (!issues.empty()) config_detail::throw_issues(std::move(issues));
  return config;
}

/// YAML with all defaults; decodes to an equal struct.
template <class T>
std::string to_yaml(const T& config) {
  return config_detail::entries_to_yaml(entries(config), false);
}

/// YAML with a comment for each key: meaning and range.
template <class T>
std::string document(const T& config) {
  return config_detail::entries_to_yaml(entries(config), true);
}

/// Where a value comes from: default, preset, base file, file or override. Throws ConfigError for an unknown key.
template <class T>
std::string explain(const ConfigTree& tree, const std::string& path) {
  return config_detail::explain_entry(tree, path, entries(decode<T>(tree)), entries(T{}));
}

/// Differences from the presets that the config names: `optimizer.epsilon is 1e-08, google-bert has 1e-06`.
template <class T>
std::vector<std::string> deviations(T config) {
  std::vector<std::string> found;
  std::vector<config_detail::Entry> ignored;
  config_detail::Walker walker(ignored);
  walker.deviations = &found;
  walker.walk(config);
  return found;
}

}  // namespace cloze
