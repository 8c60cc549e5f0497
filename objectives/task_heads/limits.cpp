#include <algorithm>
#include <numeric>
#include <set>

#include "core/text.h"
#include "models/families/families.h"
#include "models/layers/cost.h"
#include "objectives/kinds.h"
#include "objectives/limits.h"

namespace cloze {

int64_t outputs_of(TaskKind task, const TaskHeadTerms& terms) {
  switch (task) {
    case TaskKind::classification:
    case TaskKind::multilabel:
    case TaskKind::tagging:
      return static_cast<int64_t>(terms.labels.size());
    case TaskKind::regression:
    case TaskKind::choice:
      return 1;
    case TaskKind::spans:
      return 2;
  }
  return 0;
}

int64_t layers_below_head(const ModelConfig& model) {
  const auto& base = backbone_of(model);
  const auto* both = base.is_encoder_decoder() ? as<EncoderDecoderConfig>(model) : nullptr;
  return both ? both->decoder_layers() : base.num_hidden_layers;
}

std::vector<int64_t> probed_layers(const TaskHeadTerms& terms, const ModelConfig& model) {
  auto layers = terms.layer;
  if (layers == std::vector{every_layer}) {
    layers.resize(static_cast<size_t>(layers_below_head(model) + 1));
    std::iota(layers.begin(), layers.end(), 0);
  }
  const std::set<int64_t> distinct(layers.begin(), layers.end());
  return {distinct.begin(), distinct.end()};
}

PublishedHead head_of(const TaskHeadTerms& terms, TaskKind task, const ModelConfig& model) {
  auto head = published_head(model, task, terms.head);
  if (!terms.layer.empty())
    head = {.token = head.token, .mean = head.mean, .weights = head.weights, .output_range = head.output_range};
  if (terms.classifier_dropout >= 0) head.dropout = terms.classifier_dropout;
  return head;
}

const TaskHeadTerms* task_head_of(const ObjectiveConfig& objective, TaskKind* task) {
  return std::visit(
      [&](const auto& own) -> const TaskHeadTerms* {
        if constexpr (std::derived_from<std::decay_t<decltype(own)>, TaskHeadTerms>) {
          if (task) *task = own.task;
          return &own;
        }
        return nullptr;
      },
      *objective);
}

namespace {

template <class Config>
ObjectiveConfig objective_with(const TaskHeadTerms& terms) {
  Config config;
  static_cast<TaskHeadTerms&>(config) = terms;
  return config;
}

}  // namespace

ObjectiveConfig task_head_objective(TaskKind task, const TaskHeadTerms& terms) {
  switch (task) {
    case TaskKind::classification:
      return objective_with<ClassificationConfig>(terms);
    case TaskKind::multilabel:
      return objective_with<MultilabelConfig>(terms);
    case TaskKind::regression:
      return objective_with<RegressionConfig>(terms);
    case TaskKind::tagging:
      return objective_with<TaggingConfig>(terms);
    case TaskKind::spans:
      return objective_with<SpansConfig>(terms);
    case TaskKind::choice:
      break;
  }
  return objective_with<ChoiceConfig>(terms);
}

namespace {

bool has_labels(TaskKind task) {
  return task == TaskKind::classification || task == TaskKind::multilabel || task == TaskKind::tagging;
}

void check_labels(TaskKind task, const TaskHeadTerms& terms, Limits& limits) {
  const auto& labels = terms.labels;
  limits.forbid(labels.empty(), "objective ", task,
                " has no labels; name them in the order of their ids, for instance `labels: [negative, positive]`");
  limits.forbid(task == TaskKind::classification && labels.size() == 1, "objective classification has the one label '",
                labels.empty() ? "" : labels[0], "', which every text would get; name the others");
  std::set<std::string> seen;
  const auto again =
      std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return !seen.insert(label).second; });
  limits.forbid(again != labels.end(), "objective ", task, " names the label '", again == labels.end() ? "" : *again,
                "' twice; each id has a name of its own");
  const auto& weights = terms.class_weights;
  limits.forbid(!weights.empty() && weights.size() != labels.size(), "objective ", task, " has ", weights.size(),
                " class_weights for ", labels.size(), " labels; give one for each");
  const bool all_zero =
      !weights.empty() && std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; });
  limits.forbid(all_zero, "objective ", task, ": all class_weights are 0; give at least one label a weight");
}

