#include "evaluation/babylm/tasks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "data/reading/line_reader.h"
#include "data/reading/text_lines.h"
#include "evaluation/suites/python_json.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// One line of a file, with its file and number for messages.
struct Line {
  PythonJson json;
  std::string where;  ///< file and line
  std::string file;   ///< name without extensions

  const PythonJson& member(const char* key) const {
    const auto* found = json.find(key);
    require<DataError>(found != nullptr, where, ": lacks '", key, "'");
    return *found;
  }
  std::string text(const char* key) const {
    const auto* value = member(key).text();
    require<DataError>(value != nullptr, where, ": '", key, "' is no text");
    return *value;
  }
};

/// A sentence that is scored as a full_sentence.
BabylmCandidate full_sentence(const std::string& sentence) { return {.sentence = sentence, .completion = sentence}; }

BabylmItem blimp_item(const Line& line) {
  BabylmItem item{.uid = line.file,
                  .candidates = {full_sentence(line.text("sentence_good")), full_sentence(line.text("sentence_bad"))}};
  if (!line.json.find("field")) {
    item.groups = {{"field", "supplement"}, {"UID", item.uid}, {"linguistics_term", "supplement"}};
    return item;
  }
  auto field = line.text("field");
  if (field == "syntax_semantics") field = "syntax/semantics";
  item.uid = line.text("UID");
  item.groups = {{"field", field}, {"UID", item.uid}, {"linguistics_term", line.text("linguistics_term")}};
  return item;
}

/// Both targets follow the first context; a prefix of its own is read by encoders only.
BabylmItem ewok_item(const Line& line) {
  BabylmItem item{.uid = line.text("Domain")};
  const auto context = line.text("Context1");
  for (const auto& [target, prefix] : {std::pair("Target1", "Context1"), std::pair("Target2", "Context2")}) {
    const auto completion = " " + line.text(target);
    item.candidates.push_back(
        {.sentence = context + completion, .completion = completion, .prefix = line.text(prefix)});
  }
  item.groups = {{"UID", item.uid},
                 {"context_type", line.text("ContextType")},
                 {"context_contrast", line.text("ContextDiff")},
                 {"target_contrast", line.text("TargetDiff")}};
  return item;
}

BabylmItem wug_item(const Line& line, const std::string& task) {
  BabylmItem item{.uid = task, .groups = {{"UID", task}}, .ratio = line.member("ratio").number()};
  require<DataError>(!std::isnan(item.ratio), line.where, ": 'ratio' is no number");
  const auto sentences = line.text("sentences");
  for (size_t begin = 0, end = 0; begin <= sentences.size(); begin = end + 1) {
    end = std::min(sentences.find('\t', begin), sentences.size());
    item.candidates.push_back(full_sentence(sentences.substr(begin, end - begin)));
  }
  require<DataError>(item.candidates.size() == 2, line.where, ": 'sentences' has ", item.candidates.size(),
                     " sentences; a pair has two, with a tab between them");
  return item;
}

BabylmItem entity_tracking_item(const Line& line) {
  const auto& operations = line.member("numops");
  const auto* whole_number = std::get_if<PythonJson::Integer>(&operations.value);
  require<DataError>(whole_number != nullptr, line.where, ": 'numops' is no whole number");
  const auto* options = line.member("options").list();
  require<DataError>(options != nullptr, line.where, ": 'options' is no list");
  BabylmItem item{.uid = line.file + "_" + whole_number->digits + "_ops"};
  item.groups = {{"UID", item.uid}};
  const auto prefix = line.text("input_prefix");
  for (const auto& option : *options) {
    require<DataError>(option.text() != nullptr, line.where, ": an option is no text");
    item.candidates.push_back({.sentence = prefix + *option.text(), .completion = *option.text(), .prefix = prefix});
  }
  return item;
}

BabylmItem comps_item(const Line& line) {
  BabylmItem item{.uid = "wugs_dist_in_between"};
  if (line.file == "comps_base") item.uid = "base";
  if (line.file == "comps_wugs") item.uid = "wugs";
  if (line.file == "comps_wugs_dist-before") item.uid = "wugs_dist_before";
  item.groups = {{"UID", item.uid}};
  const auto phrase = line.text("property_phrase");
  for (const auto* key : {"prefix_acceptable", "prefix_unacceptable"}) {
    const auto prefix = line.text(key);
    item.candidates.push_back({.sentence = prefix + " " + phrase, .completion = phrase, .prefix = prefix});
  }
  return item;
}

BabylmItem item_of(const Line& line, const BabylmDataset& dataset) {
  switch (dataset.format) {
    case BabylmFormat::blimp:
      return blimp_item(line);
    case BabylmFormat::ewok:
      return ewok_item(line);
    case BabylmFormat::wug:
      return wug_item(line, dataset.task);
    case BabylmFormat::entity_tracking:
      return entity_tracking_item(line);
    case BabylmFormat::comps:
      return comps_item(line);
  }
  return {};
}

void check(const BabylmItem& item, const Line& line) {
  require<DataError>(item.candidates.size() >= 2, line.where, ": has ", item.candidates.size(),
                     " candidates; a choice needs 2 or more");
  for (size_t c = 0; c < item.candidates.size(); ++c)
    require<DataError>(!is_blank(item.candidates[c].completion), line.where, ": candidate ", c + 1, " is empty");
}

/// The name of a file without .jsonl; none for other files.
std::optional<std::string> jsonl_name(const fs::path& file) {
  auto name = file.filename();
  if (name.extension() == ".xz" || name.extension() == ".gz") name = name.stem();
  if (name.extension() != ".jsonl") return {};
  return name.stem().string();
}

void read_file(const fs::path& file, const std::string& name, const BabylmDataset& dataset,
               std::vector<BabylmItem>& items) {
  LineReader reader(file.string());
  for (std::string_view text; reader.next(text);) {
    const Line line{.json = parse_python_json(text, reader.where()), .where = reader.where(), .file = name};
    items.push_back(item_of(line, dataset));
    check(items.back(), line);
  }
  require<DataError>(reader.number > 0, file.string(), ": is empty; get it again");
}

}  // namespace

const std::vector<BabylmDataset>& babylm_datasets(bool fast) {
  using enum BabylmFormat;
  static const std::vector<BabylmDataset> full_tasks{{"blimp", "blimp_filtered", blimp},
                                                     {"blimp", "supplement_filtered", blimp},
                                                     {"ewok", "ewok_filtered", ewok},
                                                     {"entity_tracking", "entity_tracking", entity_tracking},
                                                     {"wug_adj", "wug_adj_nominalization", wug},
                                                     {"wug_past", "wug_past_tense", wug},
                                                     {"comps", "comps", comps}};
  static const std::vector<BabylmDataset> fast_tasks{
      {"blimp", "blimp_fast", blimp},      {"blimp", "supplement_fast", blimp},
      {"ewok", "ewok_fast", ewok},         {"wug_adj", "wug_adj_nominalization", wug},
      {"wug_past", "wug_past_tense", wug}, {"entity_tracking", "entity_tracking_fast", entity_tracking}};
  return fast ? fast_tasks : full_tasks;
}

std::vector<BabylmItem> read_babylm_items(const std::string& folder, const BabylmDataset& dataset) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (jsonl_name(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<BabylmItem> items;
  for (const auto& file : files) read_file(file, *jsonl_name(file), dataset, items);
  require<DataError>(!items.empty(), folder, ": has no items; ", dataset.task, " reads .jsonl files in it");
  return items;
}

}  // namespace cloze
