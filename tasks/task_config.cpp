#include "tasks/task_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/config/config_rule.h"
#include "core/contains.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The templates of a task are whole.
void check_templates(const TaskDataConfig& data, Constraints& constraints) {
  for (const auto& [key, text] : {std::pair("data.text", &data.text), std::pair("data.second", &data.second),
                                  std::pair("data.id", &data.id), std::pair("data.group", &data.group)}) {
    try {
      columns_in(*text, key);
    } catch (const ConfigError& error) {
      constraints.forbid(true, error.what());
    }
  }
}

/// The form of the files is one that the kind reads.
void check_format(const TaskConfig& c, Constraints& constraints) {
  using enum TaskFormat;
  const auto format = c.data.format;
  const auto& own = c.kind->files;
  const bool is_json = format == jsonl || format == automatic, is_own = contains(own.formats, format);
  constraints.forbid(format == squad && !is_own, "'data.format' is squad, and 'kind' is ", c.kind,
                     "; answers in a context are spans");
  constraints.forbid((format == conll || format == conllu) && !is_own, "'data.format' is ", format, ", and 'kind' is ",
                     c.kind, "; a word a line is of tagging");
  constraints.forbid(!own.formats.empty() && !is_own && !is_json, "'data.format' is ", format, ", which has no ",
                     own.lacking);
}

void check_columns(const TaskConfig& c, Constraints& constraints) {
  const auto& data = c.data;
  using enum TaskFormat;
  const bool is_json = data.format == jsonl || data.format == automatic;
  const bool has_own_files = !c.kind->files.formats.empty();  // or their files are JSON lines
  constraints.forbid(!has_own_files && data.text.empty() && data.format != folders && data.format != trec,
                     "'data.text' is empty; name the column of the text");
  const bool has_empty = std::ranges::find(data.label, "") != data.label.end();
  constraints.forbid(has_empty || (!has_own_files && data.label.empty() && data.format != folders),
                     "'data.label' is empty; name the column of the label");
  constraints.forbid(data.label.size() > 1 && !c.kind->has_sets && !c.kind->generates, "'data.label' names ",
                     data.label.size(), " columns, and 'kind' is ", c.kind,
                     "; columns of 0 and 1, each a label, are of multilabel");
  constraints.forbid(std::set(data.label.begin(), data.label.end()).size() < data.label.size(),
                     "'data.label' names a column twice; name each once");
  constraints.forbid(!data.text.empty() && contains(data.label, data.text), "'data.text' and 'data.label' are both '",
                     shortened(data.text), "'; name a column of the text and another one of the label");
  constraints.forbid(c.kind->has_candidates && data.candidates.empty(),
                     "'data.candidates' is empty; name the columns of the candidates");
  constraints.forbid(!c.kind->has_candidates && !data.candidates.empty(), "'data.candidates' is given, and 'kind' is ",
                     c.kind, "; a choice has candidates");
  constraints.forbid(!c.kind->has_answers && !data.answers.empty(), "'data.answers' is given, and 'kind' is ", c.kind,
                     "; spans have answers");
  constraints.forbid(!data.each.empty() && !is_json, "'data.each' is '", shortened(data.each),
                     "', and 'data.format' is ", data.format, "; only JSON lines nest");
  constraints.forbid(!c.kind->has_scheme && data.scheme != TagScheme::none, "'data.scheme' is ", data.scheme,
                     ", and 'kind' is ", c.kind, "; tags have a scheme");
  constraints.forbid(c.kind->has_sets && data.label_separator.empty(),
                     "'data.label_separator' is empty; write what stands between labels");
  constraints.forbid(
      c.kind->generates && !data.second.empty(),
      "'data.second' is given, and 'kind' is generation, of one source; join columns by a template: text: "
      "\"question: {question} context: {context}\"");
  check_templates(data, constraints);
}

