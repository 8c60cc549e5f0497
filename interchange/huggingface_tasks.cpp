#include "interchange/huggingface_tasks.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface/json_file.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

using huggingface::Family;
using huggingface::Head;
using huggingface::heads_of;
using nlohmann::json;

namespace {

/// The one objective that is a head of a task, or null.
const TaskHead* head_in(const RunConfig& run) {
  return run.objectives.size() == 1 ? task_head_of(run.objectives[0]) : nullptr;
}

/// The names of so many labels that have none of their own.
std::vector<std::string> numbered_labels(int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(concat("LABEL_", i));
  return labels;
}

/// Throws ConfigError for two ids with one name: what is said of one would be said of the other.
void require_distinct(const std::vector<std::string>& labels, const std::string& path) {
  std::map<std::string, size_t> ids;
  for (size_t id = 0; id < labels.size(); ++id) {
    const auto [first, is_new] = ids.emplace(labels[id], id);
    require<ConfigError>(is_new, path, ": id2label gives the ids ", first->second, " and ", id, " one name, '",
                         labels[id], "'; give one of them another name");
  }
}

/// The names by id of `id2label`. Where num_labels says how many labels there are, and these are not as many, they have
/// no names.
///
/// default_labels   where the file says nothing of them
/// Source: transformers, configuration_utils.py.
std::vector<std::string> labels_in(const json& config, int64_t default_labels, const std::string& path) {
  constexpr int64_t most_labels = 1'000'000;
  const auto id2label = config.find("id2label");
  require<ConfigError>(id2label == config.end() || id2label->is_object() || id2label->is_null(), path,
                       ": id2label is no map, and transformers reads none; write {\"0\": NAME, \"1\": NAME}");
  const bool has_names = id2label != config.end() && !id2label->empty();
  const auto names = has_names ? static_cast<int64_t>(id2label->size()) : int64_t{0};
  int64_t count = has_names ? names : default_labels;
  take(config, "num_labels", count, path);
  require<ConfigError>(count >= 1 && count <= most_labels, path, ": num_labels is ", count, ", must be from 1 to ",
                       most_labels);
  if (has_names && count != names)
    log_warning("import", concat(path, ": num_labels is ", count, ", and id2label has ",
                                 counted(static_cast<uint64_t>(names), "name"),
                                 "; as in transformers, the labels are called LABEL_0 to LABEL_", count - 1));
  if (count != names) return numbered_labels(count);
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) {
    const auto name = id2label->find(std::to_string(i));
    require<ConfigError>(name != id2label->end() && name->is_string(), path, ": id2label has ", count,
                         " entries, and none for id ", i, " that is a text; number the labels from 0");
    labels.push_back(name->get<std::string>());
  }
  require_distinct(labels, path);
  return labels;
}

/// label2id, where it has the same names, gives them the same ids.
void check_ids(const json& config, const std::vector<std::string>& labels, const std::string& path) {
  const auto ids = config.find("label2id");
  if (ids == config.end() || !ids->is_object() || ids->size() != labels.size()) return;
  const bool same_names =
      std::all_of(labels.begin(), labels.end(), [&](const auto& label) { return ids->contains(label); });
  for (size_t i = 0; same_names && i < labels.size(); ++i)
    require<ConfigError>((*ids)[labels[i]] == i, path, ": id2label gives '", labels[i], "' the id ", i, ", label2id ",
                         json_text((*ids)[labels[i]]), "; make them agree");
}

/// What the head of texts is trained for: by problem_type, else by the number of labels.
std::string kind_of_texts(const json& config, size_t labels, const std::string& path) {
  static const std::map<std::string, std::string> kinds{{"single_label_classification", "classification"},
                                                        {"multi_label_classification", "multilabel"},
                                                        {"regression", "regression"}};
  std::string type = labels == 1 ? "regression" : "single_label_classification";
  take(config, "problem_type", type, path);
  const auto kind = kinds.find(type);
  require<ConfigError>(kind != kinds.end(), path, ": problem_type is '", type,
                       "'; single_label_classification, multi_label_classification and regression can be imported");
  require<ConfigError>(kind->second != "regression" || labels == 1, path, ": problem_type is regression for ", labels,
                       " values; heads of one value can be imported");
  require<ConfigError>(kind->second != "classification" || labels > 1, path, ": problem_type is ", type,
                       " for one label, whose probability would always be 1; write regression, or "
                       "multi_label_classification");
  return kind->second;
}

bool has_names(const TaskHead& head) {
  const bool has_value = head.name() == RegressionConfig::kind;
  return head.use() == HeadUse::tokens || (head.use() == HeadUse::texts && !has_value);
}

/// The keys by which a class might compute another head of its name; each of them has one value here.
void check_summary(const json& config, const std::string& family, HeadUse use, const std::string& path) {
  const bool has_summary = family == "xlnet" ? reads_texts(use) : family == "electra" && use == HeadUse::candidates;
  if (!has_summary) return;
  const json type = family == "xlnet" ? "last" : "first", activation = family == "xlnet" ? "tanh" : "gelu";
  for (const auto& [key, value] : {std::pair<const char*, json>{"summary_type", type},
                                   {"summary_use_proj", true},
                                   {"summary_activation", activation}}) {
    const auto stored = config.find(key);
    require<ConfigError>(stored == config.end() || *stored == value, path, ": ", key, " is ",
                         stored == config.end() ? "" : json_text(*stored), "; only ", json_text(value),
                         " can be imported with this class");
  }
}

/// The key with the dropout of this head; empty: the class has none.
std::string dropout_key(const Family& family, const ObjectiveConfig& objective) {
  const auto heads = heads_of({objective});
  const auto found = heads.empty() ? family.dropout_keys.end() : family.dropout_keys.find(*heads.begin());
  return found == family.dropout_keys.end() ? "" : found->second;
}

