#pragma once
// The heads of tasks in config.json: labels, kind of problem, dropout.
#include <ATen/ATen.h>

#include <nlohmann/json_fwd.hpp>

#include "run/config/config.h"

namespace cloze {

namespace huggingface {
struct Family;
}

/// Completes the objective of a class with the head of a task by what its config.json says: the names of the labels by
/// id2label, or their number; problem_type, which tells labels from values; dropout and pooling. Other objectives stay.
/// Throws ConfigError for labels that id2label and label2id give other ids, and for a head that no class here computes.
void read_task_head(const nlohmann::json& config, const huggingface::Family& family, RunConfig& run,
                    const std::string& path);

/// Writes the same into the config.json of a model with the head of a task.
void write_task_head(nlohmann::json& config, const huggingface::Family& family, const RunConfig& run);

/// The dropout that config.json gives to a head of each kind of task, whether there is one or not, by the kind's name.
nlohmann::json dropout_of_heads(const nlohmann::json& config, const huggingface::Family& family);

/// The value of a parameter as the class computes with it: the last layer of a regression gives values on the scale of
/// the task, which the class does not have. Such a run comes in again with targets as they are.
at::Tensor value_in_class(const RunConfig& run, const std::string& name, const at::Tensor& value);

/// Throws ConfigError for a head of a task that is not that of the family's class, and for a scale of values that the
/// class has no bias for.
void require_task_head(const RunConfig& run);

/// A tensor's name in a class whose base model has a prefix besides its own (T5's `transformer.`), and back.
std::string name_in_class(const std::string& name, const std::string& prefix);
std::string name_in_model(const std::string& name, const std::string& prefix);
/// That prefix in the class of these objectives; empty: none.
std::string prefix_of_class(const RunConfig& run);

}  // namespace cloze
