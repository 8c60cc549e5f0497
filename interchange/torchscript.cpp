#include <spawn.h>
#include <sys/wait.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/tensor/safetensors.h"
#include "generation/generate.h"
#include "interchange/huggingface_classes.h"
#include "interchange/interchange.h"
#include "interchange/torchscript_parts.h"

extern char** environ;

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

torch::jit::Module mirror(const Layer& layer, const std::string& type) {
  torch::jit::Module module{c10::QualifiedName(type)};
  module.register_attribute("training", c10::BoolType::get(), false);
  for (const auto& [name, param] : layer.own_params())
    module.register_parameter(name, param.value(), /*is_buffer=*/false);
  for (const auto& [name, child] : layer.children()) {
    const bool number = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    module.register_module(name, mirror(*child, type + (number ? "_" : ".") + name));
  }
  return module;
}

void add_traced(torch::jit::Module& module, const std::string& name, const torch::jit::Stack& example,
                const std::vector<std::string>& arguments,
                const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f) {
  at::NoGradGuard no_grad;
  const auto [state, result] = torch::jit::tracer::trace(
      example,
      [&](torch::jit::Stack in) -> torch::jit::Stack {
        std::vector<Tensor> inputs;
        for (const auto& value : in) inputs.push_back(value.toTensor());
        std::vector<c10::IValue> tensors;
        for (const auto& tensor : f(inputs)) tensors.emplace_back(tensor);
        return {c10::ivalue::Tuple::create(std::move(tensors))};
      },
      [](const torch::autograd::Variable&) { return std::string(); }, /*strict=*/true, /*force_outplace=*/false,
      &module, arguments);
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), name), state->graph));
}

namespace {

/// Inputs of other shapes than in tracing, with and without padding.
std::vector<Inputs> make_cases(const Network& network, bool generative) {
  const auto& c = backbone_of(network.model_config());
  std::vector<Inputs> cases;
  const int64_t longest = std::min<int64_t>(c.max_input_length(), 160);
  for (const auto& [rows, length] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, std::min<int64_t>(11, longest)}, {2, longest}}) {
    const auto ids = at::arange(rows * length, at::kLong).mul(7919).remainder(c.vocab_size).view({rows, length});
    auto mask = at::ones({rows, length}, at::kBool);
    if (rows > 1 && length > 3) mask[rows - 1].narrow(0, length - 3, 3).fill_(false);
    Tensor global;
    if (std::holds_alternative<WindowAttention>(c.attention) && !generative) {
      global = ids.remainder(7).eq(3);
      global[0].fill_(false);  // one row without any
    }
    auto& made = cases.emplace_back(Inputs{.input_ids = ids, .attention_mask = mask, .global_attention_mask = global});
    if (!generative) made.token_type_ids = ids.remainder(c.type_vocab_size);
    if (c.is_encoder_decoder()) made.decoder_input_ids = ids.slice(1, 0, length / 2 + 1).mul(3).remainder(c.vocab_size);
    if (takes_prefix(network)) made.prefix = at::arange(rows, at::kLong).mul(length).floor_divide(2);
  }
  return cases;
}

std::string shape_text(const Tensor& ids) { return words(ids.size(0), "x", ids.size(1)); }

std::vector<std::pair<std::string, Tensor>> run_network(Network& network, const Inputs& inputs) {
  at::NoGradGuard no_grad;
  return network.outputs(inputs);
}

/// A search to test `generate` with.
struct TestSearch {
  const char* name;
  int64_t num_beams = 1, no_repeat_ngram_size = 0, min_new_tokens = 0;
  double repetition_penalty = 1;
  bool has_rules() const { return no_repeat_ngram_size > 0; }
};
constexpr int64_t test_tokens = 6;
constexpr std::array<TestSearch, 4> test_searches{
    {{.name = "1 beam"},
     {.name = "3 beams", .num_beams = 3},
     {.name = "1 beam with rules", .no_repeat_ngram_size = 2, .min_new_tokens = 5, .repetition_penalty = 1.3},
     {.name = "3 beams with rules",
      .num_beams = 3,
      .no_repeat_ngram_size = 1,
      .min_new_tokens = 4,
      .repetition_penalty = 0.8}}};