void check_design(TaskKind task, const TaskHeadTerms& terms, const ObjectiveSetting& in, Limits& limits) {
  const auto kind = kind_of(in.model);
  const bool of_state = terms.head != HeadDesign::huggingface && terms.head != HeadDesign::original;
  limits.forbid(of_state && !reads_texts(task), "objective ", task, " predicts for each token, and head ", terms.head,
                " is one state of a text; choose head: huggingface");
  const bool joint = kind == ElectraConfig::kind || kind == XlnetConfig::kind;
  limits.forbid(task == TaskKind::spans && terms.head == HeadDesign::original && joint,
                "objective spans has no head original for ", kind,
                ", whose authors predict the end of an answer from its start; choose head: huggingface");
  const auto head = published_head(in.model, task, terms.head);
  const bool blind = reads_texts(task) && !head.mean && !is_of_babylm(terms.head) && head.token == ClassToken::first &&
                     in.backbone().is_decoder();
  limits.forbid(blind, "objective ", task,
                " reads the first token, which in a decoder is the same for every text; choose head: last or mean");
}

}  // namespace

namespace {

void check_probes(TaskKind task, const TaskHeadTerms& terms, const ObjectiveSetting& in, Limits& limits) {
  if (terms.layer.empty()) return;
  limits.forbid(task == TaskKind::spans,
                "objective spans has no probe of a layer: the tokens of its windows are too many to keep their states; "
                "leave layer out");
  const auto last = layers_below_head(in.model), asked = probed_layers(terms, in.model).back();
  limits.forbid(asked > last, "objective ", task, ": layer ", asked,
                " does not exist; the network has layers 0 (its embeddings) to ", last);
}

}  // namespace

void check_task_head(TaskKind task, const TaskHeadTerms& terms, const ObjectiveSetting& in, Limits& limits) {
  forbid_companions(name_of(task), in, limits);
  forbid_prefix_lm(name_of(task), in, limits);
  if (has_labels(task)) check_labels(task, terms, limits);
  check_design(task, terms, in, limits);
  check_probes(task, terms, in, limits);
  limits.forbid(task == TaskKind::tagging && kind_of(in.model) == T5Config::kind && in.backbone().is_encoder_decoder(),
                "objective tagging reads the encoder of t5 alone; set model.architecture: encoder");
  const auto& scale = terms.scale;
  limits.forbid(!scale.empty() && (scale.size() != 2 || scale[0] >= scale[1]),
                "objective regression: scale must be the lowest and the highest target, for instance [0, 5]");
}

std::string predicted_by(TaskKind task, const TaskHeadTerms& terms) {
  const auto labels = terms.labels.size();
  switch (task) {
    case TaskKind::classification:
      return concat("which of ", labels, " labels each text has");
    case TaskKind::multilabel:
      return concat("which of ", labels, " labels each text has, any number of them");
    case TaskKind::regression:
      return "a number for each text";
    case TaskKind::tagging:
      return concat("which of ", labels, " tags each word has");
    case TaskKind::spans:
      return "the first and the last token of each answer";
    case TaskKind::choice:
      return "which candidate of each item is right";
  }
  return "";
}

void expect_task_rows(TaskKind task, const TaskHeadTerms& terms, const ObjectiveSetting& in,
                      std::vector<RowSizes>& rows) {
  const bool one_state = reads_texts(task) && terms.head != HeadDesign::mean && terms.layer.empty();
  for (auto& row : rows) {
    row.read += one_state ? 1 : row.length;
    if (in.backbone().is_encoder_decoder()) row.target_length = row.length;
  }
}

}  // namespace cloze
