#pragma once
// The objectives of labelled rows: labels of texts, values, tags, spans and choices. Each is a loss on the states of a
// batch that has its labels; who makes such rows, of which texts, is a matter of the houses above (finetune/).
#include <concepts>

#include "objectives/kind.h"
#include "objectives/task_heads/published_heads.h"

namespace cloze {

class HeadKind;

/// The options of these heads; a kind has those that it describes.
struct TaskHeadTerms {
  HeadDesign head = HeadDesign::huggingface;
  std::vector<int64_t> layer{};         ///< whose states have a linear probe each; empty: the last, and the head above
  double classifier_dropout = -1;       ///< -1: that of the published head
  std::vector<std::string> labels{};    ///< names, by id
  std::vector<double> class_weights{};  ///< by label; empty: ones
  double label_smoothing = 0;
  std::vector<double> scale{};  ///< the lowest and the highest target; empty: targets as they are
};

/// `layer: all`.
inline constexpr int64_t every_layer = -1;
/// The number of layers of the stack whose states a head reads: of its decoder in an encoder-decoder.
int64_t layers_below_head(const ModelConfig& model);
/// The layers whose states have a probe, ascending; 0 = the embeddings.
std::vector<int64_t> probed_layers(const TaskHeadTerms& terms, const ModelConfig& model);
/// The head with the dropout that the options give it. Of probes: the state that each reads, and its output alone.
PublishedHead head_of(const TaskHeadTerms& terms, HeadUse use, const ModelConfig& model);

/// A kind that predicts labels of its rows.
struct TaskHead : ObjectiveKind, TaskHeadTerms {
  virtual HeadUse use() const { return HeadUse::texts; }
  /// The number of its outputs for each text, token or candidate.
  virtual int64_t outputs() const { return static_cast<int64_t>(labels.size()); }
  /// Each of its outputs but one, or two of spans, is a label with a name.
  virtual bool has_labels() const { return true; }

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool makes_rows() const override { return true; }
  bool predicts_tokens() const override { return false; }
  bool is_of_network(const std::string&) const override { return true; }
  bool uses_pooler(const Boxed<ModelFamily>& model) const override { return head_of(*this, use(), model).pooler; }

 protected:
  ~TaskHead() = default;
};

/// The objective as the head of a task, or null.
const TaskHead* task_head_of(const ObjectiveConfig& objective);
/// Whether an objective is learned from the rows of a task: the head of one, or what generates targets.
bool learns_task(const ObjectiveConfig& objective);
/// An objective of each kind with these options, classification first.
std::vector<ObjectiveConfig> task_heads(const TaskHeadTerms& terms = {});
/// The one of this kind; of another kind classification.
ObjectiveConfig task_head_objective(const std::string& kind, const TaskHeadTerms& terms);

/// The answers of a head that follow from its type.
template <class Config>
struct TaskHeadKind : TaskHead {
  std::string name() const override { return Config::kind; }
  /// The same labels, without what changes the training alone.
  ObjectiveConfig standard_form() const override {
    auto plain = static_cast<const Config&>(*this);
    plain.label_smoothing = 0;
    plain.class_weights.clear();
    return plain;
  }