/// The attention mask of the texts of a case, for `generate`; undefined: no padding. Prompts of a decoder are padded on
/// the left; with rules they are not padded, because the n-grams of the file include padding and those of the network
/// do not.
Tensor prompt_mask(const BackboneConfig& model, const Inputs& texts, const TestSearch& search) {
  if (model.is_encoder_decoder()) return texts.attention_mask;
  return search.has_rules() ? Tensor() : texts.attention_mask.flip(1);
}

/// The ids that the network generates for the texts of a case, in the layout of the file's `generate`.
Tensor generated_tokens(Network& network, const Inputs& texts, const TestSearch& search) {
  const auto& model = backbone_of(network.model_config());
  const auto decoding = decoding_ids_of(network.model_config());
  const auto& ids_of_texts = texts.input_ids;
  const auto mask = prompt_mask(model, texts, search);
  std::vector<Prompt> prompts;
  for (int64_t row = 0; row < ids_of_texts.size(0); ++row) {
    const auto real = mask.defined() ? ids_of_texts[row].masked_select(mask[row]) : ids_of_texts[row].contiguous();
    const std::vector<int64_t> text(real.data_ptr<int64_t>(), real.data_ptr<int64_t>() + real.numel());
    prompts.push_back(model.is_encoder_decoder() ? Prompt{.source = text, .prefix = {decoding.decoder_start_token_id}}
                                                 : Prompt{.prefix = text});
  }
  const SearchConfig config{.max_new_tokens = test_tokens,
                            .min_new_tokens = search.min_new_tokens,
                            .num_beams = search.num_beams,
                            .repetition_penalty = search.repetition_penalty,
                            .no_repeat_ngram_size = search.no_repeat_ngram_size,
                            .eos_token_id = model.eos_token_id,
                            .pad_token_id = model.pad_token_id,
                            .forced_bos_token_id = decoding.forced_bos_token_id,
                            .forced_eos_token_id = decoding.forced_eos_token_id};
  const auto lists = generate_ids(network, prompts, config);
  size_t longest = 0;
  for (size_t row = 0; row < lists.size(); ++row)
    longest = std::max(longest, lists[row][0].ids.size() - prompts[row].prefix.size());
  const bool fill_with_eos = search.num_beams > 1 && model.pad_token_id == 0 && model.eos_token_id >= 0;
  std::vector<Tensor> rows;
  for (size_t row = 0; row < lists.size(); ++row) {
    std::vector<int64_t> ids(lists[row][0].ids.begin() + static_cast<int64_t>(prompts[row].prefix.size()),
                             lists[row][0].ids.end());
    ids.resize(longest, fill_with_eos ? model.eos_token_id : model.pad_token_id);
    rows.push_back(at::tensor(ids, at::kLong));
  }
  return at::stack(rows);
}

