#include "tasks/task.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/random.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/byte_source.h"
#include "data/reading/line_reader.h"

namespace cloze {

namespace {

constexpr size_t valid_divisor = 10;

/// A hash of what is asked, without the answer.
uint64_t content_hash(const TaskItem& item) {
  std::string content;
  const auto add = [&](const std::string& text) {
    content += text;
    content += '\0';
  };
  add(item.text);
  add(item.second);
  for (const auto* list : {&item.words, &item.candidates}) {
    for (const auto& text : *list) add(text);
    content += '\1';
  }
  return XXH3_64bits(content.data(), content.size());
}

uint64_t split_hash(const TaskItem& item) {
  return item.group.empty() ? content_hash(item) : XXH3_64bits(item.group.data(), item.group.size());
}

/// The label of an item, or all of them, as its file has them; empty of other kinds.
std::string stratum_of(const TaskItem& item, const TaskConfig& config, const TaskLabels& labels) {
  if (!config.kind->learns_labels || config.kind->has_words) return "";
  const auto ids = item.gold.form == AnswerForm::label ? std::vector{item.gold.label} : item.gold.labels;
  std::vector<std::string> written;
  for (const auto id : ids) written.push_back(labels.written[static_cast<size_t>(id)]);
  std::sort(written.begin(), written.end());
  std::string stratum;
  for (const auto& one : written) stratum += one + '\0';
  return stratum;
}

/// Items that no split divides: those of one group, and equal ones.
struct ItemUnit {
  uint64_t hash = 0;
  size_t size = 0;
  std::string stratum{};  ///< that of most of its items
  double place = 0;       ///< in (0, 1) among the units of its stratum, in the order of their hashes
  bool is_valid = false;
};

/// Units in the order of their hashes.
std::vector<ItemUnit> units_of(std::vector<std::pair<uint64_t, std::string>> items) {
  std::sort(items.begin(), items.end());
  std::vector<ItemUnit> units;
  for (auto at = items.begin(); at != items.end();) {
    ItemUnit unit{.hash = at->first};
    for (int64_t most = 0; at != items.end() && at->first == unit.hash;) {
      const auto next = std::upper_bound(at, items.end(), *at);
      unit.size += static_cast<size_t>(next - at);
      if (next - at > most) unit.stratum = at->second;
      most = std::max(most, next - at);
      at = next;
    }
    units.push_back(std::move(unit));
  }
  std::unordered_map<std::string, double> all, seen;
  for (const auto& unit : units) ++all[unit.stratum];
  for (auto& unit : units) unit.place = (seen[unit.stratum]++ + 0.5) / all[unit.stratum];
  return units;
}

/// Chooses units whose items are as close to the wanted number as any are, up to `few` more; none where there are none
/// such.
void choose_closest(const std::vector<ItemUnit*>& order, size_t wanted, size_t few) {
  constexpr size_t most_steps = 1'000'000'000;
  std::vector<size_t> last(wanted + few + 1, SIZE_MAX);  // by sum: the unit with which it was first reached
  if (order.size() * last.size() > most_steps) return;
  last[0] = 0;
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t sum = last.size() - 1; sum >= order[i]->size; --sum)
      if (last[sum] == SIZE_MAX && last[sum - order[i]->size] != SIZE_MAX) last[sum] = i;
  size_t best = 0;
  for (size_t sum = 1; sum < last.size(); ++sum) {
    const auto distance = [&](size_t to) { return to > wanted ? to - wanted : wanted - to; };
    if (last[sum] != SIZE_MAX && distance(sum) < distance(best)) best = sum;
  }
  for (; best > 0; best -= order[last[best]]->size) order[last[best]]->is_valid = true;
}

/// Chooses units of about so many items, of each stratum its share: those whose places are the first. Units larger than
/// what is left stay. Where more than `few` are left, those that come closest.
void choose_units(std::vector<ItemUnit>& units, size_t wanted, size_t few) {
  std::vector<ItemUnit*> order;
  for (auto& unit : units) order.push_back(&unit);
  std::ranges::stable_sort(order, {}, [](const ItemUnit* unit) { return unit->place; });
  auto left = wanted;
  for (auto* unit : order) {
    unit->is_valid = unit->size <= left;
    if (unit->is_valid) left -= unit->size;
  }
  if (left <= few && left < wanted) return;
  for (auto& unit : units) unit.is_valid = false;
  choose_closest(order, wanted, few);
}

/// Moves a tenth of the training split to the valid split.
void split_off_valid(const TaskConfig& config, const TaskLabels& labels, TaskSplit& train, TaskSplit& valid) {
  std::vector<std::pair<uint64_t, std::string>> hashes;
  for (const auto& item : train.items) hashes.emplace_back(split_hash(item), stratum_of(item, config, labels));
  auto units = units_of(hashes);
  require<DataError>(units.size() > 1, train.file,
                     ": cannot be divided, since its items are equal or of one group; give a part with `data.valid`");
  const auto wanted = (train.items.size() + valid_divisor - 1) / valid_divisor, few = std::min(size_t{5}, wanted);
  choose_units(units, wanted, few);
  size_t chosen = 0;
  for (const auto& unit : units) chosen += unit.is_valid ? unit.size : 0;
  require<DataError>(chosen > 0 && chosen + few >= wanted, train.file, ": a tenth of it is ", counted(wanted, "item"),
                     ", give or take ", few,
                     "; equal items and those of one group stay together, and none of these sets "
                     "add up to so many; give a part with `data.valid`");
  std::vector<TaskItem> stay;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const auto& unit = *std::ranges::lower_bound(units, hashes[i].first, {}, &ItemUnit::hash);
    (unit.is_valid ? valid.items : stay).push_back(std::move(train.items[i]));
  }
  train.items = std::move(stay);
  valid.name = "valid";
  valid.file = train.file;
}

