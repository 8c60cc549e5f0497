#pragma once
// Permutation language modelling: targets, factorisation orders and rows. Pure functions. Source: Yang et al. 2019,
// section 2 (arXiv 1906.08237); zihangdai/xlnet, data_utils.py.
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "data/sampling/running_text.h"
#include "objectives/batch.h"
#include "objectives/config.h"
#include "objectives/masking.h"
#include "objectives/segment_pairs.h"

namespace cloze {

/// The options of target selection and factorisation order. Defaults: README of zihangdai/xlnet, XLNet-Large.
struct PlmRules {
  int64_t num_predict = 85;  ///< maximum number of targets, split over both parts by their lengths
  /// Tokens of the first part, which goes into the mems and does not attend to the second part; 0 = one part only.
  int64_t reuse_len = 256;
  int64_t perm_size = 256;  ///< size of a permuted chunk of tokens; 0 = a whole part
  int64_t mask_alpha = 6;   ///< a span of k tokens is chosen within a context of k * mask_alpha / mask_beta
  int64_t mask_beta = 1;
  int64_t max_ngram = 5;  ///< maximum span length in tokens; P(k) proportional to 1/k
  bool backward = false;  ///< the sequence is reversed; spans are chosen as if it were not
};

/// Targets and attention mask of a sequence. The mask is stored as two ranks of n numbers instead of n * n flags.
struct PlmExample {
  std::vector<int32_t> query_rank, key_rank;  ///< [n]
  std::vector<int64_t> targets;  ///< positions, ascending; the label is the input token itself, inputs are unchanged
  std::vector<int64_t> drawn;    ///< length of each span as drawn, before truncation to the remaining goal
  /// Token `query` may attend to token `key`: a target not to itself, except in the content stream.
  bool sees(size_t query, size_t key) const { return query_rank[query] > key_rank[key]; }
};

/// Flags [n] of the min(goal, n) tokens chosen for prediction: spans within contexts, starting at word starts, until
/// `goal` is reached or the search fails; the rest of `goal` are single tokens anywhere. Span lengths are in tokens,
/// not words, as there (zihangdai/xlnet#16); punctuation and functional tokens start words there. Differs: a part
/// shorter than `goal` is taken whole (there the search does not end). `drawn` receives the length of each span before
/// truncation. Throws ConfigError for invalid rules.
std::vector<uint8_t> plm_spans(std::span<const uint8_t> word_starts, int64_t goal, const PlmRules& rules,
                               Stream& stream, std::vector<int64_t>* drawn = nullptr);

/// Appends the ranks and targets of one part of a sequence, whose tokens attend to all earlier parts but not vice
/// versa. Every chunk of `perm_size` tokens has the same permutation and comes after the chunks before it. Functional
/// tokens
/// ([SEP], [CLS]) are no targets but are part of the order. Differs: a last chunk shorter than perm_size uses a part of
/// the permutation (there the length must be a multiple).
void local_permutation(std::span<const uint8_t> masked, std::span<const uint8_t> functional, int64_t perm_size,
                       Stream& stream, PlmExample& example);

/// Both parts of a sequence of n tokens; `functional` [n] nonzero for [SEP] and [CLS], `word_starts` [n]. Functional
/// tokens that are chosen are no targets, so there can be fewer than num_predict. The vectors of `example` are reused.
/// Differs: a sequence may have any length, and may end in the first part.
void plm(std::span<const uint8_t> functional, std::span<const uint8_t> word_starts, const PlmRules& rules,
         Stream& stream, PlmExample& example);

/// A row: ids and segment ids [n], including [SEP] and [CLS] at its end.
struct PlmRow {
  std::vector<int64_t> ids{}, segments{};
  bool backward = false;  ///< its text is reversed
};

/// text [SEP] [CLS]; segment ids are 0, of [CLS] 2.
PlmRow plm_row(std::vector<int64_t> text, bool backward, const SpecialIds& special);

/// Segments A and B of `budget` tokens in total, from offset `first` of a running text on. A ends at the end of a
/// sentence; with probability 1/2 (and if no sentence ends in time) B is from anywhere in the text, label 1; otherwise
/// B continues A, label 0. The longer one is truncated at its end. Source: zihangdai/xlnet, data_utils.py,
/// _split_a_and_b. Differs: B may be from the whole text (there from the part that the row covers); labels are those of
/// nsp (there the opposite, and unused).
SegmentPair running_pair(const RunningText& text, uint64_t first, uint64_t budget, Stream& stream);

/// A row of `length` from offset `first` on: `reuse_len` tokens that go into the mems, then either more text and [SEP]
/// [CLS], or A [SEP] B [SEP] [CLS]; segment ids are 0 up to the first [SEP], 1 up to the second, 2 for [CLS]. Source:
/// zihangdai/xlnet, data_utils.py, create_tfrecords.
PlmRow running_row(const RunningText& text, uint64_t first, int64_t length, int64_t reuse_len, bool pair,
                   const SpecialIds& special, Stream stream);

/// The batch of rows, padded on the left, with factorisation orders drawn from each row's stream. Inputs are unchanged:
/// `visible` is the attention mask, `target_positions` the targets. The first `reuse_len` tokens of a row are a
/// separate part. `drawn` [rows] receives what was drawn for each row.
Batch permutation_batch(const std::vector<PlmRow>& rows, std::vector<Stream>& streams, const PlmConfig& config,
                        int64_t reuse_len, const TokenProperties& vocabulary, std::vector<PlmExample>* drawn = nullptr);

}  // namespace cloze
