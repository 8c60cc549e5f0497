#include "evaluation/suites/declared_suite.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/config/config.h"
#include "core/json.h"
#include "core/text_template.h"
#include "data/reading/text_lines.h"
#include "evaluation/suites/ranking_forms.h"
#include "inference/scoring/passage_lines.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// A field as it stands in a text.
std::string field_text(const SuiteLine& line, const std::string& field) {
  const auto& value = line.at(field.c_str());
  if (value.is_string()) return value.get<std::string>();
  require<DataError>(value.is_number() || value.is_boolean(), line.where, ": `", field, "` is ", described(value),
                     "; it must be a text or a number");
  return json_text(value);
}

std::string filled_pattern(const SuiteLine& line, const TextTemplate& parts) {
  constexpr size_t most_bytes = 16 << 20;
  auto text = parts.between[0];
  for (size_t i = 0; i < parts.fields.size(); ++i) {
    text += field_text(line, parts.fields[i]) + parts.between[i + 1];
    require<DataError>(text.size() <= most_bytes, line.where, ": a pattern of ", parts.fields.size(),
                       " fields makes a text of more than ", most_bytes >> 20, " MiB; name fewer fields");
  }
  return text;
}

/// The texts of patterns; one that is a field alone, which holds a list, gives all of its texts.
std::vector<std::string> filled_patterns(const SuiteLine& line, const std::vector<TextTemplate>& patterns) {
  std::vector<std::string> texts;
  for (const auto& parts : patterns) {
    if (!parts.is_field() || !line.at(parts.fields[0].c_str()).is_array()) {
      texts.push_back(filled_pattern(line, parts));
      continue;
    }
    const auto list = line.texts(parts.fields[0].c_str());
    texts.insert(texts.end(), list.begin(), list.end());
  }
  return texts;
}

/// A declaration whose patterns are parsed.
struct DeclaredForm {
  DeclaredSuite suite;
  std::vector<TextTemplate> passages{}, context{};
  TextTemplate paradigm{}, phenomenon{};
  bool has_number = false;  ///< `right` is one
};

/// The number of the right passage: the one of all lines, a field's, or that of the passage with a field's text.
size_t right_of(const SuiteLine& line, const DeclaredForm& form, const std::vector<std::string>& texts) {
  const auto& key = form.suite.right;
  const auto is_among = [&](uint64_t number) { return number < texts.size(); };
  if (form.has_number) {
    const auto number = std::stoull(key);
    require<DataError>(is_among(number), line.where, ": has ", texts.size(), " passages, and `right` is ", key,
                       ", counted from 0");
    return number;
  }
  const auto& value = line.at(key.c_str());
  if (!value.is_string()) return answer_of(line, key.c_str(), texts.size());
  const auto found = std::ranges::find(texts, value.get_ref<const std::string&>());
  require<DataError>(found != texts.end(), line.where, ": `", key, "` is ", described(value),
                     ", which is none of its passages");
  return static_cast<size_t>(found - texts.begin());
}

/// Counts the texts of an item, whose passages have a context each. Throws DataError for more than fit.
void count_bytes(const SuiteLine& line, const std::vector<std::string>& texts, const std::vector<std::string>& contexts,
                 uint64_t& bytes) {
  constexpr uint64_t most_bytes = uint64_t{4} << 30;  // of a suite
  for (size_t i = 0; i < texts.size(); ++i)
    bytes += texts[i].size() + (contexts.empty() ? 0 : contexts[contexts.size() > 1 ? i : 0].size());
  require<DataError>(bytes <= most_bytes, line.where, ": the texts of all items so far have more than ",
                     most_bytes >> 20, " MiB; name fewer fields in the patterns, or fewer items");
}

/// `bytes`: of the texts of all items so far.
void read_item(const DeclaredForm& form, const SuiteLine& line, RankingSource& source, std::vector<RankingItem>& items,
               uint64_t& bytes) {
  const auto texts = filled_patterns(line, form.passages), contexts = filled_patterns(line, form.context);
  require<DataError>(texts.size() > 1, line.where, ": has ", texts.size(), " passages; an item needs two at least");
  require<DataError>(contexts.size() <= 1 || contexts.size() == texts.size(), line.where, ": has ", texts.size(),
                     " passages and ", contexts.size(), " contexts; give one context, or one for each passage");
  count_bytes(line, texts, contexts, bytes);
  RankingItem item{.name{}, .paradigm = filled_pattern(line, form.paradigm)};
  if (item.paradigm.empty()) item.paradigm = source.name;
  item.phenomenon = filled_pattern(line, form.phenomenon);
  item.name = item_name(line, item.paradigm, source);
  for (size_t i = 0; i < texts.size(); ++i) {
    require<DataError>(!is_blank(texts[i]), line.where, ": passage ", i, " is empty; give it text, or remove the line");
    item.candidates.push_back(contexts.empty() ? Passage{.scored = texts[i]}
                                               : completed(contexts[contexts.size() > 1 ? i : 0], texts[i]));
  }
  if (form.suite.metric == DeclaredMetric::accuracy) {
    item.answer = right_of(line, form, texts);
  } else {
    require<DataError>(texts.size() == 2, line.where, ": has ", texts.size(),
                       " passages; the metric spearman compares pairs");
    set_preference(item, line, form.suite.right.c_str());
  }
  items.push_back(std::move(item));
}

/// The declaration in a file. Throws ConfigError.
DeclaredForm read_declaration(const std::string& file) {
  DeclaredForm form{.suite = decode<DeclaredSuite>(ConfigTree::load_alone(file))};
  const auto& c = form.suite;
  require<ConfigError>(!c.items.empty(), file, ": has no `items`; name the file of JSON lines that has them");
  require<ConfigError>(!c.passages.empty(), file,
                       ": has no `passages`; write their patterns, such as [\"{good}\", \"{bad}\"]");
  const auto parsed = [&](const std::string& pattern) { return parse_template(pattern, file + ": the pattern"); };
  std::ranges::transform(c.passages, std::back_inserter(form.passages), parsed);
  std::ranges::transform(c.context, std::back_inserter(form.context), parsed);
  form.paradigm = parsed(c.paradigm);
  form.phenomenon = parsed(c.phenomenon);
  form.has_number = c.right.size() < 10 && !c.right.empty() && c.right.find_first_not_of("0123456789") == c.right.npos;
  require<ConfigError>(!form.has_number || c.metric == DeclaredMetric::accuracy, file, ": `right` is ", c.right,
                       ", and the metric spearman needs the field with the fraction of people who prefer the first "
                       "passage");
  return form;
}

}  // namespace

std::optional<RankingSuite> read_declared(const SuiteFiles& files) {
  if (files.is_folder || fs::path(files.path).extension() != ".yaml") return {};
  const auto form = read_declaration(files.path);
  const auto items = fs::path(files.path).parent_path() / form.suite.items;
  require<ConfigError>(fs::is_regular_file(items), files.path, ": `items` names ", items.string(),
                       ", and there is no such file");
  const auto name = form.suite.suite.empty() ? suite_name(files.path) : form.suite.suite;
  uint64_t bytes = 0;
  auto suite = read_lines_of(
      {.name = "a declared suite",
       .signature = nullptr,
       .keys = "",
       .read = [&](const SuiteLine& line, RankingSource& source,
                   std::vector<RankingItem>& ranking_items) { read_item(form, line, source, ranking_items, bytes); },
       .answer = "right"},
      items.string(), name);
  suite.name = name;
  return suite;
}

}  // namespace cloze
