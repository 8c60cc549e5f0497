#include "evaluation/suites/embedding_scores.h"

#include <algorithm>
#include <limits>

#include "core/log.h"
#include "core/spelling.h"
#include "evaluation/suites/statistics.h"

namespace cloze {

EmbeddingOptions embedding_options(const SuiteOptions& options) {
  return {.layer = options.layer, .pooling = options.pooling};
}

std::string embedding_words(const RunConfig& config, const SuiteOptions& options) {
  const auto layers = num_layers(config);
  const auto layer = options.layer.value_or(layers);
  switch (options.pooling) {
    case Pooling::mean:
      return concat("the mean of the tokens' states, layer ", layer, " of ", layers);
    case Pooling::cls:
      return concat("the state of [CLS], layer ", layer, " of ", layers);
    case Pooling::first_last:
      return concat("the mean of the tokens' states, layers 1 and ", layer, " of ", layers);
  }
  return "";
}

std::vector<double> EmbeddedTexts::cosines_of(const std::vector<std::pair<std::string, std::string>>& pairs) const {
  std::vector<int64_t> left, right;
  const auto place = [&](const std::string& text) {
    return static_cast<int64_t>(std::lower_bound(texts.begin(), texts.end(), text) - texts.begin());
  };
  for (const auto& [a, b] : pairs) {
    left.push_back(place(a));
    right.push_back(place(b));
  }
  const auto norm = vectors.norm(2, -1, true);
  const auto unit = vectors / at::where(norm > 0, norm, at::ones_like(norm));
  const auto cosine =
      (unit.index_select(0, at::tensor(left, at::kLong)) * unit.index_select(0, at::tensor(right, at::kLong)))
          .sum(-1)
          .contiguous();
  const auto* values = cosine.data_ptr<double>();
  return {values, values + cosine.numel()};
}

EmbeddedTexts embed_distinct(const LoadedRun& run, std::vector<std::string> texts, const SuiteOptions& options) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  auto vectors = embed_texts(run, texts, embedding_options(options));
  return {.texts = std::move(texts), .vectors = std::move(vectors)};
}

Score correlation_score(const std::vector<double>& cosines, const std::vector<double>& judgements) {
  Score score{.metric = "spearman", .count = static_cast<int64_t>(cosines.size())};
  const auto correlation = spearman(cosines, judgements);
  if (!correlation) return score;
  score.value = *correlation;
  score.interval = spearman_interval(*correlation, score.count);
  return score;
}

Score isotropy_score(const EmbeddedTexts& embedded) {
  return {.metric = "mean_cosine",
          .value = mean_cosine(embedded.vectors),
          .count = static_cast<int64_t>(embedded.texts.size())};
}

void Repeats::add(const std::string& item, const LineReader& lines) {
  ++all_;
  const auto [first, is_new] = lines_.emplace(item, lines.number);
  if (!is_new && count_++ == 0)
    first_ = concat("'", shortened(item), "' (", lines.where(), ", as in line ", first->second, ")");
}

std::vector<std::string> Repeats::notes(const std::string& kind) const {
  if (count_ == 0) return {};
  return {concat(thousands(count_), " of ", thousands(all_), " ", kind, " repeat an earlier one, first ", first_,
                 "; each is counted")};
}

}  // namespace cloze
