#include "evaluation/suites/python_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A recursive-descent parser; its depth is bounded before it runs. That of nlohmann has no NaN and Infinity, makes
/// longer integers numbers of 64 bits, and takes the last of two equal keys: the files of BabyLM would be others.
class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  PythonJson document() {
    auto value = any();
    skip_space();
    if (at_ < text_.size()) wrong("has text after its value");
    return value;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    const auto before = text_.substr(0, std::min(at_, text_.size()));
    const auto line = ":" + std::to_string(std::count(before.begin(), before.end(), '\n') + 1);
    const bool is_one_line = text_.find('\n') == std::string_view::npos;  // whose place the caller knows
    fail<DataError>(file_, is_one_line ? "" : line, ": ", at_ >= text_.size() ? "the JSON ends in the middle" : what);
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool takes(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) wrong(concat("is no JSON: lacks '", c, "'"));
    ++at_;
  }
  /// Whether another item follows; `end` closes the list.
  bool more(char end) {
    skip_space();
    if (takes(",")) return true;
    expect(end);
    return false;
  }

  PythonJson any() {
    skip_space();
    if (takes("{")) return dict();
    if (takes("[")) return list();
    if (takes("\"")) return string();
    if (takes("true")) return true;
    if (takes("false")) return false;
    if (takes("null")) return {};
    if (takes("NaN")) return std::numeric_limits<double>::quiet_NaN();
    if (takes("Infinity")) return std::numeric_limits<double>::infinity();
    if (takes("-Infinity")) return -std::numeric_limits<double>::infinity();
    return number();
  }

  PythonJson::Dict dict() {
    PythonJson::Dict members;
    std::set<std::string> keys;
    skip_space();
    if (takes("}")) return members;
    do {
      expect('"');
      auto key = string();
      if (!keys.insert(key).second) wrong(concat("has the key '", key, "' twice"));
      expect(':');
      members.emplace_back(std::move(key), any());
    } while (more('}'));
    return members;
  }

  PythonJson::List list() {
    PythonJson::List items;
    skip_space();
    if (takes("]")) return items;
    do items.push_back(any());
    while (more(']'));
    return items;
  }

  std::string string() {
    std::string value;
    for (;; ++at_) {
      if (at_ >= text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20)
        wrong("has a control character in a string");
      if (text_[at_] == '"') break;
      if (text_[at_] == '\\')
        escape(value);
      else
        value += text_[at_];
    }
    ++at_;
    return value;
  }

  /// The character of an escape; stops at its last byte.
  void escape(std::string& out) {
    static constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    ++at_;
    if (at_ >= text_.size()) wrong("");
    if (const auto name = names.find(text_[at_]); name != std::string_view::npos) {
      out += characters[name];
      return;
    }
    if (text_[at_] != 'u') wrong(concat("has an unknown escape '\\", text_[at_], "'"));
    auto code = hexadecimal();
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_ + 1, 2) == "\\u") {
      at_ += 2;
      const auto low = hexadecimal();
      if (low < 0xDC00 || low > 0xDFFF) wrong("has half of a surrogate pair in a string");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code < 0xE000) wrong("has half of a surrogate pair in a string");
    append_code_point(out, code);
  }

  /// Four hexadecimal digits after `u`; stops at the last.
  int32_t hexadecimal() {
    const auto digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
    int32_t code = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (fault != std::errc() || end != digits.data() + 4 || digits.size() < 4 || digits[0] == '-')
      wrong("has an escape \\u without four hexadecimal digits");
    at_ += 4;
    return code;
  }

  void skip_digits() {
    if (at_ >= text_.size() || !is_digit(text_[at_])) wrong("is no JSON");
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }

  PythonJson number() {
    const size_t begin = at_;
    takes("-");
    if (!takes("0")) skip_digits();
    bool is_integer = true;
    if (takes(".")) is_integer = false, skip_digits();
    if (takes("e") || takes("E")) {
      is_integer = false;
      if (!takes("+")) takes("-");
      skip_digits();
    }
    const auto digits = text_.substr(begin, at_ - begin);
    if (is_integer) return PythonJson::Integer{digits == "-0" ? "0" : std::string(digits)};
    return read(digits);
  }

  static double read(std::string_view digits) {
    double value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (fault != std::errc::result_out_of_range) return value;
    return std::strtod(std::string(digits).c_str(), nullptr);  // 0 or infinity
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

void append_escaped(std::string& out, int32_t code) {
  std::array<char, 16> unit{};
  const auto put = [&](int32_t half) {
    std::snprintf(unit.data(), unit.size(), "\\u%04x", static_cast<unsigned>(half));
    out += unit.data();
  };
  if (code < 0x10000) return put(code);
  put(0xD800 + ((code - 0x10000) >> 10));
  put(0xDC00 + ((code - 0x10000) & 0x3FF));
}

void append_string(std::string& out, std::string_view text) {
  static constexpr std::string_view named = "\"\\\n\r\t\f\b", letters = "\"\\nrtfb";
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const auto code = next_code_point(text, at);
    const auto name = code < 0x80 ? named.find(static_cast<char>(code)) : std::string_view::npos;
    if (name != std::string_view::npos)
      out += {'\\', letters[name]};
    else if (code >= 0x20 && code < 0x7F)
      out += static_cast<char>(code);
    else
      append_escaped(out, code);
  }
  out += '"';
}

