#pragma once
// What the tables of parameter names are made of.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cloze::huggingface {

/// A prefix of a parameter name in Cloze, and its counterparts at Hugging Face. In a table the first match counts.
struct NamePair {
  std::string cloze;
  std::vector<std::string> huggingface;  ///< several: stacked in this order
};
using Names = std::vector<NamePair>;
Names operator+(Names a, const Names& b);

/// The blocks of a stack.
struct StackNames {
  std::string cloze;                             ///< what precedes the number of a block: `backbone.stack.`
  std::function<std::string(int64_t)> of_block;  ///< the prefix of block i: `bert.encoder.layer.3.`
  Names block;                                   ///< names within a block
};

/// The parameter names of a model.
struct ParameterNames {
  Names outer;  ///< outside of the blocks
  std::vector<StackNames> stacks;
};

/// The prefix of block i: `before`, i and a dot.
std::function<std::string(int64_t)> numbered(const std::string& before);

/// The names at Hugging Face; empty: no such parameter there.
std::vector<std::string> names_in(const ParameterNames& table, std::string_view name);

/// The names of a prediction head of BERT's kind, which predicts masked tokens or, in a decoder, the next one.
Names prediction_head(const std::string& transform, const std::string& norm, const std::string& decoder,
                      const std::string& bias);

/// The names of the layers of task heads; empty: the head has no such layer.
struct TaskHeadNames {
  std::string dense{}, norm{}, output = "classifier.";  ///< of texts
  std::string tags = "classifier.", spans = "qa_outputs.";
  std::string choice_dense{}, choice_output = "classifier.";
};
/// The names of all heads of tasks.
Names task_heads(const TaskHeadNames& names);

/// The names of an encoder of BERT's kind: its tables start with those of BERT, and change or add some.
struct BertNames {
  std::string prefix;  ///< `bert.`
  std::string blocks = "encoder.layer.";
  Names block = bert_block();
  std::string projection{}, pooler{};  ///< empty: none
  Names heads{};

  static Names bert_block();
};
ParameterNames names_of(const BertNames& names);

}  // namespace cloze::huggingface
