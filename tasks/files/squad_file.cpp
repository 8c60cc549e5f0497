#include "tasks/files/squad_file.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/spelling.h"
#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"
#include "data/tokenizers/characters.h"

namespace cloze {

namespace {

using nlohmann::json;

/// A member of an object. Throws DataError for one that is absent or of another type.
const json& member(const json& object, const char* key, json::value_t type, const std::string& where) {
  const bool is_there = object.is_object() && object.contains(key) && object[key].type() == type;
  require<DataError>(is_there, where, ": has no ", type == json::value_t::array ? "list `" : "text `", key,
                     "`, which SQuAD's form has; JSON lines are read with `format: jsonl`");
  return object[key];
}

const std::string& text_member(const json& object, const char* key, const std::string& where) {
  const auto& text = member(object, key, json::value_t::string, where).get_ref<const std::string&>();
  require_no_nul(text, where);
  return text;
}

/// The id of a question, which may be a whole number.
std::string id_of(const json& question, const std::string& where) {
  const bool is_number = question.is_object() && question.contains("id") && question["id"].is_number_integer();
  return is_number ? json_text(question["id"]) : text_member(question, "id", where);
}

/// Whether a question has no answer by its own word.
bool is_said_impossible(const json& question, const std::string& where) {
  if (!question.contains("is_impossible")) return false;
  const auto& said = question["is_impossible"];
  require<DataError>(said.is_boolean(), where, ": `is_impossible` is ", shortened(json_text(said)),
                     "; write true or false");
  return said.get<bool>();
}

/// Why an answer does not stand in its context; empty where it does, at `byte`.
std::string mistake_in(const std::string& context, const CodePoints& places, const std::string& text, int64_t start,
                       int64_t& byte) {
  byte = places.byte(start);
  if (byte < 0) return concat("answer '", shortened(text), "' begins at ", start, ", outside of its context");
  if (text.empty()) return concat("an answer at ", start, " is empty");
  const auto at = static_cast<size_t>(byte);
  if (context.compare(at, text.size(), text) == 0) return "";
  return concat("answer '", shortened(text), "' is said to begin at ", start, ", where its context has '",
                shortened(context.substr(at, text.size())), "'");
}

}  // namespace

CodePoints::CodePoints(const std::string& text) : size_(static_cast<int64_t>(text.size())) {
  if (is_ascii(text)) return;
  for (size_t at = 0; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) bytes_.push_back(static_cast<uint32_t>(at));
  bytes_.push_back(static_cast<uint32_t>(text.size()));
}

int64_t CodePoints::byte(int64_t code_point) const {
  if (code_point < 0) return -1;
  if (bytes_.empty()) return code_point <= size_ ? code_point : -1;
  return code_point < static_cast<int64_t>(bytes_.size()) ? bytes_[static_cast<size_t>(code_point)] : -1;
}

bool place_answers(const std::string& context, const CodePoints& places, const std::vector<std::string>& texts,
                   const std::vector<int64_t>& starts, const std::string& which, TaskAnswer& gold, BadRecords& bad) {
  gold = spans_answer({});
  for (size_t i = 0; i < texts.size(); ++i) {
    int64_t byte = 0;
    const auto fault = mistake_in(context, places, texts[i], starts[i], byte);
    if (!fault.empty()) {
      if (bad.count++ == 0) bad.first = which + ": " + fault;
      return false;
    }
    gold.spans.push_back({texts[i], byte});
  }
  return true;
}

void read_squad(const std::string& file, BadRecords& bad, const std::function<void(TaskItem)>& take) {
  const auto text = read_bytes(file, max_json_bytes);
  const auto root = parse_json(text);
  require<DataError>(!root.is_discarded(), file, ": not JSON", json_fault(text),
                     "; JSON lines are read with `format: jsonl`");
  uint64_t number = 0;
  constexpr auto list = json::value_t::array;
  for (const auto& article : member(root, "data", list, file)) {
    const auto title = string_at(article, "/title");
    for (const auto& paragraph : member(article, "paragraphs", list, file)) {
      const auto place = concat(file, ", after question ", number);
      const auto& context = text_member(paragraph, "context", place);
      const CodePoints places(context);
      for (const auto& question : member(paragraph, "qas", list, place)) {
        const auto at = concat(file, ", question ", ++number);
        TaskItem item{.id = id_of(question, at), .line = number, .group = title};
        const auto which = concat(at, " ('", shortened(item.id), "')");
        item.text = text_member(question, "question", at);
        item.second = context;
        item.is_pair = true;
        const bool is_impossible = is_said_impossible(question, which);
        const bool has_list = question.contains("answers") && !question["answers"].is_null();
        std::vector<std::string> texts;
        std::vector<int64_t> starts;
        if (has_list)
          for (const auto& answer : member(question, "answers", list, at)) {
            texts.push_back(text_member(answer, "text", at));
            const bool has_start = answer.contains("answer_start") && answer["answer_start"].is_number_integer();
            require<DataError>(has_start, at, ": has an answer without a number `answer_start`; add it");
            starts.push_back(answer["answer_start"].get<int64_t>());
          }
        require<DataError>(!is_impossible || texts.empty(), which,
                           ": `is_impossible` is true, and it has an answer; remove one of the two");
        TaskAnswer gold;
        if (!place_answers(context, places, texts, starts, which, gold, bad)) continue;
        if (has_list || is_impossible) item.gold = std::move(gold);
        take(std::move(item));
      }
    }
  }
}

}  // namespace cloze
