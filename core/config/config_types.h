#pragma once
// The types of a config's fields, told apart at compile time, and their text in YAML.
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/config/boxed.h"
#include "core/config/config_rule.h"
#include "core/config/kinds.h"
#include "core/contains.h"

namespace cloze::config_detail {

/// A value as YAML.
std::string scalar_text(int64_t v);
std::string scalar_text(double v);
std::string scalar_text(bool v);
std::string scalar_text(const std::string& v);
template <class E>
  requires is_choice<E>
std::string scalar_text(E v) {
  return name_of(v);
}
/// `in [0, 1)`, `at least 1`, `a, b, c`; empty for a rule that allows everything.
std::string rule_words(const Rule& rule);

template <class T>
inline constexpr bool is_scalar = std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool> ||
                                  std::is_same_v<T, std::string> || is_choice<T>;

/// The type as documentation names it.
template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return "whole numbers";
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return "numbers";
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return "texts";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "whole number";
  else if constexpr (std::is_same_v<T, double>)
    return "number";
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else
    return "text";
}

/// A list in one line: `[1, 2]`.
template <class T>
std::string scalar_text(const std::vector<T>& list) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : ", ") + scalar_text(one);
  return list.size() == 1 ? text : "[" + text + "]";
}

/// The value of a field: its name, where the rule names such lists, else its text.
template <class T>
std::string value_text(const T& field, const Rule& rule) {
  if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    for (const auto& [name, list] : rule.named)
      if (list == field) return name;
  return scalar_text(field);
}

/// The variant that T is or derives from.
template <class... K>
std::variant<K...> variant_in(const std::variant<K...>&);
template <class T>
using VariantIn = decltype(variant_in(std::declval<const T&>()));
template <class T>
concept IsVariant = requires(const T& value) { variant_in(value); };
template <class T>
inline constexpr bool is_boxed = false;
template <class T>
inline constexpr bool is_boxed<Boxed<T>> = true;
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
/// A list of scalars, written in one line.
template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = is_scalar<T>;

/// The rule of an entry: the given one, else that of the enum.
template <class T>
Rule rule_of(const Rule& rule) {
  if constexpr (is_choice<T>)
    return rule.allowed.empty() ? any_of<T>() : rule;
  else
    return rule;
}
/// `words: name = meaning; name = meaning` for the choices that a rule allows.
template <class T>
std::string with_choices(const char* words, const Rule& rule) {
  std::string all = words;
  if constexpr (is_choice<T>) {
    const char* joint = all.empty() ? "" : ": ";
    for (const auto& choice : choices(T{})) {
      const auto& names = rule.allowed;
      const bool allowed = names.empty() || contains(names, choice.name);
      if (!*choice.words || !allowed) continue;
      all += std::string(joint) + choice.name + " = " + choice.words;
      joint = "; ";
    }
  }
  return all;
}
inline std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

/// Makes the alternative of this kind the variant's value, unless it is already; false for an unknown kind.
template <class V, size_t I = 0>
bool emplace_kind(V& variant, const std::string& kind) {
  if constexpr (I == std::variant_size_v<VariantIn<V>>) {
    return false;
  } else {
    if (kind == std::variant_alternative_t<I, VariantIn<V>>::kind) {
      if (variant.index() != I) variant.template emplace<I>();
      return true;
    }
    return emplace_kind<V, I + 1>(variant, kind);
  }
}
/// The same for a variant with keep_shared(from, to): what the kinds share stays.
template <class V, size_t I = 0>
void choose_kind(V& variant, const std::string& kind) {
  if constexpr (I < std::variant_size_v<VariantIn<V>>) {
    using Kind = std::variant_alternative_t<I, VariantIn<V>>;
    if (kind == Kind::kind)
      choose<Kind>(variant);
    else
      choose_kind<V, I + 1>(variant, kind);
  }
}
/// `words: name = meaning; ...` for the kinds that have words.
template <class V, size_t I = 0>
std::string with_kinds(std::string words) {
  if constexpr (I < std::variant_size_v<VariantIn<V>>) {
    using Kind = std::variant_alternative_t<I, VariantIn<V>>;
    if (*Kind::words)
      words += (words.find(" = ") == std::string::npos ? ": " : "; ") + std::string(Kind::kind) + " = " + Kind::words;
    return with_kinds<V, I + 1>(std::move(words));
  }
  return words;
}
/// The names of the keys of a described struct.
struct KeyNames {
  std::vector<std::string> names{};
  void standalone() {}
  template <class T, class Apply>
  void formerly(const char*, const char*, const Apply&) {}
  template <class T>
  void operator()(const char* key, T&, const char*, const Rule& = {}) {
    names.emplace_back(key);
  }
};
/// The kinds of a variant that have a key of this name.
template <class V, size_t I = 0>
void kinds_with(const std::string& key, std::vector<std::string>& kinds_found) {
  if constexpr (I < std::variant_size_v<VariantIn<V>>) {
    std::variant_alternative_t<I, VariantIn<V>> kind{};
    KeyNames keys;
    describe(keys, kind);
    if (contains(keys.names, key)) kinds_found.emplace_back(kind.kind);
    kinds_with<V, I + 1>(key, kinds_found);
  }
}
/// Appends the kinds of all alternatives.
template <class V, size_t I = 0>
void kinds_of(std::vector<std::string>& out) {
  if constexpr (I < std::variant_size_v<VariantIn<V>>) {
    out.emplace_back(std::variant_alternative_t<I, VariantIn<V>>::kind);
    kinds_of<V, I + 1>(out);
  }
}

}  // namespace cloze::config_detail
