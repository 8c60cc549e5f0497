#pragma once
// What the suites of embeddings share.
#include <string>
#include <vector>

#include "scoring/embeddings.h"
#include "suites/suite_result.h"

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
SuiteFigure correlation_figure(const std::vector<double>& cosines, const std::vector<double>& judgements);

/// The figure `mean_cosine` of all different pairs of texts.
SuiteFigure isotropy_figure(const EmbeddedTexts& embedded);

}  // namespace cloze
