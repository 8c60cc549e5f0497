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
#include "evaluation/suites/least_squares.h"
#include "evaluation/suites/python_json.h"
#include "evaluation/suites/statistics.h"
#include "inference/scoring/form_rules.h"

namespace cloze {

namespace {

constexpr int first_month = 16, last_month = 30;
constexpr int max_evaluations = 1000;

/// a / (1 + exp(-b (x - c))) + d.
struct Sigmoid {
  double a, b, c, d;
  explicit Sigmoid(std::span<const double> p) : a(p[0]), b(p[1]), c(p[2]), d(p[3]) {}
  double operator()(double x) const { return a / (1 + std::exp(-b * (x - c))) + d; }
  /// Where a rising sigmoid passes y; none: it falls, or lies above or below.
  std::optional<double> passes(double y) const {
    if (b <= 0 || a <= 0 || y <= d || y >= a + d) return {};
    return c - std::log(a / (y - d) - 1) / b;
  }
};

Residuals residuals_of(std::span<const double> x, std::span<const double> y) {
  return [x, y](std::span<const double> parameters, std::span<double> residuals) {
    const Sigmoid sigmoid(parameters);
    for (size_t i = 0; i < x.size(); ++i) residuals[i] = sigmoid(x[i]) - y[i];
  };
}

/// The pairs whose second value is there.
std::pair<std::vector<double>, std::vector<double>> present(std::span<const double> x, std::span<const double> y) {
  std::pair<std::vector<double>, std::vector<double>> pairs;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(y[i])) continue;
    pairs.first.push_back(x[i]);
    pairs.second.push_back(y[i]);
  }
  return pairs;
}

/// The columns of months that a table has.
std::vector<int> months_of(const CsvTable& table) {
  std::vector<int> months;
  for (int month = first_month; month <= last_month; ++month)
    if (table.find(std::to_string(month))) months.push_back(month);
  return months;
}

ChildAges ages_by_fractions(const CsvTable& table) {
  std::vector<double> months;
  std::vector<std::vector<double>> columns;
  for (const auto month : months_of(table)) {
    months.push_back(month);
    columns.push_back(table.numbers(std::to_string(month)));
  }
  ChildAges ages;
  std::map<std::string, bool> seen;
  const auto words = table.text("word");
  for (size_t row = 0; row < words.size(); ++row) {
    if (!seen.emplace(words[row], true).second) continue;
    std::vector<double> fractions;
    for (const auto& column : columns) fractions.push_back(column[row]);
    if (const auto age = child_age(months, fractions)) ages[words[row]] = *age;
  }
  return ages;
}

}  // namespace

const double babylm_chance = std::log2(300'000.0);

bool is_age_table(const CsvTable& table) {
  return (table.find("word") && !months_of(table).empty()) || (table.find("word_clean") && table.find("aoa"));
}

ChildAges child_ages(const CsvTable& table) {
  require<DataError>(is_age_table(table), table.file,
                     ": has no ages; its columns are `word` and 16 to 30, or `word_clean` and `aoa`");
  if (!table.find("aoa")) return ages_by_fractions(table);
  ChildAges ages;
  const auto words = table.text("word_clean");
  const auto months = table.numbers("aoa");
  for (size_t row = 0; row < words.size(); ++row)
    if (!std::isnan(months[row])) ages.emplace(words[row], months[row]);
  return ages;
}

std::optional<double> child_age(std::span<const double> months, std::span<const double> fractions) {
  const auto [x, y] = present(months, fractions);
  if (x.size() < 3) return {};
  const auto fit = bounded_least_squares(residuals_of(x, y), x.size(), {1, 0.1, average(x), 0}, {0, 0, x.front(), -0.5},
                                         {2, 1, x.back(), 0.5}, max_evaluations);
  if (!fit) return {};
  const auto age = Sigmoid(*fit).passes(0.5);
  return age && *age >= x.front() && *age <= x.back() ? age : std::nullopt;
}

std::optional<double> model_age(const LearningCurve& curve, double chance) {
  if (curve.words.size() < 3) return {};
  const auto [words, surprisals] = present(curve.words, curve.surprisals);
  const auto finite = [](double x) { return std::isfinite(x); };
  if (words.empty() || !std::all_of(surprisals.begin(), surprisals.end(), finite)) return {};
  std::vector<double> x, y;  // a rising curve over the logarithm of the words
  for (const auto count : words) x.push_back(std::log10(count + 1));
  for (const auto surprisal : surprisals) y.push_back(-surprisal);
  const auto [low, high] = std::minmax_element(y.begin(), y.end());
  const auto fit =
      levenberg_marquardt(residuals_of(x, y), x.size(), {*high - *low, 1, average(x), *low}, max_evaluations);
  if (!fit) return {};
  const double halfway = -(chance - 0.5 * (chance + *high));
  const auto age = Sigmoid(*fit).passes(halfway);
  if (!age) return {};
  const double at = std::pow(10, *age) - 1;
  return at >= words.front() && at <= words.back() ? age : std::nullopt;
}

double AcquisitionAges::correlation() const {
  if (words.size() < 3) return 0;
  const double mean_model = average(model), mean_child = average(child);
  double mm = 0, mc = 0, cc = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const double m = model[i] - mean_model, c = child[i] - mean_child;
    mm += m * m;
    mc += m * c;
    cc += c * c;
  }
  return mc / std::sqrt(mm) / std::sqrt(cc);
}

AcquisitionAges acquisition_ages(const std::vector<std::pair<std::string, LearningCurve>>& curves,
                                 const ChildAges& children, double chance) {
  AcquisitionAges ages;
  for (const auto& [word, curve] : curves) {
    const auto child = children.find(word);
    if (child == children.end()) continue;
    const auto model = model_age(curve, chance);
    if (!model) continue;
    ages.words.push_back(word);
    ages.model.push_back(*model);
    ages.child.push_back(child->second);
  }
  return ages;
}

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

std::string reason_unsupported(const RunConfig& config, const AcquisitionSuite&, const SuiteOptions& options) {
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
  result.scores = {{.metric = "pearson",
                    .value = has_correlation ? ages.correlation() : std::numeric_limits<double>::quiet_NaN(),
                    .official = official.correlation(),
                    .count = static_cast<int64_t>(ages.words.size())}};
  for (size_t w = 0; w < ages.words.size(); ++w)
    result.items.push_back(
        {{"word", ages.words[w]}, {"months", ages.child[w]}, {"words_of_training", std::pow(10, ages.model[w])}});
  return result;
}

SuiteResult run_suite(const LoadedRun& run, const AcquisitionSuite& suite, const SuiteOptions& options) {
  const auto fault = reason_unsupported(run.config, suite, options);
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
  result.scores = {{.metric = "surprisal", .value = sum / count, .count = static_cast<int64_t>(surprisals.size())}};
  result.scored_by = Scorer(run, options.scoring).description();
  return result;
}

}  // namespace cloze
