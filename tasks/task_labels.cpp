#include "tasks/task.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze {

namespace {

constexpr int64_t most_labels = 100'000;

/// Calls `visit` with a reference to the number of each label of an item.
template <class Item, class Visit>
void each_label(Item& item, const Visit& visit) {
  if (item.gold.form == AnswerForm::label) visit(item.gold.label);
  for (auto& id : item.gold.labels) visit(id);
}

std::vector<uint64_t> counts_in(const TaskSplit& split, int64_t size) {
  std::vector<uint64_t> counts(static_cast<size_t>(size));
  for (const auto& item : split.items)
    each_label(item, [&](const int64_t& id) {
      if (id >= 0 && id < size) ++counts[static_cast<size_t>(id)];
    });
  return counts;
}

/// A list of labels as far as it is short: `'a', 'b' and 5 more`.
std::string label_list(const std::vector<std::string>& labels) {
  constexpr size_t most = 20;
  std::vector<std::string> shown;
  for (const auto& label : labels)
    if (shown.size() < most) shown.push_back("'" + shortened(label) + "'");
  const auto rest = labels.size() - shown.size();
  return listed(shown) + (rest > 0 ? concat(" and ", rest, " more") : "");
}

/// Notes labels that no item has.
void note_absent_labels(TaskSplit& split, const TaskLabels& labels) {
  const auto counts = counts_in(split, labels.size());
  std::vector<std::string> absent;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] == 0) absent.push_back(labels.names[i]);
  if (!absent.empty())
    split.notes.push_back(
        concat(split.name, ": no item has ", counted(absent.size(), "label"), " of the task: ", label_list(absent)));
}

/// The label of the first item where no other item has it, and the item may be a line of names; -1 otherwise.
int64_t lone_first_label(const TaskSplit& split, const std::vector<uint64_t>& counts) {
  if (!split.first_line_may_be_header) return -1;
  int64_t first = -1, uses = 0;
  each_label(split.items.front(), [&](const int64_t& id) {
    first = id;
    ++uses;
  });
  return uses == 1 && first >= 0 && counts[static_cast<size_t>(first)] == 1 ? first : -1;
}

/// Notes a first label that one item alone has, and no other label has one item alone.
void note_lone_first_label(TaskSplit& split, const TaskLabels& labels) {
  const auto counts = counts_in(split, labels.size());
  const auto first = lone_first_label(split, counts);
  if (first < 0 || std::ranges::count(counts, uint64_t{1}) > 1) return;
  split.notes.push_back(concat(split.file, ":", split.items.front().line, ": its label is '",
                               shortened(labels.names[static_cast<size_t>(first)]),
                               "', as no other item's; if this is a line of names, write `header: true`"));
}

/// Refuses a column that holds texts, numbers or ids instead of labels.
void require_labels(const TaskSplit& train, int64_t labels, uint64_t uses) {
  constexpr int64_t few = 50;
  const bool is_many = labels > few && static_cast<uint64_t>(labels) * 2 > uses;
  require<DataError>(labels <= most_labels && !is_many, train.file, ": ", train.name, " has ", counted(labels, "label"),
                     " for ", counted(uses, "use"), " of one; `data.label` names no column of labels");
}

/// Whether a label is what a line of names has above the labels.
bool is_name_of_labels(std::string label) {
  for (auto& c : label) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto* name : {"label", "labels", "class", "category", "target", "tag", "sentiment", "gold_label", "y"})
    if (label == name) return true;
  return false;
}

void require_no_header(const TaskSplit& train, const LabelPool& pool, const std::vector<uint64_t>& counts) {
  const auto first = lone_first_label(train, counts);
  const bool is_header = first >= 0 && is_name_of_labels(pool.text(first));
  if (!is_header) return;
  fail<DataError>(train.file, ":", train.items.front().line, ": its label is '", pool.text(first),
                  "', as no other item's: this is a line of names; write `header: true`, or name the columns");
}

