#include "tasks/task_record.h"

#include <algorithm>

#include "core/contains.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace {

/// Whether a cell has a list or a set of texts as Python prints it: `['a', 'b']`.
bool is_python_list(std::string_view text) {
  const bool is_list = text.starts_with('[') && text.ends_with(']'),
             is_set = text.starts_with('{') && text.ends_with('}');
  return (is_list || is_set) && std::string_view("'\"").find(text[past_white_space(text, 1)]) != text.npos;
}

/// What Python prints so.
const char* python_type(std::string_view text) {
  if (text.starts_with("array")) return "an array";
  if (text.starts_with('[')) return "a list";
  if (text.starts_with('(')) return "a tuple";
  return text.find(':') == text.npos ? "a set" : "a dictionary";
}

constexpr uint64_t most_joined_bytes = uint64_t{64} << 20;  // of the text of an item

}  // namespace

int flag_in(const std::string& text) {
  const auto is_one_of = [&](std::initializer_list<const char*> words) {
    return std::ranges::any_of(words, [&](const char* word) { return text == word; });
  };
  return is_one_of({"1", "1.0", "true", "True"}) ? 1 : is_one_of({"0", "0.0", "false", "False"}) ? 0 : -1;
}

TaskRecord::TaskRecord(const TaskConfig& task, LabelPool& labels, const SplitOptions& options)
    : config(task), pool(labels), tag_check(task.data.scheme), options_(options) {
  const auto names = given_labels(task).names;
  for (const auto& [written, name] : task.labels.items) {
    names_.emplace(written, name.text);
    places_.emplace(written, std::ranges::find(names, name.text) - names.begin());
  }
}

void TaskRecord::open(const std::vector<std::string>& files, TaskFormat format) {
  const auto& data = config.data;
  source_ = {.files = files, .format = format, .header = data.header, .skip_bad = options_.skip_bad, .each = data.each};
  const bool is_folder = format == TaskFormat::folders;
  const bool has_text = is_folder || format == TaskFormat::trec;
  const auto usual = has_text ? JsonKeys{.text = "text", .label = is_folder ? "label" : ""} : config.kind->files.keys;
  text_ = columns_of(data.text.empty() ? usual.text : data.text, "data.text");
  second_ = columns_of(data.second.empty() ? usual.second : data.second, "data.second");
  id_ = columns_of(data.id.empty() && is_folder ? "{label}/{name}" : data.id, "data.id");
  group_ = columns_of(data.group, "data.group");
  for (const auto& name : data.candidates) candidates_.push_back(column(name));
  add_label_columns(usual.label);
  records_ = open_records(source_);
  cells_.resize(source_.columns.size());
}

void TaskRecord::add_label_columns(const std::string& usual) {
  const auto& data = config.data;
  const bool may_lack_some = config.kind->generates && data.label.size() > 1;
  const auto add = [&](const std::string& name) {
    labels_.push_back(column(name, !options_.needs_labels || may_lack_some));
  };
  if (!data.answers.empty())
    add(data.answers);
  else if (data.label.empty() && !usual.empty())
    add(usual);
  else
    std::ranges::for_each(data.label, add);
}

bool TaskRecord::next() {
  if (!records_->next(cells_)) return false;
  trim_labels();
  join_sentences();
  return true;
}

size_t TaskRecord::column(const std::string& name, bool is_optional) {
  auto& columns = source_.columns;
  const auto at = std::ranges::find(columns, name, &ColumnName::name) - columns.begin();
  if (at == std::ssize(columns)) columns.push_back({name, is_optional});
  return static_cast<size_t>(at);
}

TaskRecord::ColumnText TaskRecord::columns_of(const std::string& text, const char* key) {
  ColumnText column_text;
  if (text.empty()) return column_text;
  const auto parsed = columns_in(text, key);
  column_text.between = parsed.between;
  for (const auto& name : parsed.fields) column_text.columns.push_back(column(name));
  return column_text;
}

const Cell& TaskRecord::cell(size_t i) const {
  const auto& cell = cells_[i];
  if (cell.is_missing)
    fail<MissingValue>(where(), ": '", shortened(source_.columns[i].name),
                       "' is null; give it a value, or leave such items out with --skip-bad");
  return cell;
}

const std::string& TaskRecord::text_cell(size_t i) const {
  const auto& text = cell(i);
  if (text.is_list)
    fail<DataError>(where(), ": '", shortened(source_.columns[i].name), "' is a list; a text was expected");
  return text.text;
}

