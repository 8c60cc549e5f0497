#include "interchange/peft.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/tensor/low_rank.h"
#include "core/tensor/safetensors.h"
#include "core/text.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_parameters.h"
#include "interchange/huggingface_tasks.h"
#include "models/adaptation/low_rank_factors.h"
#include "objectives/task_heads/task_heads.h"
#include "run/checkpoints/base.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* peft_prefix = "base_model.model.";  ///< what peft puts before the names of transformers
constexpr const char* base_key = "cloze_base";            ///< of the metadata of the tensors
constexpr const char* weight_suffix = ".weight";

std::string without_weight(const std::string& name) {
  return name.substr(0, name.size() - std::string(weight_suffix).size());
}

/// Rows of a module of transformers that rows of a matrix here are.
struct ModuleRows {
  std::string module;
  int64_t first_there, first_here, count, of;  ///< `of`: the rows of the module
};

/// The modules whose weights are a matrix; empty: transformers has none.
std::vector<ModuleRows> modules_of(const RunConfig& config, const NamedParam& matrix) {
  const auto names = huggingface_names(config.model, matrix.name);
  const auto prefix = prefix_of_class(config);
  std::vector<ModuleRows> found;
  const auto count = names.empty() ? 0 : matrix.param.value().size(0) / std::ssize(names);
  for (const auto& name : names) {
    const auto whole = name_of_whole(name);
    const bool is_half = whole != name, is_second = name.find("[1]") != std::string::npos;
    found.push_back({.module = name_in_class(without_weight(whole), prefix),
                     .first_there = is_second ? count : 0,
                     .first_here = std::ssize(found) * count,
                     .count = count,
                     .of = is_half ? 2 * count : count});
  }
  return found;
}

// -- Out ------------------------------------------------------------------------------------------------------------

/// The products that one module of transformers has.
struct ModuleFactors {
  int64_t rows = 0;
  std::vector<at::Tensor> a{}, b{};

  void add(const LowRank& part, const ModuleRows& at) {
    const auto begin = std::max(part.first, at.first_here),
               end = std::min(part.first + part.rows(), at.first_here + at.count);
    if (begin >= end) return;
    rows = at.of;
    a.push_back(part.a.value().detach());
    const auto of_rows = at::zeros({at.of, part.a.value().size(0)});
    of_rows.narrow(0, begin - at.first_here + at.first_there, end - begin)
        .copy_(part.b.value().detach().narrow(0, begin - part.first, end - begin));
    b.push_back(of_rows);
  }
};

std::map<std::string, ModuleFactors> factors_of(const RunConfig& config, const Network& network) {
  std::map<std::string, ModuleFactors> modules;
  for (const auto& named : collect_params(network)) {
    if (!named.param.low_rank()) continue;
    const auto there = modules_of(config, named);
    const bool is_linear = !there.empty() && to_huggingface(config.model, named.name, named.param.value()).dim() == 2;
    require<ConfigError>(is_linear, named.name, ": is no linear layer of transformers, which peft could adapt; export ",
                         "the whole network, --to huggingface");
    for (const auto& part : named.param.low_rank()->parts)
      for (const auto& rows : there) modules[rows.module].add(part, rows);
  }
  std::erase_if(modules, [](const auto& module) { return module.second.a.empty(); });
  return modules;
}

/// The module of a head: the first one below the base model.
std::string head_module(const RunConfig& config, const std::string& name) {
  const auto prefix = huggingface_prefix(config.model);
  const auto own = !prefix.empty() && name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  return own.substr(0, own.find('.'));
}

/// What peft calls the kind of a run.
json task_type(const RunConfig& config) {
  const auto* head = task_head_of(config.objectives.at(0));
  if (!head)
    return backbone_of(config.model).is_encoder_decoder() ? json("SEQ_2_SEQ_LM")
           : backbone_of(config.model).is_decoder()       ? json("CAUSAL_LM")
                                                          : json();
  switch (head->use()) {
    case HeadUse::tokens:
      return "TOKEN_CLS";
    case HeadUse::spans:
      return "QUESTION_ANS";
    default:
      return head->use() == HeadUse::texts ? json("SEQ_CLS") : json();
  }
}

