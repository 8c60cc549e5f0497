#pragma once
// Files of torch.save.
#include <ATen/ATen.h>

#include <map>
#include <string>

namespace cloze {

/// The tensors of a state_dict that `torch.save` wrote since version 1.6, by their names: a zip of `data.pkl`, which
/// says how tensors lie in the records `data/N`. What stands under `state_dict`, `model_state_dict` or `model` is read
/// first. No code of the file is run, and memory is taken in proportion to the length of the file. Throws
/// CheckpointError naming file and tensor.
/// Source: Python's pickletools, protocols 2 to 5; torch/serialization.py and torch/_utils.py.
std::map<std::string, at::Tensor> read_torch_pickle(const std::string& path);

}  // namespace cloze