/// The module of a two-stream network: outputs of the content stream at all positions, or with target_mapping those of
/// the query stream at its target positions.
torch::jit::Module two_stream_module(Network& network) {
  auto module = mirror(network, "Cloze");
  const auto ids = at::zeros({2, 4}, at::kLong), mask = at::ones({2, 4}, at::kBool),
             visible = at::ones({2, 4, 4}, at::kBool), targets = at::ones({2, 2}, at::kLong);
  std::vector<std::string> names;
  const auto run = [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> tensors;
    names.clear();
    for (const auto& [name, tensor] : network.outputs({.input_ids = in[0],
                                                       .attention_mask = in[1],
                                                       .token_type_ids = in[2],
                                                       .visible = in[3],
                                                       .target_positions = in.size() > 4 ? in[4] : Tensor()})) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    return tensors;
  };
  add_traced(module, "_content", {ids, mask, ids, visible},
             {"input_ids", "attention_mask", "token_type_ids", "visible"}, run);
  add_traced(module, "_query", {ids, mask, ids, visible, targets},
             {"input_ids", "attention_mask", "token_type_ids", "visible", "target_positions"}, run);
  const auto dict = outputs_code(names);
  module.define(
      "def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None, token_type_ids: Optional[Tensor] "
      "= None, perm_mask: Optional[Tensor] = None, target_mapping: Optional[Tensor] = None) -> Dict[str, Tensor]:\n" +
      ids_check(backbone_of(network.model_config()), "input_ids", "attention_mask") +
      "    mask = torch.ones_like(input_ids, dtype=11)\n    if attention_mask is not None:\n        mask = "
      "torch.ne(attention_mask, 0)\n"
      "    types = torch.zeros_like(input_ids)\n    if token_type_ids is not None:\n        types = token_type_ids\n"
      "    visible = torch.ones([input_ids.size(0), input_ids.size(1), input_ids.size(1)], dtype=11, "
      "device=input_ids.device)\n    if perm_mask is not None:\n        visible = torch.eq(perm_mask, 0)\n"
      "    if target_mapping is not None:\n"
      "        targets = torch.argmax(target_mapping, -1)\n        targets = "
      "torch.where(torch.eq(torch.sum(target_mapping, -1), 0), torch.full_like(targets, -1), targets)\n"
      "        out = self._query(input_ids, mask, types, visible, targets)\n        return " +
      dict +
      "\n"
      "    out = self._content(input_ids, mask, types, visible)\n    return " +
      dict + "\n");
  return module;
}

}  // namespace

std::string outputs_code(const std::vector<std::string>& names) {
  std::string code;
  for (size_t i = 0; i < names.size(); ++i) code += words(i ? ", " : "{", '"', names[i], "\": out[", i, "]");
  return code + "}";
}

std::string ids_check(const BackboneConfig& model, const std::string& name, const std::string& mask) {
  const auto max_id = std::to_string(model.vocab_size - 1);
  std::string code = "    assert " + name + ".dim() == 2 and " + name + ".numel() > 0, \"ids are [batch, length]\"\n" +
                     "    assert int(torch.min(" + name + ")) >= 0 and int(torch.max(" + name + ")) <= " + max_id +
                     ", \"ids of this model are from 0 to " + max_id + "\"\n";
  if (!mask.empty())
    code += "    if " + mask + " is not None:\n        assert " + mask + ".size() == " + name + ".size(), \"" + mask +
            " must have the shape of " + name + "\"\n";
  return code;
}

std::string length_check(const BackboneConfig& model, const std::string& length, const std::string& message) {
  if (model.max_input_length() == BackboneConfig::unlimited_length) return "";
  return words("    assert ", length, " <= ", model.max_input_length(), ", \"this model accepts at most ",
               model.max_input_length(), " tokens: ", message, "\"\n");
}

