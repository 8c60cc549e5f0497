#include "tasks/task_part.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "core/contains.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"
#include "tasks/files/records.h"
#include "tasks/files/squad_file.h"

#include "tasks/files/tag_file.h"
#include "tasks/task_config.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The form of a file: the one that is said, else by its name.
TaskFormat format_of(const TaskConfig& config, const std::string& file) {
  using enum TaskFormat;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(file, ignored);
  const auto& said = config.data.format;
  require<DataError>(!is_folder || said == folders, file,
                     ": is a folder, not a file; name one in it, or write `format: folders` for a folder a label");
  require<DataError>(is_folder || said != folders, file, ": is a file; `format: folders` reads a folder");
  if (said != automatic) return said;
  const auto name = uncompressed_name(file);
  for (const auto& [ending, format] :
       {std::pair(".tsv", tsv), std::pair(".csv", csv), std::pair(".jsonl", jsonl), std::pair(".conllu", conllu),
        std::pair(".conll", conll), std::pair(".bio", conll)})
    if (name.ends_with(ending)) return format;
  if (name.ends_with(".json")) return config.kind == TaskKind::spans ? squad : jsonl;
  fail<ConfigError>(file, ": its name does not say how it is written; write `format`, one of ",
                    config_detail::rule_words(any_of<TaskFormat>()));
}

void require_fitting(const TaskConfig& config, TaskFormat format, const std::string& file) {
  using enum TaskFormat;
  const bool has_words = format == conll || format == conllu || format == jsonl;
  const bool has_answers = format == squad || format == jsonl;
  require<ConfigError>(config.kind != TaskKind::tagging || has_words, file, ": is read as ", format,
                       ", which has no words with tags; write `format: conll`");
  require<ConfigError>(config.kind != TaskKind::spans || has_answers, file, ": is read as ", format,
                       ", which has no places of answers; write `format: squad` or jsonl");
  const bool is_flat = format != conll && format != conllu && format != squad;
  require<ConfigError>(config.kind == TaskKind::tagging || config.kind == TaskKind::spans || is_flat, file,
                       ": is read as ", format, ", and 'kind' is ", config.kind, "; write another `format`");
}

/// What a program writes for a number that is missing.
bool is_no_number(std::string_view text) { return text == "nan" || text == "NaN" || text == "-nan" || text == "NAN"; }

/// 1 or 0 for a cell that says whether an item has a label, -1 for another.
int flag_in(const std::string& text) {
  const auto is_one_of = [&](std::initializer_list<const char*> words) {
    return std::ranges::any_of(words, [&](const char* word) { return text == word; });
  };
  return is_one_of({"1", "1.0", "true", "True"}) ? 1 : is_one_of({"0", "0.0", "false", "False"}) ? 0 : -1;
}

/// Whether a cell has a list as Python prints it: `['a', 'b']`, `[1, 0]`.
bool is_python_list(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  const auto first = past_white_space(text, 1);
  return first + 1 == text.size() || std::string_view("'\"-0123456789").find(text[first]) != text.npos;
}

/// An item that lacks a text or a label.
struct MissingValue : DataError {
  using DataError::DataError;
};

/// A text, by the numbers of the columns that it joins.
struct ColumnText {
  std::vector<std::string> between{};
  std::vector<size_t> columns{};  ///< none: there is no such text
};

constexpr uint64_t most_joined_bytes = uint64_t{64} << 20;  // of the text of an item

/// Bytes of the texts of an item.
uint64_t bytes_of(const TaskItem& item) {
  uint64_t bytes = item.id.size() + item.group.size() + item.text.size() + item.second.size();
  for (const auto* texts : {&item.words, &item.candidates})
    for (const auto& text : *texts) bytes += text.size();
  return bytes;
}

/// Items of records.
class ItemReader {
 public:
  ItemReader(const TaskConfig& config, TaskPart& part, LabelPool& pool, const PartOptions& options)
      : config_(config), part_(part), pool_(pool), options_(options) {
    const auto given = given_labels(config).names;
    for (const auto& [written, name] : config.labels.items) {
      names_.emplace(written, name.text);
      places_.emplace(written, std::ranges::find(given, name.text) - given.begin());
    }
  }

