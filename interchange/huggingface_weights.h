#pragma once
// Weights of a Hugging Face folder: safetensors or a PyTorch pickle, in one file or sharded.
#include <ATen/ATen.h>

#include <map>
#include <string>

namespace cloze {

/// The weights of a folder.
struct StoredWeights {
  std::map<std::string, at::Tensor> tensors;  ///< by name
  /// Tensors that the index of the shards names and no shard holds, by name: a sentence that names index, tensor and
  /// shard. Converted checkpoints lack second names of tied tables.
  std::map<std::string, std::string> absent;
};

/// All tensors of the folder; the old LayerNorm names `gamma` and `beta` become `weight` and `bias`. Throws
/// CheckpointError naming file and tensor.
StoredWeights read_weights(const std::string& folder);

/// Throws CheckpointError naming a tensor that is not floating-point, or that contains NaN or infinity.
void require_weights(const std::string& name, const at::Tensor& tensor);

}  // namespace cloze