json config_of_adapter(const RunConfig& config, const LoraAdaptation& lora,
                       const std::map<std::string, ModuleFactors>& modules, const std::set<std::string>& heads) {
  json ranks = json::object(), alphas = json::object(), targets = json::array();
  const double scale = lora.alpha / (lora.rank_stabilized ? std::sqrt(lora.rank) : static_cast<double>(lora.rank));
  for (const auto& [name, module] : modules) {
    targets.push_back(name);
    const auto rank = lora.rank * std::ssize(module.a);
    if (rank == lora.rank) continue;
    ranks[name] = rank;
    alphas[name] = scale * (lora.rank_stabilized ? std::sqrt(rank) : static_cast<double>(rank));
  }
  return {{"peft_type", "LORA"},
          {"task_type", task_type(config)},
          {"base_model_name_or_path", config.init.from},
          {"inference_mode", true},
          {"r", lora.rank},
          {"lora_alpha", lora.alpha},
          {"lora_dropout", lora.dropout},
          {"use_rslora", lora.rank_stabilized},
          {"bias", "none"},
          {"fan_in_fan_out", kind_of(config.model) == "gpt2"},  // whose class has Conv1D
          {"target_modules", targets},
          {"modules_to_save", heads.empty() ? json() : json(heads)},
          {"rank_pattern", ranks},
          {"alpha_pattern", alphas}};
}

}  // namespace

void export_peft(const std::string& path, const std::string& out, bool replace) {
  const auto run = open_run(path);
  const auto* lora = std::get_if<LoraAdaptation>(&run.config.adaptation.kind);
  require<ConfigError>(lora, run.folder, ": was trained with adaptation.kind ", kind_in(run.config.adaptation.kind),
                       ", and peft's folder here is that of lora; export it --to huggingface");
  require_huggingface(run.config);
  require<ConfigError>(!fs::exists(out) || (replace && fs::exists(out + "/adapter_config.json")), out,
                       ": exists; name another folder, or overwrite that of an adapter with --force");
  Network network(run.config.model, run.config.objectives);
  network.adapt(run.config.adaptation.kind);
  const auto own = own_params(collect_params(network));
  load_weights(run.checkpoint + "/weights.safetensors", own);
  const auto modules = factors_of(run.config, network);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, module] : modules) {
    tensors.push_back({concat(peft_prefix, name, ".lora_A.weight"), at::cat(module.a)});
    tensors.push_back({concat(peft_prefix, name, ".lora_B.weight"), at::cat(module.b, 1)});
  }
  std::set<std::string> heads;
  const auto prefix = prefix_of_class(run.config);
  for (const auto& [name, param] : own)
    for (const auto& there : huggingface_names(run.config.model, name)) {
      heads.insert(head_module(run.config, there));
      const auto value = value_in_class(run.config, name, param.value().detach());
      tensors.push_back({concat(peft_prefix, name_in_class(there, prefix)),
                         to_huggingface(run.config.model, name, value).contiguous()});
    }
  StagedFolder staged(out);
  write_atomic(staged.path() + "/adapter_config.json",
               json_text(config_of_adapter(run.config, *lora, modules, heads), 2) + "\n");
  save_safetensors(staged.path() + "/adapter_model.safetensors", tensors, {{base_key, run.state.base.weights}});
  staged.commit();
}

// -- In -------------------------------------------------------------------------------------------------------------

namespace {

/// An adapter as its folder has it.
struct Adapter {
  std::string folder;
  json config;
  SafeTensors tensors;
  std::set<std::string> used{};