  void read(const std::vector<std::string>& files, TaskFormat format) {
    const auto& data = config_.data;
    source_ = {
        .files = files, .format = format, .header = data.header, .skip_bad = options_.skip_bad, .each = data.each};
    const bool is_folder = format == TaskFormat::folders;
    text_ =
        columns_of(data.text.empty() && (is_folder || format == TaskFormat::trec) ? "text" : data.text, "data.text");
    second_ = columns_of(data.second, "data.second");
    id_ = columns_of(data.id.empty() && is_folder ? "{label}/{name}" : data.id, "data.id");
    group_ = columns_of(data.group, "data.group");
    for (const auto& name : data.candidates) candidates_.push_back(column(name));
    const auto add_label = [&](const std::string& name) { labels_.push_back(column(name, !options_.needs_labels)); };
    if (!data.answers.empty())
      add_label(data.answers);
    else if (is_folder && data.label.empty())
      add_label("label");
    else
      std::ranges::for_each(data.label, add_label);
    require_columns();
    records_ = open_records(source_);
    cells_.resize(source_.columns.size());
    while (records_->next(cells_)) {
      part_.may_have_taken_header = records_->may_have_taken_header();
      add_or_leave_out();
    }
    if (const auto lines = records_->bad(); lines.count > 0)
      part_.notes.push_back(concat(part_.name, ": ", counted(lines.count, "line"), " left out, first ", lines.first));
    if (missing_.count > 0)
      part_.notes.push_back(concat(part_.name, ": ", counted(missing_.count, "item"),
                                   " without a text or a label left ", "out, first ", missing_.first));
    finish();
  }

  void read_tags(const std::string& file, TaskFormat format) {
    TagFile sentences(file, config_.data, format, options_.needs_labels);
    for (TaggedSentence sentence; sentences.next(sentence);) {
      const auto place = concat(file, ":", sentence.line);
      check_tags(sentence.tags, place);
      TaskItem item{.line = sentence.line};
      std::vector<int64_t> numbers;
      for (const auto& tag : sentence.tags) numbers.push_back(pool_.number(tag));
      if (!sentence.tags.empty()) item.gold = GoldLabels{std::move(numbers)};
      const auto is_empty = [](const std::string& word) { return is_blank(word); };
      if (std::any_of(sentence.words.begin(), sentence.words.end(), is_empty) && part_.empty++ == 0)
        first_empty_ = place;
      item.words = std::move(sentence.words);
      keep(std::move(item));
    }
    if (const auto& lines = sentences.comments(); lines.count > 0)
      part_.notes.push_back(concat(part_.name, ": ", counted(lines.count, "line"), lines.count == 1 ? " is a" : " are",
                                   lines.count == 1 ? " comment" : " comments", " and no words, first ", lines.first));
    finish();
  }

  void read_questions(const std::string& file) {
    read_squad(file, bad_, [&](TaskItem item) {
      const bool is_labelled = !std::holds_alternative<NoGold>(item.gold);
      require<DataError>(is_labelled || !options_.needs_labels, file, ", question ", item.line, " ('",
                         shortened(item.id), "'): has no `answers`, and ", part_.name, " is learned or judged by them");
      if ((is_blank(item.text) || is_blank(item.second)) && part_.empty++ == 0)
        first_empty_ = concat(file, ", question ", item.line);
      keep(std::move(item));
    });
    finish();
  }

 private:
  size_t column(const std::string& name, bool is_optional = false) {
    auto& columns = source_.columns;
    const auto is_same = [&](const ColumnName& known) { return known.name == name; };
    const auto found = std::find_if(columns.begin(), columns.end(), is_same);
    if (found != columns.end()) return static_cast<size_t>(found - columns.begin());
    columns.push_back({name, is_optional});
    return columns.size() - 1;
  }
  ColumnText columns_of(const std::string& text, const char* key) {
    ColumnText column_text;
    if (text.empty()) return column_text;
    const auto parsed = parse_template(text, key);
    column_text.between = parsed.between;
    for (const auto& name : parsed.columns) column_text.columns.push_back(column(name));
    return column_text;
  }
  /// The columns of tags and of spans in JSON lines, which other files of theirs need not name.
  void require_columns() const {
    const bool is_spans = config_.kind == TaskKind::spans;
    const bool is_whole =
        !text_.columns.empty() && (!is_spans || !second_.columns.empty()) && (has_label() || !options_.needs_labels);
    require<ConfigError>(is_whole, source_.files.front(), ": ", config_.kind,
                         " in JSON lines is read from named keys; ",
                         is_spans ? "write `text` (the question), `second` (the context) and `answers`"
                                  : "write `text` (the words) and `label` (the tags)");
  }

