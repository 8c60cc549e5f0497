#pragma once
// Training of tokenizers: by SentencePiece, and of byte-level BPE and WordPiece from counts of words.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/prepare/split.h"

namespace cloze {

/// Trains a unigram or BPE model on sentences drawn from the training text of `split` and writes it to
/// `folder`/spiece.model. Specials: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4. Throws DataError.
void train_tokenizer(const PrepareOptions& options, const Split& split, const std::string& folder);

// Byte-pair encoding (train_bpe.cpp). Each of these throws Interrupted soon after a signal.

/// A word as symbols, and its frequency.
struct CountedWord {
  std::vector<int32_t> symbols;
  uint64_t count = 0;
};

/// Merges the most frequent pair of symbols until `merged` returns no id or every pair is rarer than `min_count`; of
/// equally frequent pairs the one with the smaller ids comes first. `merged(left, right)` returns the id of the merged
/// symbol. Source: Sennrich et al. 2016, algorithm 1 (arXiv 1508.07909).
void learn_merges(std::vector<CountedWord> words, const std::function<std::optional<int32_t>(int32_t, int32_t)>& merged,
                  uint64_t min_count = 2);

/// vocab.json and merges.txt of a byte-level BPE vocabulary of `size` tokens, RoBERTa's special tokens included.
struct ByteBpeFiles {
  std::string vocabulary, merges;
};
ByteBpeFiles train_byte_bpe(const std::vector<std::string>& sentences, int64_t size);

/// Which characters of a text a vocabulary has: the most frequent ones that cover a share of it, and at least so many.
struct Alphabet {
  double coverage = 1;
  size_t least = 0;
};

/// vocab.txt of a WordPiece vocabulary of `size` tokens, BERT's special tokens included. Pairs are chosen by frequency,
/// as the `tokenizers` package does; characters that are left out are logged. Throws ConfigError where `size` is
/// below the number of special tokens and characters.
std::string train_wordpiece(const std::vector<std::string>& sentences, int64_t size, bool lowercase,
                            const Alphabet& alphabet = {});

// SentencePiece's trainer (train_sentencepiece.cpp), in a process of its own: it cannot be stopped, and prints whatever
// it likes.

struct TrainedSentencePiece {
  std::string model;    ///< the content of a .model file; empty if it could not be trained
  std::string trouble;  ///< what SentencePiece says against the text or the settings; empty for a model
};

/// The number of pieces in the newest line of the trainer's log that has one; 0 before that. The size of the alphabet
/// is none.
uint64_t pieces_in(const std::string& log);

/// What the trainer does, by the newest line of its log that says it.
std::string phase_in(const std::string& log);

/// The share of a training to `vocab_size` pieces that is done, by the trainer's log; negative where it is not known.
double fraction_done(const std::string& log, int64_t vocab_size);

/// Trains with the options `spec` of SentencePieceTrainer, and shows how far it has come on the way to `vocab_size`
/// pieces. Throws Interrupted as soon as a signal comes, Error if the process is killed or cannot be started.
TrainedSentencePiece train_sentencepiece(const std::string& spec, const std::vector<std::string>& sentences,
                                         int64_t vocab_size);

}  // namespace cloze
