#pragma once
// What the suites of embeddings share.
#include <map>
#include <string>
#include <vector>

#include "data/reading/line_reader.h"
#include "evaluation/suites/suite_result.h"
#include "inference/scoring/embeddings.h"

namespace cloze {

/// The layer and the pooling of the options.
EmbeddingOptions embedding_options(const SuiteOptions& options);

/// `mean of the tokens, layer 4 of 4`: what a report says of the embeddings.
std::string embedding_words(const RunConfig& config, const SuiteOptions& options);

/// The vectors of texts, and their place by text.
struct EmbeddedTexts {
  std::vector<std::string> texts{};  ///< distinct
  Tensor vectors{};                  ///< fp64 [N, D]
  /// Cosines of pairs of texts, which are among `texts`.
  std::vector<double> cosines_of(const std::vector<std::pair<std::string, std::string>>& pairs) const;
};
EmbeddedTexts embed_distinct(const LoadedRun& run, std::vector<std::string> texts, const SuiteOptions& options);

/// The correlation of cosines with judgements: metric `spearman`. A constant side gives none, and is NaN.
Score correlation_score(const std::vector<double>& cosines, const std::vector<double>& judgements);

/// The score `mean_cosine` of all different pairs of texts.
Score isotropy_score(const EmbeddedTexts& embedded);

/// The items of a file that stand in it before. Published sets have such items, and published scores count each.
class Repeats {
 public:
  /// Takes an item of the line that was read last.
  void add(const std::string& item, const LineReader& lines);
  /// `1 of 353 pairs repeat an earlier one ...`, with the place of the first; none where none does.
  std::vector<std::string> notes(const std::string& kind) const;

 private:
  std::map<std::string, uint64_t> lines_{};  ///< where each item stands first
  uint64_t all_ = 0, count_ = 0;
  std::string first_{};
};

}  // namespace cloze
