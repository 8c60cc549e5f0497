#include "interchange/huggingface/family.h"

#include <algorithm>
#include <map>

#include "objectives/clm/clm.h"
#include "objectives/mlm/mlm.h"

namespace cloze::huggingface {

std::set<Head> heads_of(const Objectives& objectives) {
  static const std::map<std::string, Head> known{{"mlm", Head::mlm},          {"lm", Head::lm},
                                                 {"nsp", Head::nsp},          {"sop", Head::sop},
                                                 {"rtd", Head::rtd},          {"classification", Head::texts},
                                                 {"multilabel", Head::texts}, {"regression", Head::texts},
                                                 {"tagging", Head::tags},     {"spans", Head::spans},
                                                 {"choice", Head::choice}};
  std::set<Head> heads;
  for (const auto& objective : objectives)
    if (const auto found = known.find(head_of(objective)); found != known.end()) heads.insert(found->second);
  return heads;
}

Class masked_class() { return {"ForMaskedLM", {MlmConfig{}}}; }
Class pretraining_class(const ObjectiveConfig& of_pairs) { return {"ForPreTraining", {MlmConfig{}, of_pairs}}; }
Class causal_class(const std::string& suffix, bool transform) {
  ClmConfig clm;
  clm.transform = transform;
  return {suffix, {clm}, Architecture::decoder};
}

namespace {

/// An objective that trains the head of a task.
ObjectiveConfig task_objective(Head head) {
  if (head == Head::tags) return default_objective<TaggingConfig>();
  if (head == Head::spans) return default_objective<SpansConfig>();
  if (head == Head::choice) return default_objective<ChoiceConfig>();
  return default_objective<ClassificationConfig>();
}

}  // namespace

Class task_class(const std::string& suffix, Head head, std::optional<Architecture> architecture,
                 const std::string& prefix) {
  return {suffix, {task_objective(head)}, architecture, prefix};
}
std::vector<Class> task_classes(std::optional<Architecture> architecture) {
  return {task_class("ForSequenceClassification", Head::texts, architecture),
          task_class("ForTokenClassification", Head::tags, architecture),
          task_class("ForQuestionAnswering", Head::spans, architecture),
          task_class("ForMultipleChoice", Head::choice, architecture)};
}
std::vector<Class> operator+(std::vector<Class> a, const std::vector<Class>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

at::Tensor same_layout(const TransformerConfig&, const std::string&, const at::Tensor& value) { return value; }

bool Family::has_architecture(Architecture architecture) const {
  return std::any_of(classes.begin(), classes.end(), [&](const Class& one) {
    return one.architecture.value_or(transformer_of(table.model).architecture) == architecture;
  });
}

std::vector<const Class*> Family::classes_of(Architecture architecture) const {
  std::vector<const Class*> list;
  for (const auto& one : classes)
    if (one.architecture.value_or(architecture) == architecture) list.push_back(&one);
  return list;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{bert(),       roberta(),    xlm_roberta(), camembert(),  albert(), electra(),
                                       distilbert(), longformer(), big_bird(),    modernbert(), gpt2(),   t5(),
                                       mt5(),        bart(),       mbart(),       pegasus(),    xlnet()};
  return all;
}

const Family& family_named(const std::string& model_type, const std::string& path) {
  std::vector<std::string> known;
  std::string list;
  for (const auto& family : families()) {
    if (family.model_type == model_type) return family;
    known.push_back(family.model_type);
    list += (list.empty() ? "" : ", ") + family.model_type;
  }
  const auto near = did_you_mean(model_type, known);
  fail<ConfigError>(path, ": model_type is '", model_type, "'", near, near.empty() ? "; " : " ",
                    "this version imports ", list);
}

const Family& family_of(const ModelConfig& model) {
  const auto& transformer = transformer_of(model);
  for (const auto& family : families())
    if (kind_of(family.table.model) == kind_of(model) && family.describes(transformer)) return family;
  fail<ConfigError>(kind_of(model), " has no class at Hugging Face; export to torchscript");
}

const Class* class_with(const Family& family, Architecture architecture, std::set<Head> heads) {
  const auto classes = family.classes_of(architecture);
  std::set<Head> known;
  for (const auto* one : classes) known.merge(heads_of(one->objectives));
  std::erase_if(heads, [&](Head head) { return known.count(head) == 0; });
  const Class* best = nullptr;
  for (const auto* one : classes) {
    const auto own = heads_of(one->objectives);
    const bool has_all = std::includes(own.begin(), own.end(), heads.begin(), heads.end());
    if (has_all && (!best || own.size() < heads_of(best->objectives).size())) best = one;
  }
  return best;
}

}  // namespace cloze::huggingface
