#pragma once
// The families of transformers: one file each, with one table for reading and writing.
#include <ATen/ATen.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interchange/huggingface/keys.h"
#include "interchange/huggingface/names.h"
#include "models/families/model_config.h"
#include "objectives/config.h"

namespace cloze::huggingface {

/// The heads that classes have; those of tasks last.
enum class Head { mlm, lm, nsp, sop, rtd, texts, tags, spans, choice };
/// The heads of objectives, without those that no class has.
std::set<Head> heads_of(const Objectives& objectives);

/// A class of transformers.
struct Class {
  std::string suffix;                          ///< its name after that of the family: `ForMaskedLM`
  Objectives objectives{};                     ///< those that train its heads; empty: a base model
  std::optional<Architecture> architecture{};  ///< nullopt: that of the family
  std::string prefix{};                        ///< what the names of the base model have besides its own prefix
};
/// `ForMaskedLM`, trained by mlm.
Class masked_class();
/// `ForPreTraining`, trained by mlm and an objective of segment pairs.
Class pretraining_class(const ObjectiveConfig& of_pairs);
/// The class of a decoder, trained by clm; with BERT's prediction head or with the output embedding alone.
Class causal_class(const std::string& suffix, bool transform = true);

/// `ForSequenceClassification`, `ForTokenClassification`, `ForQuestionAnswering` and `ForMultipleChoice`.
std::vector<Class> task_classes(std::optional<Architecture> architecture = {});
/// A class with the head of a task.
Class task_class(const std::string& suffix, Head head, std::optional<Architecture> architecture = {},
                 const std::string& prefix = "");
/// The classes of both lists.
std::vector<Class> operator+(std::vector<Class> a, const std::vector<Class>& b);

/// The value of a parameter in another layout.
using Layout = at::Tensor (*)(const TransformerConfig&, const std::string& name, const at::Tensor& value);
at::Tensor same_layout(const TransformerConfig&, const std::string& name, const at::Tensor& value);

/// A family at Hugging Face.
struct Family {
  std::string model_type;      ///< `bert`
  std::string class_prefix;    ///< `Bert`
  Table table;                 ///< the family here, with its defaults, and the keys of config.json
  std::vector<Class> classes;  ///< of two with the same heads, the first one is written
  std::string prefix;          ///< of the names of the base model's parameters: `bert.`
  ParameterNames (*names)(const ModelConfig&);
  std::string bias_alias{};       ///< second name of the output bias; some versions store that one, some both
  std::string embedding_alias{};  ///< second name of the token embedding of a single stack
  std::string halved{};           ///< tensors with this in their names are two parameters here, `...[0]` and `...[1]`
  Layout to_huggingface = same_layout, from_huggingface = same_layout;
  std::vector<PositionEmbeddings> positions{PositionEmbeddings::learned};  ///< that its classes compute
  std::vector<FeedForward> feed_forward{FeedForward::plain};               ///< the same
  bool full_attention = false;  ///< its classes compute full attention besides the family's own
  bool always_tied = false;     ///< its classes tie a head that is not stored, whatever config.json says
  /// Ids of config.json that no class computes with, with the defaults of the class: those of the tokenizer are
  /// written, and null if they are unknown, so that no default replaces them.
  json text_ids = json::object();
  /// The keys of config.json with the dropout of a head, where it has one.
  std::map<Head, std::string> dropout_keys{};
  int64_t num_labels = 2;  ///< of a head of labels where config.json has none
  /// Of several types of one family here, this is the one that describes `model`.
  bool (*describes)(const TransformerConfig& model) = [](const TransformerConfig&) { return true; };

  /// The model generates text in the class with its head.
  bool is_generative() const { return backbone_of(table.model).is_generative(); }
  /// The architectures that some class has.
  bool has_architecture(Architecture architecture) const;
  /// The classes of an architecture.
  std::vector<const Class*> classes_of(Architecture architecture) const;
};

Family bert();
Family roberta();
Family xlm_roberta();
Family camembert();
Family albert();
Family electra();
Family distilbert();
Family longformer();
Family big_bird();
Family modernbert();
Family gpt2();
Family t5();
Family mt5();
Family bart();
Family mbart();
Family pegasus();
Family xlnet();

const std::vector<Family>& families();
/// The family of a model_type. Throws ConfigError with `path`, of the file that has it, for one that is unknown.
const Family& family_named(const std::string& model_type, const std::string& path);
/// The family of a model. Throws ConfigError if it has none.
const Family& family_of(const ModelConfig& model);

/// The class with these heads: the one with the fewest others; null: none. Heads that no class of the architecture has
/// are left out.
const Class* class_with(const Family& family, Architecture architecture, std::set<Head> heads);

}  // namespace cloze::huggingface
