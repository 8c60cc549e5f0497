#include "core/config/config_types.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/spelling.h"

namespace cloze::config_detail {

std::string rule_words(const Rule& rule) {
  if (!rule.named.empty()) {
    auto of_each = rule;
    of_each.named.clear();
    std::string list;
    for (const auto& [name, numbers] : rule.named) list += name + ", or ";
    return list + "a list of numbers, each " + rule_words(of_each);
  }
  if (!rule.allowed.empty()) {
    std::string list;
    for (const auto& word : rule.allowed) list += (list.empty() ? "" : ", ") + word;
    return list;
  }
  if (rule.multiple_of > 1)
    return "a multiple of " + std::to_string(rule.multiple_of) + " in [" + shortest(rule.low) + ", " +
           shortest(rule.high) + "]";
  const bool low = std::isfinite(rule.low), high = std::isfinite(rule.high);
  if (low && high) return "in [" + shortest(rule.low) + ", " + shortest(rule.high) + (rule.open_high ? ")" : "]");
  if (low) return "at least " + shortest(rule.low);
  return "";
}

std::string scalar_text(int64_t v) { return std::to_string(v); }
std::string scalar_text(double v) { return shortest(v); }
std::string scalar_text(bool v) { return v ? "true" : "false"; }
std::string scalar_text(const std::string& v) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '/' || c == '.';
  };
  const bool word = !v.empty() && std::all_of(v.begin(), v.end(), plain) &&
                    std::isalpha(static_cast<unsigned char>(v[0])) && v != "true" && v != "false" && v != "null" &&
                    v != "yes" && v != "no";
  if (word || (v.size() > 1 && (v[0] == '/' || v[0] == '.') && std::all_of(v.begin(), v.end(), plain))) return v;
  std::string quoted = "\"";
  for (const char c : v) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else
      quoted += c;
  }
  return quoted + "\"";
}

}  // namespace cloze::config_detail
