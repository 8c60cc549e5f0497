#pragma once
// Rows of generative objectives: what is read, and what is written.
#include <memory>

#include "objectives/noising.h"
#include "objectives/rows.h"

namespace cloze {

/// The generative objective of a list, or null.
const ObjectiveConfig* generative_of(const Objectives& objectives);

/// Gives a model the special ids of the tokenizer that it is trained with.
void take_special_ids(ModelConfig& model, const SpecialIds& special);

/// A text of one or more documents.
struct GatheredText {
  std::vector<int64_t> tokens{};   ///< with a separator between documents
  std::vector<int64_t> numbers{};  ///< of these in the store, -1 = a separator
  std::vector<int64_t> sentence_lengths{};
};

/// Makes the rows of a generative objective. Holds scratch space: one for each thread.
class GenerativeRows {
 public:
  explicit GenerativeRows(const RowContext& context);
  virtual ~GenerativeRows() = default;
  /// How the text is cut for it, and into how many tokens.
  virtual Packing packing() const;
  virtual uint64_t length() const = 0;
  /// One row, end token included, each side at most data.max_seq_length. `infilled` receives what text_infilling did.
  virtual void write(const Example& example, Stream stream, SourceTarget& row, Infilled* infilled) = 0;
  /// Tokens of the example's text that the row written last holds, read or asked for.
  int64_t read() const { return read_; }
  /// The batch of rows. An encoder reads sources, its decoder the targets shifted right by one; a decoder alone reads
  /// both in one line and is asked for the targets.
  Batch batch(const std::vector<SourceTarget>& rows) const;

 protected:
  /// Reads the text of an example into `text_`.
  void gather(const Example& example);
  /// Begins texts where the model's begin. Pairs that are too long are cut, their end tokens kept.
  void finish(SourceTarget& row) const;

  const RowContext& context_;
  const DataConfig& data_;
  const BackboneConfig& model_;
  DecodingIds decoding_;
  const TokenStore& store_;
  const Vocabulary& vocabulary_;
  NoiseIds ids_;
  int64_t eos_;
  int64_t read_ = 0;
  GatheredText text_;
};

/// Rows whose source is a corrupted text. Source and target belong to one text, which is drawn anew, and shorter, where
/// noise made it too long.
class CorruptedRows : public GenerativeRows {
 public:
  using GenerativeRows::GenerativeRows;
  uint64_t length() const override;
  void write(const Example& example, Stream stream, SourceTarget& row, Infilled* infilled) override;

 protected:
  /// Tokens of both sides, end tokens included.
  struct Sides {
    double source, target;
  };
  /// Those of a text of `tokens` tokens; where they are drawn, three standard deviations above the mean.
  virtual Sides expected(int64_t tokens) const = 0;
  /// Tokens of text that fill a row of `most`, before `expected` is asked.
  virtual int64_t longest_text(int64_t most) const { return most - 1; }
  /// A text is cut between sentences only.
  virtual bool keeps_sentences() const { return false; }
  /// The row of the text that was gathered.
  virtual void make(Stream& stream, SourceTarget& row, Infilled* infilled) = 0;

 private:
  /// What is counted against max_seq_length: the longer side, or for a decoder alone, which reads both in one line,
  /// their sum.
  double length_of(const Sides& sides) const;
  bool fits(double length) const;
  /// Drops the end of the text that was gathered and became a row of this length.
  void shorten(double length);
};

/// The rows of a generative objective. Throws ConfigError for one that the tokenizer or the tokens cannot serve.
std::unique_ptr<GenerativeRows> make_generative_rows(const ObjectiveConfig& objective, const RowContext& context);
std::unique_ptr<GenerativeRows> make_rows(const ClmConfig& config, const RowContext& context);
std::unique_ptr<GenerativeRows> make_rows(const SpanCorruptionConfig& config, const RowContext& context);
std::unique_ptr<GenerativeRows> make_rows(const DenoisingConfig& config, const RowContext& context);
std::unique_ptr<GenerativeRows> make_rows(const GapSentencesConfig& config, const RowContext& context);
std::unique_ptr<GenerativeRows> make_rows(const PairsConfig& config, const RowContext& context);

}  // namespace cloze