  std::string file() const { return folder + "/adapter_config.json"; }
  template <class T>
  T value(const char* key, const T& absent) const {
    try {
      return config.contains(key) && !config[key].is_null() ? config[key].get<T>() : absent;
    } catch (const json::exception&) {
      fail<ConfigError>(file(), ": ", key, " is ", json_text(config[key]), ", which peft does not write");
    }
  }
  /// Undefined: it has none.
  at::Tensor take(const std::string& name) {
    const auto full = peft_prefix + name;
    if (!tensors.contains(full)) return {};
    used.insert(full);
    return tensors.get(full).to(at::kFloat);
  }
  /// The value of a pattern that is for a module.
  double of_pattern(const char* key, const std::string& module, double absent) const {
    const auto patterns = value(key, json::object());
    for (const auto& [pattern, number] : patterns.items()) {
      require<ConfigError>(number.is_number() && pattern.find_first_of("^$*+?()[]{}|\\") == std::string::npos, file(),
                           ": ", key, " has '", pattern,
                           "', and names of modules with numbers are read; write one for each");
      if (module == pattern || module.ends_with("." + pattern)) return number.get<double>();
    }
    return absent;
  }
  double scale_of(const std::string& module, int64_t rank) const {
    const double alpha = of_pattern("alpha_pattern", module, value("lora_alpha", 8.0));
    return alpha / (value("use_rslora", false) ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
  }
};

Adapter read_adapter(const std::string& folder) {
  const auto path = folder + "/adapter_config.json";
  require<CheckpointError>(fs::exists(path), folder,
                           ": has no adapter_config.json; name a folder that peft's "
                           "save_pretrained or `cloze export --to peft` wrote");
  Adapter adapter{.folder = folder,
                  .config = parse_json(read_text(path, 16 << 20)),
                  .tensors = SafeTensors::open(folder + "/adapter_model.safetensors")};
  require<ConfigError>(adapter.config.is_object(), path, ": is no JSON object");
  const auto type = adapter.value<std::string>("peft_type", "none");
  require<ConfigError>(type == "LORA", path, ": peft_type is ", type, ", and LORA is what is read");
  for (const auto* key : {"use_dora", "lora_bias", "use_qalora"})
    require<ConfigError>(!adapter.value(key, false), path, ": ", key,
                         " is true, which is not computed here; merge the adapter in peft (merge_and_unload), and "
                         "import the whole model");
  require<ConfigError>(adapter.value<std::string>("bias", "none") == "none", path,
                       ": bias is trained, which is not read; merge the adapter in peft (merge_and_unload), and import "
                       "the whole model");
  return adapter;
}

/// Throws CheckpointError for an adapter of another base than this.
void require_base(const Adapter& adapter, const LoadedRun& base) {
  const auto found = adapter.tensors.metadata().find(base_key);
  const auto weights = weights_fingerprint(base.checkpoint);
  if (found == adapter.tensors.metadata().end() || found->second.empty()) return;
  require<CheckpointError>(found->second == weights, adapter.folder, ": was trained beside weights with the XXH3 ",
                           found->second, ", and ", base.checkpoint, " has others (", weights,
                           "); name the run that it is of with --base");
}

/// The names that targets have here, of the modules that the adapter has.
std::vector<std::string> targets_in(const Adapter& adapter, const RunConfig& config, const Network& network) {
  std::vector<std::string> targets;
  for (const auto& named : collect_params(network)) {
    if (named.param.is_of_head() || named.param.value().dim() != 2 || !named.name.ends_with(weight_suffix)) continue;
    const auto modules = modules_of(config, named);
    for (size_t k = 0; k < modules.size(); ++k) {
      if (!adapter.tensors.contains(concat(peft_prefix, modules[k].module, ".lora_A.weight"))) continue;
      for (const auto& rows : rows_of_layer(without_weight(named.name)))
        if (rows.parts * std::ssize(modules) == rows.of && rows.first == static_cast<int64_t>(k) * rows.parts &&
            !contains(targets, rows.name))
          targets.push_back(rows.name);
    }
  }
  require<ConfigError>(!targets.empty(), adapter.folder, ": no module of its base_model is one of this ",
                       kind_of(config.model), "; name the run that it is of with --base");
  return targets;
}

/// The head that an adapter has and its base has not.
Objectives objectives_of(const Adapter& adapter, const RunConfig& base) {
  const auto type = adapter.value<std::string>("task_type", "");
  const bool has_head = !base.objectives.empty() && task_head_of(base.objectives[0]);
  if (has_head || (type != "SEQ_CLS" && type != "TOKEN_CLS" && type != "QUESTION_ANS")) return base.objectives;
  std::string kind = type == "TOKEN_CLS" ? "tagging" : type == "QUESTION_ANS" ? "spans" : "classification";
  TaskHeadTerms terms;
  const auto names = huggingface_names(base.model, kind + ".output.weight");
  const auto output = names.empty() ? "" : peft_prefix + names[0];
  require<CheckpointError>(adapter.tensors.contains(output), adapter.folder, ": task_type is ", type,
                           ", and its tensors have no head ('", output,
                           "'), which its base has neither; save it with "
                           "modules_to_save");
  const auto outputs = adapter.tensors.get(output).size(0);
  if (kind == "classification" && outputs == 1) return {task_head_objective("regression", terms)};
  for (int64_t i = 0; i < outputs && kind != "spans"; ++i) terms.labels.push_back(concat("LABEL_", i));
  return {task_head_objective(kind, terms)};
}

/// The adaptation that has room for all products of the adapter.
LoraAdaptation adaptation_of(const Adapter& adapter, const std::vector<std::string>& targets) {
  int64_t rank = 0;
  for (const auto& name : adapter.tensors.names())
    if (name.ends_with(".lora_A.weight")) rank = std::max(rank, adapter.tensors.get(name).size(0));
  LoraAdaptation lora{.rank = rank, .alpha = adapter.value("lora_alpha", 8.0), .targets = targets};
  lora.rank_stabilized = adapter.value("use_rslora", false);
  lora.dropout = adapter.value("lora_dropout", 0.0);
  return lora;
}

/// Copies the products of a module into a part of a matrix, whose scale may be another.
void copy_factors(Adapter& adapter, const ModuleRows& rows, const LowRank& part) {
  if (part.first < rows.first_here || part.first + part.rows() > rows.first_here + rows.count) return;
  const auto a = adapter.take(rows.module + ".lora_A.weight"), b = adapter.take(rows.module + ".lora_B.weight");
  if (!a.defined() && !b.defined()) return;
  const auto columns = part.a.value().size(1);
  require<CheckpointError>(a.defined() && b.defined() && a.dim() == 2 && b.dim() == 2 && a.size(1) == columns &&
                               b.size(0) == rows.of && b.size(1) == a.size(0),
                           adapter.folder, ": the factors of ", rows.module, " do not fit its matrix of ", rows.of,
                           " x ", columns, "; name the run that it is of with --base");
  const auto rank = a.size(0);
  part.a.value().zero_();
  part.a.value().narrow(0, 0, rank).copy_(a);
  const auto own = b.narrow(0, rows.first_there + part.first - rows.first_here, part.rows());
  part.b.value().narrow(1, 0, rank).copy_(own * (adapter.scale_of(rows.module, rank) / part.scale));
}

/// Copies the head; what is not there has to be in the base.
void copy_heads(Adapter& adapter, const RunConfig& config, const Network& network, const InitReport& from_base) {
  const auto prefix = prefix_of_class(config);
  for (const auto& [name, param] : own_params(collect_params(network))) {
    const auto names = huggingface_names(config.model, name);
    if (names.empty()) continue;
    const auto tensor = adapter.take(name_in_class(names[0], prefix));
    require<CheckpointError>(tensor.defined() || contains(from_base.copied, name), adapter.folder, ": has no tensor '",
                             peft_prefix, names[0],
                             "', and its base has none; save the head with "
                             "modules_to_save");
    if (!tensor.defined()) continue;
    const auto value = from_huggingface(config.model, name, tensor);
    require<CheckpointError>(value.sizes() == param.value().sizes(), adapter.folder, ": ", peft_prefix, names[0],
                             " has the shape ", value.sizes(), ", and the head has ", param.value().sizes());
    param.value().copy_(value);
  }
}

}  // namespace

ImportReport import_peft(const std::string& folder, const std::string& path, const std::string& run) {
  require<ConfigError>(!fs::exists(run), run, ": exists; name another --out");
  auto adapter = read_adapter(folder);
  const auto base = open_run(path);
  require_base(adapter, base);
  auto config = base.config;
  config.init = {.from = fs::absolute(base.folder).lexically_normal().string()};
  config.freeze = {};
  config.task = {};
  config.train.phases.clear();
  config.objectives = objectives_of(adapter, base.config);
  Network network(config.model, config.objectives);
  config.adaptation.kind = adaptation_of(adapter, targets_in(adapter, config, network));
  network.adapt(config.adaptation.kind);
  const auto params = collect_params(network);
  initialize(params, backbone_of(config.model).initializer_range, false, Rng(1));
  const auto checkpoint = fs::absolute(base.checkpoint).lexically_normal().string();
  const auto from_base = init_from(checkpoint, network, base.tokenizer);
  ImportReport report;
  report.architecture = "LoRA beside " + base.checkpoint;
  {
    at::NoGradGuard no_grad;
    for (const auto& named : params)
      for (const auto& part : named.param.low_rank() ? named.param.low_rank()->parts : std::vector<LowRank>())
        for (const auto& rows : modules_of(config, named)) copy_factors(adapter, rows, part);
    copy_heads(adapter, config, network, from_base);
  }
  for (const auto& name : adapter.tensors.names())
    if (!adapter.used.contains(name)) report.ignored.push_back(name);
  report.tensors = std::ssize(adapter.used);
  const auto own = own_params(params);
  for (const auto& named : own) report.parameters += named.param.value().numel();
  StagedFolder staged(run);
  if (base.has_tokenizer) base.tokenizer.save(staged.path() + "/tokenizer");
  const MadeBy made_by{.config = to_yaml(config),
                       .tokenizer = base.has_tokenizer ? base.tokenizer.fingerprint() : std::string()};
  write_atomic(staged.path() + "/run.yaml", made_by.config);
  json origin{{"imported_from", folder}, {"architecture", report.architecture}, {"cloze", CLOZE_VERSION}};
  if (!made_by.tokenizer.empty()) origin["tokenizer"] = made_by.tokenizer;
  write_atomic(staged.path() + "/provenance.json", json_text(origin, 2) + "\n");
  if (fs::exists(base.folder + "/" + imported_folder))
    fs::copy(base.folder + "/" + imported_folder, staged.path() + "/" + imported_folder, fs::copy_options::recursive);
  record_made_by(staged.path(), made_by);
  TrainState state;
  state.base = recorded_base(from_base, network);
  save_checkpoint(staged.path(), state, own, {}, {}, {}, made_by);
  staged.commit();
  return report;
}

}  // namespace cloze
