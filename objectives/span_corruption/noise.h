#pragma once
// Noise of span corruption, and of the other objectives that its paper compares. Source: Raffel et al. 2020,
// section 3.3 (arXiv 1910.10683); google-research/text-to-text-transfer-transformer, t5/data/preprocessors.py.
#include <span>

#include "objectives/source_target.h"
#include "objectives/span_corruption/span_corruption.h"

namespace cloze {

/// Noise mask [length] of random_spans_noise_mask: alternating runs of kept and noise tokens, kept first, the same
/// number of each, all partitions equally likely. Noise tokens: round(length * density), half to even, at least 1 and
/// at most length - 1; spans: that divided by `mean_length`, rounded likewise, at least 1. Length 0 gives an empty
/// mask, length 1 no noise (as there: the mask of 2 tokens, truncated). Differs: never more spans than tokens of either
/// kind (there the two lists of runs get different lengths, an error); no random roll.
std::vector<bool> random_spans(int64_t length, double density, double mean_length, Stream& stream);

/// Noise mask [length]: every token independently with probability `density`.
std::vector<bool> iid_mask(int64_t length, double density, Stream& stream);
/// Unmasks the noise runs for which there is no sentinel: at most `max_runs` runs of either kind are left.
void limit_runs(std::vector<bool>& noise, size_t max_runs);

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

}  // namespace cloze
