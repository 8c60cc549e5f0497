#include "tasks/rows/prepared_task.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "core/config/config.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/text.h"
#include "data/reading/prepared_folder.h"
#include "data/store/manifest.h"
#include "data/store/token_store.h"
#include "tasks/inspect_task.h"

namespace cloze {

namespace {

using nlohmann::json;

constexpr uint64_t largest_split = uint64_t{1} << 40;  // [bytes]
constexpr const char* again = "; restore it, or fine-tune again in another folder";

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

}  // namespace

template <class V>
void describe(V& v, AnswerSpan& s) {
  v("text", s.text);
  v("begin", s.begin);
}

/// Of an answer the fields of its form, which these tell.
template <class V>
void describe(V& v, TaskAnswer& a) {
  const auto field = [&](const char* key, AnswerForm form, auto& value) {
    auto held = a.form == form ? std::optional(value) : std::nullopt;
    v.maybe(key, held);
    if (!held) return;
    value = *held;
    a.form = form;
  };
  field("label", AnswerForm::label, a.label);
  field("labels", AnswerForm::labels, a.labels);
  field("value", AnswerForm::value, a.value);
  field("answers", AnswerForm::spans, a.spans);
  field("texts", AnswerForm::texts, a.texts);
  v.unless("unknown", a.unknown, {});
}

template <class V>
void describe(V& v, TaskItem& i) {
  v("id", i.id);
  v("line", i.line);
  json gold = i.gold.is_known() ? json(i.gold) : json();
  v("gold", gold);
  if (!gold.is_null()) gold.get_to(i.gold);
  if (!gold.is_null() && !i.gold.is_known()) throw std::out_of_range("gold");
  v.unless("group", i.group, "");
  v.unless("text", i.text, "");
  v.unless("second", i.second, "");
  v.unless("is_pair", i.is_pair, false);
  v.unless("words", i.words, {});
  v.unless("candidates", i.candidates, {});
}

/// What a row has besides its ids and the form of its answer, which are known before, and the number of its item.
template <class V>
void describe(V& v, TaskRow& r) {
  const auto form = r.gold.form;
  auto label = r.gold.label == unknown_label ? no_label : r.gold.label;
  std::array texts{r.first_begin, r.first_end, r.second_begin, r.second_end};
  auto types = lengths_of_types(r.segments);
  v("texts", texts);
  v("class_token", r.class_token);
  v.unless("window", r.window, 0);
  v.unless("candidate", r.candidate, 0);
  v.unless("types", types, {});
  v.unless("words", r.words, {});
  v.unless("bytes", r.bytes, {});
  v.unless("label", label, no_label);
  v.unless(form == AnswerForm::spans ? "answer" : "labels", r.gold.labels, {});
  v.unless("value", r.gold.value, 0);
  v.unless("target", r.target, {});
  r.gold.label = label == no_label ? unknown_label : label;
  std::tie(r.first_begin, r.first_end, r.second_begin, r.second_end) = std::tuple_cat(texts);
  r.segments = types_of_lengths(types, r.ids.size());
}

template <class V>
void describe(V& v, TaskLabels& l) {
  v("names", l.names);
  v("written", l.written);
}

/// A task as a manifest has it.
struct SavedTask {
  std::string file{}, config{};  ///< the config as YAML, without labels, which lists keep as they are
  TaskLabels labels{}, in_file{};
  std::map<std::string, std::string> files{};
  bool is_chosen_on_test = false, has_unanswerable = false;
  std::vector<std::string> notes{};
};
template <class V>
void describe(V& v, SavedTask& t) {
  v("file", t.file);
  v("config", t.config);
  v("labels", t.labels);
  v.or_else("labels_in_file", t.in_file, {});
  v("files", t.files);
  v("chosen_on_test", t.is_chosen_on_test);
  v.unless("has_unanswerable", t.has_unanswerable, false);
  v("notes", t.notes);
}

namespace {

/// Writes the rows of a split: their ids as documents of a token store, the rest with their items, a line each.
class SplitWriter {
 public:
  SplitWriter(const std::string& folder, const std::string& split, int64_t vocabulary)
      : folder_(folder), split_(split), id_bytes_(vocabulary <= 65536 ? 2 : 4) {}

