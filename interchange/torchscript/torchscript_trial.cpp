#include "interchange/torchscript/torchscript_trial.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <array>

#include "core/error.h"
#include "inference/generation/generate.h"
#include "interchange/interchange.h"
#include "interchange/torchscript/torchscript_parts.h"
#include "models/attention/kinds.h"

namespace cloze {

namespace {

/// The inputs of a file in the order of its arguments, which are those that a case has; by what they are stored.
constexpr std::array<std::pair<const char*, Tensor Inputs::*>, 6> arguments_of_forward{
    {{"input_ids.", &Inputs::input_ids},
     {"attention_mask.", &Inputs::attention_mask},
     {"global_attention_mask.", &Inputs::global_attention_mask},
     {"token_type_ids.", &Inputs::token_type_ids},
     {"decoder_input_ids.", &Inputs::decoder_input_ids},
     {"prefix.", &Inputs::prefix}}};

/// Inputs of other shapes than in tracing, with and without padding.
std::vector<Inputs> make_cases(const Network& network, bool generative) {
  const auto& c = transformer_of(network.model_config());
  std::vector<Inputs> cases;
  const int64_t longest = std::min<int64_t>(c.max_input_length(), 160);
  for (const auto& [rows, length] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, std::min<int64_t>(11, longest)}, {2, longest}}) {
    const auto ids = at::arange(rows * length, at::kLong).mul(7919).remainder(c.vocab_size).view({rows, length});
    auto mask = at::ones({rows, length}, at::kBool);
    if (rows > 1 && length > 3) mask[rows - 1].narrow(0, length - 3, 3).fill_(false);
    Tensor global;
    if (std::holds_alternative<WindowAttention>(*c.attention) && !generative) {
      global = ids.remainder(7).eq(3);
      global[0].fill_(false);  // one row without any
    }
    auto& made = cases.emplace_back(Inputs{.input_ids = ids, .attention_mask = mask, .global_attention_mask = global});
    if (!generative) made.token_type_ids = ids.remainder(c.type_vocab_size);
    const auto decoded = decodes_text(network) ? length : length / 2 + 1;
    if (c.is_encoder_decoder()) made.decoder_input_ids = ids.slice(1, 0, decoded).mul(3).remainder(c.vocab_size);
    if (takes_prefix(network)) made.prefix = at::arange(rows, at::kLong).mul(length).floor_divide(2);
  }
  return cases;
}

