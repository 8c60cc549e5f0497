#pragma once
// What a run does with a text, to look at: losses by token, position and frequency, calibration, sentences in the
// plane, attention.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "inference/views/predictions.h"
#include "inference/scoring/embeddings.h"
#include "run/run.h"

namespace cloze {

/// The attention of every head over the tokens of a sentence.
struct AttentionMaps {
  std::vector<std::string> tokens{};                     ///< with the special ones
  std::vector<std::vector<std::vector<float>>> heads{};  ///< [layer][head][T T], row = query; each row sums to 1
};

/// The self-attention of a text: of an encoder-decoder that of its encoder. No layers for an attention without a matrix
/// of probabilities (performer, linformer, windows). Throws DataError for a text that is longer than the model reads.
AttentionMaps attention_maps(const LoadedRun& run, const std::string& text);

/// A map [T T] as one of at most `side` rows and columns, which are means of equally many or one more.
std::vector<float> shrunk(std::vector<float> map, int64_t size, int64_t side);

/// A picture [T T] as a data URI (BMP, 8 bits): 0 is white, `highest` and above black.
std::string picture_uri(const std::vector<float>& values, int64_t size, float highest);

/// Embeddings of texts in the plane of their largest variance.
struct PrincipalPlane {
  std::vector<std::pair<double, double>> points{};  ///< of each text
  double first_share = 0, second_share = 0;         ///< of the variance
};

/// The first two principal components of embeddings fp64 [N, D]; the signs are such that the text furthest from the
/// mean lies at positive coordinates. Source: Pearson 1901.
PrincipalPlane principal_components(const Tensor& embeddings);

/// Everything that the page shows.
struct View {
  std::string run, checkpoint, scored_by;
  int64_t texts = 0;
  std::vector<TextLosses> read{};  ///< the first texts, token by token
  std::vector<TokenGroup> positions{}, frequencies{};
  bool has_training_counts = false;  ///< whether frequencies are of the training text, not of these texts
  Calibration calibration{};
  std::vector<std::string> sentences{};  ///< that the projection shows
  PrincipalPlane projection{};
  std::optional<double> mean_cosine{};  ///< of the sentences' embeddings; none for a single one
  std::string sentence{};               ///< whose attention is shown
  AttentionMaps attention{};
};

struct ViewOptions {
  ScoringOptions scoring{};
  EmbeddingOptions embeddings{};
  int64_t sentences = 200;                  ///< at most, in the plane
  size_t read = 20;                         ///< at most, of the texts whose tokens are shown
  std::string sentence{};                   ///< whose attention is shown; empty: the first text
  std::vector<uint64_t> training_counts{};  ///< of each id in the training text; empty: not known
};

/// Tokens of rtd are predicted by the generator. Throws ConfigError for a discriminator without one, DataError for
/// texts without a token that is predicted, and ConfigError, DataError and PassageError as Scorer::score and
/// embed_texts.
View view_of(const LoadedRun& run, const std::vector<std::string>& texts, const ViewOptions& options);

/// One page without references to anything outside it.
std::string to_html(const View& view);
nlohmann::json to_json(const View& view);

}  // namespace cloze
