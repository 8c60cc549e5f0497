#pragma once
// The inputs of a golden case, and the texts that its generation.json asks for.
#include <map>
#include <string>

#include "core/tensor/safetensors.h"
#include "objectives/network.h"
#include "run/config/config.h"

namespace cloze {

/// The input with the classes of sentence pairs; empty: no objective predicts them.
std::string pair_label_of(const Objectives& objectives);

/// Holds the inputs of a case (inputs.safetensors, `path`) to the shapes, ids and classes that the model takes; those
/// of a case `with_loss`, also to what its losses need. Throws CheckpointError naming a tensor, what it is and what it
/// must be.
void check_inputs(const SafeTensors& in, const RunConfig& config, bool with_loss, const std::string& path);

/// The inputs and labels of a case as a batch, after check_inputs. Inputs that are ignored for this kind of model are
/// named in a warning, since outputs may differ because of them.
Batch read_case(const SafeTensors& in, const RunConfig& config, bool with_loss, const std::string& path);

/// The same of a case whose model has the head of a task; `separator`: the id of [SEP] in its config.json. A choice is
/// given as [items, candidates, length].
Batch read_task_case(const SafeTensors& in, const RunConfig& config, bool with_loss, int64_t separator,
                     const std::string& path);
/// The id of [SEP] that the config.json in `folder` has, or the default of its class; -1: none.
int64_t separator_of(const ModelConfig& model, const std::string& folder);
/// A head of texts without a problem_type is one of several labels where these are fractions, as in transformers.
void follow_labels(RunConfig& config, const SafeTensors& in);

/// The loss of spans in transformers, with its gradients: the mean of the cross entropies of first and last token,
/// whose softmax runs over padding too; positions are clamped to [0, T], and rows with T are not counted. Its value
/// depends on the padding of a batch, and differs from that of the objective `spans` by that alone.
Tensor span_loss_of_transformers(Network& network, const Batch& batch);

/// The ids generated for the first row of the inputs, by each search of generation.json: `generated.NAME` int64 [1, N].
/// Empty without such a file. Throws ConfigError for settings and prompts that cannot be compared, CheckpointError for
/// a row without tokens.
std::map<std::string, Tensor> generate_case(Network& network, const Batch& batch, const std::string& folder);

}  // namespace cloze
