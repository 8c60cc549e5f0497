#pragma once
// The inputs of a golden case, and the texts that its generation.json asks for.
#include <map>
#include <string>

#include "core/tensor/safetensors.h"
#include "objectives/network.h"
#include "run/config.h"

namespace cloze {

/// The inputs and labels of a case (inputs.safetensors, `path`) as a batch. Inputs that are ignored for this kind of
/// model are named in a warning, since outputs may differ because of them. Throws CheckpointError naming a tensor that
/// the model cannot take.
Batch read_case(const SafeTensors& in, const RunConfig& config, const std::string& path);

/// The ids generated for the first row of the inputs, by each search of generation.json: `generated.NAME` int64 [1, N].
/// Empty without such a file. Throws ConfigError for settings that cannot be compared.
std::map<std::string, Tensor> generate_case(Network& network, const Batch& batch, const std::string& folder);

}  // namespace cloze
