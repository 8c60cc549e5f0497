#pragma once
// Ages at which words are known: of children by their vocabularies, of a model by its surprisals.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluation/suites/csv.h"

namespace cloze {

/// Ages in months, by word.
using ChildAges = std::map<std::string, double>;

/// Whether a table has ages of words.
bool is_age_table(const CsvTable& table);

/// Ages from a table. With columns `word` and 16 to 30, the fractions of children of so many months who know a word:
/// the age at which its sigmoid passes a half; a word whose sigmoid does not within those months is left out. With
/// columns `word_clean` and `aoa`: the age itself. The first row of a word counts. Throws DataError. Source: BabyLM
/// 2026, strict/evaluation_pipeline/utils.py, compute_child_aoa; of the list: BabyLM 2023.
ChildAges child_ages(const CsvTable& table);

/// The age at which the sigmoid of these fractions passes a half; none: it does not between the first and the last
/// month.
std::optional<double> child_age(std::span<const double> months, std::span<const double> fractions);

/// The surprisals of a word at the checkpoints of a run, in nats.
struct LearningCurve {
  std::vector<double> words{};       ///< [N] seen in training, ascending; a checkpoint has an entry for each context
  std::vector<double> surprisals{};  ///< [N]; NaN = missing
};

/// log10 of the words after which a sigmoid of the curve lies halfway between `chance`, the surprisal before training,
/// and its minimum; none: it does not within the curve.
/// Source: Chang and Bergen 2022 (TACL 10), section 3.3, as compute_model_aoa of BabyLM 2026 has it.
std::optional<double> model_age(const LearningCurve& curve, double chance);

/// The ages of words that both children and a model learn.
struct AcquisitionAges {
  std::vector<std::string> words{};
  std::vector<double> model{};  ///< log10 of words
  std::vector<double> child{};  ///< months
  /// Pearson's correlation; 0 for fewer than three words, as the published program has it.
  double correlation() const;
};

/// The ages of `curves`, word by word. `chance`: see model_age.
AcquisitionAges acquisition_ages(const std::vector<std::pair<std::string, LearningCurve>>& curves,
                                 const ChildAges& children, double chance);

/// The chance of the published program: log2 of 300,000 words, though its surprisals are in nats.
extern const double babylm_chance;

}  // namespace cloze
