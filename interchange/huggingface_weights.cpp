#include "interchange/huggingface_weights.h"

#include <algorithm>
#include <caffe2/serialize/inline_container.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/lfs_pointer.h"
#include "core/log.h"
#include "core/tensor/safetensors.h"
#include "interchange/huggingface/json_file.h"
#include "interchange/unpickle.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

using Weights = std::map<std::string, at::Tensor>;

Weights read_file(const std::string& path) {
  require_no_pointer(path);
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

namespace {

using caffe2::serialize::PyTorchStreamReader;

using Value = PickleValue;
using Kind = Value::Kind;

std::optional<at::ScalarType> storage_type(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types{
      {"torch.FloatStorage", at::kFloat},      {"torch.DoubleStorage", at::kDouble}, {"torch.HalfStorage", at::kHalf},
      {"torch.LongStorage", at::kLong},        {"torch.IntStorage", at::kInt},       {"torch.ShortStorage", at::kShort},
      {"torch.CharStorage", at::kChar},        {"torch.ByteStorage", at::kByte},     {"torch.BoolStorage", at::kBool},
      {"torch.BFloat16Storage", at::kBFloat16}};
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

/// True if a storage of `entries` elements contains all elements of a tensor; an axis of stride 0 repeats its elements.
bool contains(int64_t entries, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t offset) {
  constexpr int64_t max_elements = int64_t{1} << 40;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return offset <= entries;
  if (offset >= entries) return false;
  int64_t count = 1, last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > max_elements / count) return false;
    count *= sizes[i];
    if (strides[i] > 0 && sizes[i] - 1 > (entries - 1 - last) / strides[i]) return false;
    last += (sizes[i] - 1) * strides[i];
  }
  return true;
}

/// Throws CheckpointError for a record longer than its file: torch stores records uncompressed.
void require_stored(PyTorchStreamReader& file, const std::string& record, const std::string& path) {
  require<CheckpointError>(file.getRecordSize(record) <= std::filesystem::file_size(path), path, ": its ", record,
                           " is longer than the whole file; the file is damaged");
}

/// Constructs dictionaries and tensors, and nothing else; tensors are views of the file's records.
class TensorUnpickler final : public Unpickler {
 public:
  TensorUnpickler(std::string path, std::string pickle, PyTorchStreamReader& file)
      : Unpickler(std::move(path), std::move(pickle)), file_(file) {}

 private:
  void call(const std::string& name, const std::vector<Value*>& arguments) override {
    if (name == "collections.OrderedDict") return push(make(Kind::dictionary));
    if (name == "torch._utils._rebuild_tensor_v2") return push_tensor(arguments);
    const bool parameter =
        name == "torch._utils._rebuild_parameter" || name == "torch._utils._rebuild_parameter_with_state";
    if (parameter && !arguments.empty()) return push(arguments[0]);
    auto* object = make(Kind::object);
    object->text = name;
    push(object);
  }

  /// ('storage', type, record, device, number of entries)
  void load(const std::vector<Value*>& id) override {
    if (id.size() != 5 || id[1]->kind != Kind::global || id[2]->kind != Kind::text || id[4]->kind != Kind::number)
      damaged("a storage without its record");
    const auto type = storage_type(id[1]->text);
    require<CheckpointError>(type.has_value(), path_, ": has values of ", id[1]->text,
                             ", which are not supported; save them as floats");
    auto& bytes = records_[id[2]->text];
    if (!bytes.defined()) {
      require_stored(file_, "data/" + id[2]->text, path_);
      auto [data, size] = file_.getRecord("data/" + id[2]->text);
      auto owner = std::make_shared<at::DataPtr>(std::move(data));
      bytes = at::from_blob(owner->get(), {static_cast<int64_t>(size)}, [owner](void*) {}, at::kByte);
    }
    const auto width = static_cast<int64_t>(at::elementSize(*type));
    auto* storage = make(Kind::tensor);
    storage->tensor = bytes.narrow(0, 0, bytes.numel() / width * width).view(*type);
    push(storage);
  }

  std::vector<int64_t> numbers(const Value& list) const {
    if (list.kind != Kind::list) damaged("sizes that are not a list");
    std::vector<int64_t> integers;
    for (const auto* one : list.items) {
      if (one->kind != Kind::number || one->number < 0) damaged("an invalid size");
      integers.push_back(one->number);
    }
    return integers;
  }

  /// (storage, offset, sizes, strides, ...)
  void push_tensor(const std::vector<Value*>& arguments) {
    if (arguments.size() < 4 || arguments[0]->kind != Kind::tensor || arguments[1]->kind != Kind::number)
      damaged("a tensor without its storage");
    const auto& storage = arguments[0]->tensor;
    const auto sizes = numbers(*arguments[2]), strides = numbers(*arguments[3]);
    const auto offset = arguments[1]->number;
    constexpr size_t max_axes = 64;  // the limit of torch
    if (sizes.size() != strides.size() || offset < 0) damaged("a tensor without its strides");
    if (sizes.size() > max_axes) damaged("a tensor with too many axes");
    auto* tensor = make(Kind::tensor);
    push(tensor);
    if (contains(storage.numel(), sizes, strides, offset))  // else it stays undefined, which tensors_of reports
      tensor->tensor = storage.as_strided(sizes, strides, offset);
  }

  PyTorchStreamReader& file_;
  std::map<std::string, at::Tensor> records_;  ///< as bytes
};

/// The dictionary of tensors: the whole file, or an entry of a training checkpoint.
const Value& state_dict(const Value& root, const std::string& path) {
  const std::string mend = "; save only the state_dict of the model";
  require<CheckpointError>(root.kind != Kind::object, path, ": has an object of ", root.text,
                           " instead of tensors by name", mend);
  require<CheckpointError>(root.kind == Kind::dictionary, path, ": has no tensors by name", mend);
  const auto holds_tensors = [](const Value& dictionary) {
    for (size_t i = 1; i < dictionary.items.size(); i += 2)
      if (dictionary.items[i]->kind == Kind::tensor) return true;
    return false;
  };
  for (size_t i = 0; i < root.items.size(); i += 2) {
    const auto &key = *root.items[i], &value = *root.items[i + 1];
    if (value.kind != Kind::dictionary || key.kind != Kind::text || !holds_tensors(value)) continue;
    if (key.text == "state_dict" || key.text == "model_state_dict" || key.text == "model") return value;
  }
  return root;
}

std::map<std::string, at::Tensor> tensors_of(const Value& dictionary, const std::string& path) {
  std::map<std::string, at::Tensor> tensors;
  for (size_t i = 0; i < dictionary.items.size(); i += 2) {
    const auto &key = *dictionary.items[i], &value = *dictionary.items[i + 1];
    require<CheckpointError>(key.kind == Kind::text, path,
                             ": has an entry without a name; save only the state_dict of the model");
    require<CheckpointError>(value.kind != Kind::object, path, ": '", key.text, "' is an object of ", value.text,
                             " instead of a tensor; save only the state_dict of the model, with dense, unquantized "
                             "tensors");
    if (value.kind != Kind::tensor) continue;  // a count, a version
    require<CheckpointError>(value.tensor.defined(), path, ": tensor '", key.text,
                             "' is longer than its data in the file; the file is damaged");
    tensors[key.text] = value.tensor;
  }
  require<CheckpointError>(!tensors.empty(), path, ": has no tensors by name; save only the state_dict of the model");
  return tensors;
}

/// Throws CheckpointError unless the file is a zip archive.
void check_begin(const std::string& path) {
  require<CheckpointError>(std::filesystem::is_regular_file(path), path, ": is not a regular file; get it again");
  char begin[2] = {};
  std::ifstream(path, std::ios::binary).read(begin, 2);
  const std::string mend =
      "; in Python, torch.save(torch.load(PATH, map_location='cpu'), PATH) converts it, or save it as safetensors";
  require<CheckpointError>(begin[0] != '\x80', path, ": is in the format that torch.save wrote before version 1.6",
                           mend);
  require<CheckpointError>(begin[0] == 'P' && begin[1] == 'K', path,
                           ": is not in the format that torch.save writes since version 1.6", mend);
}

}  // namespace