namespace {

/// True if the model is exported with generative_module(): an encoder-decoder model, one of a family of decoders, or a
/// decoder with a prefix.
bool is_exported_as_generative(const Network& network) {
  const auto& model = network.model_config();
  return backbone_of(model).is_encoder_decoder() || default_architecture(model) == Architecture::decoder ||
         takes_prefix(network);
}

torch::jit::Module traced_module(Network& network) {
  if (is_exported_as_generative(network)) return generative_module(network);
  if (backbone_of(network.model_config()).is_two_stream()) return two_stream_module(network);
  auto module = mirror(network, "Cloze");
  const bool window = std::holds_alternative<WindowAttention>(backbone_of(network.model_config()).attention);
  auto global = at::zeros({2, 4}, at::kBool);
  global[0][0] = true;
  const auto ids = at::zeros({2, 4}, at::kLong);
  torch::jit::Stack example{ids, at::ones({2, 4}, at::kBool), ids};
  std::vector<std::string> arguments{"input_ids", "attention_mask", "token_type_ids"};
  if (window) {
    example.emplace_back(global);
    arguments.emplace_back("global_attention_mask");
  }
  std::vector<std::string> names;
  const auto [state, result] = torch::jit::tracer::trace(
      example,
      [&](torch::jit::Stack in) -> torch::jit::Stack {
        std::vector<c10::IValue> tensors;
        for (const auto& [name, tensor] :
             run_network(network, {.input_ids = in[0].toTensor(),
                                   .attention_mask = in[1].toTensor(),
                                   .token_type_ids = in[2].toTensor(),
                                   .global_attention_mask = window ? in[3].toTensor() : Tensor()})) {
          names.push_back(name);
          tensors.emplace_back(tensor);
        }
        return {c10::ivalue::Tuple::create(std::move(tensors))};
      },
      [](const torch::autograd::Variable&) { return std::string(); }, /*strict=*/true, /*force_outplace=*/false,
      &module, arguments);
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "_traced"), state->graph));
  std::string code = ids_check(backbone_of(network.model_config()), "input_ids", "attention_mask") +
                     length_check(backbone_of(network.model_config()), "input_ids.size(1)") +
                     "    mask = torch.ones_like(input_ids, dtype=11)\n"
                     "    if attention_mask is not None:\n"
                     "        mask = torch.ne(attention_mask, 0)\n"
                     "    types = torch.zeros_like(input_ids)\n"
                     "    if token_type_ids is not None:\n"
                     "        types = token_type_ids\n";
  if (window) {
    const bool first =
        std::get<WindowAttention>(backbone_of(network.model_config()).attention).global_tokens == GlobalTokens::first;
    code += std::string("    everywhere = torch.") +
            (first ? "eq(torch.cumsum(torch.ones_like(input_ids), 1), 1)" : "zeros_like(input_ids, dtype=11)") +
            "\n"
            "    if global_attention_mask is not None:\n"
            "        everywhere = torch.ne(global_attention_mask, 0)\n";
  }
  // The order of the arguments is that of Hugging Face's classes.
  module.define(std::string("def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None, ") +
                (window ? "global_attention_mask: Optional[Tensor] = None, " : "") +
                "token_type_ids: Optional[Tensor] = None) -> Dict[str, Tensor]:\n" + code +
                "    out = self._traced(input_ids, mask, types" + (window ? ", everywhere" : "") + ")\n    return " +
                outputs_code(names) + "\n");
  return module;
}

void run_in_new_process(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  require<CheckpointError>(posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ) == 0, program,
                           ": cannot start a process to check the export (", system_reason(), ")");
  int status = 0;
  waitpid(child, &status, 0);
  require<CheckpointError>(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                           "the exported file fails in a new process; see the message above");
}

torch::jit::ExtraFilesMap extra_files(const LoadedRun& run, const json& provenance) {
  torch::jit::ExtraFilesMap files{{"run.yaml", to_yaml(run.config)}, {"provenance.json", provenance.dump(2)}};
  try {
    require_huggingface(run.config);
    files["config.json"] = huggingface_config(run.config).dump(2);
  } catch (const ConfigError&) {  // Hugging Face has no class for this model; run.yaml describes it
  }
  if (run.has_tokenizer)
    for (const auto& entry : fs::directory_iterator(run.folder + "/tokenizer"))
      files["tokenizer/" + entry.path().filename().string()] = read_text(entry.path().string());
  return files;
}

/// Writes a TorchScript file. LibTorch's own writer aborts if the disk is full; this one keeps the first error.
void write_module(const torch::jit::Module& module, const std::string& staged, const std::string& out,
                  const torch::jit::ExtraFilesMap& extra) {
  std::FILE* file = std::fopen(staged.c_str(), "wb");
  require<CheckpointError>(file != nullptr, out, ": cannot be written (", system_reason(), ")");
  std::string error;
  torch::jit::ExportModule(
      module,
      [&](const void* data, size_t bytes) {
        if (error.empty() && std::fwrite(data, 1, bytes, file) != bytes) error = system_reason();
        return bytes;
      },
      extra);
  if (error.empty() && (std::fflush(file) != 0 || fsync(fileno(file)) != 0)) error = system_reason();
  std::fclose(file);
  require<CheckpointError>(error.empty(), out, ": cannot be written (", error, ")");
}

}  // namespace

