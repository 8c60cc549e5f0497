// The files by which sentence-transformers reads a Hugging Face folder: which states stand for a text.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "interchange/huggingface.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface/json_file.h"
#include "objectives/task_heads/task_heads.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* file_of_modules = "modules.json";

/// The keys of each file: a file may be a link to anything, of which no more is copied.
const std::map<std::string, std::set<std::string>> keys_of_files{
    {file_of_modules, {"idx", "name", "path", "type"}},
    {"sentence_bert_config.json",
     {"max_seq_length", "do_lower_case", "transformer_task", "modality_config", "module_output_name",
      "processing_kwargs", "unpad_inputs"}},
    {"config_sentence_transformers.json",
     {"__version__", "model_type", "prompts", "default_prompt_name", "similarity_fn_name"}},
    {"config.json",  // of a module
     {"word_embedding_dimension", "embedding_dimension", "include_prompt", "module_input_name", "module_output_name"}}};

json known_keys(const std::string& file, const json& content) {
  const auto& keys = keys_of_files.at(fs::path(file).filename().string());
  json known = json::object();
  for (const auto& [key, value] : content.items())
    if (keys.contains(key) || key.starts_with("pooling_mode")) known[key] = value;
  return known;
}

/// True for the name of a folder beside the others: a file of a module is nowhere else.
bool is_plain_name(const std::string& name) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_plain);
}

std::string module_text(const json& module, const char* key) {
  const auto value = module.find(key);
  return value != module.end() && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace

void keep_sentence_modules(const std::string& folder, const std::string& run) {
  const auto path = concat(folder, "/", file_of_modules);
  if (!fs::exists(path)) return;
  const auto modules = parse_json(read_text(path, 1 << 20));
  require<CheckpointError>(modules.is_array(), path, ": is not a list of modules; the file is damaged");
  json kept{{file_of_modules, json::array()}};
  const auto keep = [&](const std::string& file) {
    if (fs::exists(folder + "/" + file)) kept[file] = known_keys(file, read_json(folder + "/" + file));
  };
  for (const auto& module : modules) {
    const auto type = module_text(module, "type"), inner = module_text(module, "path");
    const auto name = type.substr(type.rfind('.') + 1);  // without that of the library
    if (!contains(std::array{"Transformer", "Pooling", "Normalize"}, name))
      return log_warning("import", concat(path, ": Cloze does not keep the module ", name,
                                          " of sentence-transformers, so that exports have none of its modules, the "
                                          "pooling included"));
    kept[file_of_modules].push_back(known_keys(file_of_modules, module));
    require<CheckpointError>(inner.empty() || is_plain_name(inner), path, ": the folder of a module is '",
                             inner.substr(0, 80), "', which is not the name of a folder beside it");
    if (!inner.empty()) keep(inner + "/config.json");
  }
  keep("sentence_bert_config.json");
  keep("config_sentence_transformers.json");
  write_atomic(concat(run, "/", imported_folder, "/", sentence_modules), json_text(kept, 2) + "\n");
  log_info("import",
           concat(path, ": the modules of sentence-transformers, its pooling included, are kept for exports"));
}

void write_sentence_modules(const LoadedRun& run, const std::string& architecture, const std::string& out) {
  const auto folder = concat(run.folder, "/", imported_folder, "/"), path = folder + sentence_modules;
  if (!fs::exists(path)) return;
  const auto came = huggingface::named_class(read_json(folder + "config.json"));
  const auto is_head = [](const auto& objective) { return task_head_of(objective) != nullptr; };
  if (came != architecture && std::ranges::any_of(run.config.objectives, is_head))
    return log_info("export", concat("the pooling of sentence-transformers that came with a ", came,
                                     " is left out: ", architecture, " gives no vector of a text"));
  const auto files = read_json(path);
  for (const auto& [file, content] : files.items()) {
    const fs::path target = fs::path(out) / file, inner = fs::path(file).parent_path();
    require<CheckpointError>(keys_of_files.contains(target.filename()) && (inner.empty() || is_plain_name(inner)), path,
                             ": is damaged, it names ", file.substr(0, 80));
    fs::create_directories(target.parent_path());
    write_atomic(target.string(), json_text(content, 2) + "\n");
  }
}

}  // namespace cloze
