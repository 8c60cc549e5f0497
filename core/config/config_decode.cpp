#include "core/config/config_decode.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
#include <system_error>
#include <tuple>

#include "core/contains.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze::config_detail {

namespace {

using Type = ConfigNode::Type;

constexpr size_t most_told = 50;  // of the mistakes of a config

/// What a number is multiplied by that ends in k, M, B (or G) or T; 1 for other ends.
int64_t unit_of(const char* at, const char* end) {
  if (end - at != 1) return 1;
  switch (*at) {
    case 'k':
      return 1'000;
    case 'M':
      return 1'000'000;
    case 'B':
    case 'G':
      return 1'000'000'000;
    case 'T':
      return 1'000'000'000'000;
    default:
      return 1;
  }
}

/// `; write 2100` for a text that means a whole number and does not spell it, such as 2.1k, 1e6 or 1K; or empty.
std::string meant_by_number(std::string text) {
  if (text.ends_with('K')) text.back() = 'k';
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const auto unit = unit_of(end, last);
  if (error != std::errc() || (end != last && unit == 1)) return "";
  value *= static_cast<double>(unit);
  const double rounded = std::round(value);
  const bool is_meant = std::abs(rounded) < 1e15 && std::abs(value - rounded) <= 1e-9 * std::abs(rounded);
  return is_meant ? concat("; write ", static_cast<int64_t>(rounded)) : "";
}

bool is_missing(const ConfigNode& node) { return node.type == Type::absent; }

/// The scalar's text, or an issue.
const std::string* scalar(const ConfigNode& node, const std::string& path, const std::string& wanted,
                          std::vector<Issue>& issues) {
  if (node.type == Type::scalar) return &node.text;
  const bool is_one = node.type == Type::list && node.items.size() == 1 && node.items[0].second.type == Type::scalar;
  issues.push_back({node.where, "'" + path + "' must be " + wanted + ", not " + shown(node),
                    is_one ? "; leave out the brackets around " + shortened(node.items[0].second.text) : ""});
  return nullptr;
}

bool is_number(const std::string& text) { return text.find_first_not_of("0123456789.e+-") == std::string::npos; }

bool is_word(const ConfigNode& node) {
  return node.type == Type::scalar && !node.text.empty() && std::isalpha(static_cast<unsigned char>(node.text[0]));
}

/// The list that a word stands for, or an issue.
void decode_name(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                 std::vector<int64_t>& out) {
  std::vector<std::string> names;
  for (const auto& [name, list] : rule.named) {
    names.push_back(name);
    if (name != node.text) continue;
    out = list;
    return;
  }
  issues.push_back({node.where, "'" + path + "' is '" + shortened(node.text) + "', must be " + rule_words(rule) +
                                    did_you_mean(node.text, names)});
}

void check_range(const ConfigNode& node, const std::string& path, const Rule& rule, double value,
                 std::vector<Issue>& issues) {
  const bool fits = rule.multiple_of == 1 || std::fmod(value, static_cast<double>(rule.multiple_of)) == 0;
  if (value < rule.low || value > rule.high || (rule.open_high && value == rule.high) || !fits)
    issues.push_back({node.where, "'" + path + "' is " + shortened(node.text) + ", must be " + rule_words(rule)});
}

std::string lower_case(std::string text) {
  for (auto& character : text) character = static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
  return text;
}

/// `; did you mean 'x'?` for a mistyped value, and for the name that other programs have for one; or empty.
std::string meant_by_value(const std::string& text, const std::vector<std::string>& allowed) {
  auto lower = lower_case(text);
  const bool is_precision = contains(allowed, "bf16");
  if (is_precision)
    for (const auto* half : {"fp16", "float16", "half", "16"})
      if (lower == half) return "; there is no fp16, and bf16 needs no loss scaling";
  if (is_precision && lower == "bfloat16") lower = "bf16";
  if (is_precision && (lower == "float32" || lower == "float")) lower = "fp32";
  return did_you_mean(lower, allowed);
}

}  // namespace

ConfigNode map_of(const PresetValues& values) {
  ConfigNode map;
  map.type = Type::map;
  for (const auto& [key, text] : values) {
    auto& value = map.items.emplace_back(key, ConfigNode{}).second;
    value.type = Type::scalar;
    value.text = text;
  }
  return map;
}

void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   int64_t& out) {
  const auto* text = scalar(node, path, "a whole number", issues);
  if (!text) return;
  int64_t value = 0;
  const auto [number_end, number_error] = std::from_chars(text->data(), text->data() + text->size(), value);
  auto end = number_end;
  auto error = number_error;
  if (const int64_t unit = unit_of(end, text->data() + text->size()); error == std::errc() && unit > 1) {
    ++end;
    if (__builtin_mul_overflow(value, unit, &value)) error = std::errc::result_out_of_range;
  }
  if (error == std::errc::result_out_of_range) {
    issues.push_back({node.where, "'" + path + "' is " + shortened(*text) + ", which is too large"});
  } else if (error != std::errc() || end != text->data() + text->size() || node.quoted) {
    issues.push_back({node.where, "'" + path + "' must be a whole number, not '" + shortened(*text) + "'" +
                                      (node.quoted ? "" : meant_by_number(*text))});
  } else {
    check_range(node, path, rule, static_cast<double>(value), issues);
    out = value;
  }
}

