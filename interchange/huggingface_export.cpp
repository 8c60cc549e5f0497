// A run as a Hugging Face folder.
#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/tensor/safetensors.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface_classes.h"
#include "interchange/interchange.h"
#include "objectives/objective.h"
#include "run/checksums.h"
#include "run/milestones.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// How the model reads text, for the export of its tokenizer.
TextReader reader_of(const ModelConfig& model) {
  const auto& c = backbone_of(model);
  return {.kind = kind_of(model),
          .segments = c.token_types && c.type_vocab_size > 1,
          .max_length = c.max_input_length() < BackboneConfig::unlimited_length ? c.max_input_length() : 0,
          .end = huggingface::family_of(model).is_generative() ? c.eos_token_id : -1};
}

/// Adds all token tables of an encoder-decoder model by name unless they are one; transformers ties those that are
/// missing from the file.
void write_all_tables(const LoadedRun& run, bool bare, std::vector<NamedTensor>& tensors) {
  const auto& c = backbone_of(run.config.model);
  if (!c.is_encoder_decoder() || (shares_embeddings(run.config.model) && c.tie_word_embeddings)) return;
  auto names = token_tables(run.config.model);
  if (bare) {
    names.pop_back();  // the head
    for (auto& name : names) name = name.substr(huggingface_prefix(run.config.model).size());
  }
  const auto contains = [&](const std::string& name) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  };
  const auto& encoder = run.network->backbone->embedding_tables()->word.value();
  const auto& decoder = run.network->backbone->token_embedding().value();
  for (size_t i = 0; i < names.size(); ++i)
    if (!contains(names[i])) tensors.push_back({names[i], (i < 2 ? encoder : decoder).detach()});
}

/// The parameters of a run by their names at Hugging Face; `bare`: without the prefix of the base model.
std::vector<NamedTensor> tensors_of(const LoadedRun& run, bool bare) {
  const auto& model = run.config.model;
  const auto prefix = huggingface_prefix(model);
  std::vector<NamedTensor> tensors;
  TensorMap halves;
  for (const auto& [name, param] : collect_params(*run.network)) {
    const auto names = huggingface_names(model, name);
    if (names.empty()) continue;  // the generator of a discriminator
    const auto parts = to_huggingface(model, name, param.value().detach()).chunk(static_cast<int64_t>(names.size()));
    for (size_t i = 0; i < names.size(); ++i) {
      const auto stored = bare ? names[i].substr(prefix.size()) : names[i];
      if (name_of_whole(stored) != stored)
        halves.emplace(stored, parts[i].contiguous());
      else
        tensors.push_back({stored, parts[i].contiguous()});
    }
    if (name.ends_with("lm.head.bias") && !backbone_of(model).tie_word_embeddings)
      for (const auto& alias : huggingface_aliases(model, name)) tensors.push_back({alias, param.value().detach()});
  }
  join_parts(halves);
  for (const auto& [name, tensor] : halves) tensors.push_back({name, tensor});
  write_all_tables(run, bare, tensors);
  return tensors;
}

/// config.json with the ids of the tokenizer, else those that the model was imported with. Unknown ones are null, which
/// keeps transformers from taking the defaults of the class, ids of another vocabulary.
nlohmann::json config_with_ids(const LoadedRun& run) {
  const auto& model = backbone_of(run.config.model);
  const auto& text_ids = huggingface::family_of(run.config.model).text_ids;
  auto config = huggingface_config(run.config);
  const auto special = run.has_tokenizer ? run.tokenizer.special() : SpecialIds{};
  // An imported run that was not trained is exported unchanged.
  const bool trained = run.state.step > 0;
  const auto known = [&](int64_t of_tokenizer, int64_t imported) {
    const auto id = of_tokenizer >= 0 ? of_tokenizer : imported;
    return id >= 0 && id < model.vocab_size ? nlohmann::json(id) : nlohmann::json();
  };
  const auto bos = known(model.prepend_bos ? special.cls : special.bos, model.bos_token_id),
             eos = known(special.eos, trained ? -1 : model.eos_token_id);  // of a trained encoder it is [SEP]
  if (!bos.is_null() || !config.contains("bos_token_id")) config["bos_token_id"] = bos;
  if (!config.contains("eos_token_id")) config["eos_token_id"] = eos;
  if (text_ids.contains("cls_token_id")) config["cls_token_id"] = known(special.cls, -1);
  if (text_ids.contains("sep_token_id")) config["sep_token_id"] = known(special.sep, -1);
  if (text_ids.contains("pad_token_id") && special.pad >= 0) config["pad_token_id"] = special.pad;
  const auto* streams = as<TwoStreamConfig>(run.config.model);
  if (streams && streams->bi_data && trained) {
    config["bi_data"] = false;
    log_info(
        "export",
        "bi_data only applies to training and is exported as false; if true, transformers reads the second half of "
        "every batch backwards");
  }
  return config;
}

/// Throws ConfigError unless a model folder may be written to `out`.
void require_free(const std::string& out, bool replace) {
  const bool occupied = fs::exists(out) && !(fs::is_directory(out) && fs::is_empty(out));
  const bool is_model = fs::exists(out + "/config.json");
  require<ConfigError>(!occupied || is_model, out, ": exists and is not a model folder; name another --out");
  require<ConfigError>(!occupied || replace, out,
                       ": already exists; name another folder, or overwrite it with --force");
}

}  // namespace

void export_huggingface(const std::string& run, const std::string& out, const std::string& part, bool replace) {
  require_free(out, replace);
  auto opened = open_run(run);
  if (part == "generator") take_generator(opened);
  require_huggingface(opened.config);
  const bool bare = opened.config.objectives.empty();
  const auto tensors = tensors_of(opened, bare);
  StagedFolder staged(out);
  write_atomic(staged.path() + "/config.json", json_text(config_with_ids(opened), 2) + "\n");
  save_safetensors(staged.path() + "/model.safetensors", tensors);
  if (opened.has_tokenizer) opened.tokenizer.save(staged.path(), reader_of(opened.config.model));
  write_checksums(staged.path(), export_receipt, {{"format", "cloze-export"}, {"version", 1}});
  staged.commit();
}

std::vector<std::string> export_revisions(const std::string& run, const std::string& main_checkpoint,
                                          const std::string& out, const std::string& part, bool replace) {
  require<ConfigError>(
      fs::exists(run + "/run.yaml"), run,
      ": is not a run directory, and --revisions exports the checkpoints of one; name one, or leave out --revisions");
  require<ConfigError>(!fs::exists(out) || (fs::is_directory(out) && !fs::exists(out + "/config.json")), out,
                       ": is not a folder for the folders of revisions; name another --out");
  const auto milestones = milestones_of(run);
  require<CheckpointError>(!milestones.empty(), run,
                           ": keeps no checkpoint for a number of words; train with checkpoint.at_words (babylm, or a "
                           "list), or leave out --revisions");
  std::vector<std::pair<std::string, std::string>> revisions;  // name, checkpoint
  for (const auto& [words, checkpoint] : milestones) revisions.emplace_back(revision_of(words), checkpoint);
  revisions.emplace_back("main", main_checkpoint);
  for (const auto& [name, checkpoint] : revisions) require_free(out + "/" + name, replace);
  fs::create_directories(out);
  std::vector<std::string> names;
  for (const auto& [name, checkpoint] : revisions) {
    export_huggingface(checkpoint, out + "/" + name, part, replace);
    names.push_back(name);
  }
  return names;
}

}  // namespace cloze
