#include "scoring/passage_lines.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "data/line_reader.h"

namespace cloze {

namespace {

using nlohmann::json;

/// A context and its completion, with the space between them.
Passage completed(const std::string& context, const std::string& completion) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t'; };
  const bool apart = context.empty() || completion.empty() || is_space(context.back()) || is_space(completion.front());
  return {.left = apart ? context : context + " ", .scored = completion, .right = {}};
}

std::string text_at(const json& object, const char* key, const std::string& where) {
  if (!object.contains(key)) return "";
  require<DataError>(object[key].is_string(), where, ": `", key, "` is not a text");
  return object[key].get<std::string>();
}

Passage json_passage(std::string_view line, const std::string& where) {
  const auto object = parse_json_line(line, where);
  require<DataError>(object.is_object(), where, ": is not a JSON object", json_fault(line),
                     "; a file NAME.jsonl, or one whose first line begins with {, has one object per line");
  if (object.contains("text")) return {.left = {}, .scored = text_at(object, "text", where), .right = {}};
  if (object.contains("completion"))
    return completed(text_at(object, "context", where), text_at(object, "completion", where));
  require<DataError>(object.contains("scored"), where,
                     ": has none of the keys `text`, `completion` (with `context`) and `scored` (with `left` and "
                     "`right`)");
  return {.left = text_at(object, "left", where),
          .scored = text_at(object, "scored", where),
          .right = text_at(object, "right", where)};
}

Passage tabbed_passage(std::string_view line, const std::string& where) {
  const auto tab = line.find('\t');
  require<DataError>(tab != std::string_view::npos, where,
                     ": does not have one tab between a context and its completion, as the first line has");
  require<DataError>(line.find('\t', tab + 1) == std::string_view::npos, where,
                     ": has several tabs; one stands between a context and its completion, other tabs need JSON lines");
  return completed(std::string(line.substr(0, tab)), std::string(line.substr(tab + 1)));
}

}  // namespace

std::vector<Passage> read_passages(const std::string& file) {
  LineReader lines(file);
  std::vector<Passage> passages;
  Passage (*read)(std::string_view, const std::string&) = nullptr;
  for (std::string_view line; lines.next(line);) {
    const auto first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    if (!read && (is_json_lines(file) || line[first] == '{'))
      read = json_passage;
    else if (!read && line.find('\t') != std::string_view::npos)
      read = tabbed_passage;
    else if (!read)
      read = [](std::string_view text, const std::string&) {
        return Passage{.left = {}, .scored = std::string(text), .right = {}};
      };
    passages.push_back(read(line, lines.where()));
    require<DataError>(!passages.back().scored.empty(), lines.where(), ": the text to score is empty");
  }
  require<DataError>(!passages.empty(), lines.name, ": has no text; write one a line");
  return passages;
}

}  // namespace cloze
