#include "evaluation/suites/acquisition.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/json.h"
#include "data/reading/byte_source.h"
#include "data/tokenizers/utf8.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/json_lines.h"
#include "evaluation/suites/python_json.h"
#include "inference/scoring/form_rules.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The text without white space at both ends.
std::string stripped(const std::string& text) {
  constexpr const char* space = " \t\n\r\f\v";
  const auto first = text.find_first_not_of(space);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(space) - first + 1);
}

bool is_one_character(const std::string& word) {
  size_t at = 0;
  if (!word.empty()) next_code_point(word, at);
  return at == word.size();
}

/// Whether a text begins with two objects in lines of their own, and so is no single value.
bool is_json_lines_text(std::string_view text) {
  for (int i = 0; i < 2; ++i) {
    const auto end = std::min(text.find('\n'), text.size());
    if (!parse_json(text.substr(0, end)).is_object()) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

/// Every member is a list whose first item, if there is one, has a context.
bool is_word_list(const PythonJson& json) {
  const auto* members = json.dict();
  if (!members || members->empty()) return false;
  return std::all_of(members->begin(), members->end(), [](const auto& member) {
    const auto* list = member.second.list();
    return list && (list->empty() || list->front().find("context"));
  });
}

AcquisitionWord word_of(const std::string& name, const PythonJson& contexts, const std::string& file) {
  AcquisitionWord word{.word = name, .contexts = {}};
  for (const auto& item : *contexts.list()) {
    const auto* context = item.find("context");
    require<DataError>(context && context->text(), file, ": context ", word.contexts.size(), " of '", name,
                       "' has no text under `context`");
    word.contexts.push_back(*context->text());
  }
  return word;
}

ChildAges ages_beside(const fs::path& file) {
  const auto folder = file.parent_path();
  for (const auto& at : {folder, folder / "aoa", folder / ".." / "aoa"})
    for (const auto* name : {"cdi_human.csv", "aoa_word_list.csv"})
      if (const auto table = plain_or_compressed((at / name).string()); fs::exists(table))
        return child_ages(read_csv(table));
  return {};
}

/// The surprisals that a checkpoint has by the published program.
const std::vector<double>& official_of(const CheckpointSurprisals& checkpoint) {
  return checkpoint.official ? *checkpoint.official : checkpoint.surprisals;
}

/// The curves of a suite's words over checkpoints, by the surprisals that `of` takes from each.
template <class Of>
std::vector<std::pair<std::string, LearningCurve>> curves_of(const AcquisitionSuite& suite,
                                                             const std::vector<CheckpointSurprisals>& checkpoints,
                                                             const Of& of) {
  std::vector<std::pair<std::string, LearningCurve>> curves;
  size_t first = 0;
  for (const auto& [word, contexts] : suite.words) {
    auto& curve = curves.emplace_back(word, LearningCurve{}).second;
    for (const auto& checkpoint : checkpoints)
      for (size_t c = 0; c < contexts.size(); ++c) {
        curve.words.push_back(checkpoint.words);
        curve.surprisals.push_back(of(checkpoint)[first + c]);
      }
    first += contexts.size();
  }
  return curves;
}

void check(const AcquisitionSuite& suite, const std::vector<CheckpointSurprisals>& checkpoints) {
  require<DataError>(!suite.ages.empty(),
                     "the suite has words without ages of children; put cdi_human.csv next to its file");
  require<DataError>(checkpoints.size() >= 3, "a learning curve needs 3 checkpoints or more; there are ",
                     checkpoints.size());
  for (const auto& one : checkpoints)
    for (const auto* surprisals : {&one.surprisals, &official_of(one)})
      require<DataError>(surprisals->size() == suite.size(), one.name, ": has ", surprisals->size(),
                         " surprisals of the ", suite.size(), " contexts of the suite");
}

}  // namespace

size_t AcquisitionSuite::size() const {
  size_t count = 0;
  for (const auto& word : words) count += word.contexts.size();
  return count;
}

std::optional<AcquisitionSuite> read_acquisition(const SuiteFiles& files) {
  const auto file = files.named("cdi_childes.json");
  if (file.empty()) return {};
  const auto text = read_bytes(file, most_suite_bytes);
  if (is_json_lines_text(text)) return {};
  const auto json = parse_python_json(text, file);
  if (!is_word_list(json)) return {};
  AcquisitionSuite suite{.words = {}, .ages = ages_beside(file)};
  for (const auto& [word, contexts] : *json.dict())
    if (!is_one_character(word)) suite.words.push_back(word_of(word, contexts, file));
  require<DataError>(suite.size() > 0, file, ": has no contexts");
  return suite;
}

std::string fault_of(const RunConfig& config, const AcquisitionSuite&, const SuiteOptions& options) {
  const auto& form = options.scoring.form;
  if ((form ? form : usual_form(config)) == ScoringForm::detection)
    return "words are learned where their surprisal falls, and a discriminator of rtd gives none; evaluate a run of "
           "mlm or clm";
  return scoring_fault(config, form);
}

namespace {

std::vector<Passage> passages_of(const AcquisitionSuite& suite) {
  std::vector<Passage> passages;
  for (const auto& [word, contexts] : suite.words)
    for (const auto& context : contexts)
      passages.push_back({.left = stripped(context) + " ", .scored = stripped(word)});
  return passages;
}

}  // namespace

void check_fit(const LoadedRun& run, const AcquisitionSuite& suite, const SuiteOptions& options) {
  Scorer(run, options.scoring).check_fit(passages_of(suite));
}

std::vector<double> acquisition_surprisals(const LoadedRun& run, const AcquisitionSuite& suite,
                                           const ScoringOptions& options) {
  std::vector<double> surprisals;
  for (const auto& score : Scorer(run, options).score(passages_of(suite))) surprisals.push_back(-score.sum);
  return surprisals;
}

std::vector<double> babylm_acquisition_surprisals(const LoadedRun& run, const AcquisitionSuite& suite,
                                                  BabylmBackend backend, const ScoringOptions& options) {
  std::vector<BabylmCandidate> candidates;
  for (const auto& [word, contexts] : suite.words)
    for (const auto& context : contexts) {
      const auto before = stripped(context) + " ", target = stripped(word);
      candidates.push_back({.sentence = before + target, .completion = target, .prefix = before});
    }
  std::vector<double> surprisals;
  for (const auto sum : babylm_sums(run, candidates, backend, options)) surprisals.push_back(-sum);
  return surprisals;
}

SuiteResult acquisition_result(const AcquisitionSuite& suite, const std::vector<CheckpointSurprisals>& checkpoints,
                               double chance) {
  check(suite, checkpoints);
  const auto own = [](const CheckpointSurprisals& one) -> const std::vector<double>& { return one.surprisals; };
  const auto ages = acquisition_ages(curves_of(suite, checkpoints, own), suite.ages, chance);
  const auto official = acquisition_ages(curves_of(suite, checkpoints, official_of), suite.ages, babylm_chance);
  constexpr size_t fewest = 3;
  const bool has_correlation = ages.words.size() >= fewest;
  SuiteResult result;
  if (!has_correlation)
    result.notes = {concat("a correlation needs ", fewest,
                           " words that children and the run both learn, and there are ", ages.words.size())};
  result.figures = {{.metric = "pearson",
                     .value = has_correlation ? ages.correlation() : std::numeric_limits<double>::quiet_NaN(),
                     .official = official.correlation(),
                     .count = static_cast<int64_t>(ages.words.size())}};
  for (size_t w = 0; w < ages.words.size(); ++w)
    result.items.push_back(
        {{"word", ages.words[w]}, {"months", ages.child[w]}, {"words_of_training", std::pow(10, ages.model[w])}});
  return result;
}

SuiteResult run_suite(const LoadedRun& run, const AcquisitionSuite& suite, const SuiteOptions& options) {
  const auto fault = fault_of(run.config, suite, options);
  require<ConfigError>(fault.empty(), run.folder, ": ", fault);
  const auto surprisals = acquisition_surprisals(run, suite, options.scoring);
  SuiteResult result;
  double sum = 0;
  size_t at = 0;
  for (const auto& [word, contexts] : suite.words)
    for (size_t c = 0; c < contexts.size(); ++c, ++at) {
      sum += surprisals[at];
      result.items.push_back(
          {{"word", word}, {"context_id", c}, {"context", contexts[c]}, {"surprisal", surprisals[at]}});
    }
  const auto count = static_cast<double>(surprisals.size());
  result.figures = {{.metric = "surprisal", .value = sum / count, .count = static_cast<int64_t>(surprisals.size())}};
  result.scored_by = Scorer(run, options.scoring).description();
  return result;
}

}  // namespace cloze
