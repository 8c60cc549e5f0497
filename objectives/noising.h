#pragma once
// Corrupted sources and their targets for encoder-decoders (T5, BART, PEGASUS). Every function is deterministic given
// its arguments and the state of its random stream, which it advances.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "objectives/denoising.h"
#include "objectives/gap_sentences.h"

namespace cloze {

/// Ids of the encoder's input and of the decoder's target, neither padded nor shifted, without a start token.
struct SourceTarget {
  std::vector<int64_t> source, target;
  std::vector<int64_t> target_offsets{};  ///< of each target id, its offset in the token store, -1 = not from the text;
                                          ///< filled by SourceTargetBuilder
};

/// The mask token and the range of random ids, which are uniform in [first_random, vocabulary), special ones included.
struct NoiseIds {
  int64_t mask = 0;          ///< [MASK], or the one sentinel of `mass` and `bert_style`
  int64_t vocabulary = 0;    ///< upper bound (exclusive) of random ids
  int64_t first_random = 1;  ///< fairseq 1, T5 3
};

// ---- T5. Source: Raffel et al. 2020, section 3.3 (arXiv 1910.10683);
// google-research/text-to-text-transfer-transformer, t5/data/preprocessors.py.

/// Noise mask [length] of random_spans_noise_mask: alternating runs of kept and noise tokens, kept first, the same
/// number of each, all partitions equally likely. Noise tokens: round(length * density), half to even, at least 1 and
/// at most length - 1; spans: that divided by `mean_length`, rounded likewise, at least 1. Length 0 gives an empty
/// mask, length 1 no noise (as there: the mask of 2 tokens, truncated). Differs: never more spans than tokens of either
/// kind (there the two lists of runs get different lengths, an error); no random roll.
std::vector<bool> random_spans(int64_t length, double density, double mean_length, Stream& stream);
/// Noise tokens and spans of such a mask.
struct NoiseCount {
  int64_t tokens, spans;
};
NoiseCount noise_count(int64_t length, double density, double mean_length);

/// Noise mask [length]: every token independently with probability `density`.
std::vector<bool> iid_mask(int64_t length, double density, Stream& stream);
/// Unmasks the noise runs for which there is no sentinel: at most `max_runs` runs of either kind are left.
void limit_runs(std::vector<bool>& noise, size_t max_runs);

/// Maximum number of text tokens that span corruption turns into a source of at most `inputs_length` ids, end token
/// included. 512, 0.15, 3: 568. Differs: exact for random_spans (there short texts are counted without a span, and
/// their sources lose its sentinel). Throws ConfigError unless 0 <= density < 1 and mean_length >= 1.
int64_t raw_length(int64_t inputs_length, double density, double mean_length);
/// Length of the target for `raw_length` text tokens, end token included. 512, 0.15, 3: 114.
int64_t targets_length(int64_t inputs_length, double density, double mean_length);

/// Every noise run becomes one sentinel in the source, every kept run one in the target, numbered from 0 on each side;
/// `eos` ends both. There is no final sentinel in the target. `sentinels`: ids of <extra_id_0>, <extra_id_1>, ...
/// Throws DataError if there are more runs than sentinels. Differs: there the ids beyond the last sentinel are those of
/// ordinary tokens.
SourceTarget span_corruption(std::span<const int64_t> tokens, const std::vector<bool>& noise,
                             std::span<const int64_t> sentinels, int64_t eos);

/// iid_15_d_d. Source: the kept tokens. Target: the noise tokens.
SourceTarget drop_tokens(std::span<const int64_t> tokens, const std::vector<bool>& noise, int64_t eos);
/// iid_15_m_f, as in MASS. Source: the text with `ids.mask` for every noise token. Target: the text.
SourceTarget mass(std::span<const int64_t> tokens, const std::vector<bool>& noise, const NoiseIds& ids, int64_t eos);
/// iid_15_r10s90_f, as in BERT. Source: the text with `ids.mask` for every noise token, or with probability
/// `random_ratio` a random id. Target: the text.
SourceTarget bert_style(std::span<const int64_t> tokens, const std::vector<bool>& noise, double random_ratio,
                        const NoiseIds& ids, int64_t eos, Stream& stream);
/// all_permute. Source: the tokens in random order. Target: the text.
SourceTarget deshuffle(std::span<const int64_t> tokens, int64_t eos, Stream& stream);
/// prefix_lm. Source: the first k tokens, k uniform in 1 ... n - 1. Target: the rest. A text of one token has no
/// prefix: its source is `eos` only.
SourceTarget prefix_lm(std::span<const int64_t> tokens, int64_t eos, Stream& stream);

// ---- BART. Source: Lewis et al. 2020, section 2.2 (arXiv 1910.13461); facebookresearch/fairseq, denoising_dataset.py.

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
                       std::span<const int64_t> lengths, double share, Stream& stream);
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

// ---- PEGASUS. Source: Zhang et al. 2020, section 3.1 (arXiv 1912.08777); google-research/pegasus,
// sentence_selection.cc, rouge.cc.

/// Selects max(1, floor(sentences * gap_ratio)) sentences. Source: the text with `mask1` for each of them. Target:
/// these sentences concatenated, in text order. `eos` ends both. `choose`: random; lead = the first; by ROUGE-1 F1
/// against the rest of the text: ind-orig, ind-uniq = each scored independently, seq-orig, seq-uniq = greedily,
/// together with those selected before (time: selected sentences * tokens); uniq counts a repeated token once. Ties go
/// to the later sentence, as there. A text of one sentence is masked entirely: mask1 eos, and the sentence; a text
/// without tokens gives eos on both sides; empty sentences are skipped. Differs: scores are computed on token ids
/// (there on lower-case words without stop words); `gap_ratio` is not drawn at random, and no noise is added to scores.
SourceTarget gap_sentences(std::span<const std::vector<int64_t>> sentences, double gap_ratio, SentenceChoice choose,
                           int64_t mask1, int64_t eos, Stream& stream);

}  // namespace cloze
