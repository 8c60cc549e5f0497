#pragma once
// A YAML tree into a described struct, with all mistakes at once.
#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/config/config_tree.h"
#include "core/config/config_types.h"

namespace cloze::config_detail {

/// A mistake, and where it stands.
struct Issue {
  std::string where, what;
  std::string mend{};  ///< what is said after it, unless the meaning of `key` is known
  std::string key{};   ///< one that is unknown, or that is given a value and has keys of its own; else empty
};

/// The values of a preset as a file would have them.
ConfigNode map_of(const PresetValues& values);

/// Reads a value into `out`, or appends what is wrong with it.
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   int64_t& out);
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   double& out);
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   bool& out);
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   std::string& out);
/// One value or a list: `[1, 2]`, or a name that the rule has for one; earlier versions wrote the text `1,2`.
void decode_list(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                 std::vector<int64_t>& out);
/// Appends the issue of a map where a list of values belongs.
void refuse_map(const ConfigNode& map, const std::string& path, std::vector<Issue>& issues);
/// Appends an issue for each key that is neither `known` nor one of earlier versions.
void unknown_keys(const ConfigNode& map, const std::string& path, const std::vector<std::string>& known,
                  const std::vector<std::string>& former, std::vector<Issue>& issues);
/// True for a node of this type, or one that is absent where a map may be; else appends an issue.
bool expect(const ConfigNode& node, ConfigNode::Type type, const std::string& path, std::vector<Issue>& issues);
/// Whether an option belongs to a kind that was replaced: one of a file where an override is the `chooser`, which may
/// be null, or of a file whose choice another file replaces.
bool is_of_former_kind(const ConfigNode* chooser, const ConfigNode& option);
/// The issue of a key `name` that others than the chosen kind have; `key` chooses.
Issue of_another_kind(const ConfigNode& node, const std::string& path, const std::string& name, const std::string& key,
                      const std::string& chosen, const std::vector<std::string>& others);
/// A key of overrides that is the number or the kind of an element, of which a list that no file has holds `kinds`: an
/// issue if there is no such number, and for a kind, whose number it names. None for other nodes.
std::optional<Issue> mistaken_element(const ConfigNode& map, const std::string& path,
                                      const std::vector<std::string>& kinds);
/// Throws ConfigError with one line for each issue, in the order of the file.
[[noreturn]] void throw_issues(std::vector<Issue> issues);

template <class E>
  requires is_choice<E>
void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   E& out) {
  std::string name = name_of(out);
  decode_scalar(node, path, rule_of<E>(rule), issues, name);
  out = choice_of<E>(name);
}

/// One choice, text or number, or a list of them.
template <class E>
  requires(is_choice<E> || std::is_same_v<E, std::string> || std::is_same_v<E, double>)
void decode_list(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                 std::vector<E>& out) {
  out.clear();
  if (node.type == ConfigNode::Type::map) return refuse_map(node, path, issues);
  if (node.type != ConfigNode::Type::list) return decode_scalar(node, path, rule, issues, out.emplace_back());
  for (const auto& [key, item] : node.items)
    decode_scalar(item, join_path(path, std::to_string(out.size())), rule, issues, out.emplace_back());
}

/// Decodes a map into a struct.
class Decoder {
 public:
  Decoder(const ConfigNode* map, std::string path, std::string ambient, std::vector<Issue>& issues)
      : map_(map), path_(std::move(path)), ambient_(std::move(ambient)), issues_(issues) {}

  template <class S>
  void like(S& c, const char*, const Presets& presets) {
    known_.emplace_back("like");
    if (in_preset_) return;
    std::vector<std::string> names;
    for (const auto& [name, values] : presets) names.emplace_back(name);
    const ConfigNode* node = map_ ? map_->find("like") : nullptr;
    if (node && !node->text.empty()) {
      decode_scalar(*node, join_path(path_, "like"), one_of(names), issues_, c.like);
    } else if (!node && contains(ambient_, names)) {
      c.like = ambient_;
    }
    for (const auto& [name, values] : presets)
      if (c.like == name) apply(values, c);
    if (!c.like.empty()) ambient_ = c.like;
  }

  /// Gives a struct the values of a preset. Those of a kind that is not the chosen one are left out.
  template <class S>
  static void apply(const PresetValues& values, S& c) {
    const auto map = map_of(values);
    std::vector<Issue> of_other_kinds;
    Decoder preset(&map, "", "", of_other_kinds);
    preset.in_preset_ = true;
    describe(preset, c);
  }

