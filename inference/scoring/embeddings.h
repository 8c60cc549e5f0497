#pragma once
// Embeddings of texts: hidden states of one layer, pooled over the tokens.
#include <optional>
#include <span>

#include "inference/scoring/pooling.h"
#include "run/run.h"

namespace cloze {

struct EmbeddingOptions {
  std::optional<int64_t> layer{};  ///< 0 = the embedding layer; none: the last
  Pooling pooling = Pooling::mean;
  int64_t batch_size = 64;
};

/// Number of layers whose states can be pooled, without the embedding layer: of the encoder in an encoder-decoder.
int64_t num_layers(const RunConfig& config);

/// Why a run has no such embeddings, as a sentence; empty if it has.
std::string embedding_fault(const RunConfig& config, const EmbeddingOptions& options);

/// The special tokens of the run's model around a text: [CLS] text [SEP], text [SEP] [CLS] (XLNet), text </s> (T5).
std::vector<int64_t> framed_text(const LoadedRun& run, std::string_view text);

/// Embeddings fp64 [N, D] of N texts, each with the special tokens of its model, which count in the mean as in
/// sentence-transformers. Equal texts are computed once. Throws ConfigError by embedding_fault, DataError for a text
/// that is longer than the model reads, and for states that are not finite.
Tensor embed_texts(const LoadedRun& run, std::span<const std::string> texts, const EmbeddingOptions& options);

/// Throws DataError as embed_texts for a text without tokens, and for one that is too long; computes nothing.
void check_fit(const LoadedRun& run, std::span<const std::string> texts);

/// Cosines fp64 [N, M] of the rows of a [N, D] and b [M, D]; 0 for a row of zeros.
Tensor cosines(const Tensor& a, const Tensor& b);

/// The mean cosine of all pairs of different rows of [N, D]: 0 for directions that are spread evenly, 1 for one
/// direction. Source: Ethayarajh 2019, section 4.1 (there of random pairs).
double mean_cosine(const Tensor& embeddings);

}  // namespace cloze