bool pools_by_key(const Family& family, const TaskHead& head) {
  return family.model_type == "modernbert" && reads_texts(head.use());
}

}  // namespace

void read_task_head(const json& config, const Family& family, RunConfig& run, const std::string& path) {
  const auto* head = head_in(run);
  if (!head) return;
  TaskHeadTerms terms;
  std::string kind = kind_of(run.objectives[0]);
  check_summary(config, family.model_type, head->use(), path);
  if (has_names(*head)) {
    terms.labels = labels_in(config, family.num_labels, path);
    check_ids(config, terms.labels, path);
    if (head->use() == HeadUse::texts) kind = kind_of_texts(config, terms.labels.size(), path);
    if (kind == RegressionConfig::kind) terms.labels.clear();
  }
  if (const auto key = dropout_key(family, run.objectives[0]); !key.empty())
    take(config, key.c_str(), terms.classifier_dropout, path);
  if (pools_by_key(family, *head)) {
    std::string pooling = "cls";
    take(config, "classifier_pooling", pooling, path);
    require<ConfigError>(pooling == "cls" || pooling == "mean", path, ": classifier_pooling is '", pooling,
                         "'; 'cls' and 'mean' can be imported");
    if (pooling == "mean") terms.head = HeadDesign::mean;
  }
  run.objectives = {task_head_objective(kind, terms)};
}

void write_task_head(json& config, const Family& family, const RunConfig& run) {
  const auto* terms = head_in(run);
  if (!terms) return;
  const auto names = terms->labels.empty() ? numbered_labels(terms->outputs()) : terms->labels;
  json id2label = json::object(), label2id = json::object();
  for (size_t i = 0; i < names.size(); ++i) {
    id2label[std::to_string(i)] = names[i];
    label2id[names[i]] = i;
  }
  config.erase("num_labels");  // transformers counts id2label
  config["id2label"] = id2label;
  config["label2id"] = label2id;
  const auto kind = terms->name();
  if (kind == ClassificationConfig::kind) config["problem_type"] = "single_label_classification";
  if (kind == MultilabelConfig::kind) config["problem_type"] = "multi_label_classification";
  if (kind == RegressionConfig::kind) config["problem_type"] = "regression";
  const double dropout = head_of(*terms, terms->use(), run.model).dropout;
  const auto key = dropout_key(family, run.objectives[0]);
  const bool is_default = dropout == published_head(run.model, terms->use(), HeadDesign::huggingface).dropout;
  const bool is_given = config.contains(key) && !config[key].is_null();
  if (!key.empty() && (!is_default || is_given)) config[key] = dropout;
  if (pools_by_key(family, *terms)) config["classifier_pooling"] = terms->head == HeadDesign::mean ? "mean" : "cls";
  // GPT-2's class finds the last token of each row of a batch by this id.
  if (family.model_type == "gpt2" && reads_texts(terms->use()))
    config["pad_token_id"] = backbone_of(run.model).pad_token_id;
}

json dropout_of_heads(const json& config, const Family& family) {
  json dropouts = json::object();
  for (const auto& head : task_heads()) {
    const auto dropout = config.find(dropout_key(family, head));
    if (dropout != config.end() && dropout->is_number()) dropouts[task_head_of(head)->name()] = *dropout;
  }
  return dropouts;
}

at::Tensor value_in_class(const RunConfig& run, const std::string& name, const at::Tensor& value) {
  const auto* terms = head_in(run);
  const bool is_output = name.starts_with(concat(RegressionConfig::kind, ".output."));
  if (!terms || terms->scale.empty() || !is_output) return value;
  const auto range = terms->scale[1] - terms->scale[0];
  return name.ends_with(".bias") ? value * range + terms->scale[0] : value * range;
}

void require_task_head(const RunConfig& run) {
  const auto* terms = head_in(run);
  if (!terms) return;
  require<ConfigError>(terms->layer.empty(),
                       "the probe of a layer has no class at Hugging Face; export to torchscript, or fine-tune without "
                       "objectives.0.layer");
  const auto own = published_head(run.model, terms->use(), terms->head),
             wanted = published_head(run.model, terms->use(), HeadDesign::huggingface);
  const bool same_layers = own.dense == wanted.dense && own.pooler == wanted.pooler &&
                           own.output_bias == wanted.output_bias && own.token == wanted.token && !own.plain_norms;
  const bool is_causal =
      backbone_of(run.model).is_decoder() && default_architecture(run.model) != Architecture::decoder;
  const bool same_state =
      (!own.mean || kind_of(run.model) == "modernbert") && !(is_causal && reads_texts(terms->use()));
  require<ConfigError>(same_layers && same_state, "head ", terms->head, " of ", kind_of(run.model),
                       " has no class at Hugging Face; train with head: huggingface, or export to torchscript");
  require<ConfigError>(own.output_bias || terms->scale.empty() || terms->scale[0] == 0, "the head of ",
                       kind_of(run.model), " has no bias at Hugging Face, so that its values cannot begin at ",
                       terms->scale.empty() ? 0 : terms->scale[0],
                       "; train with a scale that begins at 0, or export to torchscript");
}

std::string name_in_class(const std::string& name, const std::string& prefix) {
  const bool of_base = name.starts_with("shared.") || name.starts_with("encoder.") || name.starts_with("decoder.");
  return of_base ? prefix + name : name;
}
std::string name_in_model(const std::string& name, const std::string& prefix) {
  return !prefix.empty() && name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::string prefix_of_class(const RunConfig& run) {
  const auto* one =
      class_with(huggingface::family_of(run.model), backbone_of(run.model).architecture, heads_of(run.objectives));
  return one ? one->prefix : "";
}

}  // namespace cloze
