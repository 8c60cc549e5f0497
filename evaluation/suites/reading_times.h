#pragma once
// Reading times of words, and how much of them surprisal explains.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/suites/csv.h"

namespace cloze {

/// A word of a text, given the words before it.
struct WordInContext {
  std::string context;  ///< without the space before the word
  std::string word;
  auto operator<=>(const WordInContext&) const = default;
};

/// Times of one measure [N]; NaN = missing.
struct ReadingMeasure {
  std::string name;
  std::vector<double> times;
};

/// The words of a table of reading times, with what explains times without a model; NaN = missing.
/// Source: de Varda et al. 2023 (Behavior Research Methods), whose columns BabyLM's reading_data.csv has.
struct ReadingTimes {
  std::vector<WordInContext> words{};                    ///< [N]
  std::vector<std::optional<WordInContext>> previous{};  ///< [N]; none: the word is the first of its sentence
  std::vector<double> log_frequency{}, length{}, context_length{}, previous_length{};  ///< [N]
  std::vector<ReadingMeasure> eye_tracking{};                                          ///< columns RT...
  ReadingMeasure self_paced{};
};

/// Whether a table has the columns of a suite of reading times.
bool is_reading_table(const CsvTable& table);

/// The words of a table. Throws DataError with the column or the line of what is missing.
ReadingTimes reading_times_of(const CsvTable& table);

/// A score of the words of a suite, and what it moves by for each word that is counted once more.
struct WordScore {
  double value = 0;
  std::vector<double> influences{};  ///< [N]
  /// Half of the width of the 95 % interval for words drawn anew, by the infinitesimal jackknife. Source: Efron 1982.
  double reach() const;
};
/// The mean of scores of the same words.
WordScore mean_of(const std::vector<WordScore>& scores);

/// How much of one measure is explained without and with the surprisal of the word.
struct ReadingGain {
  std::string measure;
  double baseline_r2 = 0, r2 = 0;
  int64_t count = 0;                                                ///< words
  std::vector<double> baseline_log_influences{}, log_influences{};  ///< [N], on the logarithms of 1 - R2
  /// Increase of R2 as a fraction of what the baseline leaves unexplained: the partial R2 of surprisal.
  double value() const { return (r2 - baseline_r2) / (1 - baseline_r2); }
  WordScore partial_r2() const;
  /// The increase of R2.
  WordScore delta_r2() const;
};

/// The gains of all measures.
struct ReadingGains {
  std::vector<ReadingGain> eye_tracking;
  ReadingGain self_paced;
  double eye_tracking_mean() const;
};

/// Regressions with and without surprisal. Eye tracking: frequency, length, number of words before, and their
/// products; self-paced reading: the same with length and surprisal of the previous word (spillover).
///
/// surprisal   [N], of the words
/// previous    [N], of the previous words; NaN for the first word of a sentence
///
/// Throws DataError if too few words are left without missing values.
/// Source: BabyLM 2026, strict/evaluation_pipeline/reading/run.py, its formulas.
ReadingGains reading_gains(const ReadingTimes& times, const std::vector<double>& surprisal,
                           const std::vector<double>& previous);

}  // namespace cloze
