#include "evaluation/babylm/fast_scores.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "data/reading/byte_source.h"
#include "data/reading/line_reader.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/reading_times.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<PythonJson>;

/// A file of right answers, plain or compressed. Throws DataError if it is not there.
std::string answers_in(const fs::path& named) {
  const auto file = plain_or_compressed(named.string());
  require<DataError>(fs::exists(file), file,
                     ": is not there, and the right answers are read from it; name the evaluation data with --data");
  return file;
}

Lines lines_of(const fs::path& file) {
  Lines lines;
  LineReader reader(answers_in(file));
  for (std::string_view text; reader.next(text);) lines.push_back(parse_python_json(text, reader.where()));
  return lines;
}

/// The predictions in a part of a task.
const PythonJson::List& predictions_of(const std::string& name, const PythonJson& part) {
  const auto* predictions = part.find("predictions");
  require<DataError>(predictions && predictions->list(), "part '", name, "' has no list of `predictions`");
  return *predictions->list();
}

/// A member of a prediction or of an item.
const PythonJson& member(const PythonJson& json, const char* key, const std::string& of) {
  const auto* found = json.find(key);
  require<DataError>(found != nullptr, of, ": an item has no '", key, "'");
  return *found;
}

/// A text without white space at its ends; other values as they are.
PythonJson stripped(const PythonJson& value) {
  const auto* text = value.text();
  if (!text) return value;
  constexpr const char* space = " \t\n\r\f\v\x1c\x1d\x1e\x1f";
  const auto first = text->find_first_not_of(space);
  return first == std::string::npos ? "" : text->substr(first, text->find_last_not_of(space) - first + 1);
}

/// The fraction of predictions that are the right answer; as many as both lists have are compared.
template <class Answer>
double fraction_right(const std::pair<std::string, PythonJson>& part, const Lines& items, const Answer& answer) {
  const auto& predictions = predictions_of(part.first, part.second);
  const size_t count = std::min(predictions.size(), items.size());
  require<DataError>(count > 0, "part '", part.first, "' has no predictions to compare with answers");
  int64_t right = 0;
  for (size_t i = 0; i < count; ++i)
    right += stripped(member(predictions[i], "pred", part.first)) == stripped(answer(items[i]));
  return static_cast<double>(right) / static_cast<double>(count);
}

/// A file of items for each part.
PythonJson::Dict fractions_by_file(const PythonJson::Dict& parts, const fs::path& folder, const char* answer) {
  PythonJson::Dict scores;
  for (const auto& part : parts)
    scores.emplace_back(part.first,
                        fraction_right(part, lines_of(folder / (part.first + ".jsonl")),
                                       [&](const PythonJson& item) { return member(item, answer, part.first); }));
  return scores;
}

PythonJson::Dict fractions_of_boxes(const PythonJson::Dict& parts, const fs::path& folder) {
  std::map<std::string, Lines> items;
  for (auto& line : lines_of(folder / "regular.jsonl")) {
    const auto operations = python_json(member(line, "numops", "entity_tracking_fast/regular.jsonl"));
    items["regular_" + operations + "_ops"].push_back(std::move(line));
  }
  PythonJson::Dict scores;
  for (const auto& part : parts)
    scores.emplace_back(part.first, fraction_right(part, items[part.first], [&](const PythonJson& item) {
                          const auto* options = member(item, "options", part.first).list();
                          require<DataError>(options && !options->empty(), part.first, ": an item has no options");
                          return options->front();
                        }));
  return scores;
}

PythonJson::Dict correlations(const PythonJson::Dict& parts, const fs::path& file) {
  PythonJson::Dict scores;
  const auto items = lines_of(file);
  for (const auto& part : parts) {
    const auto& predictions = predictions_of(part.first, part.second);
    std::vector<double> model, people;
    for (size_t i = 0; i < std::min(predictions.size(), items.size()); ++i) {
      model.push_back(member(predictions[i], "prob", part.first).number());
      people.push_back(member(items[i], "ratio", file.string()).number());
    }
    scores.emplace_back(part.first, babylm_spearman(model, people));
  }
  return scores;
}

PythonJson::Dict reading_gains_of(const PythonJson& predictions, const fs::path& file) {
  const auto times = reading_times_of(read_csv(answers_in(file)));
  const auto* part = predictions.find("reading");
  require<DataError>(part != nullptr, "the predictions of reading times have no part 'reading'");
  std::vector<double> surprisal, previous;
  for (const auto& line : predictions_of("reading", *part)) {
    surprisal.push_back(member(line, "pred", "reading").number());
    previous.push_back(member(line, "prev_pred", "reading").number());
  }
  require<DataError>(surprisal.size() == times.words.size(), file.string(), ": has ", times.words.size(),
                     " words, and the predictions ", surprisal.size());
  const auto gains = reading_gains(times, surprisal, previous);
  return {{"spr", gains.self_paced.value()}, {"rt", gains.eye_tracking_mean()}};
}

}  // namespace

PythonJson fast_scores(const std::string& task, const PythonJson& predictions, const std::string& data) {
  const auto* parts = predictions.dict();
  require<DataError>(parts != nullptr, "the predictions of ", task, " are no JSON object of parts");
  const fs::path folder = data;
  if (task == "reading") return reading_gains_of(predictions, folder / "reading" / "reading_data.csv");
  if (task == "blimp") return fractions_by_file(*parts, folder / "blimp_fast", "sentence_good");
  if (task == "blimp_supplement") return fractions_by_file(*parts, folder / "supplement_fast", "sentence_good");
  if (task == "ewok") return fractions_by_file(*parts, folder / "ewok_fast", "Target1");
  if (task == "entity_tracking") return fractions_of_boxes(*parts, folder / "entity_tracking_fast");
  const std::string name = task == "wug_adj" ? "wug_adj_nominalization" : "wug_past_tense";
  return correlations(*parts, folder / name / (name + ".jsonl"));
}

}  // namespace cloze