std::map<std::string, at::Tensor> read_torch_pickle(const std::string& path) {
  constexpr size_t max_bytes = 16 << 20;  // of opcodes; a tensor takes 100 to 200
  check_begin(path);
  try {
    PyTorchStreamReader file(path);
    require_stored(file, "data.pkl", path);
    const auto length = file.getRecordSize("data.pkl");
    require<CheckpointError>(length <= max_bytes, path, ": has ", length,
                             " bytes of opcodes in its data.pkl, more than any weights need; the file is damaged");
    const auto [bytes, size] = file.getRecord("data.pkl");
    std::string pickle(static_cast<const char*>(bytes.get()), size);
    require<CheckpointError>(pickle.starts_with('\x80'), path,
                             ": uses pickle protocol 0 or 1, which are not supported; save it without "
                             "pickle_protocol");
    TensorUnpickler unpickler(path, std::move(pickle), file);
    return tensors_of(state_dict(unpickler.run(), path), path);
  } catch (const c10::Error& e) {
    fail<CheckpointError>(path, ": cannot be read (", e.what_without_backtrace(), "); the file is damaged");
  } catch (const std::bad_alloc&) {
    fail<CheckpointError>(path, ": cannot be read (out of memory); the file is damaged");
  }
}

}  // namespace cloze
