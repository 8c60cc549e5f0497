#pragma once
// Rows of generative objectives: sources and targets.
#include <concepts>
#include <memory>

#include "objectives/rows.h"
#include "objectives/source_target.h"
#include "objectives/special_tokens.h"

namespace cloze {

/// The text of an example, from one or more documents.
struct ExampleText {
  std::vector<int64_t> tokens{};   ///< with a separator between documents
  std::vector<int64_t> offsets{};  ///< of these in the token store, -1 = a separator
  std::vector<int64_t> sentence_lengths{};
};

/// Makes source and target of the rows of a generative objective. Const members may be called from many threads.
class SourceTargetBuilder {
 public:
  explicit SourceTargetBuilder(const RowContext& context);
  virtual ~SourceTargetBuilder() = default;
  /// How the text is packed into examples, and their length in tokens.
  virtual Packing packing() const;
  virtual uint64_t length() const = 0;
  /// Source and target of one row, with end tokens, each at most data.max_seq_length long. `drawn` receives the random
  /// choices and the number of used tokens.
  virtual SourceTarget build(const Example& example, Stream stream, RowDraws& drawn) const = 0;

 protected:
  const BackboneConfig& model() const { return backbone_of(in_.model); }
  /// Begin tokens of a side: 0 or 1.
  int64_t begins() const { return model().prepend_bos ? 1 : 0; }
  ExampleText read_text(const Example& example) const;
  /// Prepends the model's begin token, and truncates sides that are too long; end tokens are kept.
  void add_bos_and_truncate(SourceTarget& row) const;

  const RowContext& in_;
  int64_t eos_;
  NoiseIds ids_;
};

/// Rows whose source is a corrupted text. If noise makes a row too long, the text is shortened and corrupted again.
class CorruptionBuilder : public SourceTargetBuilder {
 public:
  using SourceTargetBuilder::SourceTargetBuilder;
  uint64_t length() const override;
  SourceTarget build(const Example& example, Stream stream, RowDraws& drawn) const override;

 protected:
  /// Lengths of source and target, end tokens included.
  struct Lengths {
    double source, target;
  };
  /// Lengths for a text of `tokens` tokens; if random, three standard deviations above the mean.
  virtual Lengths expected_lengths(int64_t tokens) const = 0;
  /// First estimate of the longest text for sides of `max_length`; expected_lengths() decides.
  virtual int64_t max_text_length(int64_t max_length) const { return max_length - 1; }
  /// Texts are shortened by whole sentences.
  virtual bool keeps_sentences() const { return false; }
  /// The row of a text. `drawn` receives the random choices.
  virtual SourceTarget corrupt(const ExampleText& text, Stream& stream, RowDraws& drawn) const = 0;

 private:
  /// The length that max_seq_length limits: of the longer side; for decoder-only models the sum of both.
  double total_length(const Lengths& lengths) const;
  bool fits(double length) const;
  /// Drops the end of `text`, which gave a row of this length.
  void shorten(ExampleText& text, double length) const;
};

/// The rows of a generative objective, whose folder has its builder:
///   std::unique_ptr<SourceTargetBuilder> make_builder(const Config& config, const RowContext& context);
/// which throws ConfigError if the tokenizer or the prepared tokens do not fit it.
std::unique_ptr<RowMaker> make_generative_rows(std::unique_ptr<SourceTargetBuilder> builder, const RowContext& context);
template <class Config>
  requires std::derived_from<Config, GenerativeKind<Config>>
std::unique_ptr<RowMaker> make_rows(const Config& config, const RowContext& context) {
  return make_generative_rows(make_builder(config, context), context);
}

/// The batch of rows. Encoder-decoders: the encoder's input is the source, the decoder's the target shifted right by
/// one. Decoder-only models: the input is source and target concatenated, the labels are the target.
Batch source_target_batch(const ModelConfig& config, int64_t filler, const std::vector<SourceTarget>& rows);

}  // namespace cloze
