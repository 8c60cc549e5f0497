#pragma once
// SentencePiece's trainer, in a process of its own: it cannot be stopped, and prints whatever it likes.
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

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