  /// The following parts inherit no preset from the enclosing struct.
  void standalone() { ambient_.clear(); }

  template <class T>
  void operator()(const char* key, T& field, const char*, const Rule& rule = {}) {
    known_.emplace_back(key);
    const ConfigNode* node = map_ ? map_->find(key) : nullptr;
    decode(node, join_path(path_, key), rule, field);
  }

  /// One of several structs, told apart by the value of `key`; the keys of the one that is chosen stand next to it.
  /// What the struct before it shares with it stays. Keys of other kinds are refused, but for those that a run
  /// recorded and those of a kind that was replaced.
  template <class T>
  void kind(const char* key, T& field, const char*) {
    known_.emplace_back(key);
    std::vector<std::string> kinds;
    kinds_of<T>(kinds);
    std::string chosen = kind_in(field);
    const ConfigNode* chooser = map_ ? map_->find(key) : nullptr;
    if (chooser) decode_scalar(*chooser, join_path(path_, key), one_of(kinds), issues_, chosen);
    choose_kind(field, chosen);
    std::visit([&](auto& own) { describe(*this, own); }, field);
    if (!map_) return;
    for (const auto& [name, node] : map_->items) {
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      std::vector<std::string> others;
      kinds_with<T>(name, others);
      if (others.empty()) continue;
      former_.push_back(name);
      if (node.recorded || is_of_former_kind(chooser, node)) continue;
      issues_.push_back(of_another_kind(node, path_, name, key, chosen, others));
    }
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

  /// A value that does not go with those described before it: what is wrong with it, or "".
  void refuse(const char* key, const std::string& mistake) {
    const ConfigNode* node = map_ && !mistake.empty() ? map_->find(key) : nullptr;
    if (!mistake.empty()) issues_.push_back({node ? node->where : "", "'" + join_path(path_, key) + "' " + mistake});
  }

  /// A list whose elements start as copies of `whole` and are changed by their own presets and keys.
  template <class T, class Whole>
  void parts(const char* key, std::vector<T>& field, const Whole& parent, const char*) {
    known_.emplace_back(key);
    const ConfigNode* node = map_ ? map_->find(key) : nullptr;
    const auto path = join_path(path_, key);
    if (!node || !expect(*node, ConfigNode::Type::list, path, issues_)) return;
    field.clear();
    for (const auto& [name, item] : node->items) {
      const auto at = join_path(path, std::to_string(field.size()));
      T& part = field.emplace_back();
      static_cast<Whole&>(part) = parent;
      part.like.clear();  // the preset of the whole is already in its values, which its own keys may have changed
      if (!expect(item, ConfigNode::Type::map, at, issues_)) continue;
      Decoder inner(&item, at, "", issues_);
      describe(inner, part);
      inner.finish(false);
      if (part.like.empty()) part.like = parent.like;
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
      decode_elements(node, path, rule, field);
    } else if constexpr (is_boxed<T>) {
      decode(node, path, rule, *field);
    } else if constexpr (IsVariant<T>) {
      decode_kind(node, path, field);
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
  /// A list of structs: the elements given, or changes of those that exist.
  template <class T>
  void decode_elements(const ConfigNode* node, const std::string& path, const Rule& rule, std::vector<T>& field) {
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
    if (auto mistake = mistaken_element(*node, path, kinds_in(field))) {
      issues_.push_back(std::move(*mistake));
      return;
    }
    if (!expect(*node, ConfigNode::Type::list, path, issues_)) return;
    field.clear();
    for (size_t i = 0; i < node->items.size(); ++i)
      decode(&node->items[i].second, join_path(path, std::to_string(i)), rule, field.emplace_back());
  }

  /// One of several structs, told apart by `kind:`.
  template <class T>
  void decode_kind(const ConfigNode* node, const std::string& path, T& field) {
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
  }

  /// The kind of each element; empty texts for elements without kinds.
  template <class T>
  static std::vector<std::string> kinds_in(const std::vector<T>& list) {
    std::vector<std::string> kinds(list.size());
    if constexpr (is_boxed<T>)
      for (size_t i = 0; i < list.size(); ++i)
        kinds[i] = std::visit([](const auto& chosen) { return std::string(chosen.kind); }, *list[i]);
    return kinds;
  }
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
  bool in_preset_ = false;  ///< the map is a preset's
  bool partial_ = false;    ///< the node changes an existing value, which keeps its kind
};

}  // namespace cloze::config_detail
