#include "tasks/rows/prepared_task.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "core/config/config.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/text.h"
#include "data/store/manifest.h"
#include "data/store/token_store.h"
#include "tasks/inspect_task.h"

namespace cloze {

namespace {

using nlohmann::json;

constexpr uint64_t largest_part = uint64_t{1} << 40;  // [bytes]
constexpr const char* again = "; restore it, or fine-tune again in another folder";

json json_of_gold(const Gold& gold) {
  if (const auto* one = std::get_if<GoldLabel>(&gold)) return {{"label", one->id}};
  if (const auto* several = std::get_if<GoldLabels>(&gold)) {
    json found{{"labels", several->ids}};
    if (!several->unknown.empty()) found["unknown"] = several->unknown;
    return found;
  }
  if (const auto* number = std::get_if<GoldValue>(&gold)) return {{"value", number->value}};
  const auto* spans = std::get_if<GoldAnswers>(&gold);
  if (!spans) return {};
  auto answers = json::array();
  for (const auto& answer : spans->answers) answers.push_back({{"text", answer.text}, {"begin", answer.begin}});
  return {{"answers", answers}};
}

Gold saved_gold(const json& found) {
  if (found.is_null()) return NoGold{};
  if (found.contains("label")) return GoldLabel{found.at("label")};
  if (found.contains("labels"))
    return GoldLabels{found.at("labels"), found.value("unknown", std::vector<std::string>{})};
  if (found.contains("value")) return GoldValue{found.at("value")};
  GoldAnswers answers;
  for (const auto& answer : found.at("answers")) answers.answers.push_back({answer.at("text"), answer.at("begin")});
  return answers;
}

json json_of_item(const TaskItem& item) {
  json found{{"id", item.id}, {"line", item.line}, {"gold", json_of_gold(item.gold)}};
  if (!item.group.empty()) found["group"] = item.group;
  if (!item.text.empty()) found["text"] = item.text;
  if (!item.second.empty()) found["second"] = item.second;
  if (item.is_pair) found["is_pair"] = true;
  if (!item.words.empty()) found["words"] = item.words;
  if (!item.candidates.empty()) found["candidates"] = item.candidates;
  return found;
}

TaskItem saved_item(const json& found) {
  return {.id = found.at("id"),
          .line = found.at("line"),
          .group = found.value("group", ""),
          .text = found.value("text", ""),
          .second = found.value("second", ""),
          .is_pair = found.value("is_pair", false),
          .words = found.value("words", std::vector<std::string>{}),
          .candidates = found.value("candidates", std::vector<std::string>{}),
          .gold = saved_gold(found.at("gold"))};
}

/// How many tokens of a row have type 0, 1, ..., which never fall.
std::vector<int64_t> lengths_of_types(const std::vector<int32_t>& segments) {
  std::vector<int64_t> lengths;
  for (const auto type : segments) {
    lengths.resize(std::max(lengths.size(), static_cast<size_t>(type) + 1));
    ++lengths[static_cast<size_t>(type)];
  }
  return lengths;
}

/// The types of a row of `size` tokens.
std::vector<int32_t> types_of_lengths(const std::vector<int64_t>& lengths, size_t size) {
  std::vector<int32_t> segments;
  for (size_t type = 0; type < lengths.size(); ++type) {
    const auto count = std::min(static_cast<uint64_t>(lengths[type]), uint64_t{size - segments.size()});
    segments.insert(segments.end(), count, static_cast<int32_t>(type));
  }
  return segments;
}

/// What a row has besides its ids and the number of its item.
json json_of_row(const TaskRow& row) {
  json found{{"texts", {row.first_begin, row.first_end, row.second_begin, row.second_end}},
             {"class_token", row.class_token}};
  if (row.window != 0) found["window"] = row.window;
  if (row.candidate != 0) found["candidate"] = row.candidate;
  if (!row.segments.empty()) found["types"] = lengths_of_types(row.segments);
  if (!row.words.empty()) found["words"] = row.words;
  if (!row.bytes.empty()) found["bytes"] = row.bytes;
  if (row.label != no_label) found["label"] = row.label;
  if (!row.labels.empty()) found["labels"] = row.labels;
  if (row.value != 0) found["value"] = row.value;
  if (row.start != no_label) found["answer"] = {row.start, row.end};
  return found;
}

TaskRow row_of(const json& found, std::vector<int32_t> ids) {
  const auto texts = found.at("texts").get<std::vector<int64_t>>();
  const auto answer = found.value("answer", std::vector<int64_t>{no_label, no_label});
  const auto size = ids.size();
  return {.window = found.value("window", int64_t{0}),
          .candidate = found.value("candidate", int64_t{0}),
          .ids = std::move(ids),
          .segments = types_of_lengths(found.value("types", std::vector<int64_t>{}), size),
          .class_token = found.at("class_token"),
          .first_begin = texts.at(0),
          .first_end = texts.at(1),
          .second_begin = texts.at(2),
          .second_end = texts.at(3),
          .words = found.value("words", std::vector<int64_t>{}),
          .bytes = found.value("bytes", std::vector<std::array<int64_t, 2>>{}),
          .label = found.value("label", no_label),
          .labels = found.value("labels", std::vector<int64_t>{}),
          .value = found.value("value", 0.0),
          .start = answer.at(0),
          .end = answer.at(1)};
}

/// Writes the rows of a part: their ids as documents of a split, the rest with their items, a line each.
class PartWriter {
 public:
  PartWriter(const std::string& folder, const std::string& split, int64_t vocabulary)
      : folder_(folder), split_(split), id_bytes_(vocabulary <= 65536 ? 2 : 4) {}

