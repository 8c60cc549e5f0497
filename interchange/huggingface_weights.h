#pragma once
// Weights of a Hugging Face folder: safetensors or a PyTorch pickle, in one file or sharded.
#include <ATen/ATen.h>

#include <map>
#include <string>

namespace cloze {

/// All tensors of the folder by name; the old LayerNorm names `gamma` and `beta` become `weight` and `bias`. Throws
/// CheckpointError naming file and tensor.
std::map<std::string, at::Tensor> read_weights(const std::string& folder);

/// Throws CheckpointError naming a tensor that is not floating-point, or that contains NaN or infinity.
void require_weights(const std::string& name, const at::Tensor& tensor);

}  // namespace cloze