NetworkOutputs run_network(Network& network, const Inputs& inputs) {
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

/// A text must leave room for the generated tokens, and rules must leave a search more tokens than it compares: those
/// that are forbidden have equal scores.
bool generates_from(const ExportTrial& trial, const Inputs& texts, const TestSearch& search) {
  const auto& model = trial.model();
  const int64_t length = texts.input_ids.size(1), prompt = model.is_encoder_decoder() ? 1 : length;
  const int64_t forbidden = search.no_repeat_ngram_size == 1 ? prompt + test_tokens + 1 : 0;  // and the end of a text
  return trial.generates && length + test_tokens <= model.max_input_length() &&
         forbidden + 2 * search.num_beams <= model.vocab_size;
}

double difference(const Tensor& got, const Tensor& wanted) {
  if (got.sizes() != wanted.sizes()) return 1e30;
  return (got.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>();
}

std::string shape_text(const Tensor& ids) { return concat(ids.size(0), "x", ids.size(1)); }

/// The largest error of each output of case `k`. Throws CheckpointError if one is beyond the tolerance.
void compare_outputs(const ExportTrial& trial, size_t k, const SafeTensors& results, double tolerance,
                     std::map<std::string, double>& errors) {
  for (const auto& [name, wanted] : run_network(trial.network, trial.cases[k])) {
    const auto got = results.get(name + "." + std::to_string(k));
    const double error = difference(got, wanted);
    const double scale = std::max(1.0, wanted.abs().max().item<double>());
    require<CheckpointError>(error <= tolerance * scale, "the exported file differs from the model: output '", name,
                             "' at shape ", shape_text(trial.cases[k].input_ids), " by ", error, " (tolerance ",
                             tolerance * scale, "); nothing was written");
    errors[name] = std::max(errors[name], error);
  }
}

/// Throws CheckpointError if the file generates other ids for case `k` than the network.
void compare_searches(const ExportTrial& trial, size_t k, const SafeTensors& results,
                      std::map<std::string, double>& errors) {
  const auto& texts = trial.cases[k];
  const int64_t prompt = trial.model().is_encoder_decoder() ? 1 : texts.input_ids.size(1);
  for (const auto& search : test_searches) {
    if (!generates_from(trial, texts, search)) continue;
    const auto got = results.get(concat("generate.", search.name, ".", k)).slice(1, prompt);
    require<CheckpointError>(at::equal(got, generated_tokens(trial.network, texts, search)),
                             "the exported file generates other text than the model, with ", search.name, ", at shape ",
                             shape_text(texts.input_ids), "; nothing was written");
    errors[concat("generate, ", search.name)] = 0;
  }
}

}  // namespace

ExportTrial make_trial(Network& network, bool bf16) {
  const bool generative = is_exported_as_generative(network);
  // Searches are compared in float32: rounding to bf16 makes ties.
  return {.network = network,
          .cases = make_cases(network, generative),
          .generates = generative && !bf16 && can_generate(network),
          .bf16 = bf16};
}

std::vector<NetworkOutputs> outputs_now(const ExportTrial& trial) {
  std::vector<NetworkOutputs> all;
  for (const auto& one : trial.cases) all.push_back(run_network(trial.network, one));
  return all;
}

std::map<std::string, double> differences(const std::vector<NetworkOutputs>& outputs, const SafeTensors& results) {
  std::map<std::string, double> largest;
  for (size_t k = 0; k < outputs.size(); ++k)
    for (const auto& [name, wanted] : outputs[k])
      largest[name] = std::max(largest[name], difference(results.get(concat(name, ".", k)), wanted));
  return largest;
}

std::vector<NamedTensor> stored_inputs(const ExportTrial& trial) {
  std::vector<NamedTensor> inputs;
  for (size_t k = 0; k < trial.cases.size(); ++k) {
    const auto& one = trial.cases[k];
    const auto number = std::to_string(k);
    for (const auto& [name, input] : arguments_of_forward)
      if ((one.*input).defined()) inputs.push_back({name + number, one.*input});
    for (const auto& search : test_searches) {
      if (!generates_from(trial, one, search)) continue;
      const auto mask = prompt_mask(trial.model(), one, search);
      inputs.push_back(
          {concat("generate.", search.name, ".", k), mask.defined() ? mask.contiguous() : at::empty({0}, at::kBool)});
    }
  }
  return inputs;
}

std::vector<std::string> case_shapes(const ExportTrial& trial) {
  std::vector<std::string> shapes;
  for (const auto& one : trial.cases) shapes.push_back(shape_text(one.input_ids));
  return shapes;
}

std::map<std::string, double> errors_of(const ExportTrial& trial, const SafeTensors& results, double tolerance) {
  std::map<std::string, double> errors;
  for (size_t k = 0; k < trial.cases.size(); ++k) {
    compare_outputs(trial, k, results, tolerance, errors);
    compare_searches(trial, k, results, errors);
  }
  return errors;
}

void run_torchscript(const std::string& script, const std::string& cases, const std::string& out) try {
  at::NoGradGuard no_grad;
  auto module = torch::jit::load(script);
  const auto stored = SafeTensors::open(cases);
  std::vector<NamedTensor> results;
  for (int64_t k = 0; stored.contains("input_ids." + std::to_string(k)); ++k) {
    const auto number = std::to_string(k);
    torch::jit::Stack arguments;
    for (const auto& [name, input] : arguments_of_forward)
      if (stored.contains(name + number)) arguments.emplace_back(stored.get(name + number));
    for (const auto& search : test_searches) {
      const auto key = concat("generate.", search.name, ".", number);
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
} catch (const Error&) {
  throw;
} catch (const std::bad_alloc&) {
  throw;
} catch (const std::exception& fault) {  // of LibTorch, in many types
  const std::string what = fault.what();
  fail<CheckpointError>(script, ": cannot be run (", what.substr(0, what.find('\n')),
                        "); it is damaged, or no TorchScript of `cloze export`: export it again");
}

}  // namespace cloze
