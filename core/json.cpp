#include "core/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/spelling.h"

namespace cloze {

namespace {

/// Why a text is not taken as JSON, and the offset at which; an empty reason: it is.
struct JsonFault {
  std::string reason{};
  std::optional<size_t> at{};
};
/// The bound that a text exceeds.
JsonFault excess_of(std::string_view text) {
  if (text.size() > max_json_bytes) return {concat("longer than ", max_json_bytes >> 20, " MiB"), {}};
  const auto deep = too_deep(text);
  if (deep != std::string_view::npos)
    return {concat("nested deeper than ", max_json_depth, " lists and objects"), deep};
  // Each value or key follows one of these; inside strings they are counted too.
  const auto follows = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };
  const bool has_many = text.size() > max_json_values &&
                        static_cast<size_t>(std::count_if(text.begin(), text.end(), follows)) > max_json_values;
  return has_many ? JsonFault{concat("more than ", max_json_values, " values"), {}} : JsonFault{};
}

JsonFault fault_in(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return {"UTF-16, not UTF-8; convert it", {}};
  if (auto excess = excess_of(text); !excess.reason.empty()) return excess;
  try {
    const auto value = nlohmann::json::parse(text);
    return {};
  } catch (const nlohmann::json::parse_error& e) {
    const size_t at = std::min(e.byte > 0 ? e.byte - 1 : 0, text.size());  // counted from 1
    if (at == text.size()) return {"the text ends in the middle", at};
    const auto says = [&](const char* part) { return std::string_view(e.what()).find(part) != std::string_view::npos; };
    if (says("ill-formed UTF-8")) return {"not UTF-8; convert it", at};
    return {says("surrogate") ? "an escaped half of a character, whose other half is missing" : "no JSON", at};
  } catch (const nlohmann::json::out_of_range&) {
    return {"it holds a number that is too large", {}};
  }
}

}  // namespace

size_t too_deep(std::string_view text, size_t max_depth) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted && c == '\\')
      ++i;
    else if (!quoted && (c == '{' || c == '[') && ++depth > max_depth)
      return i;
    else if (!quoted && (c == '}' || c == ']') && depth > 0)
      --depth;
  }
  return std::string_view::npos;
}

nlohmann::json parse_json(std::string_view text) {
  if (!excess_of(text).reason.empty()) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  if (!excess_of(text).reason.empty()) return nlohmann::ordered_json::value_t::discarded;
  return nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::json value_at(const nlohmann::json& value, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  return value.is_object() && value.contains(at) ? value.at(at) : nlohmann::json();
}

std::string string_at(const nlohmann::json& value, const char* pointer) {
  const auto member = value_at(value, pointer);
  return member.is_string() ? member.get<std::string>() : "";
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::json parse_json_line(std::string_view line, const std::string& where) {
  using nlohmann::json;
  if (!excess_of(line).reason.empty()) return json::value_t::discarded;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto take = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key)
      require<DataError>(keys.back().insert(value.get<std::string>()).second, where, ": has the key `",
                         shortened(value.get<std::string>()), "` twice; remove one of the two");
    return true;
  };
  return json::parse(line, take, /*allow_exceptions=*/false);
}

bool is_json_lines(const std::string& name) {
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") || name.ends_with(".jsonl.xz");
}

std::string json_fault(std::string_view text) {
  const auto [reason, at] = fault_in(text);
  if (reason.empty()) return "";
  if (!at) return " (" + reason + ")";
  const auto before = text.substr(0, *at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto column = *at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return concat(" (line ", line, ", column ", column, ": ", reason, ")");
}

std::string json_line_fault(std::string_view line) {
  const auto [reason, at] = fault_in(line);
  if (reason.empty()) return "";
  return at ? concat(" (column ", *at + 1, ": ", reason, ")") : " (" + reason + ")";
}

}  // namespace cloze