/// Writes values one after another.
struct Writer {
  int indent;
  std::string out{};

  void line(int depth) {
    if (indent > 0) out += "\n" + std::string(static_cast<size_t>(depth * indent), ' ');
  }

  /// Items between brackets, each written by `write`.
  template <class Items, class Write>
  void group(const char* brackets, const Items& items, int depth, const Write& write) {
    out += brackets[0];
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += indent > 0 ? "," : ", ";
      line(depth + 1);
      write(items[i]);
    }
    if (!items.empty()) line(depth);
    out += brackets[1];
  }

  void write(const PythonJson& json, int depth) {
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::nullptr_t>) out += "null";
          if constexpr (std::is_same_v<T, bool>) out += value ? "true" : "false";
          if constexpr (std::is_same_v<T, PythonJson::Integer>) out += value.digits;
          if constexpr (std::is_same_v<T, double>) out += python_repr(value);
          if constexpr (std::is_same_v<T, std::string>) append_string(out, value);
          if constexpr (std::is_same_v<T, PythonJson::List>)
            group("[]", value, depth, [&](const PythonJson& item) { write(item, depth + 1); });
          if constexpr (std::is_same_v<T, PythonJson::Dict>)
            group("{}", value, depth, [&](const auto& member) {
              append_string(out, member.first);
              out += ": ";
              write(member.second, depth + 1);
            });
        },
        json.value);
  }
};

}  // namespace

const PythonJson* PythonJson::find(std::string_view key) const {
  if (const auto* members = dict())
    for (const auto& [name, member] : *members)
      if (name == key) return &member;
  return nullptr;
}

double PythonJson::number() const {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* integer = std::get_if<Integer>(&value)) return std::strtod(integer->digits.c_str(), nullptr);
  return std::numeric_limits<double>::quiet_NaN();
}

PythonJson parse_python_json(std::string_view text, const std::string& file) {
  const auto follows = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };  // each a value or a key
  require<DataError>(
      text.size() <= max_json_bytes && std::ranges::count_if(text, follows) <= static_cast<int64_t>(max_json_values),
      file, ": is longer than ", max_json_bytes >> 20, " MiB, or has more than ", max_json_values, " values");
  require<DataError>(find_invalid_utf8(text) == std::string_view::npos, file, ": is not UTF-8");
  require<DataError>(too_deep(text) == std::string_view::npos, file, ": is nested deeper than ", max_json_depth,
                     " lists and objects");
  return Parser(text, file).document();
}

std::string python_json(const PythonJson& value, int indent) {
  Writer writer{.indent = indent};
  writer.write(value, 0);
  return writer.out;
}

std::string python_repr(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  std::string digits(text.data(), end);
  const auto e = digits.find('e');
  const int exponent = std::stoi(digits.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return digits;  // to_chars writes two digits of exponents, too
  const auto fixed = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
  std::string plain(text.data(), fixed);
  return plain.find('.') == std::string::npos ? plain + ".0" : plain;
}

}  // namespace cloze