/// Sources, targets and texts of a generation.
void check_generation(const TaskConfig& c, Constraints& constraints) {
  constraints.forbid(c.kind->generates && std::holds_alternative<Windows>(c.truncation),
                     "'cut' is windows, and 'kind' is generation, whose source is one row; write first or head_tail");
  const auto most = most_new_tokens(c);
  constraints.forbid(c.decoding.min_new_tokens >= most && c.decoding.min_new_tokens > 0,
                     "'decoding.min_new_tokens' is ", c.decoding.min_new_tokens, ", and texts have at most ", most,
                     " tokens; lower it, or raise decoding.max_new_tokens");
  constraints.forbid(c.max_target == 1, "'max_target' is 1, which the end token takes; raise it");
}

void check_labels(const TaskConfig& c, Constraints& constraints) {
  const bool has_labels = c.kind->learns_labels || c.kind->has_candidates;
  constraints.forbid(!has_labels && !c.labels.items.empty(), "'labels' are given, and 'kind' is ", c.kind,
                     ", which has none; leave them out");
  std::set<std::string> names, all_written;
  for (const auto& [written, node] : c.labels.items) {
    constraints.forbid(!all_written.insert(written).second, "'labels' has '", shortened(written),
                       "' twice, white space around it aside; keep one of them");
    constraints.forbid(node.type != ConfigNode::Type::scalar || node.text.empty(), "'labels' names '",
                       shortened(written), "' by ", config_detail::shown(node), "; write a text");
    const bool is_new = names.insert(node.text).second;
    constraints.forbid(!is_new && !c.kind->has_candidates, "'labels' gives two of them the name '",
                       shortened(node.text), "'; give each a name of its own");
  }
  const auto& columns = c.data.label;
  for (const auto& [written, node] : c.labels.items)
    constraints.forbid(columns.size() > 1 && !contains(columns, written), "'labels' names '", shortened(written),
                       "', and is no column of 'data.label', ", listed(columns), "; name those");
  constraints.forbid(names.size() == 1, "'labels' has one label only, of which nothing can be learned; name all");
}

void check_weights(const TaskConfig& c, Constraints& constraints) {
  const auto& weights = c.class_weights;
  constraints.forbid(!weights.empty() && !c.kind->has_class_weights, "'class_weights' are given, and 'kind' is ",
                     c.kind, "; they are of classification and tagging");
  if (weights == std::vector<std::string>{"balanced"}) return;
  for (const auto& text : weights) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_weight =
        error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0;
    constraints.forbid(!is_weight, "'class_weights' has '", shortened(text),
                       "', which is no weight; write numbers of at least 0, or balanced");
  }
}

void check(const TaskConfig& c, Constraints& constraints) {
  constraints.forbid(c.task.empty(), "'task' is empty; name the task");
  constraints.forbid(c.task.find('/') != std::string::npos, "'task' is '", shortened(c.task),
                     "', and folders of runs are named by it; write it without a slash");
  const auto is_control = [](unsigned char byte) { return byte < 0x20 || byte == 0x7F; };
  constraints.forbid(std::any_of(c.task.begin(), c.task.end(), is_control), "'task' is '", shortened(c.task),
                     "', and folders of runs are named by it; write it without tabs and ends of lines");
  const auto& data = c.data;
  constraints.forbid(data.test.empty() && (data.valid.empty() || data.valid == "test"),
                     "'data' has neither test nor valid; name the file that is judged");
  constraints.forbid(!c.kind->has_scale && !c.scale.empty(), "'scale' is given, and 'kind' is ", c.kind,
                     "; targets of regression have one");
  constraints.forbid(!c.scale.empty() && (c.scale.size() != 2 || c.scale[0] >= c.scale[1]),
                     "'scale' is no range; write the least target and the greatest: [0, 5]");
  check_format(c, constraints);
  check_columns(c, constraints);
  check_labels(c, constraints);
  check_weights(c, constraints);
  check_generation(c, constraints);
}

