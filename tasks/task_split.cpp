#include "tasks/task_split.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "core/contains.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"
#include "tasks/files/squad_file.h"
#include "tasks/task_record.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Refuses tables that other programs write as JSON lines.
void refuse_binary_table(const std::string& file) {
  for (const auto& [ending, reader] :
       {std::pair(".parquet", "read_parquet"), std::pair(".feather", "read_feather"), std::pair(".xlsx", "read_excel"),
        std::pair(".xls", "read_excel"), std::pair(".ods", "read_excel")})
    require<ConfigError>(!file.ends_with(ending), file, ": is a table of another program, which tasks do not read; ",
                         "pandas writes it as JSON lines: ", reader, "(FILE).to_json(\"items.jsonl\", ",
                         "orient=\"records\", lines=True)");
}

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
  if (name.ends_with(".json")) return contains(config.kind->files.formats, squad) ? squad : jsonl;
  refuse_binary_table(name);
  fail<ConfigError>(file, ": its name does not say how it is written; write `format`, one of ",
                    config_detail::rule_words(any_of<TaskFormat>()),
                    ", or name it .tsv, .csv, .jsonl, .conll or .conllu");
}

void require_fitting(const TaskConfig& config, TaskFormat format, const std::string& file) {
  using enum TaskFormat;
  const auto& own = config.kind->files;
  const bool is_own = contains(own.formats, format) || format == jsonl;
  require<ConfigError>(own.formats.empty() || is_own, file, ": is read as ", format, ", which has no ",
                       own.lacking_here);
  const bool is_flat = format != conll && format != conllu && format != squad;
  require<ConfigError>(!own.formats.empty() || is_flat, file, ": is read as ", format, ", and 'kind' is ", config.kind,
                       "; write another `format`");
}

/// Bytes of the texts of an item.
uint64_t bytes_of(const TaskItem& item) {
  uint64_t bytes = item.id.size() + item.group.size() + item.text.size() + item.second.size();
  for (const auto* texts : {&item.words, &item.candidates})
    for (const auto& text : *texts) bytes += text.size();
  return bytes;
}

/// Reads the items of a split.
class ItemReader {
 public:
  ItemReader(const TaskConfig& config, TaskSplit& split, LabelPool& pool, const SplitOptions& options)
      : kind_(config.kind), split_(split), options_(options), record_(config, pool, options) {}

  void read(const std::vector<std::string>& files, TaskFormat format) {
    record_.open(files, format);
    while (record_.next()) {
      split_.first_line_may_be_header = record_.reader().first_line_may_be_header();
      add_or_leave_out();
    }
    if (record_.reader().begins_with_numbers())
      note("the cells of the first line, ", split_.file, ":1, are numbers; if they are names of columns, write ",
           "`header: true`");
    if (const auto lines = record_.reader().bad(); lines.count > 0)
      note(counted(lines.count, "line"), " left out, first ", lines.first);
    if (missing_.count > 0)
      note(counted(missing_.count, "item"), " without a text or a label left out, first ", missing_.first);
    finish();
  }

  void read_tags(const std::string& file, TaskFormat format) {
    TagFile sentences(file, record_.config.data, format, options_.needs_labels);
    for (TaggedSentence sentence; sentences.next(sentence);) {
      const auto place = concat(file, ":", sentence.line);
      record_.check_tags(sentence.tags, place);
      TaskItem item{.line = sentence.line};
      std::vector<int64_t> numbers;
      for (const auto& tag : sentence.tags) numbers.push_back(record_.pool.number(tag));
      if (!sentence.tags.empty()) item.gold = labels_answer(std::move(numbers));
      item.words = std::move(sentence.words);
      count_empty(item, place);
      keep(std::move(item));
    }
    if (const auto& lines = sentences.comments(); lines.count > 0)
      note(counted(lines.count, "line"), lines.count == 1 ? " is a comment" : " are comments", " and no words, first ",
           lines.first);
    finish();
  }

  void read_questions(const std::string& file) {
    read_squad(file, record_.misplaced, [&](TaskItem item) {
      require<DataError>(item.gold.is_known() || !options_.needs_labels, file, ", question ", item.line, " ('",
                         shortened(item.id), "'): has no `answers`, and ", split_.name,
                         " is learned or judged by them");
      count_empty(item, concat(file, ", question ", item.line));
      keep(std::move(item));
    });
    finish();
  }

 private:
  void add_or_leave_out() {
    try {
      add();
    } catch (const MissingValue& fault) {
      if (!options_.skip_bad) throw;
      if (missing_.count++ == 0) missing_.first = fault.what();
    }
  }

