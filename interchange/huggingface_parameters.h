#pragma once
// Names and values of parameters at Hugging Face, by the tables of interchange/huggingface/.
#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "models/families/model_config.h"

namespace cloze {

/// Tensors of a file, by name.
using TensorMap = std::map<std::string, at::Tensor>;

/// The names of a parameter at Hugging Face: one, or several to stack (query, key, value). Empty if Hugging Face has no
/// such parameter.
std::vector<std::string> huggingface_names(const ModelConfig& model, const std::string& name);
/// Further names of the same tensor.
std::vector<std::string> huggingface_aliases(const ModelConfig& model, const std::string& name);
/// The prefix of the names of a base model: `bert.`.
std::string huggingface_prefix(const ModelConfig& model);
/// Names of the token embedding tables: first the one that others are tied to, last the output head.
std::vector<std::string> token_tables(const ModelConfig& model);

/// The value of a parameter in the layout of Hugging Face: transposed, split by heads, or with a leading axis of
/// size 1.
at::Tensor to_huggingface(const ModelConfig& model, const std::string& name, const at::Tensor& value);
at::Tensor from_huggingface(const ModelConfig& model, const std::string& name, const at::Tensor& value);

/// Splits tensors of Hugging Face that are two parameters of Cloze: "Wi.weight" into "Wi[0].weight" and "Wi[1].weight".
void split_wholes(const ModelConfig& model, TensorMap& tensors);
/// The reverse; other tensors stay.
void join_parts(TensorMap& tensors);
/// The name of the tensor that contains a part such as "Wi[1].weight".
std::string name_of_whole(const std::string& part);

}  // namespace cloze
