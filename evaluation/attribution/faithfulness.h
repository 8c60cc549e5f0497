#pragma once
// Whether the words of the highest values are those that a prediction rests on.
#include <array>

#include "core/report/table.h"
#include "evaluation/attribution/methods.h"

namespace cloze {

/// The shares of words that are taken as the most important ones; at least one word is.
inline constexpr std::array important_shares{0.1, 0.2, 0.5};

/// What becomes of the probability of a score (of the score itself where it has none) by share of words.
struct Faithfulness {
  using ByShare = std::array<double, important_shares.size()>;
  ByShare comprehensiveness{};         ///< by how much it falls without the most important words
  ByShare sufficiency{};               ///< by how much it falls with these alone
  ByShare random_comprehensiveness{};  ///< the same of words in random order, the mean over several
  ByShare random_sufficiency{};
};

/// Of each attribution, in their order. Words are replaced by the baseline. Source: DeYoung et al. 2020, equations 1 to
/// 3 (arXiv 1911.03429). Differs: words are replaced, not cut out, so that places stay.
std::vector<Faithfulness> faithfulness_of(const ScoredRows& in, const std::vector<Explained>& explained,
                                          const std::vector<Attribution>& attributions, uint64_t seed);

/// Sums over items, for means with intervals over these.
class FaithfulnessMeans {
 public:
  /// `item`: a number of its own for each item.
  void add(uint64_t item, const Faithfulness& one);
  bool empty() const { return all_.empty(); }
  /// A row for each measure and share: the mean, that of random order, and the difference with its interval.
  Table table() const;
  nlohmann::ordered_json json() const;

 private:
  std::vector<uint64_t> items_{};
  std::vector<Faithfulness> all_{};
};

nlohmann::ordered_json to_json(const Faithfulness& one);

}  // namespace cloze
