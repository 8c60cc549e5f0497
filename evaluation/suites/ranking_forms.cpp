#include "evaluation/suites/ranking_forms.h"

#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "core/spelling.h"
#include "data/reading/text_lines.h"
#include "inference/scoring/passage_lines.h"

namespace cloze {

namespace {

using Items = std::vector<RankingItem>;

}  // namespace

std::string item_name(const SuiteLine& line, const std::string& paradigm, RankingSource& source) {
  for (const auto* key : {"pairID", "id", "idx"}) {
    if (!line.has(key)) continue;
    const auto& id = line.at(key);
    if (id.is_string()) return paradigm + "/" + id.get<std::string>();
    if (id.is_number_integer()) return paradigm + "/" + json_text(id);
  }
  return concat(paradigm, "/", source.numbers[paradigm]++);
}

size_t answer_of(const SuiteLine& line, const char* key, size_t count) {
  require<DataError>(line.has(key), line.where, ": has no `", key,
                     "`, the number of the right answer; test splits without answers cannot be scored");
  const auto answer = line.integer(key);
  require<DataError>(answer >= 0 && answer < static_cast<int64_t>(count), line.where, ": `", key, "` is ", answer,
                     "; it must be the number of the right answer, from 0 to ", count - 1);
  return static_cast<size_t>(answer);
}

void set_preference(RankingItem& item, const SuiteLine& line, const char* key) {
  const double fraction = line.number(key);
  require<DataError>(fraction >= 0 && fraction <= 1, line.where, ": `", key, "` is ", shortest(fraction),
                     "; it must be a share of people, from 0 to 1");
  item.preference = fraction;
  if (fraction < 0.5) item.answer = 1;
  if (fraction == 0.5) item.answer.reset();
}

namespace {

/// A text at a key that lines may lack.
std::string text_or_empty(const SuiteLine& line, const char* key) { return line.has(key) ? line.text(key) : ""; }

/// Appends an item whose candidates, named by `labels`, all have text.
void add(const SuiteLine& line, RankingItem item, const std::vector<std::string>& labels, Items& items) {
  for (size_t i = 0; i < labels.size(); ++i)
    require<DataError>(!is_blank(item.candidates[i].scored), line.where, ": ", labels[i],
                       " is empty; give it text, or remove the line");
  items.push_back(std::move(item));
}

/// "`KEY` 1", "`KEY` 2", ...
std::vector<std::string> numbered(const std::string& key, size_t count) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < count; ++i) labels.push_back(concat("`", key, "` ", i + 1));
  return labels;
}

/// The group of a UID such as `island-effects-adjunct_island` of Zorro: what stands before its last hyphen.
std::string group_of(const std::string& uid) {
  const auto at = uid.rfind('-');
  return at == std::string::npos ? "" : uid.substr(0, at);
}

void read_pair(const SuiteLine& line, RankingSource& source, Items& items) {
  const auto paradigm = line.has("UID") ? line.filled("UID") : source.name;
  const auto phenomenon = line.has("linguistics_term") ? line.text("linguistics_term")
                          : line.has("UID")            ? group_of(paradigm)
                                                       : "";
  add(line,
      {.name = item_name(line, paradigm, source),
       .paradigm = paradigm,
       .phenomenon = phenomenon,
       .candidates = {{.scored = line.text("sentence_good")}, {.scored = line.text("sentence_bad")}}},
      {"`sentence_good`", "`sentence_bad`"}, items);
}

/// Of a property after a concept that has it and one that has not: by the kind of the latter where lines name it.
void read_comps(const SuiteLine& line, RankingSource& source, Items& items) {
  const auto& property = line.filled("property_phrase");
  items.push_back({.name = item_name(line, source.name, source),
                   .paradigm = source.name,
                   .phenomenon = text_or_empty(line, "negative_sample_type"),
                   .candidates = {completed(line.filled("prefix_acceptable"), property),
                                  completed(line.filled("prefix_unacceptable"), property)}});
}

/// Targets in the first context, as the BabyLM pipeline compares them; and contexts of each target. Source: Ivanova et
/// al. 2024 (arXiv 2405.09605), section 4.
void read_ewok(const SuiteLine& line, RankingSource& source, Items& items) {
  const auto& domain = line.filled("Domain");
  const auto name = item_name(line, domain, source);
  const auto passage = [&](const char* context, const char* target) {
    return Passage{.left = line.filled(context), .scored = " " + line.filled(target)};
  };
  const auto a = passage("Context1", "Target1"), b = passage("Context1", "Target2"), c = passage("Context2", "Target1"),
             d = passage("Context2", "Target2");
  items.push_back({.name = name, .paradigm = domain, .candidates = {a, b}});
  items.push_back({.name = name + ":Target1", .paradigm = domain, .metric = "context_accuracy", .candidates = {a, c}});
  items.push_back(
      {.name = name + ":Target2", .paradigm = domain, .metric = "context_accuracy", .candidates = {b, d}, .answer = 1});
}

