#pragma once
// The inputs of a golden case, and the texts that its generation.json asks for.
#include <map>
#include <string>

#include "core/tensor/safetensors.h"
#include "objectives/network.h"
#include "run/config.h"

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

/// The ids generated for the first row of the inputs, by each search of generation.json: `generated.NAME` int64 [1, N].
/// Empty without such a file. Throws ConfigError for settings and prompts that cannot be compared, CheckpointError for
/// a row without tokens.
std::map<std::string, Tensor> generate_case(Network& network, const Batch& batch, const std::string& folder);

}  // namespace cloze
