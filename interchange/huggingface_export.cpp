// A run as a Hugging Face folder.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/tensor/safetensors.h"
#include "interchange/exported_task.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_config.h"
#include "interchange/huggingface_tasks.h"
#include "interchange/interchange.h"
#include "interchange/model_card.h"
#include "objectives/network.h"
#include "run/checkpoints/checksums.h"
#include "run/checkpoints/milestones.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// Adds all token tables of an encoder-decoder model by name unless they are one; transformers ties those that are
/// missing from the file.
void write_all_tables(const LoadedRun& run, bool bare, std::vector<NamedTensor>& tensors) {
  const auto& c = backbone_of(run.config.model);
  if (!c.is_encoder_decoder() || (shares_embeddings(run.config.model) && c.tie_word_embeddings)) return;
  auto names = token_tables(run.config.model);
  const bool predicts_tokens = any_that(run.config.objectives, &ObjectiveKind::predicts_tokens);
  if (!predicts_tokens) names.pop_back();  // there is no output embedding
  if (bare)
    for (auto& name : names) name = name.substr(huggingface_prefix(run.config.model).size());
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
    const auto value = value_in_class(run.config, name, param.value().detach());
    const auto parts = to_huggingface(model, name, value).chunk(static_cast<int64_t>(names.size()));
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

/// config.json of a model that did not come in, with the ids of the tokenizer, else those that the model was imported
/// with. Unknown ones are null, which keeps transformers from taking the defaults of the class, ids of another
/// vocabulary.
nlohmann::json config_with_ids(const LoadedRun& run, bool trained) {
  const auto& model = backbone_of(run.config.model);
  const auto& text_ids = huggingface::family_of(run.config.model).text_ids;
  auto config = huggingface_config(run.config);
  const auto special = run.has_tokenizer ? run.tokenizer.special() : SpecialIds{};
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
  return config;
}

/// config.json of an export: of an imported model as it came in.
nlohmann::json exported_config(const LoadedRun& run, const std::optional<nlohmann::json>& of_origin) {
  // An imported run that was not trained is exported unchanged.
  const bool trained = run.state.step > 0;
  auto config = of_origin ? *of_origin : config_with_ids(run, trained);
  if (const auto pad = reader_of(run).pad; pad >= 0) config["pad_token_id"] = pad;
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

/// generation_config.json of an export: as it came in; of a run that is fine-tuned to generate the decoding of its
/// task, with the ids of config.json, which transformers then reads here.
nlohmann::json generation_of(const LoadedRun& run, const nlohmann::json& config, bool has_origin) {
  const auto task = exported_task(run);
  auto generation = task ? decoding_keys(task->task.config) : nlohmann::json::object();
  const auto origin = has_origin ? generation_of_origin(run) : nlohmann::json::object();
  if (generation.empty()) return origin;
  for (const auto* key : {"decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id",
                          "forced_bos_token_id", "forced_eos_token_id"})
    for (const auto* source : {&origin, &config})
      if (const auto found = source->find(key); found != source->end() && !found->is_null()) generation[key] = *found;
  return generation;
}

/// What stands in a folder and is neither its model card nor a file of the export that it is; empty: nothing.
std::string foreign_entry(const std::string& folder) {
  const auto path = folder + "/" + export_receipt;
  const auto receipt = fs::exists(path) ? parse_json(read_text(path, 64 << 20)) : nlohmann::json();
  const auto files = receipt.is_object() ? receipt.value("files", nlohmann::json()) : nlohmann::json();
  std::set<std::string> own{export_receipt, "README.md"};
  for (const auto& [file, facts] : files.items()) own.insert({file, fs::path(file).parent_path().string()});
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (const auto name = entry.path().lexically_relative(folder).generic_string(); !own.contains(name)) return name;
  return "";
}

/// Throws ConfigError unless a model folder may be written to `out`.
void require_free(const std::string& out, bool replace) {
  if (!fs::exists(out) || (fs::is_directory(out) && fs::is_empty(out))) return;
  require<ConfigError>(fs::exists(out + "/config.json"), out, ": exists and is not a model folder; name another --out");
  require<ConfigError>(replace, out, ": already exists; name another folder, or overwrite it with --force");
  const auto foreign = foreign_entry(out);
  require<ConfigError>(foreign.empty(), out, ": holds ", foreign,
                       ", which no export wrote and --force would remove; move it, or name another --out");
}

/// Throws ConfigError unless `out` may become the folder of these revisions, by name and checkpoint: it holds nothing
/// else, and them only where they may be replaced.
void require_free_for(const std::vector<std::pair<std::string, std::string>>& revisions, const std::string& out,
                      bool replace) {
  if (!fs::exists(out)) return;
  require<ConfigError>(fs::is_directory(out), out,
                       ": is not a folder for the folders of revisions; name another --out");
  for (const auto& entry : fs::directory_iterator(out)) {
    const auto name = entry.path().filename().string();
    const bool is_revision =
        std::any_of(revisions.begin(), revisions.end(), [&](const auto& one) { return one.first == name; });
    require<ConfigError>(is_revision || is_staged(name), out,
                         ": is not a folder for the folders of revisions (it holds ", name,
                         ", which is none of this run); name another --out");
    if (is_revision) require_free(entry.path().string(), replace);
  }
}

/// The last component of a folder's path.
std::string name_of_folder(const std::string& folder) {
  std::error_code unknown;
  auto path = fs::absolute(folder, unknown).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

/// The model card in `staged`, which takes the place of `replaced`: the one that is there, to which somebody may have
/// added the licence, or a new one. A link is not kept: what is elsewhere would be published.
void put_model_card(const LoadedRun& run, const std::string& architecture, const std::string& replaced,
                    const std::string& staged) {
  const auto before = replaced + "/README.md", card = staged + "/README.md";
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(before, error))) {
    write_atomic(card, model_card(run, name_of_folder(replaced), architecture));
    return;
  }
  fs::copy_file(before, card, error);
  require(!error, before, ": cannot be copied (", error.message(), "); move it elsewhere");
  log_info("export", before + " is kept as it was; remove it for a new model card");
}

/// Warns of what a fine-tuned run reads otherwise than pipelines of transformers will.
void warn_of_reading(const LoadedRun& run) {
  if (run.config.task.name.empty()) return;
  const auto task = exported_task(run);
  if (!task)
    return log_warning("export", concat(run.folder, ": the rows of its task are gone or damaged, so that ",
                                        "model_max_length is that of the network; restore ", run.config.data.tokens));
  for (const auto& note : reading_notes(run, task->task.config))
    if (note.is_lost) log_warning("export", note.sentence);
}

/// Writes a model folder, which takes the place of `replaced`, at once or with others.
void export_folder(const std::string& run, const std::string& out, const std::string& replaced,
                   const std::string& part) {
  auto opened = open_run(run);
  if (part == "generator") take_generator(opened);
  require_huggingface(opened.config);
  const bool bare = opened.config.objectives.empty();
  auto tensors = tensors_of(opened, bare);
  if (const auto prefix = prefix_of_class(opened.config); !prefix.empty())
    for (auto& tensor : tensors) tensor.name = name_in_class(tensor.name, prefix);
  const auto of_origin = part.empty() ? config_of_origin(opened) : std::nullopt;
  const auto config = exported_config(opened, of_origin);
  StagedFolder staged(out);
  write_atomic(staged.path() + "/config.json", config_text(config));
  if (const auto generation = generation_of(opened, config, of_origin.has_value()); !generation.empty())
    write_atomic(staged.path() + "/generation_config.json", json_text(generation, 2) + "\n");
  if (of_origin) write_sentence_modules(opened, config.at("architectures").at(0), staged.path());
  save_safetensors(staged.path() + "/model.safetensors", tensors);
  if (opened.has_tokenizer) save_tokenizer(opened, staged.path());
  warn_of_reading(opened);
  put_model_card(opened, config.at("architectures").at(0), replaced, staged.path());
  write_checksums(staged.path(), export_receipt, {{"format", "cloze-export"}, {"version", 1}});
  staged.commit();
}

}  // namespace

