#pragma once
// A described struct as a list of entries, which is written as YAML, as a table, or as the explanation of a value.
#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/config/config_decode.h"
#include "core/config/config_tree.h"
#include "core/config/config_types.h"
#include "core/contains.h"

namespace cloze::config_detail {

/// One line of a described struct.
struct Entry {
  std::string path, key, type, value, words, rule;
  int depth = 0;
  bool leaf = true;
  std::string inherited{};  ///< path of the value it inherits when it is not given; empty: it has a default
};

/// Lists the entries of a struct.
class Walker {
 public:
  explicit Walker(std::vector<Entry>& list) : entries_(list) {}
  std::vector<std::string>* deviations = nullptr;

  template <class S>
  void like(S& c, const char* words, const Presets& presets) {
    std::vector<std::string> names;
    for (const auto& [name, values] : presets) {
      names.emplace_back(name);
      if (deviations && c.like == name) compare_with_preset(c, values);
    }
    if (path_.empty()) whole_ = c.like;
    const bool has_no_preset = c.like.empty() && !whole_.empty() && !contains(names, whole_);
    if (deviations && has_no_preset)
      deviations->push_back(path_ + " has no preset " + whole_ + " and keeps its own defaults");
    leaf("like", c.like, words, one_of(names));
  }
  void standalone() { whole_.clear(); }
  template <class T, class Apply>
  void formerly(const char*, const char*, const Apply&) {}
  void refuse(const char*, const std::string&) {}
  template <class T>
  void operator()(const char* key, T& field, const char* words, const Rule& rule = {}) {
    if constexpr (std::is_same_v<T, AnyKeys>)
      entries_.push_back({join_path(path_, key), key, "map", one_line(field), words, "", depth_, true});
    else if constexpr (is_scalar<T> || is_list<T>)
      leaf(key, field, with_choices<T>(words, rule), rule_of<T>(rule));
    else
      inside(key, field, words);
  }
  template <class T>
  void kind(const char* key, T& field, const char* words) {
    std::vector<std::string> kinds;
    kinds_of<T>(kinds);
    leaf(key, kind_in(field), with_kinds<T>(words), one_of(kinds));
    std::visit([&](auto& own) { describe(*this, own); }, field);
  }
  template <class T, class Whole>
  void parts(const char* key, std::vector<T>& field, const Whole&, const char* words) {
    const auto first = entries_.size();
    (*this)(key, field, words);
    for (auto i = first; i < entries_.size(); ++i)
      if (entries_[i].depth > depth_) entries_[i].inherited = join_path(path_, entries_[i].key);
  }
  template <class T>
  void walk(T& c) {
    describe(*this, c);
  }

 private:
  template <class T>
  void leaf(const char* key, const T& field, const std::string& words, const Rule& rule) {
    entries_.push_back(
        {join_path(path_, key), key, type_name<T>(), value_text(field, rule), words, rule_words(rule), depth_, true});
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
    if constexpr (is_boxed<T>) {
      fields(*field);
    } else if constexpr (IsVariant<T>) {
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
  void compare_with_preset(S& c, const PresetValues& values) {
    S preset = c;
    Decoder::apply(values, preset);
    const auto has = values_of(c), wanted = values_of(preset);
    for (const auto& [key, value] : values)
      if (has.contains(key) && wanted.contains(key) && has.at(key) != wanted.at(key))
        deviations->push_back(join_path(path_, key) + " is " + has.at(key) + ", " + c.like + " has " + wanted.at(key));
  }
  /// The values of a struct itself, by path.
  template <class S>
  static std::map<std::string, std::string> values_of(S& c) {
    std::vector<Entry> entries;
    Walker(entries).walk(c);
    std::map<std::string, std::string> values;
    for (const auto& entry : entries)
      if (entry.leaf && entry.depth == 0 && entry.key != "like") values.emplace(entry.path, entry.value);
    return values;
  }

  std::vector<Entry>& entries_;
  std::string path_;
  std::string whole_;  ///< the preset of the root
  int depth_ = 0;
};

/// YAML that decodes to an equal struct; `with_words`: with a comment above each key, its meaning and its range.
std::string entries_to_yaml(const std::vector<Entry>& entries, bool with_words);
/// A table: key, type, default, allowed values and meaning.
std::string entries_to_markdown(const std::vector<Entry>& entries);
/// The value at `path`, its meaning, and what set it. Throws ConfigError for an unknown key.
std::string explain_entry(const ConfigTree& tree, const std::string& path, const std::vector<Entry>& now,
                          const std::vector<Entry>& defaults);

}  // namespace cloze::config_detail
