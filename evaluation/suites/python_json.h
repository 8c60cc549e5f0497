#pragma once
// JSON as Python's module json reads and writes it: members in their order, integers of any length, NaN and Infinity.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cloze {

/// A value. Source: CPython 3.13, Lib/json.
struct PythonJson {
  struct Integer {
    std::string digits;  ///< with a sign
    bool operator==(const Integer&) const = default;
  };
  using List = std::vector<PythonJson>;
  using Dict = std::vector<std::pair<std::string, PythonJson>>;  ///< no key twice
  std::variant<std::nullptr_t, bool, Integer, double, std::string, List, Dict> value{nullptr};

  PythonJson() = default;
  PythonJson(bool b) : value(b) {}
  PythonJson(Integer i) : value(std::move(i)) {}
  PythonJson(int64_t i) : value(Integer{std::to_string(i)}) {}
  PythonJson(double d) : value(d) {}
  PythonJson(std::string s) : value(std::move(s)) {}
  PythonJson(const char* s) : value(std::string(s)) {}
  PythonJson(List l) : value(std::move(l)) {}
  PythonJson(Dict d) : value(std::move(d)) {}
  bool operator==(const PythonJson&) const = default;

  /// The members of an object, the items of a list, the characters of a string; null for a value of another kind.
  const Dict* dict() const { return std::get_if<Dict>(&value); }
  const List* list() const { return std::get_if<List>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  /// The member of an object; null: there is none, or it is no object.
  const PythonJson* find(std::string_view key) const;
  /// The value of a number; NaN for a value of another kind.
  double number() const;
};

/// The value of a JSON text. Throws DataError with `file`, and the line in a text of several, for what is no JSON,
/// nested too deep, or has a key twice.
PythonJson parse_python_json(std::string_view text, const std::string& file);

/// The text that json.dumps writes: in one line, or with an indent of so many spaces.
std::string python_json(const PythonJson& value, int indent = 0);

/// repr() of a float: the fewest digits that read back as the same number; `1e-05`, `0.1`, `3.0`.
std::string python_repr(double value);

}  // namespace cloze