void run_torchscript(const std::string& script, const std::string& cases, const std::string& out) {
  at::NoGradGuard no_grad;
  auto module = torch::jit::load(script);
  const auto stored = SafeTensors::open(cases);
  std::vector<NamedTensor> results;
  for (int64_t k = 0; stored.contains("input_ids." + std::to_string(k)); ++k) {
    const auto number = std::to_string(k);
    torch::jit::Stack arguments{stored.get("input_ids." + number), stored.get("attention_mask." + number)};
    if (stored.contains("global_attention_mask." + number))
      arguments.emplace_back(stored.get("global_attention_mask." + number));
    if (stored.contains("token_type_ids." + number)) arguments.emplace_back(stored.get("token_type_ids." + number));
    for (const char* optional : {"decoder_input_ids.", "prefix."})
      if (stored.contains(optional + number)) arguments.emplace_back(stored.get(optional + number));
    for (const auto& search : test_searches) {
      const auto key = words("generate.", search.name, ".", number);
      if (!stored.contains(key)) continue;
      const auto mask = stored.get(key);
      const torch::jit::Stack settings{stored.get("input_ids." + number),
                                       mask.numel() > 0 ? c10::IValue(mask) : c10::IValue(),
                                       test_tokens,
                                       search.num_beams,
                                       1.0,
                                       false,
                                       search.no_repeat_ngram_size,
                                       search.repetition_penalty,
                                       int64_t{0},
                                       search.min_new_tokens};
      results.push_back({key, module.get_method("generate")(settings).toTensor().contiguous()});
    }
    const auto outputs = module.forward(arguments).toGenericDict();
    for (const auto& item : outputs)
      results.push_back({item.key().toStringRef() + "." + number, item.value().toTensor().clone()});
  }
  save_safetensors(out, results);
}

namespace {

/// An exported file and what it is tested on.
struct Trial {
  Network& network;
  std::vector<Inputs> cases;
  bool generates;  ///< searches are tested too
  bool bf16;