void read_entity_tracking(const SuiteLine& line, RankingSource& source, Items& items) {
  const auto subset = line.has("subset") ? line.filled("subset") : source.name;
  const auto& prefix = line.filled("input_prefix");
  RankingItem item{.name{}, .paradigm = concat(subset, "_", line.integer("numops"), "_ops"), .phenomenon = subset};
  item.name = item_name(line, item.paradigm, source);
  for (const auto& option : line.texts("options")) item.candidates.push_back({.left = prefix, .scored = option});
  require<DataError>(item.candidates.size() > 1, line.where, ": `options` has ", item.candidates.size(),
                     " texts; an item needs two at least");
  const auto labels = numbered("options", item.candidates.size());
  add(line, std::move(item), labels, items);
}

void read_wug(const SuiteLine& line, RankingSource& source, Items& items) {
  const auto& both = line.text("sentences");
  const auto tab = both.find('\t');
  require<DataError>(tab != std::string::npos && both.find('\t', tab + 1) == std::string::npos, line.where,
                     ": `sentences` is ", described(line.at("sentences")),
                     "; it must be two sentences with a tab between them");
  RankingItem item{.name = item_name(line, source.name, source),
                   .paradigm = source.name,
                   .candidates = {{.scored = both.substr(0, tab)}, {.scored = both.substr(tab + 1)}}};
  set_preference(item, line, "ratio");
  add(line, std::move(item), numbered("sentences", 2), items);
}

/// A sentence as a clause inside another: without its final full stop, or without its capital.
std::string without_stop(std::string sentence) {
  sentence.resize(without_white_space_after(sentence).size());
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}
std::string without_capital(std::string sentence) {
  const bool is_pronoun = sentence.starts_with("I ") || sentence.starts_with("I'");
  if (!sentence.empty() && !is_pronoun && sentence[0] >= 'A' && sentence[0] <= 'Z')
    sentence[0] = static_cast<char>(sentence[0] - 'A' + 'a');
  return sentence;
}

/// `PREMISE because CHOICE` or `PREMISE so CHOICE`. Source: Roemmele et al. 2011 for the data; the template is that of
/// SuperGLUE's zero-shot evaluations since Brown et al. 2020, section 3.7.
void read_copa(const SuiteLine& line, RankingSource& source, Items& items) {
  const auto& question = line.text("question");
  require<DataError>(question == "cause" || question == "effect", line.where, ": `question` is '", shortened(question),
                     "'; it must be cause or effect");
  const auto context = without_stop(line.filled("premise")) + (question == "cause" ? " because " : " so ");
  RankingItem item{.name = item_name(line, source.name, source), .paradigm = source.name};
  for (const auto* choice : {"choice1", "choice2"})
    item.candidates.push_back({.left = context, .scored = without_capital(line.text(choice))});
  item.answer = answer_of(line, "label", 2);
  add(line, std::move(item), {"`choice1`", "`choice2`"}, items);
}

/// The letters and texts of `choices`: {"text": [...], "label": [...]} or [{"text": ..., "label": ...}, ...].
struct Choices {
  std::vector<std::string> texts{}, labels{};
};
Choices choices_of(const SuiteLine& line) {
  const auto& value = line.at("choices");
  Choices choices;
  if (value.is_object()) {
    const SuiteLine inner{value, line.where + ": `choices`"};
    choices = {inner.texts("text"), inner.texts("label")};
  } else {
    require<DataError>(value.is_array(), line.where, ": `choices` is ", described(value),
                       "; it must hold texts and labels");
    for (const auto& one : value) {
      require<DataError>(one.is_object(), line.where, ": `choices` holds ", described(one),
                         "; it must hold texts and labels");
      const SuiteLine inner{one, line.where + ": `choices`"};
      choices.texts.push_back(inner.text("text"));
      choices.labels.push_back(inner.text("label"));
    }
  }
  require<DataError>(choices.texts.size() == choices.labels.size() && choices.texts.size() > 1, line.where,
                     ": `choices` has ", choices.texts.size(), " texts and ", choices.labels.size(),
                     " labels; it needs as many, and two at least");
  return choices;
}