  void add(const TaskItem& item, std::span<const TaskRow> rows) {
    auto line = json_of_item(item);
    auto& of_rows = line["rows"] = json::array();
    for (const auto& row : rows) {
      of_rows.push_back(json_of_row(row));
      if (writer_ && writer_->tokens() >= shard_tokens) shards_.push_back(std::exchange(writer_, nullptr)->finish());
      if (!writer_) open();
      writer_->add_sentence(row.ids);
      writer_->end_document();
      tokens += row.ids.size();
    }
    lines_ += json_text(line) + "\n";
    documents += rows.size();
  }

  /// Returns the facts of the split; `files` gets the checksum of the items.
  std::vector<ShardFacts> finish(json& files) {
    if (writer_) shards_.push_back(writer_->finish());
    const auto name = split_ + ".jsonl";
    write_atomic(folder_ + "/" + name, lines_);
    files[name] = hash_hex(lines_);
    return shards_;
  }

  uint64_t documents = 0, tokens = 0;

 private:
  void open() {
    char name[64];
    std::snprintf(name, sizeof name, "%s-%05zu.tokens", split_.c_str(), shards_.size());
    writer_ = std::make_unique<ShardWriter>(folder_, name, id_bytes_);
  }

  std::string folder_, split_, lines_{};
  uint32_t id_bytes_;
  std::vector<ShardFacts> shards_{};
  std::unique_ptr<ShardWriter> writer_{};
};

json json_of_labels(const TaskLabels& labels) { return {{"names", labels.names}, {"written", labels.written}}; }

TaskLabels saved_labels(const json& found) { return {.names = found.at("names"), .written = found.at("written")}; }

/// What `labels` of the task file says, in its order.
TaskLabels labels_in_file(const TaskConfig& config) {
  TaskLabels labels;
  for (const auto& [written, name] : config.labels.items) {
    labels.names.push_back(name.text);
    labels.written.push_back(written);
  }
  return labels;
}

json json_of_task(const Task& task) {
  auto config = task.config;
  config.labels.items.clear();  // as lists, which keep every text as it is
  json files = json::object();
  for (const auto* part : {&task.train, &task.valid, &task.test}) files[part->name] = part->file;
  return {{"file", task.file},
          {"config", to_yaml(config)},
          {"labels", json_of_labels(task.labels)},
          {"labels_in_file", json_of_labels(labels_in_file(task.config))},
          {"files", files},
          {"chosen_on_test", task.is_chosen_on_test},
          {"notes", task.notes}};
}

Task task_of(const json& found, const std::string& where) {
  Task task{.config = decode<TaskConfig>(ConfigTree::parse(found.at("config"), where)), .file = found.at("file")};
  task.labels = saved_labels(found.at("labels"));
  auto in_file = found.contains("labels_in_file") ? saved_labels(found.at("labels_in_file")) : TaskLabels{};
  if (in_file.names.empty()) in_file = task.labels;
  for (const auto* labels : {&task.labels, &in_file})
    require<DataError>(labels->names.size() == labels->written.size(), where, ": is damaged", again);
  for (size_t i = 0; i < in_file.names.size(); ++i) {
    ConfigNode name;
    name.type = ConfigNode::Type::scalar;
    name.text = in_file.names[i];
    task.config.labels.items.emplace_back(in_file.written[i], std::move(name));
  }
  for (auto* part : {&task.train, &task.valid, &task.test}) {
    part->name = part == &task.train ? "train" : part == &task.valid ? "valid" : "test";
    part->file = found.at("files").value(part->name, "");
  }
  task.is_chosen_on_test = found.at("chosen_on_test");
  task.notes = found.at("notes").get<std::vector<std::string>>();
  return task;
}

bool has_unanswerable(const std::vector<TaskItem>& items) {
  return std::any_of(items.begin(), items.end(), [](const TaskItem& item) {
    const auto* gold = std::get_if<GoldAnswers>(&item.gold);
    return gold && gold->answers.empty();
  });
}

/// The manifest of a prepared task. Throws DataError for other tokens.
Manifest manifest_of_task(const std::string& folder) {
  auto manifest = read_manifest(folder);
  require<DataError>(manifest.made_from.contains("task"), folder,
                     ": is prepared text, and has no rows of a task; fine-tune with `cloze finetune RUN TASK.yaml`");
  return manifest;
}

}  // namespace

bool asks_the_same(const TaskItem& one, const TaskItem& other) {
  return std::tie(one.id, one.text, one.second, one.words, one.candidates, one.gold) ==
         std::tie(other.id, other.text, other.second, other.words, other.candidates, other.gold);
}

bool has_items_of(const std::string& folder, const Task& task) {
  return std::ranges::all_of(std::array{&task.train, &task.valid, &task.test}, [&](const TaskPart* part) {
    return std::ranges::equal(read_prepared_part(folder, part->name).items, part->items, asks_the_same);
  });
}

uint64_t count_examples(TaskKind kind, const std::vector<TaskRow>& rows) {
  uint64_t examples = 0;
  for (size_t r = 0; r < rows.size(); ++r)
    examples += kind != TaskKind::choice || r == 0 || rows[r].item != rows[r - 1].item;
  return examples;
}

namespace {

/// Writes the rows of a part, and adds what they have to `made` and to the manifest.
void prepare_part(const TaskPart& part, bool trains, const TaskRowMaker& maker, TaskKind kind, PartWriter& writer,
                  PreparedTask& made, Manifest& manifest) {
  RowCounts counts;
  std::vector<TaskRow> rows;
  uint64_t examples = 0;
  for (size_t i = 0; i < part.items.size(); ++i) {
    rows.clear();
    maker.add(part.items[i], static_cast<int64_t>(i), rows, counts);
    writer.add(part.items[i], rows);
    examples += count_examples(kind, rows);
    for (const auto& row : rows) {
      made.longest = std::max(made.longest, static_cast<int64_t>(row.ids.size()));
      for (const auto id : row.ids)
        if (trains) ++manifest.counts.at(static_cast<size_t>(id));
    }
  }
  if (trains) made.train_examples = examples;
  if (part.name == "valid") made.valid_examples = examples;
  const std::string before = trains ? "" : part.name + "_";
  manifest.report[before + "documents"] = writer.documents;
  manifest.report[before + "tokens"] = writer.tokens;
  made.counts.emplace_back(part.name, std::move(counts));
}

}  // namespace

PreparedTask prepare_task(const Task& task, const Tokenizer& tokenizer, const TaskFraming& framing,
                          const std::string& folder) {
  const auto options = row_options(task.config, task.labels);
  const TaskRowMaker maker(tokenizer, framing, options);
  PreparedTask made{.task = task, .may_lack_answers = has_unanswerable(task.train.items)};
  StagedFolder staged(folder);
  Manifest manifest;
  manifest.tokenizer_kind = tokenizer.kind();
  manifest.tokenizer_fingerprint = tokenizer.fingerprint();
  manifest.vocab_size = tokenizer.size();
  manifest.counts.resize(static_cast<size_t>(tokenizer.size()));
  json files = json::object();
  for (const auto* part : {&task.train, &task.valid, &task.test}) {
    PartWriter writer(staged.path(), part->name, tokenizer.size());
    prepare_part(*part, part == &task.train, maker, options.kind, writer, made, manifest);
    manifest.splits[part->name] = writer.finish(files);
  }
  manifest.report["sentences"] = manifest.report["documents"];
  manifest.made_from = {{"task", json_of_task(task)},
                        {"longest", made.longest},
                        {"examples", {{"train", made.train_examples}, {"valid", made.valid_examples}}},
                        {"may_lack_answers", made.may_lack_answers},
                        {"items", files}};
  tokenizer.save(staged.path() + "/tokenizer");
  write_manifest(staged.path(), manifest);
  staged.commit();
  made.fingerprint = read_manifest(folder).fingerprint;
  for (auto* part : {&made.task.train, &made.task.valid, &made.task.test}) part->items.clear();
  return made;
}

bool is_prepared_task(const std::string& folder) {
  std::error_code ignored;
  return is_token_store(folder) && std::filesystem::exists(folder + "/train.jsonl", ignored);
}

PreparedTask open_prepared_task(const std::string& folder) try {
  const auto manifest = manifest_of_task(folder);
  const auto& from = manifest.made_from;
  return {.task = task_of(from.at("task"), folder + "/manifest.json"),
          .fingerprint = manifest.fingerprint,
          .longest = from.at("longest"),
          .train_examples = from.at("examples").at("train"),
          .valid_examples = from.at("examples").at("valid"),
          .may_lack_answers = from.at("may_lack_answers")};
} catch (const json::exception&) {
  fail<DataError>(folder, "/manifest.json: is damaged", again);
}

namespace {

/// The items of a part, a line each, as they were written. Throws DataError for other ones.
std::string item_lines(const std::string& folder, const std::string& part) {
  const auto manifest = manifest_of_task(folder);
  const auto file = folder + "/" + part + ".jsonl";
  std::string content;
  try {
    content = read_text(file, largest_part);
  } catch (const Error& error) {
    fail<DataError>(error.what(), again);
  }
  const auto recorded = value_at(manifest.made_from, ("/items/" + part + ".jsonl").c_str());
  require<DataError>(recorded == hash_hex(content), file, ": its content does not match its checksum", again);
  return content;
}

/// The rows of the next item, whose ids are the documents of the store from number `document` on. Throws
/// std::out_of_range where there are none.
std::vector<TaskRow> read_rows(const json& saved, const TokenStore& store, size_t document, int64_t item) {
  std::vector<TaskRow> rows;
  for (const auto& one : saved) {
    if (document >= store.num_documents()) throw std::out_of_range("rows");
    const auto first = store.document_token(document), count = store.document_token(document + 1) - first;
    std::vector<int64_t> ids(count);
    store.read(first, count, ids.data());
    auto& row = rows.emplace_back(row_of(one, {ids.begin(), ids.end()}));
    row.item = item;
    ++document;
  }
  return rows;
}

}  // namespace

PreparedPart read_prepared_part(const std::string& folder, const std::string& part) {
  const auto content = item_lines(folder, part);
  const auto file = folder + "/" + part + ".jsonl";
  const auto task = open_prepared_task(folder).task;
  const auto kind = task.config.kind;
  const TokenStore store(folder, part);
  PreparedPart prepared_part;
  const auto damaged = [&] { fail<DataError>(file, ": item ", prepared_part.items.size(), " is damaged", again); };
  try {
    for (size_t at = 0; at < content.size();) {
      const auto end = std::min(content.find('\n', at), content.size());
      const auto line = parse_json(std::string_view(content).substr(at, end - at));
      at = end + 1;
      auto item = saved_item(line);
      auto rows = read_rows(line.at("rows"), store, prepared_part.rows.size(), std::ssize(prepared_part.items));
      if (!rows_fit(item, rows, kind, task.labels.size())) damaged();
      prepared_part.items.push_back(std::move(item));
      std::ranges::move(rows, std::back_inserter(prepared_part.rows));
    }
  } catch (const json::exception&) {
    damaged();
  } catch (const std::out_of_range&) {
    damaged();
  }
  require<DataError>(prepared_part.rows.size() == store.num_documents(), file, ": has ", prepared_part.rows.size(),
                     " rows, and the tokens beside it have ", store.num_documents(), again);
  return prepared_part;
}

std::string cut_note(const std::string& part, const RowCounts& counts) {
  const auto texts = counts.first.texts + counts.second.texts, cut = counts.first.cut_texts + counts.second.cut_texts;
  const auto tokens = counts.first.cut_tokens + counts.second.cut_tokens;
  std::vector<std::string> facts;
  if (cut > 0) facts.push_back(concat(cut, " of ", counted(texts, "text"), " are cut, by ", counted(tokens, "token")));
  if (counts.items_in_windows > 0) facts.push_back(counted(counts.items_in_windows, "item") + " in several windows");
  if (counts.words_without_token > 0) facts.push_back(counted(counts.words_without_token, "word") + " without a token");
  if (counts.lost_answers > 0) facts.push_back(counted(counts.lost_answers, "answer") + " that no window has whole");
  if (counts.answers_without_token > 0)
    facts.push_back(counted(counts.answers_without_token, "answer") + " in no token");
  return facts.empty() ? "" : part + ": " + listed(facts);
}

namespace {

bool is_part(int64_t begin, int64_t end, int64_t size) { return begin >= 0 && begin <= end && end <= size; }

bool gold_fits(const TaskItem& item, TaskKind kind, int64_t labels) {
  const auto is_label = [&](int64_t id) { return id >= unknown_label && id < labels; };
  if (std::holds_alternative<NoGold>(item.gold)) return true;
  const auto* one = std::get_if<GoldLabel>(&item.gold);
  const auto* several = std::get_if<GoldLabels>(&item.gold);
  const auto* spans = std::get_if<GoldAnswers>(&item.gold);
  switch (kind) {
    case TaskKind::classification:
      return one && is_label(one->id);
    case TaskKind::multilabel:
      return several && std::ranges::all_of(several->ids, is_label);
    case TaskKind::regression:
      return std::holds_alternative<GoldValue>(item.gold);
    case TaskKind::tagging:
      return several && several->ids.size() == item.words.size() && std::ranges::all_of(several->ids, is_label);
    case TaskKind::choice:
      return one && one->id >= 0 && one->id < std::ssize(item.candidates);
    case TaskKind::spans:
      break;
  }
  const auto is_answer = [&](const AnswerSpan& answer) {
    return answer.begin >= 0 && answer.begin <= std::ssize(item.second) - std::ssize(answer.text);
  };
  return spans && std::ranges::all_of(spans->answers, is_answer);
}

bool labels_fit(const TaskRow& row, TaskKind kind, int64_t labels) {
  const auto is_flag = [](int64_t has) { return has == 0 || has == 1; };
  const auto is_label = [&](int64_t id) { return id == no_label || (id >= 0 && id < labels); };
  if (kind == TaskKind::classification && !is_label(row.label)) return false;
  if (row.labels.empty()) return true;  // of an item whose labels nobody knows, or of another kind
  if (kind == TaskKind::multilabel) return std::ssize(row.labels) == labels && std::ranges::all_of(row.labels, is_flag);
  return kind == TaskKind::tagging && row.labels.size() == row.ids.size() && std::ranges::all_of(row.labels, is_label);
}

bool row_fits(const TaskRow& row, const TaskItem& item, TaskKind kind, int64_t labels) {
  constexpr int32_t types = 3;  // XLNet's, which has most
  const auto size = std::ssize(row.ids);
  const auto is_place = [&](int64_t at) { return at >= 0 && at < size; };
  const auto is_type = [](int32_t type) { return type >= 0 && type < types; };
  const auto is_word = [&](int64_t word) { return word >= -1 && word < std::ssize(item.words); };
  const auto is_context = [&](const std::array<int64_t, 2>& bytes) {
    return bytes == std::array<int64_t, 2>{-1, -1} || is_part(bytes[0], bytes[1], std::ssize(item.second));
  };
  const auto has_one_each = [&](const auto& list) { return list.empty() || std::ssize(list) == size; };
  const bool has_places = is_place(row.class_token) && is_part(row.first_begin, row.first_end, size) &&
                          is_part(row.second_begin, row.second_end, size);
  const bool has_lists = has_one_each(row.segments) && has_one_each(row.words) && has_one_each(row.bytes) &&
                         (kind != TaskKind::spans || std::ssize(row.bytes) == size);
  const bool has_answer = row.start == no_label ? row.end == no_label : is_place(row.start) && is_place(row.end);
  return has_places && has_lists && has_answer && labels_fit(row, kind, labels) &&
         std::ranges::all_of(row.segments, is_type) && std::ranges::all_of(row.words, is_word) &&
         std::ranges::all_of(row.bytes, is_context);
}

}  // namespace

bool rows_fit(const TaskItem& item, std::span<const TaskRow> rows, TaskKind kind, int64_t labels) {
  const bool is_counted = kind == TaskKind::choice ? rows.size() == item.candidates.size() : !rows.empty();
  return is_counted && gold_fits(item, kind, labels) &&
         std::ranges::all_of(rows, [&](const TaskRow& row) { return row_fits(row, item, kind, labels); });
}

}  // namespace cloze