void export_huggingface(const std::string& run, const std::string& out, const std::string& part, bool replace) {
  sweep_unfinished(out);
  require_free(out, replace);
  export_folder(run, out, out, part);
}

std::vector<std::string> export_revisions(const std::string& run, const std::string& main_checkpoint,
                                          const std::string& out, const std::string& part, bool replace) {
  require<ConfigError>(
      fs::exists(run + "/run.yaml"), run,
      ": is not a run directory, and --revisions exports the checkpoints of one; name one, or leave out --revisions");
  const auto milestones = milestones_of(run);
  require<CheckpointError>(!milestones.empty(), run,
                           ": keeps no checkpoint for a number of words; train with checkpoint.at_words (babylm, or a "
                           "list), or leave out --revisions");
  std::vector<std::pair<std::string, std::string>> revisions;  // name, checkpoint
  for (const auto& [words, checkpoint] : milestones) revisions.emplace_back(revision_of(words), checkpoint);
  revisions.emplace_back("main", main_checkpoint);
  sweep_unfinished(out);
  require_free_for(revisions, out, replace);
  StagedFolder staged(out);  // all of them or none: some alone would be in the way of the next try
  std::vector<std::string> names;
  for (const auto& [name, checkpoint] : revisions) {
    export_folder(checkpoint, staged.path() + "/" + name, out + "/" + name, part);
    names.push_back(name);
  }
  staged.commit();
  return names;
}

}  // namespace cloze