/// Leaves in the training split the items that `data.few` and `data.fraction` say. Equal items and those of a group are
/// neighbours in the drawn order, which no other item of the split changes.
void draw_items(Task& task, uint64_t seed) {
  auto& items = task.train.items;
  const auto& data = task.config.data;
  if (data.few == 0 && data.fraction == 1) return;
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto key = mix(name_hash("items of a task"), seed);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return mix(key, split_hash(items[i])); });
  const auto drawn = static_cast<size_t>(std::ceil(data.fraction * static_cast<double>(items.size())));
  order.resize(std::min(order.size(), drawn));
  const bool by_label = task.config.kind->form == AnswerForm::label;
  std::unordered_map<std::string, int64_t> counts;
  std::vector<bool> stays(items.size());
  for (const auto i : order) {
    auto& count = counts[by_label ? stratum_of(items[i], task.config, task.labels) : ""];
    stays[i] = data.few == 0 || ++count <= data.few;
  }
  size_t at = 0;
  const auto all = items.size();
  std::erase_if(items, [&](const TaskItem&) { return !stays[at++]; });
  task.notes.push_back(concat("train: ", thousands(items.size()), " of ", counted(all, "item"),
                              " are trained on, drawn by train.seed ", seed));
}

/// Notes labels whose items have all been moved to the valid split.
void note_labels_only_in_valid(Task& task) {
  const auto left = label_counts(task.train, task.labels), in_valid = label_counts(task.valid, task.labels);
  uint64_t count = 0;
  std::string first;
  for (size_t id = 0; id < left.size(); ++id)
    if (left[id] == 0 && in_valid[id] > 0 && count++ == 0) first = task.labels.names[id];
  if (count > 0)
    task.notes.push_back(concat("train: all items of ", counted(count, "label"), " are in the valid part, first '",
                                shortened(first), "', so that nothing is learned of ", count == 1 ? "it" : "them",
                                "; give a part with `data.valid`"));
}

/// Notes a valid split of which one answer is right for all items.
void note_one_answer(Task& task) {
  const auto kind = task.config.kind;
  const auto& items = task.valid.items;
  const auto counts = label_counts(task.valid, task.labels);
  const bool is_one =
      kind->has_words
          ? std::ranges::count(counts, uint64_t{0}) + 1 == std::ssize(counts)
          : std::ranges::all_of(items, [&](const TaskItem& item) { return item.gold == items.front().gold; });
  if (!is_one || items.empty()) return;
  const auto answer = kind->has_words
                          ? task.labels.names[static_cast<size_t>(std::ranges::max_element(counts) - counts.begin())]
                          : kind->spelled(items.front().gold, task.labels);
  task.notes.push_back(
      concat("valid: '", shortened(kind->shown(answer)), "' is right for all of its ", counted(items.size(), "item"),
             ", so that nothing is better on it than to predict that; give another with `data.valid`"));
}

/// Hashes of items and their numbers, sorted.
using Hashes = std::vector<std::pair<uint64_t, size_t>>;

