#pragma once
// The objectives of tasks: labels of texts, values, tags, spans and choices.
#include <concepts>

#include "objectives/kind.h"
#include "objectives/task_heads/published_heads.h"

namespace cloze {

/// The options of the heads of tasks; a kind has those that it describes.
struct TaskHeadTerms {
  HeadDesign head = HeadDesign::huggingface;
  std::vector<int64_t> layer{};         ///< whose states have a linear probe each; empty: the last, and the head above
  double classifier_dropout = -1;       ///< -1: that of the published head
  std::vector<std::string> labels{};    ///< names, by id
  std::vector<double> class_weights{};  ///< by label; empty: ones
  double label_smoothing = 0;
  std::vector<double> scale{};  ///< the lowest and the highest target; empty: targets as they are
};

/// The number of outputs of a head for each text, token or candidate.
int64_t outputs_of(TaskKind task, const TaskHeadTerms& terms);
/// `layer: all`.
inline constexpr int64_t every_layer = -1;
/// The number of layers of the stack whose states a head reads: of its decoder in an encoder-decoder.
int64_t layers_below_head(const ModelConfig& model);
/// The layers whose states have a probe, ascending; 0 = the embeddings.
std::vector<int64_t> probed_layers(const TaskHeadTerms& terms, const ModelConfig& model);
/// The head with the dropout that the options give it. Of probes: the state that each reads, and its output alone.
PublishedHead head_of(const TaskHeadTerms& terms, TaskKind task, const ModelConfig& model);
/// The objective as the options of a task's head, or null; `task` receives its kind.
const TaskHeadTerms* task_head_of(const ObjectiveConfig& objective, TaskKind* task = nullptr);

/// The objective of a task of this kind.
ObjectiveConfig task_head_objective(TaskKind task, const TaskHeadTerms& terms);

void check_task_head(TaskKind task, const TaskHeadTerms& terms, const ObjectiveSetting& in, Limits& limits);
std::string predicted_by(TaskKind task, const TaskHeadTerms& terms);
void expect_task_rows(TaskKind task, const TaskHeadTerms& terms, const ObjectiveSetting& in,
                      std::vector<RowSizes>& rows);

/// A kind that predicts what a task asks for, from rows of the task's own (labelled_rows.h).
template <class Config>
struct TaskHeadKind : KindOf<Config>, TaskHeadTerms {
  void check(const ObjectiveSetting& in, Limits& limits) const override {
    check_task_head(Config::task, *this, in, limits);
  }
  std::string prediction() const override { return predicted_by(Config::task, *this); }
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override {
    expect_task_rows(Config::task, *this, in, rows);
  }
  bool makes_rows() const override { return true; }
  bool predicts_tokens() const override { return false; }
  bool is_of_network(const std::string&) const override { return true; }
  bool uses_pooler(const Boxed<ModelFamily>& model) const override {
    return head_of(*this, Config::task, model).pooler;
  }
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
  static constexpr TaskKind task = TaskKind::classification;
};
template <class V>
void describe(V& v, ClassificationConfig& c) {
  describe_classes(v, c);
}

/// Any number of labels of a text or of a pair of texts: binary cross entropy, mean over all texts and labels.
struct MultilabelConfig final : TaskHeadKind<MultilabelConfig> {
  static constexpr const char* kind = "multilabel";
  static constexpr TaskKind task = TaskKind::multilabel;
};
template <class V>
void describe(V& v, MultilabelConfig& c) {
  describe_labels(v, c);
}

/// A number for a text or for a pair of texts: squared error.
struct RegressionConfig final : TaskHeadKind<RegressionConfig> {
  static constexpr const char* kind = "regression";
  static constexpr TaskKind task = TaskKind::regression;
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
  static constexpr TaskKind task = TaskKind::tagging;
};
template <class V>
void describe(V& v, TaggingConfig& c) {
  describe_classes(v, c);
}

/// The first and the last token of an answer: the mean of two cross entropies over the real tokens of the row.
/// Differs: transformers has the softmax run over padding too, so that its loss depends on the batch.
struct SpansConfig final : TaskHeadKind<SpansConfig> {
  static constexpr const char* kind = "spans";
  static constexpr TaskKind task = TaskKind::spans;
};
template <class V>
void describe(V& v, SpansConfig& c) {
  describe_task_head(v, c);
}

/// One of an item's candidates, each a row with one score: cross entropy over the candidates.
struct ChoiceConfig final : TaskHeadKind<ChoiceConfig> {
  static constexpr const char* kind = "choice";
  static constexpr TaskKind task = TaskKind::choice;
};
template <class V>
void describe(V& v, ChoiceConfig& c) {
  describe_task_head(v, c);
}

std::shared_ptr<Objective> make_task_head(TaskKind task, const ObjectiveTerms& of_all, const TaskHeadTerms& terms,
                                          const HeadContext& in);
template <std::derived_from<TaskHeadTerms> Config>
std::shared_ptr<Objective> make_head(const Config& config, const HeadContext& in) {
  return make_task_head(Config::task, config, config, in);
}

/// The rows of the prepared task that the context's tokens are, of the part that its stage names. Throws ConfigError
/// for a prepared text, which has no labels.
std::unique_ptr<RowMaker> make_task_rows(const std::string& kind, const RowContext& context);
template <std::derived_from<TaskHeadTerms> Config>
std::unique_ptr<RowMaker> make_rows(const Config&, const RowContext& context) {
  return make_task_rows(Config::kind, context);
}

}  // namespace cloze