void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   double& out) {
  const auto* text = scalar(node, path, "a number", issues);
  if (!text) return;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc::result_out_of_range) {
    issues.push_back(
        {node.where, "'" + path + "' is " + shortened(*text) + ", which is too large or too small for a number"});
  } else if (error != std::errc() || end != text->data() + text->size() || node.quoted || !std::isfinite(value)) {
    issues.push_back({node.where, "'" + path + "' must be a number, not '" + shortened(*text) + "'"});
  } else {
    check_range(node, path, rule, value, issues);
    out = value;
  }
}

void decode_scalar(const ConfigNode& node, const std::string& path, const Rule&, std::vector<Issue>& issues,
                   bool& out) {
  const auto* text = scalar(node, path, "true or false", issues);
  if (!text) return;
  if (node.quoted || (*text != "true" && *text != "false"))
    issues.push_back({node.where, "'" + path + "' must be true or false, not '" + shortened(*text) + "'"});
  else
    out = *text == "true";
}

void decode_scalar(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                   std::string& out) {
  const auto* text = scalar(node, path, "a text", issues);
  if (!text) return;
  if (!rule.allowed.empty() && !contains(rule.allowed, *text))
    issues.push_back({node.where, "'" + path + "' is '" + shortened(*text) + "', must be one of " + rule_words(rule) +
                                      meant_by_value(*text, rule.allowed)});
  else
    out = *text;
}

void refuse_map(const ConfigNode& map, const std::string& path, std::vector<Issue>& issues) {
  std::string values;
  for (const auto& [key, value] : map.items) {
    const auto text = one_line(value);
    values += (values.empty() ? "" : ", ") + (text.empty() ? key : text);
  }
  const auto prefix = map.where.starts_with("--set") ? path + "=" : "";
  issues.push_back(
      {map.where, "'" + path + "' must be a list, not a map", "; give " + prefix + shortened("[" + values + "]")});
}

void decode_list(const ConfigNode& node, const std::string& path, const Rule& rule, std::vector<Issue>& issues,
                 std::vector<int64_t>& out) {
  if (!rule.named.empty() && is_word(node)) return decode_name(node, path, rule, issues, out);
  if (node.type == Type::map) return refuse_map(node, path, issues);
  std::vector<ConfigNode> items;
  if (node.type == ConfigNode::Type::list) {
    for (const auto& [key, item] : node.items) items.push_back(item);
  } else {
    std::stringstream texts(node.text + (node.text.ends_with(',') ? " " : ""));
    for (std::string text; std::getline(texts, text, ',');) {
      items.push_back(node);
      items.back().quoted = false;
      items.back().text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
      items.back().text.erase(items.back().text.find_last_not_of(' ') + 1);
    }
    if (items.empty()) items.push_back(node);
  }
  const auto before = issues.size();
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < items.size(); ++i)
    decode_scalar(items[i], items.size() == 1 ? path : join_path(path, std::to_string(i)), rule, issues,
                  numbers.emplace_back());
  if (items.empty() && !rule.may_be_none)
    issues.push_back({node.where, "'" + path + "' is an empty list; give a number, or several"});
  if (issues.size() == before) out = numbers;
}

namespace {

/// The known keys that a mistyped one is like in spelling, or, if these are few, is a part of, as `batch` is of
/// `batch_size`.
std::vector<std::string> meant_by_key(const std::string& key, const std::vector<std::string>& known) {
  for (const auto& spelling : {key, lower_case(key)})
    if (const auto near = nearest(spelling, known); !near.empty()) return {near};
  std::vector<std::string> names;
  for (const auto& name : known)
    if (name.starts_with(key + "_") || name.ends_with("_" + key)) names.push_back(name);
  constexpr size_t few = 3;
  return names.size() <= few ? names : std::vector<std::string>{};
}

}  // namespace

void unknown_keys(const ConfigNode& map, const std::string& path, const std::vector<std::string>& known,
                  const std::vector<std::string>& former, std::vector<Issue>& issues) {
  constexpr size_t few = 24;  // fit into one line
  std::string list;
  for (const auto& key : known) list += (list.empty() ? "" : ", ") + key;
  const auto all = known.size() <= few ? "; known there: " + list : "; cloze config lists those known";
  for (const auto& [key, node] : map.items) {
    if (contains(known, key)) continue;
    if (contains(former, key)) continue;
    if (issues.size() >= most_told) {  // whose near names would not be read
      issues.push_back({node.key_where, "unknown key '" + shortened(join_path(path, key)) + "'"});
      continue;
    }
    std::string near;
    for (const auto& meant : meant_by_key(key, known))
      near += (near.empty() ? "; did you mean '" : " or '") + join_path(path, meant) + "'";
    const auto full_path = join_path(path, key);
    issues.push_back(
        {node.key_where, "unknown key '" + shortened(full_path) + "'", near.empty() ? all : near + "?", full_path});
  }
}

