#include "evaluation/babylm/results.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "evaluation/suites/babylm.h"

namespace cloze {

namespace {

bool is_wug(const BabylmDataset& dataset) { return dataset.format == BabylmFormat::wug; }

/// The entry of a key, appended if it is new.
template <class Value>
Value& entry(std::vector<std::pair<std::string, Value>>& list, const std::string& key) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == key; });
  return found != list.end() ? found->second : list.emplace_back(key, Value{}).second;
}

struct Count {
  int64_t right = 0, all = 0;
};

std::vector<BabylmSection> accuracies_of(const std::vector<BabylmItem>& items, const std::vector<size_t>& choices) {
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, Count>>>> counts;
  for (size_t i = 0; i < items.size(); ++i)
    for (const auto& [kind, group] : items[i].groups) {
      auto& count = entry(entry(counts, kind), group);
      count.right += choices[i] == 0;
      ++count.all;
    }
  std::vector<BabylmSection> sections;
  for (const auto& [kind, groups] : counts) {
    auto& section = sections.emplace_back(BabylmSection{.name = kind, .scores = {}});
    for (const auto& [group, count] : groups)
      section.scores.emplace_back(group, 100.0 * static_cast<double>(count.right) / static_cast<double>(count.all));
  }
  return sections;
}

template <class Keep>
std::optional<double> mean_of(const std::vector<std::pair<std::string, double>>& scores, const Keep& keep) {
  double sum = 0, count = 0;
  for (const auto& [name, score] : scores) {
    if (!keep(name)) continue;
    sum += score;
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

/// The mean over the splits of entity tracking, each the mean of its paradigms, which are added to the scores.
double mean_of_splits(std::vector<std::pair<std::string, double>>& scores) {
  const auto paradigms = scores;
  double sum = 0, count = 0;
  for (const std::string split : {"regular", "ambiref", "move_contents"}) {
    const auto mean = mean_of(paradigms, [&](const std::string& name) { return name.starts_with(split); });
    if (!mean) continue;
    scores.emplace_back(split, *mean);
    sum += *mean;
    ++count;
  }
  return sum / count;
}

double correlation_of(const std::vector<BabylmItem>& items, const std::vector<double>& probabilities) {
  std::vector<double> people;
  for (const auto& item : items) people.push_back(item.ratio);
  return babylm_spearman(probabilities, people);
}

/// The text that stands for a choice in predictions.
const std::string& chosen_text(const BabylmDataset& dataset, const BabylmCandidate& candidate) {
  return dataset.format == BabylmFormat::comps ? candidate.sentence : candidate.completion;
}

PythonJson predictions_of(const BabylmDataset& dataset, const std::vector<BabylmItem>& items,
                          const std::vector<size_t>& choices, const std::vector<double>& probabilities) {
  std::vector<std::pair<std::string, PythonJson::List>> lists;
  for (size_t i = 0; i < items.size(); ++i) {
    auto& list = entry(lists, items[i].uid);
    PythonJson::Dict line;
    line.emplace_back("id", items[i].uid + "_" + std::to_string(list.size()));
    line.emplace_back("pred", chosen_text(dataset, items[i].candidates[choices[i]]));
    if (is_wug(dataset)) line.emplace_back("prob", probabilities[i]);
    list.emplace_back(std::move(line));
  }
  PythonJson::Dict document;
  for (auto& [uid, list] : lists) document.emplace_back(uid, PythonJson::Dict{{"predictions", std::move(list)}});
  return document;
}

/// A number with two decimals, as Python prints it.
std::string two_decimals(double value) { return std::isnan(value) ? "nan" : fixed(value, 2); }

/// Surprisals of reading times as predictions.json has them.
PythonJson reading_predictions(const ReadingSurprisals& surprisals) {
  PythonJson::List lines;
  for (size_t i = 0; i < surprisals.words.size(); ++i)
    lines.emplace_back(PythonJson::Dict{
        {"id", static_cast<int64_t>(i)}, {"pred", surprisals.words[i]}, {"prev_pred", surprisals.previous[i]}});
  return PythonJson::Dict{{"reading", PythonJson::Dict{{"predictions", std::move(lines)}}}};
}

/// The content of surprisal.json: every checkpoint, word and context.
PythonJson acquisition_surprisal_json(const std::string& model, const AcquisitionSuite& suite,
                                      const std::vector<CheckpointSurprisals>& checkpoints) {
  PythonJson::List results;
  for (const auto& checkpoint : checkpoints) {
    const auto& surprisals = checkpoint.official ? *checkpoint.official : checkpoint.surprisals;
    size_t at = 0;
    for (const auto& [word, contexts] : suite.words)
      for (size_t c = 0; c < contexts.size(); ++c, ++at)
        results.emplace_back(PythonJson::Dict{{"step", checkpoint.name},
                                              {"word_count", static_cast<int64_t>(std::llround(checkpoint.words))},
                                              {"target_word", word},
                                              {"context_id", static_cast<int64_t>(c)},
                                              {"context", contexts[c]},
                                              {"surprisal", surprisals[at]}});
  }
  const auto count = static_cast<int64_t>(checkpoints.size());
  return PythonJson::Dict{
      {"metadata",
       PythonJson::Dict{
           {"model_name", model}, {"use_bos_only", false}, {"total_steps", count}, {"completed_steps", count}}},
      {"results", std::move(results)}};
}

}  // namespace

BabylmReport babylm_report(const BabylmDataset& dataset, const std::vector<BabylmItem>& items,
                           const std::vector<std::vector<float>>& sums) {
  require<DataError>(sums.size() == items.size(), dataset.folder, ": has ", items.size(), " items and scores of ",
                     sums.size());
  BabylmReport report{};
  std::vector<double> probabilities;
  for (size_t i = 0; i < items.size(); ++i) {
    require<DataError>(sums[i].size() == items[i].candidates.size(), dataset.folder, ": item ", i, " has ",
                       items[i].candidates.size(), " candidates and scores of ", sums[i].size());
    report.choices.push_back(babylm_choice(sums[i]));
    if (is_wug(dataset)) probabilities.push_back(babylm_first_probability(sums[i]));
  }
  report.predictions = predictions_of(dataset, items, report.choices, probabilities);
  if (is_wug(dataset)) {
    report.average = correlation_of(items, probabilities);
    report.sections = {{.name = "UID", .scores = {{"avg", report.average}}}};
    return report;
  }
  report.sections = accuracies_of(items, report.choices);
  const auto uid = std::find_if(report.sections.begin(), report.sections.end(),
                                [](const BabylmSection& section) { return section.name == "UID"; });
  report.average = dataset.format == BabylmFormat::entity_tracking
                       ? mean_of_splits(uid->scores)
                       : *mean_of(uid->scores, [](const std::string&) { return true; });
  return report;
}

std::string report_text(const BabylmDataset& dataset, const BabylmReport& report) {
  const std::string metric = is_wug(dataset) ? "SPEARMAN'S RHO" : "ACCURACY";
  std::string text = "TEMPERATURE: 1.00\n\n";
  for (const auto& section : report.sections) {
    auto name = section.name;
    for (auto& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    text += "### " + name + " " + metric + "\n";
    for (const auto& [group, score] : section.scores) text += group + ": " + two_decimals(score) + "\n";
    text += "\n";
  }
  return text + "### AVERAGE " + metric + "\n" + two_decimals(report.average) + "\n\n";
}

namespace {

namespace fs = std::filesystem;

/// Writes a file with the folders above it.
void write(const fs::path& file, const std::string& content) {
  std::error_code fault;
  fs::create_directories(file.parent_path(), fault);
  require<Error>(!fault, file.parent_path().string(), ": cannot be created (", fault.message(), ")");
  write_atomic(file.string(), content);
}

std::string weights_note(const fs::path& file) { return (file.parent_path() / "weights.json").string(); }

/// Writes a file of predictions. Of which network it is comes after it: killed between, the note is of another.
void write_predictions(const fs::path& file, const std::string& content, const RevisionWeights& weights) {
  write(file, content);
  PythonJson::Dict note;
  for (const auto& [revision, fingerprint] : weights) note.emplace_back(revision, fingerprint);
  write(weights_note(file), python_json(note) + "\n");
}

}  // namespace

RevisionWeights noted_weights(const std::string& file) {
  const auto note = weights_note(file);
  if (!fs::exists(note)) return {};
  const auto json = parse_python_json(read_text(note), note);
  require<DataError>(json.dict() != nullptr, note, ": is no JSON object of revisions");
  RevisionWeights weights;
  for (const auto& [revision, fingerprint] : *json.dict())
    if (fingerprint.text()) weights[revision] = *fingerprint.text();
  return weights;
}

std::string babylm_model_name(const std::string& model) {
  auto path = fs::path(model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  require<ConfigError>(!path.filename().empty() && path != "." && path != "..", "'", model,
                       "' is no name of a model; give one with --model");
  return path.stem().string();
}

std::string zero_shot_folder(const std::string& results, const std::string& model, const std::string& revision,
                             BabylmBackend backend) {
  return (fs::path(results) / model / revision / "zero_shot" / name_of(backend)).string();
}

void write_report(const ResultsFolder& zero_shot, const BabylmDataset& dataset, const BabylmReport& report) {
  const auto folder = fs::path(zero_shot.path) / dataset.task / dataset.folder;
  write_predictions(folder / "predictions.json", python_json(report.predictions), zero_shot.weights);
  write(folder / "best_temperature_report.txt", report_text(dataset, report));
}

void write_reading(const ResultsFolder& zero_shot, const ReadingSuite& suite, const ReadingSurprisals& surprisals) {
  const auto gains = reading_gains(suite.times, surprisals.words, surprisals.previous);
  const auto folder = fs::path(zero_shot.path) / "reading";
  write_predictions(folder / "predictions.json", python_json(reading_predictions(surprisals)), zero_shot.weights);
  write(folder / "report.txt", "EYE TRACKING SCORE: " + two_decimals(100 * gains.eye_tracking_mean()) +
                                   "\nSELF-PACED READING SCORE: " + two_decimals(100 * gains.self_paced.value()) +
                                   "\n");
}

void write_finetuning(const ResultsFolder& folder, const std::string& task,
                      const std::vector<std::pair<std::string, double>>& scores, const std::vector<int64_t>& labels) {
  PythonJson::List lines;
  for (const auto label : labels)
    lines.emplace_back(PythonJson::Dict{{"id", task + "_" + std::to_string(lines.size())}, {"pred", label}});
  const PythonJson document = PythonJson::Dict{{task, PythonJson::Dict{{"predictions", std::move(lines)}}}};
  std::string report;
  for (const auto& [metric, value] : scores)
    report += (report.empty() ? "" : "\n") + metric + ": " + python_repr(value);
  write(fs::path(folder.path) / task / "results.txt", report);
  write_predictions(fs::path(folder.path) / task / "predictions.json", python_json(document), folder.weights);
}

void write_acquisition(const ResultsFolder& zero_shot, const std::string& model, const AcquisitionSuite& suite,
                       const std::vector<CheckpointSurprisals>& checkpoints) {
  write_predictions(fs::path(zero_shot.path) / "AoA_word" / "surprisal.json",
                    python_json(acquisition_surprisal_json(model, suite, checkpoints), 2), zero_shot.weights);
}

}  // namespace cloze
