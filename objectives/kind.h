#pragma once
// What a kind of objective is to the rest of the program. Without LibTorch.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/boxed.h"
#include "core/config/config_rule.h"

namespace cloze {

class Constraints;
class Objective;
class RowMaker;
class SourceTargetBuilder;
struct BackboneConfig;
struct Generator;
struct HeadContext;
struct MaskingPart;
struct ModelFamily;
struct ObjectiveSetting;
struct RowContext;
struct RowSizes;

/// The options of every objective.
struct ObjectiveTerms {
  double weight = 1.0;
  int64_t from_step = 0;
  int64_t until_step = 0;
  /// The loss counts in optimizer step `step` + 1.
  bool active(int64_t step) const { return step >= from_step && (until_step == 0 || step < until_step); }
};

template <class V>
void describe_terms(V& v, ObjectiveTerms& c, const char* weight) {
  v("weight", c.weight, weight, in_range(0, 1e6));
  v("from_step", c.from_step, "number of optimizer steps before this loss counts", at_least(0));
  v("until_step", c.until_step, "number of optimizer steps after which it no longer counts; 0 = to the end",
    at_least(0));
}

/// The term that keeps the log-sum-exp of the logits near 0. Source: Mesh TensorFlow's
/// softmax_cross_entropy_with_logits; Chowdhery et al. 2022, section 5 (arXiv 2204.02311).
struct ZLoss {
  double z_loss = 0;
};
template <class V>
void describe_z_loss(V& v, ZLoss& c) {
  v("z_loss", c.z_loss, "factor of the squared log-sum-exp of the logits, in training; T5 uses 1e-4", in_range(0, 1));
}

/// The options of every next-token objective.
struct NextTokenTerms : ZLoss {
  double label_smoothing = 0;
  bool transform = false;
};

template <class V, class Config>
void describe_next_token(V& v, Config& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("label_smoothing", c.label_smoothing,
    "share of the label's probability that is spread over all tokens, in training", in_range(0, 1, open_end));
  describe_z_loss(v, c);
}

/// How the probability of a text is made of the probabilities of its tokens.
enum class ScoringForm { pll, pll_word_l2r, pll_span, likelihood, detection };
constexpr auto choices(ScoringForm) {
  return std::array{
      Choice{ScoringForm::pll, "pll", "pseudo-log-likelihood: one token masked at a time (Salazar et al. 2020)"},
      Choice{ScoringForm::pll_word_l2r, "pll-word-l2r",
             "the same with the later tokens of its word masked too (Kauf and Ivanova 2023)"},
      Choice{ScoringForm::pll_span, "pll-span",
             "all scored tokens masked together: the completion of a gap (Kassner et al. 2021)"},
      Choice{ScoringForm::likelihood, "likelihood", "each token given those before it, left to right"},
      Choice{ScoringForm::detection, "detection", "each token judged original by the discriminator of rtd"}};
}

/// The forms of what fills masks.
inline std::vector<ScoringForm> masked_forms() {
  return {ScoringForm::pll, ScoringForm::pll_word_l2r, ScoringForm::pll_span};
}

/// One of the kinds in objectives/kinds.h, which decodes them.
struct ObjectiveVariant;
extern template class Boxed<ObjectiveVariant>;
using ObjectiveConfig = Boxed<ObjectiveVariant>;
using Objectives = std::vector<ObjectiveConfig>;

/// What stands in a source for a corrupted token.
enum class Placeholder { none, sentinel, mask };

/// How the source and the target of a generative objective write a completion and a masked token.
struct SourceTargetLayout {
  /// The layout of a likelihood: the source that stands for a context, and how its target begins.
  enum class Prefix {
    none,         ///< the run gives no likelihood
    source,       ///< source: the context; target: the completion
    sentinel,     ///< source: the context and a sentinel; target: the sentinel and the completion
    placeholder,  ///< source: the context and one placeholder; target: the completion
    repeated,     ///< source: the context and one mask; target: context and completion
    masks         ///< source: the context and a mask for each token; target: context and completion
  };
  Prefix prefix = Prefix::none;
  bool target_has_text = false;  ///< of a masked token: the target is the whole text, not what is masked
  bool one_mask = true;          ///< several masked tokens have one placeholder
  bool pair = false;             ///< both sides are texts of their own, each with its end token
  bool of_sentences = false;     ///< the placeholder is the mask of a sentence
};

/// The shares of the segment pairs with label 1.
struct PairShares {
  double random_next = 0;  ///< B is from another document
  double swapped = 0;      ///< A and B are swapped
  double label_1() const { return random_next + swapped; }
};

/// A kind of objective with its options: the config of each is one, in a folder of its name. Its answers are those of
/// most kinds unless it says otherwise. With LibTorch it has two functions more, found by the type of the config:
///   make_head(config, HeadContext)  its head and its loss (objectives/objective.h)
///   make_rows(config, RowContext)   the maker of its rows, if it makes its own (objectives/rows.h); a generative kind
///                                   has make_builder instead, of sources and targets (objectives/generative_rows.h)
struct ObjectiveKind : ObjectiveTerms {
  /// `mlm`, `nsp`, ...
  virtual std::string name() const = 0;
  /// Forbids what it cannot be trained with.
  virtual void check(const ObjectiveSetting& in, Constraints& constraints) const = 0;
  /// What it predicts, in a few words: `15 % of the tokens: 80 % [MASK], 10 % random, 10 % kept`.
  virtual std::string prediction() const = 0;
  /// Adds to the rows that are expected what it predicts and reads of them, or splits them into kinds.
  virtual void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const = 0;