namespace {

/// What to give instead of a value that is not the map, or the list of maps, that belongs there.
std::string mend_of_type(const ConfigNode& node, bool is_map, const std::string& path) {
  const bool is_set = node.where.starts_with("--set"),
             is_element = path.find_last_not_of("0123456789") == path.rfind('.');
  const auto prefix = is_set ? path + "=" : "";
  if (is_map)
    return "; give " + (is_set && !is_element ? path + ".KEY=VALUE" : "{KEY: VALUE}") + ", with one of its keys";
  if (node.type == Type::scalar) return "; give " + prefix + "[{KEY: VALUE}], a list of maps";
  if (is_set && !node.where.starts_with("--set " + prefix) && !node.items.empty())
    return "; its elements are numbered from 0: write " + path + ".0." + shortened(node.items[0].first);
  return "; give " + prefix + shortened("[" + one_line(node) + "]") + ", a list of it";
}

}  // namespace

bool expect(const ConfigNode& node, ConfigNode::Type type, const std::string& path, std::vector<Issue>& issues) {
  if (node.type == type) return true;
  if (is_missing(node) && type == Type::map) return true;  // `model:` without a value is an empty map
  const bool is_map = type == Type::map;
  const bool is_scalar = node.type == Type::scalar;
  issues.push_back({node.where,
                    "'" + path + "' must be " + (is_map ? "a map of keys" : "a list") + ", not " +
                        (is_scalar ? "'" + shortened(node.text) + "'" : shown(node)),
                    path == "the file" ? "" : mend_of_type(node, is_map, path),
                    is_map && is_scalar ? path + (is_number(node.text) ? ".number" : "") : ""});
  return false;
}

bool is_of_former_kind(const ConfigNode* chooser, const ConfigNode& option) {
  const auto is_override = [](const ConfigNode& node) { return node.where.starts_with("--set"); };
  if (!chooser || is_override(option)) return false;
  if (is_override(*chooser)) return true;
  const auto file = option.where.substr(0, option.where.rfind(':', option.where.rfind(':') - 1));
  return std::any_of(chooser->overridden.begin(), chooser->overridden.end(), [&](const std::string& replaced) {
    return replaced.find(" (" + file + ":") != std::string::npos;
  });
}

Issue of_another_kind(const ConfigNode& node, const std::string& path, const std::string& name, const std::string& key,
                      const std::string& chosen, const std::vector<std::string>& others) {
  return {node.key_where, concat("'", join_path(path, name), "' is an option of ", listed(others, "and"), ", and '",
                                 join_path(path, key), "' is ", chosen, "; leave it out, or choose ",
                                 others.size() > 1 ? "one of them" : others[0])};
}

std::optional<Issue> mistaken_element(const ConfigNode& map, const std::string& path,
                                      const std::vector<std::string>& kinds) {
  if (map.type != Type::map) return std::nullopt;
  for (const auto& [key, value] : map.items) {
    if (key.empty() || !value.key_where.starts_with("--set")) continue;
    const auto wrong = element_words(key, kinds.size());
    const bool is_number = key.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && (key.size() > 5 || std::stoul(key) >= kinds.size())) return Issue{value.key_where, wrong};
    const auto found = std::find(kinds.begin(), kinds.end(), key);
    if (found == kinds.end()) continue;
    auto meant = join_path(path, std::to_string(found - kinds.begin()));
    for (const auto* at = &value; at->type == Type::map && at->items.size() == 1; at = &at->items[0].second)
      meant = join_path(meant, at->items[0].first);
    const auto mend = value.type == Type::map ? "; did you mean '" + meant + "'?"
                                              : concat("; ", key, " is ", meant,
                                                       ", of which a key is to be named, such as ", meant, ".weight");
    return Issue{value.key_where, wrong + mend};
  }
  return std::nullopt;
}

void throw_issues(std::vector<Issue> issues) {
  // In the order of the file: by line, then column, as numbers.
  const auto order = [](const Issue& issue) {
    const auto column = issue.where.rfind(':'), line = issue.where.rfind(':', column - 1);
    if (issue.where.rfind("--set", 0) == 0 || column == std::string::npos || line == std::string::npos)
      return std::tuple(std::string("~"), 0, 0);
    return std::tuple(issue.where.substr(0, line), std::atoi(issue.where.c_str() + line + 1),
                      std::atoi(issue.where.c_str() + column + 1));
  };
  std::stable_sort(issues.begin(), issues.end(), [&](const Issue& a, const Issue& b) { return order(a) < order(b); });
  std::string text;
  for (size_t i = 0; i < std::min(issues.size(), most_told); ++i)
    text += (text.empty() ? "" : "\n") + issues[i].where + ": " + issues[i].what + issues[i].mend;
  if (issues.size() > most_told) text += concat("\nand ", issues.size() - most_told, " more mistakes");
  throw ConfigError(text);
}

}  // namespace cloze::config_detail