/// Throws ConfigError for keys that other kinds do not have.
void refuse_keys_of_generation(const ConfigTree& tree, const std::string& file) {
  const auto* kind = tree.find("kind");
  if (!kind || !contains(task_kind_names(), kind->text) || AnyTaskKind(kind->text)->generates) return;
  for (const auto* key : {"max_target", "end_of_cut", "decoding"})
    require<ConfigError>(tree.find(key) == nullptr, file, ": '", key, "' is given, and 'kind' is ", kind->text,
                         "; targets are of generation");
}

}  // namespace

std::string tasks_folder() {
  const auto* named = std::getenv("CLOZE_TASKS");
  return named != nullptr && *named != '\0' ? named : "tasks";
}

TaskConfig read_task_config(const std::string& file, const std::vector<std::string>& overrides) {
  const auto tree = ConfigTree::load(file, overrides, "task.");
  refuse_keys_of_generation(tree, file);
  auto config = decode<TaskConfig>(tree);
  for (auto& [written, node] : config.labels.items) written = without_white_space_around(written);
  for (auto& label : config.data.skip_labels) label = without_white_space_around(label);
  Constraints constraints;
  constraints.forbid(tree.find("kind") == nullptr, "'kind' is not given; write one of ",
                     config_detail::rule_words(one_of(task_kind_names())));
  check(config, constraints);
  const auto is_given = [&](const char* key) { return tree.find(key) != nullptr; };
  for (const auto* key : {"max_question", "max_answer"})
    constraints.forbid(!config.kind->has_answers && is_given(key), "'", key, "' is given, and 'kind' is ", config.kind,
                       "; spans have questions and answers");
  const bool has_lists = config.kind->has_sets && config.data.label.size() < 2;
  constraints.forbid(!has_lists && is_given("data.label_separator"), "'data.label_separator' is given, and 'kind' is ",
                     config.kind, config.kind->has_sets ? " with a column for each label" : "",
                     "; cells of several labels have a separator");
  constraints.forbid((config.kind->has_words || config.kind->has_answers) && !config.data.skip_labels.empty(),
                     "'data.skip_labels' is given, and 'kind' is ", config.kind, ", whose items have no label each");
  std::string text;
  for (const auto& sentence : constraints.broken()) text += (text.empty() ? "" : "\n") + file + ": " + sentence;
  require<ConfigError>(text.empty(), text);
  return config;
}

TaskLabels given_labels(const TaskConfig& config) {
  TaskLabels labels;
  for (const auto& [written, node] : config.labels.items) {
    if (config.kind->has_candidates && contains(labels.names, node.text)) continue;
    labels.names.push_back(node.text);
    labels.written.push_back(written);
  }
  const bool are_columns = config.data.label.size() > 1 && !config.kind->generates;
  if (labels.names.empty() && are_columns) labels.names = labels.written = config.data.label;
  return labels;
}

std::string find_task_data(const std::string& name, const std::string& task_file) {
  std::error_code ignored;
  std::string places;
  for (const auto& folder : {fs::path(task_file).parent_path(), fs::path(tasks_folder())}) {
    const auto path = (folder / name).lexically_normal().string();  // an absolute name stays as it is
    const auto file = plain_or_compressed(path);
    if (fs::exists(file, ignored)) {
      require<DataError>(fs::is_regular_file(file, ignored) || fs::is_directory(file, ignored), task_file, ": ",
                         shortened(file), " is a pipe or a device, and data of a task is a file or a folder");
      return file;
    }
    if (places.empty() || places != path) places += (places.empty() ? "" : " or ") + path;
  }
  fail<ConfigError>(task_file, ": ", shortened(name), " is not there (looked for ", places,
                    "); nothing is downloaded: put it there, or name its folder with CLOZE_TASKS");
}

TextTemplate columns_in(const std::string& text, const std::string& key) {
  if (text.find_first_of("{}") == std::string::npos) return {{"", ""}, {text}};
  auto parsed = parse_template(text, "'" + key + "': the pattern");
  require<ConfigError>(!parsed.fields.empty(), "'", key, "' is '", shortened(text),
                       "', which has no column; write one as {COLUMN}");
  return parsed;
}

}  // namespace cloze