  std::string where() const { return records_->where(); }

  const Cell& cell(size_t i) const {
    const auto& found = cells_[i];
    if (found.is_missing)
      fail<MissingValue>(where(), ": '", shortened(source_.columns[i].name),
                         "' is null; give it a value, or leave such items out with --skip-bad");
    return found;
  }
  const std::string& text_cell(size_t i) const {
    const auto& found = cell(i);
    if (found.is_list)
      fail<DataError>(where(), ": '", shortened(source_.columns[i].name), "' is a list; a text was expected");
    return found.text;
  }
  std::string joined(const ColumnText& text) const {
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

  bool has_label() const { return !labels_.empty(); }

  void add_or_leave_out() {
    try {
      add();
    } catch (const MissingValue& fault) {
      if (!options_.skip_bad) throw;
      if (missing_.count++ == 0) missing_.first = fault.what();
    }
  }

  /// White space around a label is no part of it.
  void trim_labels() {
    const auto trim = [](std::string& text) {
      if (const auto inner = without_white_space_around(text); inner.size() < text.size()) text = std::string(inner);
    };
    if (config_.kind == TaskKind::spans) return;
    for (const auto i : labels_) {
      trim(cells_[i].text);
      std::ranges::for_each(cells_[i].texts, trim);
    }
  }

  void add() {
    trim_labels();
    if (std::ranges::any_of(labels_, [&](size_t i) { return is_skipped(cells_[i]); })) {
      ++part_.skipped;
      return;
    }
    TaskItem item{.id = joined(id_), .line = records_->line(), .group = joined(group_)};
    if (config_.kind == TaskKind::tagging) {
      const auto& list = cell(text_.columns.front());
      if (!list.is_list || !list.starts.empty() || text_.columns.size() != 1)
        fail<DataError>(where(), ": '", shortened(config_.data.text), "' is no list of words; tagging needs one");
      item.words = list.texts;
    } else {
      item.text = joined(text_);
    }
    item.second = joined(second_);
    item.is_pair = !second_.columns.empty();
    add_candidates(item);
    const bool may_be_blank = options_.needs_labels || config_.kind == TaskKind::multilabel;  // a set without labels
    const auto is_there = [&](size_t i) {
      return !cells_[i].is_missing && (may_be_blank || cells_[i].is_list || !cells_[i].text.empty());
    };
    const bool has_gold = has_label() && std::ranges::all_of(labels_, is_there);
    if (!has_gold && options_.needs_labels)
      fail<MissingValue>(where(), ": ", part_.name,
                         " has an item whose label is null; give it one, or leave such items out with --skip-bad");
    if (has_gold && !add_gold(item)) return;
    count_empty(item);
    keep(std::move(item));
  }

  /// Puts an item into the part, with a name where it has none of its own.
  void keep(TaskItem item) {
    if (count_ == 0) has_ids_ = !item.id.empty();
    if (!has_ids_) item.id = part_.name + ":" + std::to_string(count_);
    if (has_ids_ && !ids_.insert(item.id).second)
      fail<DataError>(part_.file, ": two items have the id '", shortened(item.id),
                      "'; give each its own, or leave out `data.id`");
    ++count_;
    bytes_ += bytes_of(item);
    require_at_most(options_.most_bytes, bytes_, part_.file);
    part_.items.push_back(std::move(item));
    if (options_.take && part_.items.size() == options_.window) give();
  }
  void give() {
    options_.take(part_);
    part_.items.clear();
    bytes_ = 0;
  }

  bool is_skipped(const Cell& label) const {
    const auto& skipped = config_.data.skip_labels;
    return !skipped.empty() && !label.is_list && !label.is_missing && contains(skipped, label.text);
  }

  void count_empty(const TaskItem& item) {
    const bool has_none = config_.kind == TaskKind::tagging
                              ? item.words.empty() || std::any_of(item.words.begin(), item.words.end(), is_blank)
                              : is_blank(item.text) || (item.is_pair && is_blank(item.second));
    if (has_none && part_.empty++ == 0) first_empty_ = where();
  }

  /// Columns of candidates, of which the last may be empty, or a list of them.
  void add_candidates(TaskItem& item) {
    for (const auto i : candidates_) {
      const auto& found = cells_[i];
      if (!found.is_list) refuse_python_list(found.text, "candidates in a table stand in columns of their own");
      if (found.is_list)
        item.candidates.insert(item.candidates.end(), found.texts.begin(), found.texts.end());
      else
        item.candidates.push_back(found.is_missing ? "" : found.text);
    }
    const bool are_columns = !candidates_.empty() && !cells_[candidates_.back()].is_list;
    while (are_columns && !item.candidates.empty() && is_blank(item.candidates.back())) item.candidates.pop_back();
    if (config_.kind != TaskKind::choice) return;
    if (item.candidates.empty()) fail<DataError>(where(), ": has no candidate; a choice needs two or more");
    if (item.candidates.size() < 2) fail<DataError>(where(), ": has one candidate only; a choice needs two or more");
    const auto blank = std::find_if(item.candidates.begin(), item.candidates.end(), is_blank);
    if (blank != item.candidates.end())
      fail<DataError>(where(), ": candidate ", blank - item.candidates.begin(),
                      " is empty; give it a text, or remove the item");
  }

  /// What is right; false for an item that is left out.
  bool add_gold(TaskItem& item) {
    switch (config_.kind) {
      case TaskKind::classification:
        item.gold = GoldLabel{label_number(text_cell(labels_.front()))};
        return true;
      case TaskKind::multilabel:
        item.gold = GoldLabels{labels_.size() > 1 ? labels_of_columns() : label_numbers()};
        return true;
      case TaskKind::regression:
        item.gold = GoldValue{target()};
        note_scale(std::get<GoldValue>(item.gold).value);
        return true;
      case TaskKind::tagging:
        item.gold = GoldLabels{tag_numbers(item.words.size())};
        return true;
      case TaskKind::spans:
        return add_answers(item);
      case TaskKind::choice:
        item.gold = GoldLabel{right_candidate(item)};
        return true;
    }
    return true;
  }

  int64_t label_number(const std::string& label) {
    if (label.empty())
      fail<MissingValue>(where(), ": its label is empty; give it one, or leave such items out with --skip-bad");
    if (is_no_number(label) && !is_given(label))
      fail<MissingValue>(where(), ": its label is '", label,
                         "', the mark of a missing value; give it a label, or leave such items out with --skip-bad");
    return pool_.number(label);
  }
  bool is_given(const std::string& label) const { return names_.contains(label); }

  void refuse_python_list(const std::string& text, const char* remedy) const {
    if (is_python_list(text) && !is_given(text))
      fail<DataError>(where(), ": '", shortened(text), "' is a list as Python prints it; ", remedy,
                      ", or write JSON lines, whose lists are read");
  }

  /// The labels of columns that say by 0 and 1 whether an item has theirs.
  std::vector<int64_t> labels_of_columns() {
    std::vector<int64_t> numbers;
    for (const auto i : labels_) {
      const int flag = flag_in(text_cell(i));
      if (flag < 0)
        fail<DataError>(where(), ": '", shortened(source_.columns[i].name), "' is '", shortened(cells_[i].text),
                        "'; a column of `data.label`, of which there are several, has 1 where an item has the label, "
                        "else 0");
      if (flag == 1) numbers.push_back(pool_.number(source_.columns[i].name));
    }
    return numbers;
  }

  /// The labels of a list that has 0 or 1 in the place of each label of `labels`.
  std::vector<int64_t> labels_of_places(const std::vector<std::string>& flags) {
    std::vector<int64_t> numbers;
    for (size_t place = 0; place < flags.size(); ++place)
      if (flag_in(flags[place]) == 1) numbers.push_back(pool_.number(config_.labels.items[place].first));
    return numbers;
  }
  bool has_places(const std::vector<std::string>& list) const {
    const bool are_labels =
        list.size() == 2 && std::ranges::all_of(list, [&](const auto& one) { return is_given(one); });
    return list.size() > 1 && list.size() == config_.labels.items.size() && !are_labels && are_flags(list);
  }
  static bool are_flags(const std::vector<std::string>& list) {
    return std::ranges::all_of(list, [](const std::string& one) { return flag_in(one) >= 0; });
  }

  std::vector<int64_t> label_numbers() {
    std::vector<int64_t> numbers;
    const auto& found = cell(labels_.front());
    if (found.is_list && has_places(found.texts)) {
      numbers = labels_of_places(found.texts);
    } else if (found.is_list) {
      for (const auto& label : found.texts) numbers.push_back(label_number(label));
    } else {
      refuse_python_list(found.text, "write the labels with `label_separator` between them");
      const auto& between = config_.data.label_separator;
      for (size_t at = 0; at <= found.text.size() && !is_blank(found.text);) {
        const size_t end = std::min(found.text.find(between, at), found.text.size());
        const auto label = without_white_space_around(std::string_view(found.text).substr(at, end - at));
        numbers.push_back(label_number(std::string(label)));
        at = end + between.size();
      }
    }
    std::sort(numbers.begin(), numbers.end());
    const auto twice = std::adjacent_find(numbers.begin(), numbers.end());
    if (twice != numbers.end() && found.is_list && are_flags(found.texts))
      fail<DataError>(where(), ": has ", found.texts.size(),
                      " numbers 0 and 1, one in the place of each label; name so many, in this order, with `labels`: "
                      "{FIRST: FIRST, SECOND: SECOND}");
    if (twice != numbers.end())
      fail<DataError>(where(), ": has the label '", shortened(pool_.text(*twice)), "' twice; remove one of them");
    return numbers;
  }

  double target() const {
    constexpr double most_target = 1e15;  // its square, and sums of those, are numbers of 32 bits
    const auto& text = text_cell(labels_.front());
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
    const bool is_first = records_->may_have_taken_header() && count_ == 0;
    if (text.empty() || is_no_number(text))
      fail<MissingValue>(where(), ": its target is '", text, "', which is no number; give it one, or leave such items ",
                         "out with --skip-bad");
    if (!is_number)
      fail<DataError>(
          where(), ": its target is '", shortened(text), "', which is no number; ",
          is_first ? "if this is a line of names, write `header: true`" : "give it one, or remove the item");
    if (std::abs(value) > most_target)
      fail<DataError>(where(), ": its target is '", shortened(text), "', beyond ", shortest(most_target),
                      ", and losses square it; divide all targets by the same number");
    return value;
  }

  /// Counts a target that is not in the range of `scale`.
  void note_scale(double value) {
    const auto& scale = config_.scale;
    if (scale.empty() || (value >= static_cast<double>(scale[0]) && value <= static_cast<double>(scale[1]))) return;
    if (outside_++ == 0) first_outside_ = concat(where(), " (", shortest(value), ")");
  }

  std::vector<int64_t> tag_numbers(size_t count) {
    const auto& tags = cell(labels_.front());
    if (!tags.is_list || !tags.starts.empty())
      fail<DataError>(where(), ": '", shortened(config_.data.label.front()), "' is no list of tags; tagging needs one");
    if (tags.texts.size() != count)
      fail<DataError>(where(), ": has ", counted(count, "word"), " and ", counted(tags.texts.size(), "tag"),
                      "; give each word one");
    check_tags(tags.texts, where());
    std::vector<int64_t> numbers;
    for (const auto& tag : tags.texts) numbers.push_back(label_number(tag));
    return numbers;
  }

  /// Tags by their names, which numbers have by `labels`.
  void check_tags(std::vector<std::string> tags, const std::string& place) {
    if (config_.data.scheme == TagScheme::none) return;
    for (auto& tag : tags)
      if (const auto named = names_.find(tag); named != names_.end()) tag = named->second;
    check_.add(tags, place);
  }

  int64_t right_candidate(const TaskItem& item) const {
    const auto& text = text_cell(labels_.front());
    int64_t number = -1;
    if (places_.empty()) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size()) number = -1;
    } else if (const auto found = places_.find(text); found != places_.end()) {
      number = found->second;
    }
    const auto count = static_cast<int64_t>(item.candidates.size());
    if (number < 0 || number >= count)
      fail<DataError>(where(), ": its label is '", shortened(text), "', and it has candidates 0 to ", count - 1,
                      "; if they are called otherwise, say so, and where one is called in two ways give both its "
                      "name: labels: {A: first, B: second, \"1\": first, \"2\": second}");
    return number;
  }

  bool add_answers(TaskItem& item) {
    const auto& found = cell(labels_.front());
    if (!found.is_list || found.starts.size() != found.texts.size())
      fail<DataError>(where(), ": '", shortened(config_.data.answers),
                      "' is no list of answers, [{text, answer_start}]");
    GoldAnswers gold;
    if (!place_answers(item.second, CodePoints(item.second), found.texts, found.starts, where(), gold, bad_))
      return false;
    item.gold = std::move(gold);
    return true;
  }

  /// Gives the last items, and notes what was met.
  void finish() {
    const auto& part = part_.name;
    part_.bad = bad_.count;
    require<DataError>(bad_.count == 0 || options_.skip_bad, part, ": the answers of ", counted(bad_.count, "question"),
                       " do not stand where they are said to, first ", bad_.first,
                       "; mend them, or leave these questions out with --skip-bad");
    require<DataError>(count_ > 0, part_.file, ": has no item", part == "items" ? "" : concat(" for ", part),
                       "; give it some");
    if (options_.take && !part_.items.empty()) give();
    if (part_.skipped > 0)
      part_.notes.push_back(
          concat(part, ": ", counted(part_.skipped, "item"), " left out, with a label of ", "`data.skip_labels`"));
    if (part_.bad > 0)
      part_.notes.push_back(concat(part, ": ", counted(part_.bad, "question"),
                                   " left out, whose answers do not stand where they are said to, first ", bad_.first));
    if (part_.empty > 0)
      part_.notes.push_back(concat(part, ": ", counted(part_.empty, "item"), " with an empty text or word, first ",
                                   first_empty_, "; all of them count"));
    if (outside_ > 0)
      part_.notes.push_back(concat(part, ": ", counted(outside_, "target"), outside_ == 1 ? " is" : " are",
                                   " outside of `scale`, first ", first_outside_, "; all of them count"));
    if (const auto tags = check_.note(); !tags.empty()) part_.notes.push_back(concat(part, ": ", tags));
  }

  const TaskConfig& config_;
  TaskPart& part_;
  LabelPool& pool_;
  const PartOptions& options_;
  RecordSource source_{};
  ColumnText text_{}, second_{}, id_{}, group_{};
  std::vector<size_t> candidates_{};
  std::vector<size_t> labels_{};                          ///< columns; none: there are no labels
  std::unordered_map<std::string, std::string> names_{};  ///< of `labels`, by what is written
  std::unordered_map<std::string, int64_t> places_{};     ///< of choice: the candidate
  std::unique_ptr<RecordReader> records_{};
  std::vector<Cell> cells_{};
  TagCheck check_{config_.data.scheme};
  BadRecords bad_{}, missing_{};
  std::string first_empty_{};
  uint64_t outside_ = 0;  ///< targets that are not in the range of `scale`
  std::string first_outside_{};
  uint64_t count_ = 0;  ///< of items
  uint64_t bytes_ = 0;  ///< of texts of the items that are in memory
  bool has_ids_ = false;
  std::unordered_set<std::string> ids_{};  ///< that items have of their own
};

}  // namespace