  void add() {
    if (record_.is_skipped()) {
      ++split_.skipped;
      return;
    }
    TaskItem item{.id = record_.id(), .line = record_.reader().line(), .group = record_.group()};
    kind_->read_texts(record_, item);
    const bool has_gold = record_.has_label(options_.needs_labels || kind_->has_sets);
    if (!has_gold && options_.needs_labels)
      fail<MissingValue>(record_.where(), ": ", split_.name,
                         " has an item whose label is null; give it one, or leave such items out with --skip-bad");
    if (has_gold && !kind_->read_gold(record_, item)) return;
    count_empty(item, record_.where());
    keep(std::move(item));
  }

  /// Puts an item into the split, with a name where it has none of its own.
  void keep(TaskItem item) {
    if (count_ == 0) has_ids_ = !item.id.empty();
    if (!has_ids_) item.id = split_.name + ":" + std::to_string(count_);
    if (has_ids_ && !ids_.insert(item.id).second)
      fail<DataError>(split_.file, ": two items have the id '", shortened(item.id),
                      "'; give each its own, or leave out `data.id`");
    ++count_;
    record_.is_first = false;
    bytes_ += bytes_of(item);
    require_at_most(options_.most_bytes, bytes_, split_.file);
    split_.items.push_back(std::move(item));
    if (options_.take && split_.items.size() == options_.window) give();
  }
  void give() {
    options_.take(split_);
    split_.items.clear();
    bytes_ = 0;
  }

  void count_empty(const TaskItem& item, const std::string& place) {
    const bool has_none = kind_->has_words
                              ? item.words.empty() || std::any_of(item.words.begin(), item.words.end(), is_blank)
                              : is_blank(item.text) || (item.is_pair && is_blank(item.second));
    if (has_none && split_.empty++ == 0) first_empty_ = place;
  }

  template <class... Words>
  void note(const Words&... words) {
    split_.notes.push_back(concat(split_.name, ": ", words...));
  }

  /// Gives the last items, and notes what was met.
  void finish() {
    const auto& split = split_.name;
    const auto& [misplaced, first] = record_.misplaced;
    split_.bad = misplaced;
    require<DataError>(misplaced == 0 || options_.skip_bad, split, ": the answers of ", counted(misplaced, "question"),
                       " do not stand where they are said to, first ", first,
                       "; mend them, or leave these questions out with --skip-bad");
    require<DataError>(count_ > 0, split_.file, ": has no item", split == "items" ? "" : concat(" for ", split),
                       "; give it some");
    if (options_.take && !split_.items.empty()) give();
    if (split_.skipped > 0) note(counted(split_.skipped, "item"), " left out, with a label of `data.skip_labels`");
    if (misplaced > 0)
      note(counted(misplaced, "question"), " left out, whose answers do not stand where they are said to, first ",
           first);
    if (split_.empty > 0)
      note(counted(split_.empty, "item"), " with an empty text or word, first ", first_empty_, "; all of them count");
    if (const auto& [outside, first_outside] = record_.out_of_range; outside > 0)
      note(counted(outside, "target"), outside == 1 ? " is" : " are", " outside of `scale`, first ", first_outside,
           "; all of them count");
    if (const auto tags = record_.tag_check.note(); !tags.empty()) note(tags);
  }

  const AnyTaskKind kind_;
  TaskSplit& split_;
  const SplitOptions& options_;
  TaskRecord record_;
  BadRecords missing_{};
  std::string first_empty_{};
  uint64_t count_ = 0;  ///< of items
  uint64_t bytes_ = 0;  ///< of texts of the items that are in memory
  bool has_ids_ = false;
  std::unordered_set<std::string> ids_{};  ///< that items have of their own
};

}  // namespace

std::vector<std::string> files_of_split(const std::string& named, const std::string& task_file) {
  std::vector<std::string> files;
  for (const auto& name : separated(named, " + ")) files.push_back(find_task_data(name, task_file));
  return files;
}

TaskSplit read_split(const TaskConfig& config, const std::string& task_file, const std::string& name,
                     const std::string& files, LabelPool& pool, const SplitOptions& options) {
  TaskSplit split{.name = name};
  const auto paths = files_of_split(files, task_file);
  split.file = listed(paths);
  const auto format = format_of(config, paths.front());
  require_fitting(config, format, paths.front());
  const auto& each = config.data.each;
  require<ConfigError>(each.empty() || format == TaskFormat::jsonl || name == "items", paths.front(), ": is read as ",
                       format, ", and 'data.each' is '", shortened(each), "'; only JSON lines nest");
  const bool is_table = format == TaskFormat::tsv || format == TaskFormat::csv;
  require<ConfigError>(paths.size() == 1 || is_table, paths.front(), ": is read as ", format,
                       "; only lines of tables stand side by side");
  ItemReader reader(config, split, pool, options);
  if (format == TaskFormat::conll || format == TaskFormat::conllu)
    reader.read_tags(paths.front(), format);
  else if (format == TaskFormat::squad)
    reader.read_questions(paths.front());
  else
    reader.read(paths, format);
  return split;
}

}  // namespace cloze
