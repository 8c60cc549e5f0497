#pragma once
// Files written by torch.save.
#include <ATen/ATen.h>

#include <map>
#include <string>

namespace cloze {

/// The tensors by name of a state_dict that `torch.save` wrote since version 1.6: a zip archive with `data.pkl`, which
/// describes the layout of the tensors in the records `data/N`. A state_dict under the key `state_dict`,
/// `model_state_dict` or `model` takes precedence. No code of the file is run, and memory use is proportional to the
/// length of the file. Throws CheckpointError naming file and tensor.
/// Source: Python's pickletools, protocols 2 to 5; torch/serialization.py and torch/_utils.py.
std::map<std::string, at::Tensor> read_torch_pickle(const std::string& path);

}  // namespace cloze
