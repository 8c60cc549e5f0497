#include "interchange/huggingface_weights.h"

#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/tensor/safetensors.h"
#include "interchange/huggingface/json_file.h"
#include "interchange/torch_pickle.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

using Weights = std::map<std::string, at::Tensor>;

Weights read_file(const std::string& path) {
  if (path.ends_with(".bin")) return read_torch_pickle(path);
  const auto stored = SafeTensors::open(path);
  Weights found;
  for (const auto& name : stored.names()) found.emplace(name, stored.get(name));
  return found;
}

/// The files listed in an index.
std::set<std::string> shards(const std::string& folder, const std::string& index_name) {
  const auto path = folder + "/" + index_name;
  const auto index = read_json(path);
  require<CheckpointError>(index.contains("weight_map") && index["weight_map"].is_object(), path,
                           ": has no weight_map; the file is damaged");
  std::set<std::string> files;
  for (const auto& [name, file] : index["weight_map"].items())
    if (file.is_string()) files.insert(file.get<std::string>());
  for (const auto& file : files)
    require<CheckpointError>(fs::path(file).filename() == file && fs::exists(folder + "/" + file), path, ": names '",
                             file, "', which is not in the folder; download it again");
  return files;
}

std::set<std::string> files_of(const std::string& folder) {
  for (const std::string name : {"model.safetensors", "pytorch_model.bin"}) {
    if (fs::exists(folder + "/" + name)) return {name};
    if (fs::exists(folder + "/" + name + ".index.json")) return shards(folder, name + ".index.json");
  }
  fail<CheckpointError>(
      folder, ": has no model.safetensors and no pytorch_model.bin; name a folder that `save_pretrained` made");
}

}  // namespace

Weights read_weights(const std::string& folder) {
  Weights found;
  for (const auto& file : files_of(folder))
    for (auto& [stored, tensor] : read_file(folder + "/" + file)) {
      auto name = stored;
      for (const auto& [old, now] : {std::pair<std::string, std::string>{"LayerNorm.gamma", "LayerNorm.weight"},
                                     {"LayerNorm.beta", "LayerNorm.bias"}})
        if (const auto at = name.find(old); at != std::string::npos) name.replace(at, old.size(), now);
      found.emplace(name, tensor);
    }
  return found;
}

void require_weights(const std::string& name, const at::Tensor& tensor) {
  require<CheckpointError>(tensor.is_floating_point(), "tensor '", name, "' has type ",
                           c10::toString(tensor.scalar_type()),
                           ", but weights must be floating-point; dequantize it, or download the file again");
  const auto broken = tensor.isfinite().logical_not();
  const auto count = broken.sum().item<int64_t>();
  if (count == 0) return;
  const auto first = broken.flatten().to(at::kInt).argmax().item<int64_t>();
  fail<CheckpointError>("tensor '", name, "' has ", count, count == 1 ? " non-finite value" : " non-finite values",
                        ", first ", tensor.flatten()[first].item<double>(),
                        "; download the file again, or use an earlier checkpoint");
}

}  // namespace cloze