/// The labels of the training split, sorted as text.
TaskLabels found_labels(const TaskSplit& train, const LabelPool& pool) {
  const auto counts = counts_in(train, pool.size());
  TaskLabels labels;
  uint64_t uses = 0;
  for (int64_t i = 0; i < pool.size(); ++i) {
    uses += counts[static_cast<size_t>(i)];
    if (counts[static_cast<size_t>(i)] > 0) labels.written.push_back(pool.text(i));
  }
  std::sort(labels.written.begin(), labels.written.end());
  labels.names = labels.written;
  require_labels(train, labels.size(), uses);
  require_no_header(train, pool, counts);
  return labels;
}

/// Throws DataError for names that no run can keep: run.yaml has them in its objectives and in those of evaluation, and
/// files of predictions a line for each.
void require_names(const TaskLabels& labels, const std::string& place) {
  constexpr size_t most_bytes = 256 << 10;
  size_t bytes = 0;
  for (const auto& name : labels.names) {
    const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
    require<DataError>(std::none_of(name.begin(), name.end(), is_control), place, ": the label '", shortened(name),
                       "' has a tab, an end of a line or another control character; give it another name with "
                       "`labels`");
    bytes += name.size() + 4;  // as it stands in a list of YAML
  }
  require<DataError>(bytes <= most_bytes, place, ": the names of ", counted(labels.names.size(), "label"),
                     " have more than ", most_bytes >> 10,
                     " KiB, which a run does not keep; give them shorter names with `labels`, or merge some");
}

/// Refuses sets of labels that are all of them in every item.
void require_differing_sets(const TaskSplit& train, const TaskConfig& config, const TaskLabels& labels) {
  const auto has_all = [&](const TaskItem& item) { return std::ssize(item.gold.labels) == labels.size(); };
  if (!config.kind->has_sets || !std::ranges::all_of(train.items, has_all)) return;
  fail<DataError>(train.file, ": every item has all labels, ", label_list(labels.written),
                  ", of which nothing can be learned; if these are lists of 0 and 1, one in the place of each label, "
                  "name the labels in this order with `labels`: {FIRST: FIRST, SECOND: SECOND}");
}

TaskLabels in_brought_order(const TaskLabels& own, const std::vector<std::string>& brought, const std::string& place) {
  auto mine = own.names, theirs = brought;
  std::sort(mine.begin(), mine.end());
  std::sort(theirs.begin(), theirs.end());
  require<DataError>(mine == theirs, place, ": the task has the labels ", label_list(own.names), ", the model has ",
                     label_list(brought),
                     "; give the task's the names of the model's with `labels`, or fine-tune the model on this task");
  TaskLabels ordered;
  for (const auto& name : brought) {
    const auto at = std::find(own.names.begin(), own.names.end(), name) - own.names.begin();
    ordered.names.push_back(name);
    ordered.written.push_back(own.written[static_cast<size_t>(at)]);
  }
  return ordered;
}

}  // namespace

TaskLabels order_labels(const TaskConfig& config, const TaskSplit* train, const LabelPool& pool,
                        const std::vector<std::string>& brought) {
  if (!config.kind->learns_labels) return given_labels(config);  // of candidates, whose numbers golds have
  auto labels = given_labels(config);
  if (labels.names.empty() && train != nullptr) labels = found_labels(*train, pool);
  const auto& place = train != nullptr ? train->file : config.task;
  const int64_t least = config.kind->has_sets ? 1 : 2;
  require<DataError>(labels.size() >= least, place, ": ",
                     labels.names.empty() ? "has no label" : concat("has one label only, '", labels.names[0], "'"),
                     ", of which nothing can be learned; name the column of the labels with `data.label`");
  require_names(labels, place);
  return brought.empty() ? labels : in_brought_order(labels, brought, place);
}

