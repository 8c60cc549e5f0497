#pragma once
// What a `describe` says of a value: its range, the choices of an enum, the presets of a struct; and what is forbidden.
#include <array>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/config/kinds.h"
#include "core/error.h"
#include "core/spelling.h"

namespace cloze {

/// The constraint on a value.
struct Rule {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_high = false;              ///< `high` itself is not allowed
  int64_t multiple_of = 1;             ///< of whole numbers
  std::vector<std::string> allowed{};  ///< the only values of a text; empty: any
  bool may_be_none = false;            ///< a list may be empty
  /// Of a list of whole numbers: words that stand for whole lists.
  std::vector<std::pair<std::string, std::vector<int64_t>>> named{};
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

/// Values of keys, written as in a file.
using PresetValues = std::vector<std::pair<const char*, const char*>>;
/// Named presets of a struct with a field `like`.
using Presets = std::vector<std::pair<const char*, PresetValues>>;

/// The rules that a config breaks, one sentence each: the value, its key and a remedy.
class Constraints {
 public:
  /// Adds the sentence of a rule that is `broken`, in which numbers are written as configs have them, and what has a
  /// kind by its kind.
  template <class... Parts>
  void forbid(bool broken, const Parts&... sentence) {
    if (broken) broken_.push_back(concat(written(sentence)...));
  }
  const std::vector<std::string>& broken() const { return broken_; }

 private:
  template <class Part>
  static decltype(auto) written(const Part& part) {
    if constexpr (std::is_floating_point_v<Part>)
      return shortest(part);
    else if constexpr (requires { part.valueless_by_exception(); })
      return kind_in(part);
    else
      return (part);
  }

  std::vector<std::string> broken_;
};

}  // namespace cloze
