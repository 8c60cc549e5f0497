#include "interchange/huggingface.h"

#include <filesystem>

#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_config.h"
#include "interchange/huggingface_tasks.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;
using huggingface::Family;
using huggingface::heads_of;
using nlohmann::json;

namespace {

std::string kept_file(const std::string& run, const char* name) { return concat(run, "/", imported_folder, "/", name); }

void write_json(const std::string& path, const json& content) { write_atomic(path, json_text(content, 2) + "\n"); }

/// The model that a config.json describes, reduced to the stack of its class, and the objectives of its heads.
RunConfig described(const json& config, const std::string& path) {
  RunConfig run_config;
  run_config.model = read_model(config, path);
  run_config.objectives = objectives_of_class(huggingface::named_class(config), run_config.model, path);
  return run_config;
}

/// Gives `config` the keys of a family that are others in `now` than in `then`.
void set_changed(json& config, const Family& family, const json& then, const json& now) {
  for (const auto& key : family.table.keys) {
    const auto before = then.find(key.name), after = now.find(key.name);
    if (before == then.end() && after == now.end()) continue;
    if (before != then.end() && after != now.end() && *before == *after) continue;
    if (after == now.end())
      config.erase(key.name);
    else
      config[key.name] = *after;
  }
}

/// Takes out what does not hold for an export, whose weights are in float32 and which has no code and no other
/// vocabulary.
void remove_outdated(json& config, int64_t vocab_size, const std::string& path) {
  config.erase("torch_dtype");
  config["dtype"] = "float32";
  if (config.erase("auto_map") > 0)
    log_warning("export", concat(path, ": auto_map names code that does not come along; it is left out"));
  for (const auto* key : {"bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"})
    if (const auto id = config.find(key); id != config.end() && id->is_number() && *id >= vocab_size) *id = nullptr;
}

/// The keys of a generation_config.json. Source: transformers 5.23, GenerationConfig.
constexpr const char* keys_of_generation =
    "assistant_confidence_threshold assistant_early_exit assistant_lookbehind bad_words_ids begin_suppress_tokens "
    "bos_token_id cache_config cache_implementation compile_config constraints decoder_start_token_id disable_compile "
    "diversity_penalty do_sample dola_layers early_stopping encoder_no_repeat_ngram_size encoder_repetition_penalty "
    "eos_token_id epsilon_cutoff eta_cutoff exponential_decay_length_penalty force_words_ids forced_bos_token_id "
    "forced_decoder_ids forced_eos_token_id guidance_scale is_assistant length_penalty low_memory max_length "
    "max_matching_ngram_size max_new_tokens max_time min_length min_new_tokens min_p no_repeat_ngram_size "
    "num_assistant_tokens num_assistant_tokens_schedule num_beam_groups num_beams num_return_sequences "
    "output_attentions output_hidden_states output_logits output_scores pad_token_id penalty_alpha prefill_chunk_size "
    "prompt_lookup_num_tokens remove_invalid_values renormalize_logits repetition_penalty return_dict_in_generate "
    "sequence_bias stop_strings suppress_tokens target_lookbehind temperature token_healing top_k top_p "
    "transformers_version typical_p use_cache watermarking_config _from_model_config";

/// What a generation_config.json has under its own keys: as a link to another file it would publish that file.
json of_generation(const std::string& path) {
  auto config = read_json(path);
  const auto known = separated(keys_of_generation, " ");
  std::vector<std::string> others;
  for (const auto& [key, value] : config.items())
    if (!contains(known, key)) others.push_back(key);
  for (const auto& key : others) config.erase(key);
  if (!others.empty())
    log_warning("import",
                concat(path, ": has keys that it does not know, which are left out: ", shortened(first_few(others))));
  return config;
}

}  // namespace

void keep_origin(const HuggingFaceModel& model, const std::string& folder, const std::string& run) {
  const auto path = folder + "/config.json", generation = folder + "/generation_config.json";
  auto config = read_json(path);
  config["model_type"] = model_type_of(config, path);
  if (huggingface::named_class(config).empty()) config["architectures"] = {model.architecture};
  fs::create_directories(fs::path(kept_file(run, "config.json")).parent_path());
  write_json(kept_file(run, "config.json"), config);
  const auto dropouts = dropout_of_heads(config, huggingface::family_named(config["model_type"], path));
  if (!dropouts.empty()) write_json(kept_file(run, head_dropout_file), dropouts);
  if (fs::exists(generation)) write_json(kept_file(run, "generation_config.json"), of_generation(generation));
}

std::optional<json> config_of_origin(const LoadedRun& run) {
  const auto path = kept_file(run.folder, "config.json");
  if (!fs::exists(path)) return std::nullopt;
  auto config = read_json(path);
  const auto& family = huggingface::family_named(model_type_of(config, path), path);
  if (kind_of(family.table.model) != kind_of(run.config.model)) return std::nullopt;
  const auto came = described(config, path);
  const auto now = model_json(run.config.model, family);
  set_changed(config, family, model_json(came.model, family), now);
  const bool same_class = heads_of(came.objectives) == heads_of(run.config.objectives) &&
                          backbone_of(came.model).architecture == backbone_of(run.config.model).architecture;
  if (!same_class) config["architectures"] = {class_of_config(run.config, family)};
  // Keys that depend on each other say the same only together.
  const auto is_told = [&] { return model_json(described(config, path).model, family) == now; };
  if (!is_told()) config.update(now);
  if (!is_told()) return std::nullopt;
  // A head that nobody trained since is what the file says of it: one label without problem_type is no regression.
  if (!same_class || !run.config.task.name.empty()) write_task_head(config, family, run.config);
  remove_outdated(config, backbone_of(run.config.model).vocab_size, path);
  return config;
}

json generation_of_origin(const LoadedRun& run) {
  const auto path = kept_file(run.folder, "generation_config.json");
  return fs::exists(path) ? read_json(path) : json::object();
}

}  // namespace cloze
