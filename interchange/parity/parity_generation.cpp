// The generated texts of a golden case.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/contains.h"
#include "core/file.h"
#include "core/log.h"
#include "core/spelling.h"
#include "inference/generation/generate.h"
#include "interchange/huggingface/json_file.h"
#include "interchange/parity/parity_case.h"

namespace cloze {

namespace {

void read_early_stopping(SearchConfig& search, const nlohmann::json& settings, const std::string& path) {
  if (settings.contains("early_stopping") && settings["early_stopping"].is_boolean()) {
    search.early_stopping = settings["early_stopping"].get<bool>() ? EarlyStopping::yes : EarlyStopping::no;
    return;
  }
  std::string name = name_of(search.early_stopping);
  take(settings, "early_stopping", name, path);
  const auto names = any_of<EarlyStopping>().allowed;
  require<ConfigError>(contains(names, name), path, ": early_stopping is '", name, "', which is unknown",
                       did_you_mean(name, names));
  search.early_stopping = choice_of<EarlyStopping>(name);
}

/// Reads settings of a search; keys are those of transformers' GenerationConfig.
void read_search(SearchConfig& search, const nlohmann::json& settings, const std::string& path) {
  static const std::set<std::string> handled{"do_sample", "source", "early_stopping", "decoder_start_token_id",
                                             "use_cache"};
  const std::vector<std::pair<const char*, int64_t*>> counts{{"max_new_tokens", &search.max_new_tokens},
                                                             {"min_new_tokens", &search.min_new_tokens},
                                                             {"min_length", &search.min_length},
                                                             {"num_beams", &search.num_beams},
                                                             {"num_beam_groups", &search.num_beam_groups},
                                                             {"no_repeat_ngram_size", &search.no_repeat_ngram_size},
                                                             {"eos_token_id", &search.eos_token_id},
                                                             {"pad_token_id", &search.pad_token_id},
                                                             {"forced_bos_token_id", &search.forced_bos_token_id},
                                                             {"forced_eos_token_id", &search.forced_eos_token_id}};
  const std::vector<std::pair<const char*, double*>> factors{{"length_penalty", &search.length_penalty},
                                                             {"diversity_penalty", &search.diversity_penalty},
                                                             {"repetition_penalty", &search.repetition_penalty}};
  std::set<std::string> known = handled;
  for (const auto& [key, field] : counts) {
    take(settings, key, *field, path);
    known.insert(key);
  }
  for (const auto& [key, field] : factors) {
    take(settings, key, *field, path);
    known.insert(key);
  }
  read_early_stopping(search, settings, path);
  bool samples = false;
  take(settings, "do_sample", samples, path);
  require<ConfigError>(!samples, path, ": do_sample is true; sampled text cannot be compared");
  for (const auto& [key, value] : settings.items())
    if (!value.is_object() && known.count(key) == 0)
      log_warning("verify", concat(path, ": '", key, "' is ignored", did_you_mean(key, {known.begin(), known.end()})));
}

/// The first row of the inputs as a prompt, up to its last token; padding before that is kept, as in transformers.
Prompt prompt_of(const Batch& batch, const ModelConfig& model, const std::string& folder) {
  const auto row = batch.input_ids[0].contiguous();
  const auto mask =
      batch.attention_mask.defined() ? batch.attention_mask[0].contiguous() : at::ones_like(row, at::kBool);
  const auto* real = mask.data_ptr<bool>();
  int64_t length = row.numel();
  while (length > 0 && !real[length - 1]) --length;
  require<CheckpointError>(length > 0, folder,
                           "/inputs.safetensors: attention_mask hides the whole first row of input_ids, which is the "
                           "prompt of generation.json; give it a token");
  const std::vector<int64_t> ids(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + length);
  std::vector<bool> tokens(real, real + length);
  if (!contains(tokens, false)) tokens.clear();
  if (backbone_of(model).is_encoder_decoder())
    return {.source = ids, .source_mask = tokens, .prefix = {decoding_ids_of(model).decoder_start_token_id}};
  require<ConfigError>(tokens.empty() || !as<EncoderDecoderConfig>(model), folder,
                       "/inputs.safetensors: the first row of input_ids has padding before tokens, which moves their "
                       "positions in transformers' decoder of ",
                       kind_of(model), "; its text cannot be compared, so give a first row without that");
  return {.prefix = ids, .prefix_mask = tokens};
}

}  // namespace

std::map<std::string, Tensor> generate_case(Network& network, const Batch& batch, const std::string& folder) {
  std::map<std::string, Tensor> tensors;
  const auto path = folder + "/generation.json";
  if (!std::filesystem::exists(path)) return tensors;
  const auto j = read_json(path);
  const auto& model = backbone_of(network.model_config());
  const auto decoding = decoding_ids_of(network.model_config());
  const auto prompt = prompt_of(batch, network.model_config(), folder);
  const auto run = [&](const std::string& name, const nlohmann::json& settings) {
    SearchConfig search{.max_new_tokens = 20,
                        .eos_token_id = model.eos_token_id,
                        .pad_token_id = model.pad_token_id,
                        .forced_bos_token_id = decoding.forced_bos_token_id,
                        .forced_eos_token_id = decoding.forced_eos_token_id};
    read_search(search, j, path);  // those of all searches, then of this one
    read_search(search, settings, path);
    tensors["generated." + name] =
        at::tensor(generate_ids(network, {prompt}, search)[0][0].ids, at::kLong).unsqueeze(0);
  };
  run("greedy", nlohmann::json::object());
  for (const auto& [name, settings] : j.items())
    if (settings.is_object()) run(name, settings);
  return tensors;
}

}  // namespace cloze