  const BackboneConfig& model() const { return backbone_of(network.model_config()); }
  /// A text must leave room for the generated tokens.
  bool generates_from(const Inputs& texts) const {
    return generates && texts.input_ids.size(1) + test_tokens <= model().max_input_length();
  }
};

Trial make_trial(Network& network, bool bf16) {
  const bool generative = is_exported_as_generative(network);
  // Searches are compared in float32: rounding to bf16 makes ties.
  return {.network = network,
          .cases = make_cases(network, generative),
          .generates = generative && !bf16 && can_generate(network),
          .bf16 = bf16};
}

/// The inputs of all cases, as `run_torchscript` reads them.
std::vector<NamedTensor> stored_inputs(const Trial& trial) {
  std::vector<NamedTensor> inputs;
  for (size_t k = 0; k < trial.cases.size(); ++k) {
    const auto& one = trial.cases[k];
    const auto number = std::to_string(k);
    const auto store = [&](const char* name, const Tensor& tensor) {
      if (tensor.defined()) inputs.push_back({name + number, tensor});
    };
    store("input_ids.", one.input_ids);
    store("attention_mask.", one.attention_mask);
    store("token_type_ids.", one.token_type_ids);
    store("decoder_input_ids.", one.decoder_input_ids);
    store("prefix.", one.prefix);
    store("global_attention_mask.", one.global_attention_mask);
    for (const auto& search : test_searches) {
      if (!trial.generates_from(one)) continue;
      const auto mask = prompt_mask(trial.model(), one, search);
      inputs.push_back(
          {words("generate.", search.name, ".", k), mask.defined() ? mask.contiguous() : at::empty({0}, at::kBool)});
    }
  }
  return inputs;
}

/// The largest error of each output of case `k`. Throws CheckpointError if one is beyond the tolerance.
void compare_outputs(const Trial& trial, size_t k, const SafeTensors& results, double tolerance,
                     std::map<std::string, double>& errors) {
  for (const auto& [name, wanted] : run_network(trial.network, trial.cases[k])) {
    const auto got = results.get(name + "." + std::to_string(k));
    const double error = got.sizes() == wanted.sizes()
                             ? (got.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>()
                             : 1e30;
    const double scale = trial.bf16 ? std::max(1.0, wanted.abs().max().item<double>()) : 1.0;
    require<CheckpointError>(error <= tolerance * scale, "the exported file differs from the model: output '", name,
                             "' at shape ", shape_text(trial.cases[k].input_ids), " by ", error, " (tolerance ",
                             tolerance * scale, "); nothing was written");
    errors[name] = std::max(errors[name], error);
  }
}

/// Throws CheckpointError if the file generates other ids for case `k` than the network.
void compare_searches(const Trial& trial, size_t k, const SafeTensors& results, std::map<std::string, double>& errors) {
  const auto& texts = trial.cases[k];
  if (!trial.generates_from(texts)) return;
  const int64_t prompt = trial.model().is_encoder_decoder() ? 1 : texts.input_ids.size(1);
  for (const auto& search : test_searches) {
    const auto got = results.get(words("generate.", search.name, ".", k)).slice(1, prompt);
    require<CheckpointError>(at::equal(got, generated_tokens(trial.network, texts, search)),
                             "the exported file generates other text than the model, with ", search.name, ", at shape ",
                             shape_text(texts.input_ids), "; nothing was written");
    errors[words("generate, ", search.name)] = 0;
  }
}

void move_file(const std::string& from, const std::string& to) {
  const bool renamed = rename(from.c_str(), to.c_str()) == 0;
  require<CheckpointError>(renamed, to, ": cannot be written (", system_reason(), ")");
}

json provenance_of(const LoadedRun& run, const std::string& dtype) {
  json provenance{{"cloze", CLOZE_VERSION}, {"run", run.folder}, {"checkpoint", run.checkpoint}, {"dtype", dtype}};
  if (fs::exists(run.folder + "/provenance.json"))
    provenance["run_provenance"] = parse_json(read_text(run.folder + "/provenance.json"));
  return provenance;
}

}  // namespace

Receipt export_torchscript(const std::string& path, const std::string& out, const std::string& dtype,
                           const std::string& self, const std::string& part, bool replace) {
  require<ConfigError>(!fs::is_directory(out), out, ": is a folder; name a file");
  require<ConfigError>(replace || !fs::exists(out), out,
                       ": already exists; name another file, or overwrite it with --force");
  auto run = open_run(path);
  if (part == "generator") take_generator(run);
  const bool bf16 = dtype == "bfloat16";
  if (bf16) convert_params(*run.network, at::kBFloat16);
  const auto provenance = provenance_of(run, dtype);
  const auto module = traced_module(*run.network).deepcopy();

  const StagedFolder folder(out);  // removed at the end, whatever happens; its files are moved one by one
  const auto staged = folder.path() + "/module", cases_file = folder.path() + "/cases",
             results_file = folder.path() + "/results", receipt_file = folder.path() + "/receipt";
  write_module(module, staged, out, extra_files(run, provenance));
  const auto trial = make_trial(*run.network, bf16);
  save_safetensors(cases_file, stored_inputs(trial));
  run_in_new_process(self, {"verify", "torchscript-run", staged, cases_file, results_file});

  Receipt receipt{.path = out, .largest_error = {}, .shapes = {}, .tolerance = bf16 ? 2e-2 : 1e-5, .passed = true};
  const auto results = SafeTensors::open(results_file);
  std::map<std::string, double> errors;
  for (size_t k = 0; k < trial.cases.size(); ++k) {
    receipt.shapes.push_back(shape_text(trial.cases[k].input_ids));
    compare_outputs(trial, k, results, receipt.tolerance, errors);
    compare_searches(trial, k, results, errors);
  }
  receipt.largest_error.assign(errors.begin(), errors.end());
  const json facts{{"file", fs::path(out).filename().string()},
                   {"dtype", dtype},
                   {"shapes", receipt.shapes},
                   {"largest_error", errors},
                   {"tolerance", receipt.tolerance},
                   {"compared_with", bf16 ? "the model in bfloat16" : "the model in float32"},
                   {"provenance", provenance}};
  write_atomic(receipt_file, facts.dump(2) + "\n");
  move_file(receipt_file, out + ".receipt.json");
  move_file(staged, out);
  return receipt;
}

}  // namespace cloze
