// Records of JSON lines.
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/json_lines.h"
#include "data/reading/text_lines.h"
#include "tasks/files/records.h"

namespace cloze {

namespace {

using nlohmann::json;

/// Text, number or truth of JSON as text; nullopt for others.
std::optional<std::string> text_in(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return json_text(value);
  return std::nullopt;
}

class JsonRecords final : public RecordReader {
 public:
  explicit JsonRecords(const RecordSource& source)
      : source_(source), lines_(source.files.front(), LoneReturn::ends_if_no_feeds, UINT64_MAX, JsonList::as_objects) {}
  bool next(std::vector<Cell>& cells) override {
    while (at_ == elements_.size())
      if (!read_object()) return false;
    const auto& element = elements_[at_++];
    for (size_t i = 0; i < cells.size(); ++i) fill(element, source_.columns[i], cells[i]);
    return true;
  }
  std::string where() const override { return lines_.where(); }
  uint64_t line() const override { return lines_.number; }
  BadRecords bad() const override { return bad_; }

 private:
  /// An element of nested lists: by the path of each list the element of it that leads there.
  using Element = std::vector<std::pair<std::string, const json*>>;

  bool read_object() {
    const auto count = [&](const std::string& fault) {
      if (bad_.count++ == 0) bad_.first = fault;
    };
    auto object = source_.skip_bad ? lines_.next_object(count) : lines_.next_object();
    if (!object) return false;
    object_ = std::move(*object);
    elements_.clear();
    at_ = 0;
    expand({{"", &object_}}, source_.each);
    return true;
  }

  /// Appends the elements at a path below the last one of `above`.
  void expand(const Element& above, const std::string& path) {
    if (path.empty()) {
      elements_.push_back(above);
      return;
    }
    const json* at = above.back().second;
    auto reached = above.back().first;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('.', begin), path.size());
      const auto key = path.substr(begin, end - begin);
      if (!at->is_object() || !at->contains(key))
        fail<DataError>(where(), ": has nothing at '", shortened(source_.each), "', the path of `each`; it lacks '",
                        shortened(key), "'");
      at = &(*at)[key];
      reached += (reached.empty() ? "" : ".") + key;
      begin = end + 1;
      if (!at->is_array()) continue;
      for (const auto& one : *at) {
        auto inner = above;
        inner.emplace_back(reached, &one);
        expand(inner, begin <= path.size() ? path.substr(begin) : "");
      }
      return;
    }
    fail<DataError>(where(), ": '", shortened(source_.each), "' is no list; `each` is the path of one");
  }

  /// The value of a column: that of the innermost element whose path the column's begins with.
  static const json* find(const Element& element, const std::string& column) {
    for (auto one = element.rbegin(); one != element.rend(); ++one) {
      const auto& [path, value] = *one;
      if (!path.empty() && column == path) return value;
      if (!path.empty() && !column.starts_with(path + ".")) continue;
      const auto rest = path.empty() ? column : column.substr(path.size() + 1);
      if (value->is_object() && value->contains(rest)) return &(*value)[rest];  // a key may have dots
      const json* at = value;
      for (const auto& key : separated(rest, ".")) {
        if (!at->is_object() || !at->contains(key)) return nullptr;
        at = &(*at)[key];
      }
      return at;
    }
    return nullptr;
  }

  void fill(const Element& element, const ColumnName& column, Cell& cell) {
    const auto* value = find(element, column.name);
    if (value == nullptr && !column.is_optional) fail<DataError>(where(), no_key(column.name));
    cell.is_missing = value == nullptr || value->is_null();
    cell.is_list = false;
    cell.texts.clear();
    cell.starts.clear();
    if (cell.is_missing) return;
    if (const auto text = text_in(*value)) {
      cell.text = *text;
      require_no_nul(cell.text, *this);
      return;
    }
    cell.is_list = true;
    if (value->is_array())
      fill_list(*value, column.name, cell);
    else
      fill_columns(*value, column.name, cell);
  }

  std::string no_key(const std::string& name) const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object_.items()) {
      keys.push_back(key);
      const bool is_list_of_it = value.is_array() && !value.empty() && value[0].is_object() && value[0].contains(name);
      if (is_list_of_it)
        return concat(": has no '", shortened(name), "' but in the list '", shortened(key),
                      "'; write `each: ", shortened(key), "`, and ", shortened(key), ".", shortened(name));
    }
    const bool is_position = column_position(name).has_value();
    const auto near = is_position ? std::string() : did_you_mean(name, keys);
    return concat(": has no '", shortened(name), "'",
                  keys.empty()   ? ", for its object is empty; remove it"
                  : near.empty() ? "; it has " + shortened(listed(keys))
                                 : near,
                  is_position ? "; an object has no positions, so call a key by its name" : "");
  }

  void fill_list(const json& list, const std::string& name, Cell& cell) {
    for (const auto& one : list) {
      if (const auto text = text_in(one)) {
        cell.texts.push_back(*text);
      } else {
        const auto start = one.is_object() ? start_in(one) : nullptr;
        const bool is_answer = start != nullptr && one.contains("text") && one["text"].is_string();
        if (!is_answer)
          fail<DataError>(where(), ": '", shortened(name),
                          "' has an element that is neither a text nor an answer, {text, answer_start}");
        cell.texts.push_back(one["text"].get<std::string>());
        cell.starts.push_back(start->get<int64_t>());
      }
      require_no_nul(cell.texts.back(), *this);
    }
  }

  /// {"text": [...], "answer_start": [...]}
  void fill_columns(const json& columns, const std::string& name, Cell& cell) {
    const bool is_answers = columns.contains("text") && columns["text"].is_array() &&
                            columns.contains("answer_start") && columns["answer_start"].is_array() &&
                            columns["text"].size() == columns["answer_start"].size();
    require<DataError>(
        is_answers, where(), ": '", shortened(name), "' is an object; ",
        columns.contains("0")
            ? "if this is a table by columns, pandas writes it by rows: to_json(FILE, orient=\"records\", "
              "lines=True)"
            : concat("name a value inside of it: ", shortened(name), ".KEY"));
    for (size_t i = 0; i < columns["text"].size(); ++i)
      fill_list(json::array({{{"text", columns["text"][i]}, {"answer_start", columns["answer_start"][i]}}}), name,
                cell);
  }

  /// Where an answer begins, as SQuAD and ReCoRD name it.
  static const json* start_in(const json& answer) {
    for (const auto* key : {"answer_start", "start"})
      if (answer.contains(key) && answer[key].is_number_integer()) return &answer[key];
    return nullptr;
  }

  RecordSource source_;
  JsonLines lines_;
  json object_{};
  std::vector<Element> elements_;
  size_t at_ = 0;
  BadRecords bad_{};
};

}  // namespace

std::unique_ptr<RecordReader> open_json_records(const RecordSource& source) {
  return std::make_unique<JsonRecords>(source);
}

}  // namespace cloze
