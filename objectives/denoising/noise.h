#pragma once
// Noise of denoising. Source: Lewis et al. 2020, section 2.2 (arXiv 1910.13461); facebookresearch/fairseq,
// denoising_dataset.py.
#include <span>

#include "objectives/denoising/denoising.h"
#include "objectives/source_target.h"

namespace cloze {

/// Statistics of text_infilling on one text.
struct Infilled {
  std::vector<int64_t> words;  ///< length of each span as drawn, zeros included, the last one before truncation
  int64_t corrupted = 0;       ///< tokens that were deleted or replaced
};

// The functions below take tokens that begin with <s> and end with </s>, and change neither; without tokens between
// them, only insertion has an effect.

/// Permutes ceil(sentences * share) of the sentences among themselves, with their `word_starts` [n]. `lengths`: tokens
/// of each sentence, the first of which follows <s>; tokens after the last one stay in place. Throws DataError if they
/// add up to more tokens than there are. Differs: sentences are those of the token store (there they end at GPT-2's
/// full stop, and without one nothing happens).
void permute_sentences(std::vector<int64_t>& tokens, std::vector<uint8_t>& word_starts,
                       std::span<const int64_t> lengths, double fraction, Stream& stream);
/// Text infilling, token masking and token deletion. Lengths are in words, not tokens: `word_starts` [n], unused for
/// mask_length subword. A span starts at a word and covers whole words; spans may overlap, and then give fewer masks; a
/// span of 0 words inserts a mask at a random position. Throws ConfigError for invalid rules. Differs: exactly one mask
/// is inserted for each span of 0 words (there rounding can add one); lambda may exceed 16 (there the table of lengths
/// then ends at once); shares are computed in double.
void text_infilling(std::vector<int64_t>& tokens, std::span<const uint8_t> word_starts, const BartNoise& rules,
                    const NoiseIds& ids, Stream& stream, Infilled* infilled = nullptr);
/// Inserts `count` tokens at distinct random positions: ceil(count * random_ratio) random ids, the rest masks.
void insert_tokens(std::vector<int64_t>& tokens, int64_t count, double random_ratio, const NoiseIds& ids,
                   Stream& stream);
/// Rotates the text to start at one of the n - 1 tokens after <s>, uniformly; </s> leaves it unchanged.
void rotate_document(std::vector<int64_t>& tokens, Stream& stream);

/// The source of a text <s> ... </s>: sentence permutation, infilling, insertion, rotation, in fairseq's order. The
/// target is the text itself. `word_starts` [n]: nonzero at the start of a word; `sentence_lengths` and `infilled` as
/// above; no sentence_lengths: sentences are not permuted.
std::vector<int64_t> bart_noise(std::span<const int64_t> tokens, std::span<const uint8_t> word_starts,
                                std::span<const int64_t> sentence_lengths, const BartNoise& rules, const NoiseIds& ids,
                                Stream& stream, Infilled* infilled = nullptr);

}  // namespace cloze
