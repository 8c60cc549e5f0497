#pragma once
// Rows of the objectives that let a decoder write: what is read, what is written.
#include "data/config.h"
#include "data/sampler.h"
#include "models/config.h"
#include "objectives/batch.h"
#include "objectives/config.h"
#include "objectives/masking.h"
#include "objectives/noising.h"

namespace cloze {

/// The objective of a list that lets a decoder write, or null.
const ObjectiveConfig* writing_of(const Objectives& objectives);

/// Gives a model the special ids of the tokenizer that it is trained with. T5 and PEGASUS start their decoders with
/// padding, BART with the end of a text, the Transformer with its beginning.
void take_special_ids(ModelConfig& model, const SpecialIds& special);

/// Makes rows. Holds scratch space: one for each thread.
class Writer {
 public:
  /// Throws ConfigError for an objective that the tokenizer or the tokens cannot serve.
  Writer(const ObjectiveConfig& objective, const DataConfig& data, const EncoderConfig& model, const TokenStore& store,
         const Vocabulary& vocabulary);
  /// How the text is cut for it, and into how many tokens.
  Packing packing() const;
  uint64_t length() const;
  /// One row, end token included, each side at most data.max_seq_length. What is read and what is asked belong to one
  /// text, which is drawn anew, and shorter, where noise made it too long; only pairs are cut. `infilled` receives what
  /// text_infilling did.
  void write(const Example& example, Stream stream, SourceTarget& row, Infilled* infilled = nullptr);
  /// Tokens of the example's text that the row written last holds, read or asked for.
  int64_t read() const { return read_; }
  /// Rows side by side. An encoder reads sources, its decoder the targets moved on by one; a decoder alone reads both
  /// in one line and is asked for the targets.
  Batch batch(const std::vector<SourceTarget>& rows) const;

 private:
  void check_ids(const std::vector<int64_t>& ids) const;
  void gather(const Example& example);
  /// The row of the text that was gathered.
  void make(Stream& stream, SourceTarget& row, Infilled* infilled);
  /// What is counted against max_seq_length, end tokens included: the longer side, or for a decoder alone, which reads
  /// both in one line, their sum.
  double length_of(double source, double target) const;
  /// That of a text of `tokens` tokens; where it is drawn, three standard deviations above the mean.
  double expected_length(int64_t tokens) const;
  bool fits(double length) const;
  /// Drops the end of the text that was gathered and became a row of this length; of gap sentences whole ones.
  void shorten(double length);
  void finish(SourceTarget& row) const;

  const ObjectiveConfig& objective_;
  const DataConfig& data_;
  const EncoderConfig& model_;
  const TokenStore& store_;
  const Vocabulary& vocabulary_;
  NoiseIds ids_;
  int64_t eos_;
  int64_t read_ = 0;
  std::vector<int64_t> tokens_;   // of the example, with a separator between documents
  std::vector<int64_t> numbers_;  // of these in the store, -1 = a separator
  std::vector<int64_t> sentence_lengths_;
  std::vector<uint8_t> word_starts_;
  std::vector<std::vector<int64_t>> sentences_;
};

}  // namespace cloze
