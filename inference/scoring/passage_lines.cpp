#include "inference/scoring/passage_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "data/reading/line_reader.h"
#include "data/reading/text_lines.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* key, const std::string& where) {
  if (!object.contains(key)) return "";
  require<DataError>(object[key].is_string(), where, ": `", key, "` is not a text");
  return object[key].get<std::string>();
}

/// Throws DataError for an object with keys of several shapes of a passage, of which one would be ignored.
void require_one_shape(const json& object, const std::string& where) {
  using Keys = std::vector<std::string>;
  std::string first;
  for (const auto& shape : {Keys{"text"}, Keys{"context", "completion"}, Keys{"left", "scored", "right"}}) {
    const auto key = std::ranges::find_if(shape, [&](const auto& name) { return object.contains(name); });
    if (key == shape.end()) continue;
    require<DataError>(first.empty(), where, ": has both `", first, "` and `", *key,
                       "`, which do not go together; write `text` alone, `context` and `completion`, or `left`, "
                       "`scored` and `right`");
    first = *key;
  }
}

Passage json_passage(std::string_view line, const std::string& where) {
  const auto object = parse_json_line(line, where);
  require<DataError>(object.is_object(), where, ": is not a JSON object", json_line_fault(line),
                     "; a file NAME.jsonl, or one whose first line begins with {, has one object per line");
  const auto has = [&](const char* key) { return object.contains(key); };
  require_one_shape(object, where);
  if (has("text")) return {.left = {}, .scored = text_at(object, "text", where), .right = {}};
  if (has("completion")) return completed(text_at(object, "context", where), text_at(object, "completion", where));
  require<DataError>(has("scored"), where,
                     ": has none of the keys `text`, `completion` (with `context`) and `scored` (with `left` and "
                     "`right`)");
  return {.left = text_at(object, "left", where),
          .scored = text_at(object, "scored", where),
          .right = text_at(object, "right", where)};
}

Passage tabbed_passage(std::string_view line, const std::string& where) {
  const auto tab = line.find('\t');
  require<DataError>(tab != std::string_view::npos, where,
                     ": does not have one tab between a context and its completion, as the first line has, or the name "
                     "of the file says");
  require<DataError>(line.find('\t', tab + 1) == std::string_view::npos, where,
                     ": has several tabs; one stands between a context and its completion, other tabs need JSON lines");
  return completed(std::string(line.substr(0, tab)), std::string(line.substr(tab + 1)));
}

Passage plain_passage(std::string_view line, const std::string& where) {
  require<DataError>(line.find('\t') == std::string_view::npos, where,
                     ": has a tab, and the first line is a text without one; write a space, or name a file of contexts "
                     "and completions NAME.tsv");
  return {.left = {}, .scored = std::string(line), .right = {}};
}

/// The file's name says that its lines are contexts and completions.
bool is_tabbed(const std::string& name) {
  return name.ends_with(".tsv") || name.ends_with(".tsv.gz") || name.ends_with(".tsv.xz");
}

}  // namespace

Passage completed(const std::string& context, const std::string& completion) {
  const bool are_apart = context.empty() || completion.empty() || past_white_space(completion) > 0 ||
                         without_white_space_after(context).size() < context.size();
  return {.left = are_apart ? context : context + " ", .scored = completion, .right = {}};
}

PassageLines read_passages(const std::string& file) {
  LineReader lines(file);
  PassageLines passage_lines{.name = lines.name};
  Passage (*read)(std::string_view, const std::string&) = nullptr;
  for (std::string_view line; lines.next(line);) {
    const auto first = past_white_space(line);
    if (first == line.size()) continue;
    const auto bad = find_invalid_utf8(line);
    require<DataError>(bad == std::string_view::npos, lines.where(), ": byte ", bad + 1,
                       " is not UTF-8; convert the text to UTF-8");
    if (!read) {
      const bool has_tab = is_tabbed(file) || line.find('\t') != std::string_view::npos;
      const bool is_json = is_json_lines(file) || (line[first] == '{' && !is_tabbed(file));
      read = is_json ? json_passage : has_tab ? tabbed_passage : plain_passage;
      if (read == tabbed_passage && line == "context\tcompletion") continue;  // names of columns
    }
    passage_lines.passages.push_back(read(line, lines.where()));
    passage_lines.numbers.push_back(lines.number);
    require<DataError>(!passage_lines.passages.back().scored.empty(), lines.where(), ": the text to score is empty");
  }
  require<DataError>(!passage_lines.passages.empty(), lines.name, ": has no text; write one a line");
  return passage_lines;
}

}  // namespace cloze
