#include "babylm/results.h"

#include <array>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Writes a file with the folders above it.
void write(const fs::path& file, const std::string& content) {
  std::error_code fault;
  fs::create_directories(file.parent_path(), fault);
  require<Error>(!fault, file.parent_path().string(), ": cannot be created (", fault.message(), ")");
  write_atomic(file.string(), content);
}

std::string percent(double share) {
  std::array<char, 400> text;
  std::snprintf(text.data(), text.size(), "%.2f", 100 * share);
  return text.data();
}

}  // namespace

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

void write_report(const std::string& zero_shot, const BabylmDataset& dataset, const BabylmReport& report) {
  const auto folder = fs::path(zero_shot) / dataset.task / dataset.folder;
  write(folder / "predictions.json", python_json(report.predictions));
  write(folder / "best_temperature_report.txt", report_text(dataset, report));
}

PythonJson reading_predictions(const ReadingSurprisals& surprisals) {
  PythonJson::List lines;
  for (size_t i = 0; i < surprisals.words.size(); ++i)
    lines.emplace_back(PythonJson::Dict{
        {"id", static_cast<int64_t>(i)}, {"pred", surprisals.words[i]}, {"prev_pred", surprisals.previous[i]}});
  return PythonJson::Dict{{"reading", PythonJson::Dict{{"predictions", std::move(lines)}}}};
}

void write_reading(const std::string& zero_shot, const ReadingSuite& suite, const ReadingSurprisals& surprisals) {
  const auto gains = reading_gains(suite.times, surprisals.words, surprisals.previous);
  const auto folder = fs::path(zero_shot) / "reading";
  write(folder / "predictions.json", python_json(reading_predictions(surprisals)));
  write(folder / "report.txt", "EYE TRACKING SCORE: " + percent(gains.eye_tracking_mean()) +
                                   "\nSELF-PACED READING SCORE: " + percent(gains.self_paced.value()) + "\n");
}

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

void write_acquisition(const std::string& zero_shot, const std::string& model, const AcquisitionSuite& suite,
                       const std::vector<CheckpointSurprisals>& checkpoints) {
  write(fs::path(zero_shot) / "AoA_word" / "surprisal.json",
        python_json(acquisition_surprisal_json(model, suite, checkpoints), 2));
}

}  // namespace cloze