 protected:
  ~TaskHeadKind() = default;
};

template <class V, class Config>
void describe_task_head(V& v, Config& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("head", c.head, "the layers between the states and the logits");
  v("layer", c.layer,
    "with init.probe: the layers whose states a linear head reads, one for each, with the pooling of `head`; 0 = the "
    "embeddings, all = every layer, [] = the layers of `head` read the last states",
    or_none({.low = 0, .named = {{"all", {every_layer}}}}));
  v("classifier_dropout", c.classifier_dropout,
    "dropout in the head; -1 = that of the published head, which probes of a layer have not",
    in_range(-1, 1, open_end));
}
template <class V, class Config>
void describe_labels(V& v, Config& c) {
  describe_task_head(v, c);
  v("labels", c.labels, "the names of the labels, in the order of their ids");
}
template <class V, class Config>
void describe_classes(V& v, Config& c) {
  describe_labels(v, c);
  v("class_weights", c.class_weights,
    "factors of the losses, by label; a step divides by the sum of those of its items; [] = ones", at_least(0));
  v("label_smoothing", c.label_smoothing,
    "share of the label's probability that is spread over all labels, in training", in_range(0, 1, open_end));
}

/// One label of a text or of a pair of texts: cross entropy.
struct ClassificationConfig final : TaskHeadKind<ClassificationConfig> {
  static constexpr const char* kind = "classification";
  std::string prediction() const override;
};
template <class V>
void describe(V& v, ClassificationConfig& c) {
  describe_classes(v, c);
}

/// Any number of labels of a text or of a pair of texts: binary cross entropy, mean over all texts and labels.
struct MultilabelConfig final : TaskHeadKind<MultilabelConfig> {
  static constexpr const char* kind = "multilabel";
  std::string prediction() const override;
};
template <class V>
void describe(V& v, MultilabelConfig& c) {
  describe_labels(v, c);
}

/// A number for a text or for a pair of texts: squared error.
struct RegressionConfig final : TaskHeadKind<RegressionConfig> {
  static constexpr const char* kind = "regression";
  int64_t outputs() const override { return 1; }
  bool has_labels() const override { return false; }
  std::string prediction() const override { return "a number for each text"; }
};
template <class V>
void describe(V& v, RegressionConfig& c) {
  describe_task_head(v, c);
  v("scale", c.scale,
    "the lowest and the highest target, mapped to 0 and 1 in training, and back in predictions; [] = targets as they "
    "are");
}

/// A tag for each word, at its first token: cross entropy.
struct TaggingConfig final : TaskHeadKind<TaggingConfig> {
  static constexpr const char* kind = "tagging";
  HeadUse use() const override { return HeadUse::tokens; }
  std::string prediction() const override;
};
template <class V>
void describe(V& v, TaggingConfig& c) {
  describe_classes(v, c);
}

/// The first and the last token of an answer: the mean of two cross entropies over the real tokens of the row.
/// Differs: transformers has the softmax run over padding too, so that its loss depends on the batch.
struct SpansConfig final : TaskHeadKind<SpansConfig> {
  static constexpr const char* kind = "spans";
  HeadUse use() const override { return HeadUse::spans; }
  int64_t outputs() const override { return 2; }
  bool has_labels() const override { return false; }
  std::string prediction() const override { return "the first and the last token of each answer"; }
};
template <class V>
void describe(V& v, SpansConfig& c) {
  describe_task_head(v, c);
}

/// One of an item's candidates, each a row with one score: cross entropy over the candidates.
struct ChoiceConfig final : TaskHeadKind<ChoiceConfig> {
  static constexpr const char* kind = "choice";
  HeadUse use() const override { return HeadUse::candidates; }
  int64_t outputs() const override { return 1; }
  bool has_labels() const override { return false; }
  std::string prediction() const override { return "which candidate of each item is right"; }
};
template <class V>
void describe(V& v, ChoiceConfig& c) {
  describe_task_head(v, c);
}

// With LibTorch: what each kind computes, one in a file of its name (head_kind.h).
std::shared_ptr<HeadKind> make_head_kind(const ClassificationConfig& config);
std::shared_ptr<HeadKind> make_head_kind(const MultilabelConfig& config);
std::shared_ptr<HeadKind> make_head_kind(const RegressionConfig& config);
std::shared_ptr<HeadKind> make_head_kind(const TaggingConfig& config);
std::shared_ptr<HeadKind> make_head_kind(const SpansConfig& config);
std::shared_ptr<HeadKind> make_head_kind(const ChoiceConfig& config);

/// The head of this kind; with `layer`, as probes of layers (layer_probes.h).
std::shared_ptr<Objective> make_task_head(const TaskHead& config, std::shared_ptr<HeadKind> kind,
                                          const HeadContext& in);
template <std::derived_from<TaskHead> Config>
std::shared_ptr<Objective> make_head(const Config& config, const HeadContext& in) {
  return make_task_head(config, make_head_kind(config), in);
}

/// Throws ConfigError: the rows of a prepared text have no labels.
std::unique_ptr<RowMaker> refuse_text(const TaskHead& config, const RowContext& context);
template <std::derived_from<TaskHead> Config>
std::unique_ptr<RowMaker> make_rows(const Config& config, const RowContext& context) {
  return refuse_text(config, context);
}

}  // namespace cloze