void number_golds(TaskSplit& split, const TaskConfig& config, const TaskLabels& labels, const LabelPool& pool) {
  if (!config.kind->learns_labels) return;
  std::vector<int64_t> ids(static_cast<size_t>(pool.size()), unknown_label);
  std::unordered_map<std::string, int64_t> id_of;
  for (int64_t i = 0; i < labels.size(); ++i) id_of.emplace(labels.written[static_cast<size_t>(i)], i);
  for (int64_t i = 0; i < pool.size(); ++i)
    if (const auto found = id_of.find(pool.text(i)); found != id_of.end()) ids[static_cast<size_t>(i)] = found->second;
  for (auto& item : split.items) {
    each_label(item, [&](int64_t& id) {
      const auto number = id;
      id = ids[static_cast<size_t>(number)];
      if (id == unknown_label && config.kind->has_words) item.gold.unknown.push_back(pool.text(number));
      if (id != unknown_label || split.unknown_labels[pool.text(number)]++ > 0) return;
      const bool is_first = split.first_line_may_be_header && &item == &split.items.front();
      if (split.name != "train") return;
      fail<DataError>(split.file, ":", item.line, ": label '", shortened(pool.text(number)), "' is none of `labels`, ",
                      label_list(labels.written), "; ",
                      is_first ? "if this is a line of names, write `header: true`, else " : "", "add it");
    });
    if (config.kind->has_sets) std::ranges::sort(item.gold.labels);
  }
  if (split.name == "train") {
    require_differing_sets(split, config, labels);
    note_absent_labels(split, labels);
    if (config.labels.items.empty()) note_lone_first_label(split, labels);
  }
}

void note_unknown_labels(TaskSplit& split) {
  const auto& unknown = split.unknown_labels;
  if (unknown.empty()) return;
  std::vector<std::string> shown;
  for (const auto& [label, count] : unknown)
    if (shown.size() < 20) shown.push_back(concat("'", shortened(label), "' (", count, ")"));
  const auto rest = unknown.size() - shown.size();
  split.notes.push_back(concat(split.name, ": ", counted(unknown.size(), "label"),
                               " that the training part lacks, whose predictions are wrong whatever they are: ",
                               listed(shown), rest > 0 ? concat(" and ", rest, " more") : ""));
}

void require_judged(const TaskSplit& split, const TaskSplit& train, const TaskConfig& config,
                    const TaskLabels& labels) {
  const auto reason = config.kind->unjudged(split.items, train.items);
  if (reason.empty()) return;
  uint64_t unknown = 0, all = 0;
  for (const auto& [label, uses] : split.unknown_labels) unknown += uses;
  for (const auto& item : split.items) each_label(item, [&](const int64_t&) { ++all; });
  require<DataError>(unknown > 0 && 2 * unknown > all, split.file, ": ", reason, ": what is right for ", split.name,
                     " is not given here; name a part whose answers are known");
  std::vector<std::string> missing;
  for (const auto& [label, uses] : split.unknown_labels) missing.push_back(label);
  const char* uses = config.kind->has_sets ? "use" : config.kind->label_unit;
  fail<DataError>(split.file, ": ", thousands(unknown), " of ", counted(all, uses), " of ", split.name,
                  " have a label that the training part lacks, ", label_list(missing), "; it has ",
                  label_list(labels.written),
                  "; name a part with labels that are known, or write them as the training part does");
}

std::vector<uint64_t> label_counts(const TaskSplit& split, const TaskLabels& labels) {
  return counts_in(split, labels.size());
}

std::vector<double> class_weights_of(const TaskConfig& config, const TaskLabels& labels, const TaskSplit& train) {
  std::vector<double> weights;
  if (config.class_weights == std::vector<std::string>{"balanced"}) {
    const auto counts = label_counts(train, labels);
    double uses = 0;
    for (const auto count : counts) uses += static_cast<double>(count);
    for (const auto count : counts)
      weights.push_back(count > 0 ? uses / (static_cast<double>(counts.size()) * static_cast<double>(count)) : 0);
    return weights;
  }
  for (const auto& text : config.class_weights)
    std::from_chars(text.data(), text.data() + text.size(), weights.emplace_back());
  require<ConfigError>(weights.empty() || weights.size() == labels.names.size(), config.task, ": 'class_weights' has ",
                       counted(weights.size(), "weight"), " for ", counted(labels.names.size(), "label"), ", ",
                       label_list(labels.names), "; give each one, in this order");
  return weights;
}

}  // namespace cloze