Hashes hashes_of(const TaskSplit& split) {
  Hashes hashes;
  for (size_t i = 0; i < split.items.size(); ++i) hashes.emplace_back(content_hash(split.items[i]), i);
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

/// Notes the items of a split that another split has too, whose hashes are `known`.
void note_doubles(const TaskSplit& split, const Hashes& known, const TaskSplit& other,
                  std::vector<std::string>& notes) {
  uint64_t count = 0;
  std::string first;
  for (const auto& item : split.items) {
    const auto hash = content_hash(item);
    const auto found = std::lower_bound(known.begin(), known.end(), std::pair(hash, size_t{0}));
    if (found == known.end() || found->first != hash) continue;
    if (count++ == 0) first = concat(item.id, " as ", other.items[found->second].id);
  }
  if (count > 0)
    notes.push_back(concat(thousands(count), " of ", counted(split.items.size(), "item"), " of ", split.name,
                           count == 1 ? " stands in " : " stand in ", other.name, " too, first ", shortened(first),
                           count == 1 ? "; it counts" : "; they count"));
}

void note_all_doubles(Task& task, bool has_own_valid) {
  const auto in_train = hashes_of(task.train);
  note_doubles(task.test, in_train, task.train, task.notes);
  if (has_own_valid) note_doubles(task.valid, in_train, task.train, task.notes);
  if (!task.is_chosen_on_test) note_doubles(task.test, hashes_of(task.valid), task.valid, task.notes);
}

bool asks_labels_of_train(const TaskConfig& config) {
  return config.kind->learns_labels && given_labels(config).names.empty();
}

/// Whether all files of a split are there.
bool is_split_there(const std::string& named, const std::string& task_file) {
  if (named.empty()) return false;
  try {
    files_of_split(named, task_file);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

Task open_task(const std::string& file, const TaskOptions& options) {
  Task task{.config = read_task_config(file, options.overrides), .file = file};
  const auto& data = task.config.data;
  LabelPool pool;
  const SplitOptions reading{.skip_bad = options.skip_bad};
  const auto read = [&](const char* name, const std::string& files) {
    return read_split(task.config, file, name, files, pool, reading);
  };
  const bool lacks_train = options.may_lack_train && !is_split_there(data.train, file);
  const bool has_train = !lacks_train && (!options.test_only || asks_labels_of_train(task.config));
  require<ConfigError>(!has_train || !data.train.empty(), file,
                       ": 'data.train' is empty; name the file of the training part");
  const bool has_own_valid = !data.valid.empty() && data.valid != "test" && !data.test.empty();
  const auto read_test = [&] { task.test = read("test", data.test.empty() ? data.valid : data.test); };
  if (has_train) task.train = read("train", data.train);
  if (lacks_train) read_test();
  const auto* of_labels = has_train ? &task.train : lacks_train ? &task.test : nullptr;
  task.labels = order_labels(task.config, of_labels, pool, options.label_order);
  require<ConfigError>(!task.config.choose_threshold || task.config.kind->has_sets || task.labels.size() == 2, file,
                       ": choose_threshold is true, and the task has ", counted(task.labels.size(), "label"),
                       "; a threshold is of two, or of several at once (multilabel); leave it out");
  if (!lacks_train) read_test();
  if (has_own_valid && !options.test_only) task.valid = read("valid", data.valid);
  for (auto* split : {&task.train, &task.valid, &task.test}) {
    number_golds(*split, task.config, task.labels, pool);
    if (split != &task.train) require_judged(*split, task.train, task.config, task.labels);
    note_unknown_labels(*split);
    task.has_unanswerable |= std::ranges::any_of(split->items, is_unanswerable);
    task.notes.insert(task.notes.end(), split->notes.begin(), split->notes.end());
  }
  if (lacks_train) {
    task.notes.push_back(concat("there is no training part", data.train.empty() ? "" : ", " + data.train,
                                ": whether it has items of test is not known",
                                asks_labels_of_train(task.config) ? ", and labels are those of test" : ""));
    return task;
  }
  if (options.test_only) {
    task.train = task.valid = {};
    return task;
  }
  if (data.valid == "test") {
    task.is_chosen_on_test = true;
    task.valid = task.test;
    task.valid.name = "valid";
    task.notes.push_back("valid is test: every figure is chosen on the items that it is of");
  } else if (!has_own_valid) {
    split_off_valid(task.config, task.labels, task.train, task.valid);
    task.notes.push_back(
        concat("valid is a tenth of train, by a hash of each item: ", counted(task.valid.items.size(), "item"), " of ",
               thousands(task.valid.items.size() + task.train.items.size())));
    if (task.config.kind->learns_labels) note_labels_only_in_valid(task);
  }
  draw_items(task, options.seed);
  note_one_answer(task);
  note_all_doubles(task, has_own_valid);
  return task;
}

namespace {

/// Whether a file begins as those of TREC do: a label, COARSE:fine, and a space.
bool begins_with_label(const std::string& file) {
  LineReader lines(file);
  std::string_view line;
  if (!lines.next(line)) return false;
  const auto space = line.find(' ');
  return space != line.npos && line.find(':') < space;
}

/// Whether a file has a text of a task on each line: it is called .txt, and the task asks for a label or a number of
/// one text. A tab in its first line makes it a table, which has to say so.
bool has_text_a_line(const TaskConfig& config, const std::string& file) {
  if (!config.kind->files.formats.empty() || config.kind->has_candidates || !config.data.second.empty() ||
      config.data.text.find('{') != std::string::npos)
    return false;
  if (config.data.format != TaskFormat::automatic || !uncompressed_name(file).ends_with(".txt")) return false;
  LineReader lines(file);
  std::string_view line;
  return !lines.next(line) || line.find('\t') == line.npos;
}

/// The config of items that are a text a line.
TaskConfig with_text_a_line(TaskConfig config) {
  auto& data = config.data;
  data.format = TaskFormat::tsv;
  data.header = false;
  data.text = "0";
  data.label.clear();
  data.id = data.group = "";
  return config;
}

/// Whether the name of a file ends as that of a split, whose form `data.format` says.
bool is_called_as_splits(const TaskConfig& config, const std::string& name) {
  const auto ending = std::filesystem::path(name).extension();
  const auto ends_so = [&](const std::string& split) {
    return std::filesystem::path(uncompressed_name(split)).extension() == ending;
  };
  return ends_so(config.data.train) || ends_so(config.data.valid) || ends_so(config.data.test);
}

/// The config by which items of a file are read that may have no labels. In the forms of TREC and of folders the label
/// stands in the text or in the name: a file without is a table or JSON lines by its name, else a text a line. A table
/// and JSON lines are also told by their names where the splits have other names.
TaskConfig config_of_items(const TaskConfig& config, const std::string& file) {
  using enum TaskFormat;
  const auto format = config.data.format;
  if (has_text_a_line(config, file)) return with_text_a_line(config);
  const auto name = uncompressed_name(file);
  const bool says_form = name.ends_with(".tsv") || name.ends_with(".csv") || name.ends_with(".jsonl");
  const bool is_flat = format == tsv || format == csv || format == jsonl;
  if (is_flat && says_form && !is_called_as_splits(config, name)) {
    auto made = config;
    made.data.format = automatic;
    return made;
  }
  if (format != trec && format != folders) return config;
  const bool is_of_task =
      format == folders ? std::filesystem::is_directory(file) : !says_form && begins_with_label(file);
  if (is_of_task) return config;
  if (!says_form) return with_text_a_line(config);
  auto made = config;
  made.data.format = automatic;
  if (made.data.text.empty()) made.data.text = "text";
  return made;
}

}  // namespace

TaskSplit read_items(const Task& task, const std::string& file, bool needs_labels) {
  LabelPool pool;
  const auto config = needs_labels ? task.config : config_of_items(task.config, file);
  auto split = read_split(config, task.file, "items", file, pool, {.needs_labels = needs_labels});
  number_golds(split, task.config, task.labels, pool);
  note_unknown_labels(split);
  return split;
}

TaskSplit read_items_in_windows(const Task& task, const std::string& file, size_t window,
                                const std::function<void(TaskSplit&)>& take, bool skip_bad) {
  LabelPool pool;
  const auto number_and_take = [&](TaskSplit& split) {
    number_golds(split, task.config, task.labels, pool);
    take(split);
  };
  auto split = read_split(config_of_items(task.config, file), task.file, "items", file, pool,
                          {.skip_bad = skip_bad, .needs_labels = false, .take = number_and_take, .window = window});
  note_unknown_labels(split);
  return split;
}

std::string counts_of(const TaskSplit& split, const TaskLabels& labels) {
  auto text = concat(split.name, ": ", counted(split.items.size(), "item"));
  const auto counts = label_counts(split, labels);
  constexpr size_t most = 20;
  for (size_t i = 0; i < std::min(counts.size(), most); ++i)
    text += concat(", ", shortened(labels.names[i]), " ", thousands(counts[i]));
  return counts.size() > most ? concat(text, " and ", counts.size() - most, " labels more") : text;
}

}  // namespace cloze