std::string TaskRecord::joined(const ColumnText& text) const {
  if (text.columns.empty()) return "";
  std::string all = text.between[0];
  for (size_t i = 0; i < text.columns.size(); ++i) {
    all += text_cell(text.columns[i]) + text.between[i + 1];
    if (all.size() > most_joined_bytes)
      fail<DataError>(where(), ": a text that joins ", text.columns.size(), " columns has more than ",
                      most_joined_bytes >> 20, " MiB; name fewer columns in its template, or shorten them");
  }
  return all;
}

const std::vector<std::string>* TaskRecord::words() const {
  const auto& list = cell(text_.columns.front());
  return list.is_list && list.starts.empty() && text_.columns.size() == 1 ? &list.texts : nullptr;
}

std::vector<const Cell*> TaskRecord::candidates() const {
  std::vector<const Cell*> cells;
  for (const auto i : candidates_) cells.push_back(&cells_[i]);
  return cells;
}

bool TaskRecord::has_label(bool may_be_blank) const {
  const auto is_there = [&](size_t i) {
    return !cells_[i].is_missing && (may_be_blank || cells_[i].is_list || !cells_[i].text.empty());
  };
  if (config.kind->generates) return may_be_blank || std::ranges::any_of(labels_, is_there);
  return !labels_.empty() && std::ranges::all_of(labels_, is_there);
}

std::vector<std::string> TaskRecord::label_texts() const {
  std::vector<std::string> texts;
  for (const auto i : labels_) {
    const auto& found = cells_[i];
    if (!found.is_list && !found.is_missing && !is_blank(found.text)) texts.push_back(found.text);
    for (const auto& text : found.texts)
      if (texts.emplace_back(text); is_blank(text))
        fail<DataError>(where(), ": '", shortened(source_.columns[i].name), "' has an empty text in its list; give it ",
                        "one, or leave it out of the list");
  }
  return texts;
}

bool TaskRecord::is_skipped() const {
  const auto& skipped = config.data.skip_labels;
  return std::ranges::any_of(labels_, [&](size_t i) {
    const auto& label = cells_[i];
    return !skipped.empty() && !label.is_list && !label.is_missing && contains(skipped, label.text);
  });
}

/// White space around a label is no part of it.
void TaskRecord::trim_labels() {
  const auto trim = [](std::string& text) {
    if (const auto inner = without_white_space_around(text); inner.size() < text.size()) text = std::string(inner);
  };
  if (config.kind->has_answers || config.kind->generates) return;
  for (const auto i : labels_) {
    trim(cells_[i].text);
    std::ranges::for_each(cells_[i].texts, trim);
  }
}

/// The sentences of a source stand in a list as they stand in a text, with a space between; references stay apart.
void TaskRecord::join_sentences() {
  for (size_t i = 0; config.kind->generates && i < cells_.size(); ++i) {
    auto& [text, texts, starts, is_list, is_missing] = cells_[i];
    if (!is_list || contains(labels_, i)) continue;
    text.clear();
    for (const auto& sentence : texts) text += (text.empty() ? "" : " ") + sentence;
    is_list = false;
  }
}

int64_t TaskRecord::number(const std::string& label) {
  if (label.empty())
    fail<MissingValue>(where(), ": its label is empty; give it one, or leave such items out with --skip-bad");
  if (is_no_number(label) && !is_given(label))
    fail<MissingValue>(where(), ": its label is '", label,
                       "', the mark of a missing value; give it a label, or leave such items out with --skip-bad");
  return pool.number(label);
}

int64_t TaskRecord::place(const std::string& written) const {
  const auto at = places_.find(written);
  return at == places_.end() ? -1 : at->second;
}

void TaskRecord::refuse_python_list(const std::string& text, const char* remedy, bool is_list_of_numbers) const {
  if ((is_list_of_numbers || is_python_list(text)) && !is_given(text))
    fail<DataError>(where(), ": '", shortened(text), "' is ", python_type(text), " as Python prints it; ", remedy,
                    ", or write JSON lines, whose lists are read");
}

void TaskRecord::check_tags(std::vector<std::string> tags, const std::string& place) {
  if (config.data.scheme == TagScheme::none) return;
  for (auto& tag : tags)
    if (const auto named = names_.find(tag); named != names_.end()) tag = named->second;
  tag_check.add(tags, place);
}

}  // namespace cloze
