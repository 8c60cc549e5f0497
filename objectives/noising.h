#pragma once
// Corrupted sources and their targets for networks with two stacks (T5, BART, PEGASUS).
// Every function is pure: what it gives depends on its arguments and on the place of its stream, which it moves on.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "objectives/denoising.h"
#include "objectives/gap_sentences.h"

namespace cloze {

/// What the encoder reads and what the decoder writes: ids, neither padded nor shifted, without a start token.
struct SourceTarget {
  std::vector<int64_t> source, target;
  std::vector<int64_t> target_tokens{};  ///< of each id of the target, its number in the token store, -1 = it is not of
                                         ///< the text; filled by GenerativeRows
};

/// Where random ids come from and what hides a token. Random ids are uniform in [first_random, vocabulary), special
/// ones too.
struct NoiseIds {
  int64_t mask = 0;          ///< [MASK], or the one sentinel of `mass` and `bert_style`
  int64_t vocabulary = 0;    ///< one more than the last id that may be drawn
  int64_t first_random = 1;  ///< fairseq 1, T5 3
};

// ---- T5. Source: Raffel et al. 2020, section 3.3 (arXiv 1910.10683);
// google-research/text-to-text-transfer-transformer, t5/data/preprocessors.py.

/// Noise mask [length] of random_spans_noise_mask: runs of kept and noise tokens in turn, kept first, as many of
/// either, all ways to cut them equally likely. Noise tokens: round(length * density), half to even, at least 1 and at
/// most length - 1; spans: that over `mean_length`, rounded likewise, at least 1. Length 0 gives nothing, length 1 no
/// noise (there too: the mask of 2 tokens, cut). Differs: never more spans than tokens of either kind (there the two
/// lists of runs get different lengths, an error); no random roll.
std::vector<bool> random_spans(int64_t length, double density, double mean_length, Stream& stream);
/// Noise tokens and spans of such a mask.
struct NoiseCount {
  int64_t tokens, spans;
};
NoiseCount noise_count(int64_t length, double density, double mean_length);

/// Noise mask [length]: every token on its own with probability `density`.
std::vector<bool> iid_mask(int64_t length, double density, Stream& stream);
/// Keeps the tokens of those runs of noise for which there is no sentinel: `most` runs of either kind are left.
void limit_runs(std::vector<bool>& noise, size_t most);

/// Most tokens of text that span corruption turns into a source of at most `inputs_length` ids, the end token among
/// them. 512, 0.15, 3: 568. Differs: counts what random_spans makes (there short texts are counted without a span, and
/// their sources lose its sentinel). Throws ConfigError unless 0 <= density < 1 and mean_length >= 1.
int64_t raw_length(int64_t inputs_length, double density, double mean_length);
/// Ids of the target that belongs to `raw_length` tokens, the end token among them. 512, 0.15, 3: 114.
int64_t targets_length(int64_t inputs_length, double density, double mean_length);

/// Every run of noise is one sentinel in the source, every run of kept tokens one in the target, numbered from 0 on
/// each side; `eos` ends both. No sentinel closes the target. `sentinels`: ids of <extra_id_0>, <extra_id_1>, ...
/// Throws DataError when there are more runs than sentinels. Differs: there ids beyond the last sentinel are those of
/// ordinary pieces.
SourceTarget span_corruption(std::span<const int64_t> tokens, const std::vector<bool>& noise,
                             std::span<const int64_t> sentinels, int64_t eos);

/// iid_15_d_d: the kept tokens; the noise tokens.
SourceTarget drop_tokens(std::span<const int64_t> tokens, const std::vector<bool>& noise, int64_t eos);
/// iid_15_m_f, in the manner of MASS: `ids.mask` for every noise token; the text.
SourceTarget mass(std::span<const int64_t> tokens, const std::vector<bool>& noise, const NoiseIds& ids, int64_t eos);
/// iid_15_r10s90_f, in the manner of BERT: for a noise token `ids.mask`, or with probability `random_ratio` a random
/// id; the text.
SourceTarget bert_style(std::span<const int64_t> tokens, const std::vector<bool>& noise, double random_ratio,
                        const NoiseIds& ids, int64_t eos, Stream& stream);
/// all_permute: the tokens in random order; the text.
SourceTarget deshuffle(std::span<const int64_t> tokens, int64_t eos, Stream& stream);
/// prefix_lm: the first k tokens, k uniform in 1 ... n - 1; the rest. A text of one token has no prefix: its source is
/// `eos` alone.
SourceTarget prefix_lm(std::span<const int64_t> tokens, int64_t eos, Stream& stream);

// ---- BART. Source: Lewis et al. 2020, section 2.2 (arXiv 1910.13461); facebookresearch/fairseq, denoising_dataset.py.

/// What text_infilling did to a text.
struct Infilled {
  std::vector<int64_t> words;  ///< of each span as the Poisson distribution gave them, zeros too, the last one not cut
  int64_t hidden = 0;          ///< tokens that are gone or another
};

// The parts below take tokens that begin with <s> and end with </s>, and touch neither; where nothing is between them,
// only insertion does anything.

/// ceil(sentences * share) of the sentences change places among themselves; `word_starts` [n] goes with its tokens.
/// `lengths`: tokens of each sentence, the first behind <s>; tokens behind the last one stay where they are. Throws
/// DataError when they are more than there are tokens. Differs: sentences are those of the token store (there they end
/// at GPT-2's full stop, and without one nothing happens).
void permute_sentences(std::vector<int64_t>& tokens, std::vector<uint8_t>& word_starts,
                       std::span<const int64_t> lengths, double share, Stream& stream);
/// Text infilling, token masking and token deletion. Words are counted, not tokens: `word_starts` [n], not read for
/// mask_length subword; a span starts at a word and takes its pieces; spans may overlap, and then give fewer masks;
/// spans of no word are masks put in somewhere. Throws ConfigError for rules that are none. Differs: as many are put in
/// as there are spans of no word (there rounding can add one); lambda may be over 16 (there the table of lengths then
/// ends at once); shares are taken in double.
void text_infilling(std::vector<int64_t>& tokens, std::span<const uint8_t> word_starts, const BartNoise& rules,
                    const NoiseIds& ids, Stream& stream, Infilled* infilled = nullptr);
/// `count` new tokens at distinct random places; ceil(count * random_ratio) of them random ids, the rest masks.
void insert_tokens(std::vector<int64_t>& tokens, int64_t count, double random_ratio, const NoiseIds& ids,
                   Stream& stream);
/// The text starts at a uniform one of the n - 1 tokens behind <s> and goes on at its beginning; at </s> it stays as it
/// is.
void rotate_document(std::vector<int64_t>& tokens, Stream& stream);

/// The source of a text <s> ... </s>: sentences, hidden words, inserted tokens, rotation, in fairseq's order. The
/// target is the text itself. `word_starts` [n] nonzero where a word starts; `sentence_lengths` and `infilled` as
/// above, the former empty: sentences stay.
std::vector<int64_t> bart_noise(std::span<const int64_t> tokens, std::span<const uint8_t> word_starts,
                                std::span<const int64_t> sentence_lengths, const BartNoise& rules, const NoiseIds& ids,
                                Stream& stream, Infilled* infilled = nullptr);

// ---- PEGASUS. Source: Zhang et al. 2020, section 3.1 (arXiv 1912.08777); google-research/pegasus,
// sentence_selection.cc, rouge.cc.

/// max(1, floor(sentences * gap_ratio)) sentences, one `mask1` for each in the source, one behind the other in the
/// target, both in the order of the text, `eos` at the end. `choose`: random; lead = the first; by ROUGE-1 F1 against
/// the rest of the text: ind-orig, ind-uniq = each scored alone, seq-orig, seq-uniq = one after the other with those
/// chosen before (time: sentences chosen * tokens); uniq counts a token once. Of equal scores the later sentence wins,
/// as there. A text of one sentence is all gap: mask1 eos, and the sentence; a text without tokens is eos on both
/// sides; sentences without tokens are passed over. Differs: scores are of token ids (there of lower-case words without
/// stop words); `gap_ratio` is not drawn anew here, nor are scores noised.
SourceTarget gap_sentences(std::span<const std::vector<int64_t>> sentences, double gap_ratio, SentenceChoice choose,
                           int64_t mask1, int64_t eos, Stream& stream);

}  // namespace cloze