std::vector<std::string> files_of_part(const std::string& named, const std::string& task_file) {
  std::vector<std::string> files;
  constexpr std::string_view beside = " + ";
  for (size_t at = 0; at <= named.size();) {
    const size_t end = std::min(named.find(beside, at), named.size());
    files.push_back(find_task_data(named.substr(at, end - at), task_file));
    at = end + beside.size();
  }
  return files;
}

TaskPart read_part(const TaskConfig& config, const std::string& task_file, const std::string& name,
                   const std::string& files, LabelPool& pool, const PartOptions& options) {
  TaskPart part{.name = name};
  const auto found = files_of_part(files, task_file);
  part.file = listed(found);
  const auto format = format_of(config, found.front());
  require_fitting(config, format, found.front());
  const bool is_table = format == TaskFormat::tsv || format == TaskFormat::csv;
  require<ConfigError>(found.size() == 1 || is_table, found.front(), ": is read as ", format,
                       "; only lines of tables stand side by side");
  ItemReader reader(config, part, pool, options);
  if (format == TaskFormat::conll || format == TaskFormat::conllu)
    reader.read_tags(found.front(), format);
  else if (format == TaskFormat::squad)
    reader.read_questions(found.front());
  else
    reader.read(found, format);
  return part;
}

}  // namespace cloze