  void add(const TaskItem& item, std::span<const TaskRow> rows) {
    json line = item;
    auto& of_rows = line["rows"] = json::array();
    for (const auto& row : rows) {
      of_rows.push_back(row);
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
  SavedTask saved{.file = task.file,
                  .labels = task.labels,
                  .in_file = labels_in_file(task.config),
                  .is_chosen_on_test = task.is_chosen_on_test,
                  .has_unanswerable = task.has_unanswerable,
                  .notes = task.notes};
  auto config = task.config;
  config.labels.items.clear();
  saved.config = to_yaml(config);
  for (const auto* split : {&task.train, &task.valid, &task.test}) saved.files[split->name] = split->file;
  return saved;
}

Task task_of(const json& document, const std::string& where) {
  auto saved = document.get<SavedTask>();
  if (saved.in_file.names.empty()) saved.in_file = saved.labels;
  for (const auto* labels : {&saved.labels, &saved.in_file})
    require<DataError>(labels->names.size() == labels->written.size(), where, ": is damaged", again);
  Task task{.config = decode<TaskConfig>(ConfigTree::parse(saved.config, where)),
            .file = saved.file,
            .labels = saved.labels,
            .is_chosen_on_test = saved.is_chosen_on_test,
            .has_unanswerable = saved.has_unanswerable,
            .notes = saved.notes};
  for (size_t i = 0; i < saved.in_file.names.size(); ++i) {
    ConfigNode name;
    name.type = ConfigNode::Type::scalar;
    name.text = saved.in_file.names[i];
    task.config.labels.items.emplace_back(saved.in_file.written[i], std::move(name));
  }
  for (auto* split : {&task.train, &task.valid, &task.test}) {
    split->name = split == &task.train ? "train" : split == &task.valid ? "valid" : "test";
    split->file = saved.files[split->name];
  }
  return task;
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
  return std::ranges::all_of(std::array{&task.train, &task.valid, &task.test}, [&](const TaskSplit* split) {
    return std::ranges::equal(read_prepared_split(folder, split->name).items, split->items, asks_the_same);
  });
}

uint64_t count_examples(AnyTaskKind kind, const std::vector<TaskRow>& rows) {
  uint64_t examples = 0;
  for (size_t r = 0; r < rows.size(); ++r)
    examples += !kind->rows_compete || r == 0 || rows[r].item != rows[r - 1].item;
  return examples;
}

namespace {

/// Writes the rows of a split, and adds what they have to `made` and to the manifest.
void prepare_split(const TaskSplit& split, bool trains, const TaskRowMaker& maker, SplitWriter& writer,
                   PreparedTask& made, Manifest& manifest) {
  RowCounts counts;
  std::vector<TaskRow> rows;
  uint64_t examples = 0;
  for (size_t i = 0; i < split.items.size(); ++i) {
    rows.clear();
    maker.add(split.items[i], static_cast<int64_t>(i), rows, counts);
    writer.add(split.items[i], rows);
    examples += count_examples(maker.options().kind, rows);
    for (const auto& row : rows) {
      made.longest = std::max(made.longest, maker.length_of(row));
      for (const auto id : row.ids)
        if (trains) ++manifest.counts.at(static_cast<size_t>(id));
    }
  }
  if (trains) made.train_examples = examples;
  if (split.name == "valid") made.valid_examples = examples;
  const std::string before = trains ? "" : split.name + "_";
  manifest.report[before + "documents"] = writer.documents;
  manifest.report[before + "tokens"] = writer.tokens;
  made.counts.emplace_back(split.name, std::move(counts));
}

}  // namespace

PreparedTask prepare_task(const Task& task, const Tokenizer& tokenizer, const SpecialTokenTemplate& row_template,
                          const std::string& folder) {
  const auto options = row_options(task.config, task.labels);
  const TaskRowMaker maker(tokenizer, row_template, options);
  PreparedTask made{.task = task, .may_lack_answers = std::ranges::any_of(task.train.items, is_unanswerable)};
  StagedFolder staged(folder);
  Manifest manifest;
  manifest.tokenizer_kind = tokenizer.kind();
  manifest.tokenizer_fingerprint = tokenizer.fingerprint();
  manifest.vocab_size = tokenizer.size();
  manifest.counts.resize(static_cast<size_t>(tokenizer.size()));
  json files = json::object();
  for (const auto* split : {&task.train, &task.valid, &task.test}) {
    SplitWriter writer(staged.path(), split->name, tokenizer.size());
    prepare_split(*split, split == &task.train, maker, writer, made, manifest);
    manifest.splits[split->name] = writer.finish(files);
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
  for (auto* split : {&made.task.train, &made.task.valid, &made.task.test}) split->items.clear();
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

/// The items of a split, a line each, as they were written. Throws DataError for other ones.
std::string item_lines(const std::string& folder, const std::string& split) {
  const auto manifest = manifest_of_task(folder);
  const auto file = folder + "/" + split + ".jsonl";
  std::string content;
  try {
    content = read_text(file, largest_split);
  } catch (const Error& error) {
    fail<DataError>(error.what(), again);
  }
  const auto recorded = value_at(manifest.made_from, ("/items/" + split + ".jsonl").c_str());
  require<DataError>(recorded == hash_hex(content), file, ": its content does not match its checksum", again);
  return content;
}

/// The rows of the next item, whose ids are the documents of the store from number `document` on. Throws
/// std::out_of_range where there are none.
std::vector<TaskRow> read_rows(const json& saved, const TokenStore& store, size_t document, int64_t item,
                               AnswerForm form) {
  std::vector<TaskRow> rows;
  for (const auto& one : saved) {
    if (document >= store.num_documents()) throw std::out_of_range("rows");
    const auto first = store.document_token(document), count = store.document_token(document + 1) - first;
    std::vector<int64_t> ids(count);
    store.read(first, count, ids.data());
    auto& row = rows.emplace_back(TaskRow{.item = item, .ids = {ids.begin(), ids.end()}, .gold = {.form = form}});
    one.get_to(row);
    ++document;
  }
  return rows;
}

}  // namespace

PreparedSplit read_prepared_split(const std::string& folder, const std::string& split) {
  const auto content = item_lines(folder, split);
  const auto file = folder + "/" + split + ".jsonl";
  const auto task = open_prepared_task(folder).task;
  const auto kind = task.config.kind;
  const TokenStore store(folder, split);
  PreparedSplit prepared_part;
  const auto damaged = [&] { fail<DataError>(file, ": item ", prepared_part.items.size(), " is damaged", again); };
  try {
    for (size_t at = 0; at < content.size();) {
      const auto end = std::min(content.find('\n', at), content.size());
      const auto line = parse_json(std::string_view(content).substr(at, end - at));
      at = end + 1;
      auto item = line.get<TaskItem>();
      auto rows =
          read_rows(line.at("rows"), store, prepared_part.rows.size(), std::ssize(prepared_part.items), item.gold.form);
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

std::string truncation_note(const std::string& split, const RowCounts& counts) {
  const auto texts = counts.first.texts + counts.second.texts, cut = counts.first.cut_texts + counts.second.cut_texts;
  const auto tokens = counts.first.cut_tokens + counts.second.cut_tokens;
  std::vector<std::string> facts;
  if (cut > 0)
    facts.push_back(concat(thousands(cut), " of ", counted(texts, "text"), " are cut, by ", counted(tokens, "token")));
  if (counts.items_in_windows > 0) facts.push_back(counted(counts.items_in_windows, "item") + " in several windows");
  if (counts.words_without_token > 0) facts.push_back(counted(counts.words_without_token, "word") + " without a token");
  if (counts.lost_answers > 0) facts.push_back(counted(counts.lost_answers, "answer") + " that no window has whole");
  if (counts.answers_without_token > 0)
    facts.push_back(counted(counts.answers_without_token, "answer") + " in no token");
  return facts.empty() ? "" : split + ": " + listed(facts);
}

namespace {

bool is_part(int64_t begin, int64_t end, int64_t size) { return begin >= 0 && begin <= end && end <= size; }

bool row_fits(const TaskRow& row, const TaskItem& item) {
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
  const bool has_lists = has_one_each(row.segments) && has_one_each(row.words) && has_one_each(row.bytes);
  return has_places && has_lists && std::ranges::all_of(row.segments, is_type) &&
         std::ranges::all_of(row.words, is_word) && std::ranges::all_of(row.bytes, is_context);
}

}  // namespace

bool rows_fit(const TaskItem& item, std::span<const TaskRow> rows, AnyTaskKind kind, int64_t labels) {
  const bool has_gold = item.gold.form == kind->form && kind->gold_fits(item, labels);
  return kind->has_rows(item, rows.size()) && (has_gold || !item.gold.is_known()) &&
         std::ranges::all_of(rows,
                             [&](const TaskRow& row) { return row_fits(row, item) && kind->target_fits(row, labels); });
}

}  // namespace cloze
