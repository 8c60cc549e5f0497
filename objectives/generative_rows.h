#pragma once
// Rows of generative objectives: sources and targets.
#include <memory>

#include "objectives/noising.h"
#include "objectives/rows.h"

namespace cloze {

/// The generative objective among `objectives`, or null.
const ObjectiveConfig* generative_of(const Objectives& objectives);

/// Sets a model's special token ids to those of the tokenizer that it is trained with.
void take_special_ids(ModelConfig& model, const SpecialIds& special);

/// The text of an example, from one or more documents.
struct ExampleText {
  std::vector<int64_t> tokens{};   ///< with a separator between documents
  std::vector<int64_t> offsets{};  ///< of these in the token store, -1 = a separator
  std::vector<int64_t> sentence_lengths{};
};

/// Makes source and target of the rows of a generative objective. Has scratch buffers: one instance per thread.
class SourceTargetBuilder {
 public:
  explicit SourceTargetBuilder(const RowContext& context);
  virtual ~SourceTargetBuilder() = default;
  /// How the text is packed into examples, and their length in tokens.
  virtual Packing packing() const;
  virtual uint64_t length() const = 0;
  /// Source and target of one row, with end tokens, each at most data.max_seq_length long. `infilled` receives the
  /// statistics of text_infilling.
  virtual void build(const Example& example, Stream stream, SourceTarget& row, Infilled* infilled) = 0;
  /// Tokens of the example's text in the last row, as source or target.
  int64_t used_tokens() const { return used_tokens_; }
  /// The batch of rows. Encoder-decoders: the encoder's input is the source, the decoder's the target shifted right by
  /// one. Decoder-only models: the input is source and target concatenated, the labels are the target.
  Batch batch(const std::vector<SourceTarget>& rows) const;

 protected:
  /// Reads the text of an example into `text_`.
  void read_text(const Example& example);
  /// Prepends the model's begin token, and truncates sides that are too long; end tokens are kept.
  void add_bos_and_truncate(SourceTarget& row) const;

  const RowContext& context_;
  const DataConfig& data_;
  const BackboneConfig& model_;
  DecodingIds decoding_;
  const TokenStore& store_;
  const Vocabulary& vocabulary_;
  NoiseIds ids_;
  int64_t eos_;
  int64_t used_tokens_ = 0;
  ExampleText text_;
};

/// Rows whose source is a corrupted text. If noise makes a row too long, the text is shortened and corrupted again.
class CorruptionBuilder : public SourceTargetBuilder {
 public:
  using SourceTargetBuilder::SourceTargetBuilder;
  uint64_t length() const override;
  void build(const Example& example, Stream stream, SourceTarget& row, Infilled* infilled) override;

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
  /// Makes the row from `text_`.
  virtual void corrupt(Stream& stream, SourceTarget& row, Infilled* infilled) = 0;

 private:
  /// The length that max_seq_length limits: of the longer side; for decoder-only models the sum of both.
  double total_length(const Lengths& lengths) const;
  bool fits(double length) const;
  /// Drops the end of `text_`, which gave a row of this length.
  void shorten(double length);
};

/// The builder of a generative objective. Throws ConfigError if the tokenizer or the prepared tokens do not fit it.
std::unique_ptr<SourceTargetBuilder> make_source_target_builder(const ObjectiveConfig& objective,
                                                                const RowContext& context);
std::unique_ptr<SourceTargetBuilder> make_builder(const ClmConfig& config, const RowContext& context);
std::unique_ptr<SourceTargetBuilder> make_builder(const SpanCorruptionConfig& config, const RowContext& context);
std::unique_ptr<SourceTargetBuilder> make_builder(const DenoisingConfig& config, const RowContext& context);
std::unique_ptr<SourceTargetBuilder> make_builder(const GapSentencesConfig& config, const RowContext& context);
std::unique_ptr<SourceTargetBuilder> make_builder(const PairsConfig& config, const RowContext& context);

}  // namespace cloze
