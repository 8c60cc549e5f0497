#pragma once
// Permutation language modelling: which tokens are predicted and in which order, and the rows that say so. Pure
// functions. Source: Yang et al. 2019, section 2 (arXiv 1906.08237); zihangdai/xlnet, data_utils.py.
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "data/running_text.h"
#include "objectives/batch.h"
#include "objectives/config.h"
#include "objectives/masking.h"
#include "objectives/pairs.h"

namespace cloze {

/// What is predicted of a sequence and in which order. Defaults: README of zihangdai/xlnet, XLNet-Large.
struct PlmRules {
  int64_t num_predict = 85;  ///< most targets; split over both parts by their lengths
  int64_t reuse_len =
      256;  ///< tokens of the first part, which becomes memory and sees nothing of the second; 0 = one part
  int64_t perm_size = 256;  ///< tokens that are permuted together; 0 = a whole part
  int64_t mask_alpha = 6;   ///< a span of k tokens is chosen in a context of k * mask_alpha / mask_beta
  int64_t mask_beta = 1;
  int64_t max_ngram = 5;  ///< longest span in tokens; k has probability in proportion to 1/k
  bool backward = false;  ///< the sequence runs from right to left, and spans are chosen as if it did not
};

/// Targets and what every token may see, as two ranks: n numbers each, where a mask would be n * n.
struct PlmExample {
  std::vector<int32_t> query_rank, key_rank;  ///< [n]
  std::vector<int64_t> targets;  ///< positions, ascending; the label is the token itself, inputs stay as they are
  std::vector<int64_t> drawn;    ///< tokens of each span as drawn, before it is cut to what is left of the goal
  /// Token `query` may not attend to token `key` (a target neither to itself; the content stream always sees its own
  /// token).
  bool blocked(size_t query, size_t key) const { return query_rank[query] <= key_rank[key]; }
  /// The perm_mask [n * n], row = query.
  std::vector<uint8_t> blocked() const;
};

/// Tokens [n] chosen for prediction, nonzero: spans in contexts, started at word starts, until `goal`; the rest of
/// `goal` single tokens anywhere. A span is so many pieces, not words, as there (zihangdai/xlnet#16); punctuation and
/// functional tokens start words there. Exactly min(goal, n). Differs: a part shorter than `goal` is taken whole (there
/// the search does not end). `drawn` receives the length of each span before it is cut. Throws ConfigError for rules
/// that are none.
std::vector<uint8_t> plm_spans(std::span<const uint8_t> word_starts, int64_t goal, const PlmRules& rules,
                               Stream& stream, std::vector<int64_t>* drawn = nullptr);

/// Appends the ranks and targets of one part of a sequence, whose tokens see all parts before it and are hidden from
/// them. Every `perm_size` tokens are permuted alike and come behind those before. Functional tokens ([SEP], [CLS]) are
/// no targets but have a place in the order. Differs: a last block shorter than perm_size takes what it needs of the
/// permutation (there the part must be a multiple).
void local_permutation(std::span<const uint8_t> masked, std::span<const uint8_t> functional, int64_t perm_size,
                       Stream& stream, PlmExample& example);

/// Both parts of a sequence of n tokens; `functional` [n] nonzero for [SEP] and [CLS], `word_starts` [n]. A functional
/// token that is chosen is no target, so that there can be fewer than num_predict. Vectors of `example` are reused.
/// Differs: a sequence of any length, even one that ends in the first part.
void plm(std::span<const uint8_t> functional, std::span<const uint8_t> word_starts, const PlmRules& rules,
         Stream& stream, PlmExample& example);

/// A row: ids and segments [n], those of [SEP] and [CLS] at its end included.
struct PlmRow {
  std::vector<int64_t> ids{}, segments{};
  bool backward = false;  ///< its text runs from right to left
};

/// text [SEP] [CLS]; segments are 0, that of [CLS] is 2.
PlmRow plm_row(std::vector<int64_t> text, bool backward, const SpecialIds& special);

/// Segments A and B of `budget` places together, behind place `first` of a running text. A ends where one of its
/// sentences ends; with probability 1/2 (and where no sentence ends in time) B is from anywhere in the text, label 1,
/// otherwise it goes on, label 0. The longer one is cut at its end. Source: zihangdai/xlnet, data_utils.py,
/// _split_a_and_b. Differs: B may be from the whole text (there from the part that the row reads); labels are those of
/// nsp (there the other way round, and nothing reads them).
Pair running_pair(const RunningText& text, uint64_t first, uint64_t budget, Stream& stream);

/// A row of `length` from place `first` on: `reuse_len` places that become memory, then more, [SEP] [CLS]; or then A
/// [SEP] B [SEP] [CLS], where segments are 0 up to the first [SEP], 1 up to the second, 2 for [CLS]. Source:
/// zihangdai/xlnet, data_utils.py, create_tfrecords.
PlmRow running_row(const RunningText& text, uint64_t first, int64_t length, int64_t reuse_len, bool pair,
                   const SpecialIds& special, Stream stream);

/// The batch of rows, each with its orders drawn from its stream, padded on the left. Inputs stay as they are: what a
/// token may see is in `visible`, what is predicted in `target_positions`. The first `reuse_len` tokens of a row are a
/// part by themselves. `drawn` [rows] receives PlmExample::drawn.
Batch permutation_batch(const std::vector<PlmRow>& rows, std::vector<Stream>& streams, const PlmConfig& config,
                        int64_t reuse_len, const Vocabulary& vocabulary,
                        std::vector<std::vector<int64_t>>* drawn = nullptr);

}  // namespace cloze
