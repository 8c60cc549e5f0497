#pragma once
// Weights of a Hugging Face folder: safetensors or a pickle of torch, in one file or in shards.
#include <ATen/ATen.h>

#include <map>
#include <string>

namespace cloze {

/// Every tensor of the folder by its name there; `gamma` and `beta` of old norms are `weight` and `bias`. Throws
/// CheckpointError naming file and tensor.
std::map<std::string, at::Tensor> read_weights(const std::string& folder);

/// Throws CheckpointError naming a tensor whose entries are no weights: whole numbers, NaN, infinity.
void require_weights(const std::string& name, const at::Tensor& tensor);

}  // namespace cloze