/// `Question: QUESTION`, `Answer: CHOICE` in two lines, as the zero-shot evaluations of ARC since Brown et al. 2020.
void add_question(const SuiteLine& line, const std::string& question, const Choices& choices, RankingSource& source,
                  Items& items) {
  const auto& key = line.text("answerKey");
  const auto right = std::find(choices.labels.begin(), choices.labels.end(), key);
  require<DataError>(right != choices.labels.end(), line.where, ": `answerKey` is '", shortened(key),
                     "', which is no label of its choices; test splits without answers cannot be scored");
  RankingItem item{.name = item_name(line, source.name, source), .paradigm = source.name};
  for (const auto& choice : choices.texts)
    item.candidates.push_back(completed("Question: " + question + "\nAnswer:", choice));
  item.answer = static_cast<size_t>(right - choices.labels.begin());
  add(line, std::move(item), numbered("choices", choices.texts.size()), items);
}

void read_question(const SuiteLine& line, RankingSource& source, Items& items) {
  const auto& question = line.filled("question");
  add_question(line, question, choices_of(line), source, items);
}

/// The layout in which AI2 publishes ARC, OpenBookQA and CommonsenseQA: `question` holds its text and its choices.
void read_stem(const SuiteLine& line, RankingSource& source, Items& items) {
  const SuiteLine question{line.at("question"), line.where + ": `question`"};
  const auto& stem = question.filled("stem");
  add_question(line, stem, choices_of(question), source, items);
}

/// An item of Cloze's own forms, whose groups its line may name.
RankingItem own_item(const SuiteLine& line, const char* key, RankingSource& source) {
  const auto paradigm = line.has("paradigm") ? line.filled("paradigm") : source.name;
  const auto count = line.texts(key).size();
  require<DataError>(count > 1, line.where, ": `", key, "` has ", count, " texts; an item needs two at least");
  return {.name = item_name(line, paradigm, source),
          .paradigm = paradigm,
          .phenomenon = text_or_empty(line, "phenomenon"),
          .answer = answer_of(line, "answer", count)};
}

void read_completions(const SuiteLine& line, RankingSource& source, Items& items) {
  auto item = own_item(line, "completions", source);
  const auto& context = line.filled("context");
  for (const auto& text : line.texts("completions")) item.candidates.push_back(completed(context, text));
  add(line, item, numbered("completions", item.candidates.size()), items);
}

void read_sentences(const SuiteLine& line, RankingSource& source, Items& items) {
  auto item = own_item(line, "sentences", source);
  for (const auto& text : line.texts("sentences")) item.candidates.push_back({.scored = text});
  add(line, item, numbered("sentences", item.candidates.size()), items);
}

}  // namespace

const std::vector<RankingForm>& ranking_forms() {
  static const std::vector<RankingForm> forms{
      {"minimal pairs", "sentence_good", "sentence_good, sentence_bad", read_pair},
      {"COMPS", "prefix_acceptable", "prefix_acceptable, prefix_unacceptable, property_phrase", read_comps},
      {"EWoK", "Context1", "Context1, Context2, Target1, Target2, Domain", read_ewok},
      {"entity tracking", "input_prefix", "input_prefix, options, numops", read_entity_tracking},
      {"pairs with judgements", "ratio", "sentences, ratio", read_wug},
      {"COPA", "choice1", "premise, choice1, choice2, question, label", read_copa, "label"},
      {"multiple choice", "choices", "question, choices, answerKey", read_question, "answerKey"},
      {"multiple choice of AI2", "question.stem", "question.stem, question.choices, answerKey", read_stem, "answerKey"},
      {"completions", "completions", "context, completions, answer", read_completions, "answer"},
      {"sentences", "sentences", "sentences, answer", read_sentences, "answer"}};
  return forms;
}

bool RankingForm::fits(const SuiteLine& line) const {
  const std::string path = signature;
  const auto dot = path.find('.');
  if (dot == std::string::npos) return line.has(signature);
  const auto outer = line.object.find(path.substr(0, dot));
  return outer != line.object.end() && outer->is_object() && outer->contains(path.substr(dot + 1));
}

bool RankingForm::lacks_answer(const SuiteLine& line) const {
  if (answer == nullptr) return false;
  if (!line.has(answer)) return true;
  const auto& value = line.at(answer);
  return value.is_null() || value == -1 || value == "";
}

const RankingForm* form_of(const SuiteLine& line) {
  for (const auto& form : ranking_forms())
    if (form.fits(line)) return &form;
  return nullptr;
}

}  // namespace cloze
