#include "interchange/huggingface_weights.h"

#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
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
  Weights weights;
  for (const auto& name : stored.names()) weights.emplace(name, stored.get(name));
  return weights;
}

/// Where the weights of a folder are.
struct Files {
  std::set<std::string> names;
  std::string index{};                           ///< path of the index of shards; empty: one file
  std::map<std::string, std::string> file_of{};  ///< by the index, the file of each tensor
};

/// The files listed in an index.
Files shards(const std::string& folder, const std::string& index_name) {
  Files files{.names = {}, .index = folder + "/" + index_name};
  const auto& path = files.index;
  const auto index = read_json(path);
  require<CheckpointError>(index.contains("weight_map") && index["weight_map"].is_object(), path,
                           ": has no weight_map; the file is damaged");
  for (const auto& [name, file] : index["weight_map"].items()) {
    require<CheckpointError>(file.is_string(), path, ": weight_map has ", json_text(file), " for '", name,
                             "', must be the name of a file; the file is damaged");
    files.file_of[name] = file.get<std::string>();
    files.names.insert(files.file_of[name]);
  }
  for (const auto& file : files.names)
    require<CheckpointError>(fs::path(file).filename() == file && fs::exists(folder + "/" + file), path, ": names '",
                             file, "', which is not in the folder; download it again");
  return files;
}

Files files_of(const std::string& folder) {
  for (const std::string name : {"model.safetensors", "pytorch_model.bin"}) {
    if (fs::exists(folder + "/" + name)) return {.names = {name}};
    if (fs::exists(folder + "/" + name + ".index.json")) return shards(folder, name + ".index.json");
  }
  fail<CheckpointError>(
      folder, ": has no model.safetensors and no pytorch_model.bin; name a folder that `save_pretrained` made");
}

/// The name with `weight` and `bias` of LayerNorm, which were `gamma` and `beta`.
std::string current_name(std::string name) {
  for (const auto& [old, now] : {std::pair<std::string, std::string>{"LayerNorm.gamma", "LayerNorm.weight"},
                                 {"LayerNorm.beta", "LayerNorm.bias"}})
    if (const auto at = name.find(old); at != std::string::npos) name.replace(at, old.size(), now);
  return name;
}

}  // namespace

StoredWeights read_weights(const std::string& folder) {
  StoredWeights weights;
  const auto files = files_of(folder);
  for (const auto& file : files.names) {
    const auto tensors = read_file(folder + "/" + file);
    for (const auto& [name, tensor] : tensors) weights.tensors.emplace(current_name(name), tensor);
    for (const auto& [name, of_index] : files.file_of)
      if (of_index == file && !tensors.count(name))
        weights.absent.emplace(current_name(name), concat(files.index, ": names tensor '", name, "' in ", file,
                                                          ", which does not hold it"));
  }
  std::erase_if(weights.absent, [&](const auto& one) {
    const bool held = weights.tensors.count(one.first) > 0;
    if (held) log_info("import", one.second + "; another file does");
    return held;
  });
  return weights;
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
