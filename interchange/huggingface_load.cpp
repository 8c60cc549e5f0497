// Copies the tensors of a Hugging Face folder into a network.
#include <set>

#include "core/log.h"
#include "interchange/huggingface.h"
#include "interchange/huggingface_weights.h"

namespace cloze {

namespace {

/// The tensors of a model, and which of them were used.
struct Source {
  const HuggingFaceModel& model;
  const TensorMap& tensors = model.tensors;
  std::set<std::string> used{};

  /// The tensor of this name, or of the first alias that the file has; undefined: none.
  at::Tensor take(const std::string& name, const std::vector<std::string>& aliases) {
    auto stored = name;
    for (const auto& alias : aliases)
      if (!tensors.count(stored) && tensors.count(alias)) stored = alias;
    const auto tensor = tensors.find(stored);
    if (tensor == tensors.end()) return {};
    used.insert(stored);
    require_weights(stored, tensor->second);
    return tensor->second.to(at::kFloat);
  }

  /// Throws CheckpointError for a tensor that was found by none of its names, unless a model may lack it and no index
  /// names it.
  void require_lackable(const std::vector<std::string>& names, bool may_lack) const {
    for (const auto& name : names)
      if (const auto indexed = model.absent.find(name_of_whole(name)); indexed != model.absent.end())
        fail<CheckpointError>(indexed->second, "; download both again");
    require<CheckpointError>(may_lack, "the weights have no tensor '", name_of_whole(names[0]),
                             "'; they do not belong to this config.json");
  }
};

/// A parameter that a file may lack: it is of a head, or computed.
bool is_optional(const Param& param) { return param.is_of_head() || param.fixed(); }

/// Copies the tensors of one parameter; false if there are none.
bool copy_tensors(const ModelConfig& model, const NamedParam& named, Source& source) {
  const auto& [name, param] = named;
  const auto names = huggingface_names(model, name), aliases = huggingface_aliases(model, name);
  std::vector<at::Tensor> parts;
  std::vector<std::string> missing;
  for (const auto& stored : names)
    if (const auto tensor = source.take(stored, aliases); tensor.defined())
      parts.push_back(from_huggingface(model, name, tensor));
    else
      missing.push_back(stored);
  if (parts.empty() && missing.empty()) missing = {name};  // Hugging Face has no such parameter
  if (!missing.empty()) {
    missing.resize(1);
    missing.insert(missing.end(), aliases.begin(), aliases.end());
    source.require_lackable(missing, parts.empty() && is_optional(param));
    return false;
  }
  auto shape = param.value().sizes().vec();
  shape[0] /= static_cast<int64_t>(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    require<CheckpointError>(parts[i].sizes() == shape, "tensor '", names[i], "' has shape ", parts[i].sizes(),
                             ", but config.json needs ", at::IntArrayRef(shape), " for ", name);
  param.value().copy_(parts.size() == 1 ? parts[0] : at::cat(parts));
  return true;
}

/// Marks the further tensors of a parameter as used; that of the output bias takes precedence over the first.
void copy_aliases(const ModelConfig& model, const NamedParam& named, Source& source) {
  for (const auto& alias : huggingface_aliases(model, named.name)) {
    if (source.used.count(alias)) continue;
    const auto tensor = source.take(alias, {});
    if (tensor.defined() && tensor.sizes() == named.param.value().sizes()) named.param.value().copy_(tensor);
  }
}

}  // namespace

void require_size(const Network& network, const HuggingFaceModel& model, const std::string& config,
                  const HuggingFaceModel* generator) {
  constexpr int64_t max_head = 1 << 26;  // parameters of a newly initialized head
  int64_t described = 0, stored = 0;
  for (const auto& [name, param] : collect_params(network)) described += param.value().numel();
  for (const auto* part : {&model, generator})
    for (const auto& [name, tensor] : part ? part->tensors : TensorMap()) stored += tensor.numel();
  require<ConfigError>(described <= 4 * stored + max_head, config, ": describes a model of ",
                       thousands(static_cast<uint64_t>(described)), " parameters, but the weights have ",
                       thousands(static_cast<uint64_t>(stored)), "; they do not belong together");
}

void load_huggingface(const HuggingFaceModel& model, Network& network, std::vector<std::string>& ignored,
                      std::vector<std::string>& fresh) {
  at::NoGradGuard no_grad;
  const auto& config = network.model_config();
  const auto params = collect_params(network);
  initialize(params, backbone_of(config).initializer_range, false, Rng(1));  // for parameters missing from the file
  Source source{model};
  for (const auto& named : params)
    if (!copy_tensors(config, named, source) && !named.param.fixed()) fresh.push_back(named.name);
  for (const auto& named : params) copy_aliases(config, named, source);
  for (const auto& [name, tensor] : model.tensors)
    if (!source.used.count(name) && name.find("position_ids") == std::string::npos) ignored.push_back(name);
  for (const auto& [name, sentence] : model.absent) log_info("import", sentence + "; the model is imported without it");
}

}  // namespace cloze
