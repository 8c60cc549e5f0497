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

/// The tensors by name of a state_dict that `torch.save` wrote since version 1.6: a zip archive with `data.pkl`, which
/// describes the layout of the tensors in the records `data/N`. A state_dict under the key `state_dict`,
/// `model_state_dict` or `model` takes precedence. No code of the file is run, and memory use is proportional to the
/// length of the file. Throws CheckpointError naming file and tensor.
/// Source: Python's pickletools, protocols 2 to 5; torch/serialization.py and torch/_utils.py.
std::map<std::string, at::Tensor> read_torch_pickle(const std::string& path);

}  // namespace cloze
