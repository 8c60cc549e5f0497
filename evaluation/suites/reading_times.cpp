#include "evaluation/suites/reading_times.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "evaluation/suites/least_squares.h"

namespace cloze {

namespace {

using Column = std::vector<double>;

constexpr std::array eye_tracking_columns{"RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound"};
constexpr const char* self_paced_column = "self_paced_reading_time";

/// Predictors and target of one regression, before rows with missing values are left out.
struct Regression {
  std::vector<const Column*> predictors;  ///< main effects
  const Column* surprisal = nullptr;      ///< of the word, without products; null: not a predictor
  const Column* target = nullptr;
};

/// The rows without missing values.
std::vector<size_t> complete_rows(const Regression& r) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < r.target->size(); ++i) {
    const auto has = [i](const Column* column) { return !column || !std::isnan((*column)[i]); };
    if (has(r.target) && has(r.surprisal) && std::all_of(r.predictors.begin(), r.predictors.end(), has))
      rows.push_back(i);
  }
  return rows;
}

Column taken(const Column& column, const std::vector<size_t>& rows) {
  Column values;
  for (const auto row : rows) values.push_back(column[row]);
  return values;
}

/// R2 of a regression, and what each word moves the logarithm of 1 - R2 by; 0 for words that are left out.
struct Explained {
  double r2 = 0;
  Column influences;
};

/// By the main effects and all products of two of them, with surprisal where the regression has it.
Explained explained_by(const Regression& r, const std::vector<size_t>& rows) {
  std::vector<Column> columns;
  for (const auto* predictor : r.predictors) columns.push_back(taken(*predictor, rows));
  const size_t mains = columns.size();
  for (size_t a = 0; a < mains; ++a)
    for (size_t b = a + 1; b < mains; ++b) {
      auto product = columns[a];
      for (size_t i = 0; i < product.size(); ++i) product[i] *= columns[b][i];
      columns.push_back(std::move(product));
    }
  if (r.surprisal) columns.push_back(taken(*r.surprisal, rows));
  const auto target = taken(*r.target, rows);
  const auto fit = least_squares(columns, target);
  double mean = 0;
  for (const double one : target) mean += one / static_cast<double>(rows.size());
  Column residuals = target;
  double of_residuals = 0, of_target = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    residuals[i] -= fit.intercept;
    for (size_t k = 0; k < columns.size(); ++k) residuals[i] -= fit.coefficients[k] * columns[k][i];
    of_residuals += residuals[i] * residuals[i];
    of_target += (target[i] - mean) * (target[i] - mean);
  }
  Explained explained{.r2 = fit.r2, .influences = Column(r.target->size())};
  for (size_t i = 0; i < rows.size() && of_residuals > 0; ++i)
    explained.influences[rows[i]] =
        residuals[i] * residuals[i] / of_residuals - (target[i] - mean) * (target[i] - mean) / of_target;
  return explained;
}

ReadingGain gain_of(const ReadingMeasure& measure, const std::vector<const Column*>& predictors,
                    const Column& surprisal) {
  const Regression baseline{.predictors = predictors, .surprisal = nullptr, .target = &measure.times},
      full{.predictors = predictors, .surprisal = &surprisal, .target = &measure.times};
  const auto rows = complete_rows(full);
  auto without = explained_by(baseline, complete_rows(baseline)), with = explained_by(full, rows);
  return {.measure = measure.name,
          .baseline_r2 = without.r2,
          .r2 = with.r2,
          .count = static_cast<int64_t>(rows.size()),
          .baseline_log_influences = std::move(without.influences),
          .log_influences = std::move(with.influences)};
}

}  // namespace

bool is_reading_table(const CsvTable& table) {
  constexpr std::array needed{"item", "word", "prev_item", "prev_word", "Subtlex_log10", self_paced_column};
  return std::all_of(needed.begin(), needed.end(), [&](const char* name) { return table.find(name).has_value(); });
}

ReadingTimes reading_times_of(const CsvTable& table) {
  ReadingTimes times{.log_frequency = table.numbers("Subtlex_log10"),
                     .length = table.numbers("length"),
                     .context_length = table.numbers("context_length"),
                     .previous_length = table.numbers("prev_length"),
                     .self_paced = {self_paced_column, table.numbers(self_paced_column)}};
  for (const auto* name : eye_tracking_columns) times.eye_tracking.push_back({name, table.numbers(name)});
  const auto contexts = table.text("item"), words = table.text("word"), previous_contexts = table.text("prev_item"),
             previous_words = table.text("prev_word");
  for (size_t i = 0; i < words.size(); ++i) {
    const auto where = [&] { return cloze::concat(table.file, ":", table.lines[i]); };
    require<DataError>(!is_missing(words[i]), where(), ": column 'word' is empty");
    // A context that pandas takes for missing was the word `None`, which begins a sentence; the published program
    // writes it back here, and leaves the previous word out.
    times.words.push_back({is_missing(contexts[i]) ? "None" : contexts[i], words[i]});
    auto& previous = times.previous.emplace_back();
    if (is_missing(previous_contexts[i])) continue;
    require<DataError>(!is_missing(previous_words[i]), where(), ": has 'prev_item' without 'prev_word'");
    previous = WordInContext{previous_contexts[i], previous_words[i]};
  }
  require<DataError>(!times.words.empty(), table.file, ": has no words below its header");
  return times;
}

double WordScore::reach() const {
  constexpr double of_normal = 1.959963984540054;  // 97.5 % quantile
  double squares = 0;
  for (const double one : influences) squares += one * one;
  return of_normal * std::sqrt(squares);
}

WordScore mean_of(const std::vector<WordScore>& scores) {
  WordScore mean{.influences = Column(scores.front().influences.size())};
  const auto count = static_cast<double>(scores.size());
  for (const auto& score : scores) {
    mean.value += score.value / count;
    for (size_t i = 0; i < mean.influences.size(); ++i) mean.influences[i] += score.influences[i] / count;
  }
  return mean;
}

WordScore ReadingGain::partial_r2() const {
  WordScore score{.value = value(), .influences = log_influences};
  for (size_t i = 0; i < log_influences.size(); ++i)
    score.influences[i] = (1 - score.value) * (baseline_log_influences[i] - log_influences[i]);
  return score;
}

WordScore ReadingGain::delta_r2() const {
  WordScore score{.value = r2 - baseline_r2, .influences = log_influences};
  for (size_t i = 0; i < log_influences.size(); ++i)
    score.influences[i] = (1 - baseline_r2) * baseline_log_influences[i] - (1 - r2) * log_influences[i];
  return score;
}

double ReadingGains::eye_tracking_mean() const {
  double sum = 0;
  for (const auto& gain : eye_tracking) sum += gain.value();
  return sum / static_cast<double>(eye_tracking.size());
}

ReadingGains reading_gains(const ReadingTimes& times, const std::vector<double>& surprisal,
                           const std::vector<double>& previous) {
  std::vector<const Column*> predictors{&times.log_frequency, &times.length, &times.context_length};
  ReadingGains gains{};
  for (const auto& measure : times.eye_tracking) gains.eye_tracking.push_back(gain_of(measure, predictors, surprisal));
  predictors.push_back(&times.previous_length);
  predictors.push_back(&previous);
  gains.self_paced = gain_of(times.self_paced, predictors, surprisal);
  return gains;
}

}  // namespace cloze
