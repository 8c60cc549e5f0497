#include <algorithm>
#include <numeric>
#include <set>

#include "core/text.h"
#include "models/families/families.h"
#include "models/layers/cost.h"
#include "objectives/kinds.h"
#include "objectives/constraints.h"

namespace cloze {

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

PublishedHead head_of(const TaskHeadTerms& terms, HeadUse use, const ModelConfig& model) {
  auto head = published_head(model, use, terms.head);
  if (!terms.layer.empty())
    head = {.token = head.token, .mean = head.mean, .weights = head.weights, .output_range = head.output_range};
  if (terms.classifier_dropout >= 0) head.dropout = terms.classifier_dropout;
  return head;
}

const TaskHead* task_head_of(const ObjectiveConfig& objective) {
  return dynamic_cast<const TaskHead*>(&as_kind(objective));
}

bool learns_task(const ObjectiveConfig& objective) {
  return task_head_of(objective) || as_kind(objective).reads_text_pairs();
}

namespace {

template <class... Config>
std::vector<ObjectiveConfig> heads_with(const TaskHeadTerms& terms, Config... configs) {
  ((static_cast<TaskHeadTerms&>(configs) = terms), ...);
  return {configs...};
}

}  // namespace

std::vector<ObjectiveConfig> task_heads(const TaskHeadTerms& terms) {
  return heads_with(terms, ClassificationConfig(), MultilabelConfig(), RegressionConfig(), TaggingConfig(),
                    SpansConfig(), ChoiceConfig());
}

ObjectiveConfig task_head_objective(const std::string& kind, const TaskHeadTerms& terms) {
  auto heads = task_heads(terms);
  const auto found = std::ranges::find(heads, kind, [](const auto& head) { return task_head_of(head)->name(); });
  return found == heads.end() ? heads.front() : *found;
}

std::string ClassificationConfig::prediction() const {
  return concat("which of ", labels.size(), " labels each text has");
}
std::string MultilabelConfig::prediction() const {
  return concat("which of ", labels.size(), " labels each text has, any number of them");
}
std::string TaggingConfig::prediction() const { return concat("which of ", labels.size(), " tags each word has"); }

namespace {

void check_labels(const TaskHead& head, Constraints& constraints) {
  const auto kind = head.name();
  const auto& labels = head.labels;
  constraints.forbid(
      labels.empty(), "objective ", kind,
      " has no labels; name them in the order of their ids, for instance `labels: [negative, positive]`");
  constraints.forbid(kind == ClassificationConfig::kind && labels.size() == 1, "objective ", kind,
                     " has the one label '", labels.empty() ? "" : labels[0],
                     "', which every text would get; name the others");
  std::set<std::string> seen;
  const auto again =
      std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return !seen.insert(label).second; });
  constraints.forbid(again != labels.end(), "objective ", kind, " names the label '",
                     again == labels.end() ? "" : *again, "' twice; each id has a name of its own");
  const auto& weights = head.class_weights;
  constraints.forbid(!weights.empty() && weights.size() != labels.size(), "objective ", kind, " has ", weights.size(),
                     " class_weights for ", labels.size(), " labels; give one for each");
  const bool all_zero =
      !weights.empty() && std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; });
  constraints.forbid(all_zero, "objective ", kind, ": all class_weights are 0; give at least one label a weight");
}

void check_design(const TaskHead& terms, const ObjectiveSetting& in, Constraints& constraints) {
  const auto family = kind_of(in.model), kind = terms.name();
  const auto use = terms.use();
  const bool of_state = terms.head != HeadDesign::huggingface && terms.head != HeadDesign::original;
  constraints.forbid(of_state && !reads_texts(use), "objective ", kind, " predicts for each token, and head ",
                     terms.head, " is one state of a text; choose head: huggingface");
  const bool joint = family == ElectraConfig::kind || family == XlnetConfig::kind;
  constraints.forbid(use == HeadUse::spans && terms.head == HeadDesign::original && joint, "objective ", kind,
                     " has no head original for ", family,
                     ", whose authors predict the end of an answer from its start; choose head: huggingface");
  const auto head = published_head(in.model, use, terms.head);
  const bool blind = reads_texts(use) && !head.mean && !is_of_babylm(terms.head) && head.token == ClassToken::first &&
                     in.backbone().is_decoder();
  constraints.forbid(
      blind, "objective ", kind,
      " reads the first token, which in a decoder is the same for every text; choose head: last or mean");
}

void check_probes(const TaskHead& terms, const ObjectiveSetting& in, Constraints& constraints) {
  if (terms.layer.empty()) return;
  constraints.forbid(
      terms.use() == HeadUse::spans, "objective ", terms.name(),
      " has no probe of a layer: the tokens of its windows are too many to keep their states; leave layer "
      "out");
  const auto last = layers_below_head(in.model), probed = probed_layers(terms, in.model).back();
  constraints.forbid(probed > last, "objective ", terms.name(), ": layer ", probed,
                     " does not exist; the network has layers 0 (its embeddings) to ", last);
}

}  // namespace

void TaskHead::check(const ObjectiveSetting& in, Constraints& constraints) const {
  const auto kind = name();
  forbid_companions(kind.c_str(), in, constraints);
  forbid_prefix_lm(kind.c_str(), in, constraints);
  if (has_labels()) check_labels(*this, constraints);
  check_design(*this, in, constraints);
  check_probes(*this, in, constraints);
  constraints.forbid(
      use() == HeadUse::tokens && kind_of(in.model) == T5Config::kind && in.backbone().is_encoder_decoder(),
      "objective ", kind, " reads the encoder of t5 alone; set model.architecture: encoder");
  constraints.forbid(!scale.empty() && (scale.size() != 2 || scale[0] >= scale[1]), "objective ", kind,
                     ": scale must be the lowest and the highest target, for instance [0, 5]");
}

void TaskHead::expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const {
  const bool one_state = reads_texts(use()) && head != HeadDesign::mean && layer.empty();
  for (auto& row : rows) {
    row.read += one_state ? 1 : row.length;
    if (in.backbone().is_encoder_decoder()) row.target_length = row.length;
  }
}

}  // namespace cloze
