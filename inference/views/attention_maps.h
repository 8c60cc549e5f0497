#pragma once
// The attention of every head over the tokens of a sentence.
#include <string>
#include <vector>

#include "run/run.h"

namespace cloze {

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

}  // namespace cloze
