#include "train/huggingface_weights.h"

#include <torch/csrc/jit/serialization/unpickler.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/tensor/safetensors.h"
#include "train/huggingface_config.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

using Weights = std::map<std::string, at::Tensor>;

/// What a pickle may hold beside tensors, numbers, texts and lists: nothing.
c10::StrongTypePtr no_class(const std::string& path, const std::string& name) {
  fail<CheckpointError>(path, ": holds an object of ", name,
                        ", and only tensors by their names are read; save the model's state_dict alone");
}

/// A pickle of an ordered dictionary as one of a plain dictionary, which LibTorch's reader knows; what a state_dict
/// says of its modules' versions is left out. Source: opcodes of Python's pickletools, protocol 2, which torch.save
/// writes.
std::string as_plain_dictionary(std::string pickle) {
  using namespace std::string_literals;
  const auto proto = "\x80\x02"s, ordered = "ccollections\nOrderedDict\nq\0"s,
             made = ")Rq\1"s;  // the class, remembered as 0; called, remembered as 1
  const auto begin = proto + ordered + made;
  if (!pickle.starts_with(begin)) return pickle;
  // A dictionary whose first item holds the class, which later items may recall.
  pickle.replace(0, begin.size(), proto + "}q\1(X\0\0\0\0"s + ordered + "u");
  const auto at = pickle.rfind("X\x09\0\0\0_metadata"s);
  if (at == std::string::npos) return pickle;
  const bool far =
      at >= 6 && pickle[at - 5] == 'r' && pickle[at - 6] == '}';  // where it is remembered takes one byte, or four
  return pickle.substr(0, at - (far ? 6 : 3)) + ".";
}

/// The tensors of a file that `torch.save` wrote since version 1.6: a zip of `data.pkl`, which says how tensors lie in
/// the records `data/N`.
Weights read_pickle(const std::string& path) {
  char begin[2] = {};
  std::ifstream(path, std::ios::binary).read(begin, 2);
  require<CheckpointError>(begin[0] == 'P' && begin[1] == 'K', path,
                           ": is not in the format that torch.save writes since version 1.6; load it with torch, and "
                           "save it again, or as safetensors");
  Weights found;
  try {
    caffe2::serialize::PyTorchStreamReader file(path);
    const auto [bytes, length] = file.getRecord("data.pkl");
    const auto pickle = as_plain_dictionary({static_cast<const char*>(bytes.get()), length});
    std::map<const void*, size_t> sizes;  // of the records, by where they lie
    size_t at = 0;
    torch::jit::Unpickler unpickler(
        [&](char* to, size_t count) {
          const size_t read = pickle.copy(to, count, at);
          at += read;
          return read;
        },
        [&](const c10::QualifiedName& name) { return no_class(path, name.qualifiedName()); }, nullptr,
        [&](const std::string& name) {
          auto [data, size] = file.getRecord("data/" + name);
          sizes[data.get()] = size;
          return std::move(data);
        },
        at::kCPU, /*use_storage_device=*/false,
        [](const std::string& name) -> c10::TypePtr { fail<CheckpointError>("a value of type ", name); });
    const auto root = unpickler.parse_ivalue();
    require<CheckpointError>(root.isGenericDict(), path,
                             ": holds no tensors by their names; save the model's state_dict alone");
    for (const auto& item : root.toGenericDict()) {
      require<CheckpointError>(item.key().isString(), path,
                               ": holds something that has no name; save the model's state_dict alone");
      if (!item.value().isTensor()) continue;  // a count, a version
      const auto tensor = item.value().toTensor();
      const auto record = sizes.find(tensor.storage().data());
      const bool whole = tensor.numel() == 0 || (record != sizes.end() && tensor.storage().nbytes() <= record->second);
      require<CheckpointError>(whole, path, ": tensor '", item.key().toStringRef(),
                               "' is longer than what the file holds of it; the file is damaged");
      found.emplace(item.key().toStringRef(), tensor.detach());
    }
  } catch (const c10::Error& e) {
    fail<CheckpointError>(path, ": cannot be read (", e.what_without_backtrace(),
                          "); the file is damaged, or holds more than tensors by their names");
  }
  return found;
}

Weights read_file(const std::string& path) {
  if (path.ends_with(".bin")) return read_pickle(path);
  const auto stored = SafeTensors::open(path);
  Weights found;
  for (const auto& name : stored.names()) found.emplace(name, stored.get(name));
  return found;
}

/// The files that an index names.
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
                             file, "', which is not in the folder; get it again");
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
  require<CheckpointError>(tensor.is_floating_point(), "tensor '", name, "' holds values of type ",
                           c10::toString(tensor.scalar_type()),
                           ", where weights are floating-point numbers; undo the quantisation, or get the file again");
  const auto broken = tensor.isfinite().logical_not();
  const auto count = broken.sum().item<int64_t>();
  if (count == 0) return;
  const auto first = broken.flatten().to(at::kInt).argmax().item<int64_t>();
  fail<CheckpointError>("tensor '", name, "' holds ",
                        count == 1 ? "an entry that is" : words(count, " entries that are"), " no number, the first ",
                        tensor.flatten()[first].item<double>(),
                        "; such weights compute nothing, get the file again or take an earlier checkpoint");
}

}  // namespace cloze