  // Its loss.
  /// False for a loss of labels 0 and 1, whose baseline is the majority of the labels.
  virtual bool predicts_tokens() const { return true; }
  /// The options of a head that predicts the next token; null: another head. Such heads are called `lm`, so that one
  /// can start from the weights of another.
  virtual const NextTokenTerms* next_token() const { return nullptr; }
  /// The option at this path belongs to the network, which is scored as it was trained.
  virtual bool is_of_network(const std::string&) const { return false; }
  /// The same losses count in optimizer steps `a` + 1 and `b` + 1.
  virtual bool has_same_losses(int64_t a, int64_t b) const { return active(a) == active(b); }
  /// The network that replaces masked tokens before the model reads them.
  virtual std::optional<Generator> generator(const Boxed<ModelFamily>& model) const;

  // Its rows.
  /// Its rows are its own, and other objectives read them; false: it reads whatever rows the others have, or the masked
  /// rows of all such objectives.
  virtual bool makes_rows() const { return false; }
  /// The maskings of which each row draws one, with shares that sum to 1; empty: no masking.
  virtual std::vector<MaskingPart> maskings() const;
  /// The number of versions of each sequence under static masking; 0: dynamic masking, or none.
  virtual int64_t versions() const { return 0; }
  /// It predicts a label of a segment pair from the pooled [CLS]; none: it does not.
  virtual std::optional<PairShares> pairs() const { return {}; }
  /// Segment pairs of data.packing are its own, cut from one running text.
  virtual bool makes_pairs() const { return false; }
  /// Its head reads the pooled first token of this model.
  virtual bool uses_pooler(const Boxed<ModelFamily>&) const { return pairs().has_value(); }
  /// Masked tokens are replaced before the network reads them, and it tells which.
  virtual bool replaces_tokens() const { return false; }
  /// It predicts a masked token from the text on both sides.
  virtual bool fills_masks() const { return false; }
  /// Hidden states predict the token after their own position, in masked rows too.
  virtual bool predicts_shifted() const { return false; }
  /// It draws lengths of spans.
  virtual bool draws_lengths() const;

  // Of sources and targets.
  /// It trains generation: its rows are sources and targets.
  virtual bool is_generative() const { return false; }
  /// Its text is one of prepared sources and targets.
  virtual bool reads_text_pairs() const { return false; }
  /// Special tokens in its rows.
  virtual bool uses_mask() const { return false; }
  virtual bool uses_cls() const { return false; }
  /// What stands in the source of an encoder-decoder for a blank that the decoder fills; none: it fills no blanks.
  virtual Placeholder blank() const { return Placeholder::none; }
  /// In a decoder the target continues the source, with no end token between them.
  virtual bool continues_source() const { return false; }
  /// None: a text is its own target, without a source.
  virtual std::optional<SourceTargetLayout> layout() const { return {}; }

  // How it is scored.
  /// The forms by which it scores a text, the usual one first; empty: its head gives no probabilities of tokens.
  virtual std::vector<ScoringForm> forms(const BackboneConfig&) const { return {}; }
  /// Of the value after the colon of its short form, `mlm:0.4`; empty: it has none.
  virtual const char* rate_key() const { return ""; }
  /// Its form in held-out losses, by which runs are compared whatever their training options.
  virtual ObjectiveConfig standard_form() const = 0;
  /// The objectives that score its losses one by one, each weighted by its share of the rows; empty: it has one loss.
  virtual Objectives separate_losses() const { return {}; }
  /// The objectives that make the rows of its held-out losses; empty: itself.
  virtual Objectives row_makers() const { return {}; }
  /// What speaks against generating with it; empty: nothing.
  virtual std::string generation_warning() const { return ""; }

 protected:
  ~ObjectiveKind() = default;
};

/// The answers of a kind that follow from its type.
template <class Config>
struct KindOf : ObjectiveKind {
  std::string name() const override { return Config::kind; }
  ObjectiveConfig standard_form() const override { return Config{}; }

 protected:
  ~KindOf() = default;
};

/// A kind that trains generation.
template <class Config>
struct GenerativeKind : KindOf<Config>, NextTokenTerms {
  const NextTokenTerms* next_token() const override { return this; }
  bool makes_rows() const override { return true; }
  bool is_generative() const override { return true; }

 protected:
  ~GenerativeKind() = default;
};

}  // namespace cloze
