#include "cli/paths.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "core/config/config_tree.h"
#include "core/config/named_config.h"
#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "run/run_tokenizer.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

bool has(const std::string& folder, const char* file) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / file, ignored);
}

/// Without the slash at the end that Tab writes.
fs::path without_slash(const std::string& path) {
  const auto normal = fs::path(path).lexically_normal();
  return normal.has_filename() || !normal.has_relative_path() ? normal : normal.parent_path();
}

/// The folder that a path is in.
std::string folder_around(const std::string& path) {
  const auto folder = without_slash(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// How messages call a kind, and what is done with one: {path} stands for it, {run} for the run of a checkpoint.
struct KindWords {
  std::string_view name, use = "";
};

KindWords words_of(PathKind kind) {
  switch (kind) {
    case PathKind::run:
      return {"a run",
              "`cloze pretrain --run {path} --resume` continues it, `cloze verify run {path}` checks it; its config is "
              "{path}/run.yaml"};
    case PathKind::step:
      return {"a checkpoint", "its run is {run}, which `cloze pretrain --run {run} --resume` continues"};
    case PathKind::tokens:
      return {"prepared text",
              "`cloze verify data {path}` checks it, `cloze pretrain CONFIG --set data.tokens={path}` trains on it"};
    case PathKind::tokenizer:
      return {"a tokenizer", "`cloze prepare TEXT --tokenizer {path} --out DIR` takes it"};
    case PathKind::huggingface:
      return {"a Hugging Face folder", "make it a run with `cloze import {path} --out DIR`"};
    default:
      return {"a file"};
  }
}

std::string filled(std::string_view sentence, const std::string& path) {
  std::string text(sentence);
  replace_all(text, "{path}", path);
  if (kind_of_path(path) == PathKind::step) replace_all(text, "{run}", run_of_step(path));
  return text;
}

template <class E>
void refuse_declared_as(const std::string& path, Declared own, std::string_view wanted) {
  if (declared_by(path) == own) return;
  if (const auto words = words_on_declared(path); !words.empty())
    fail<E>(path, ": is ", words.substr(0, words.find(';')), ", not ", wanted, words.substr(words.find(';')));
}

/// What belongs where a path stands.
struct Wanted {
  std::string_view name;          ///< `a run`
  std::vector<PathKind> taken{};  ///< the kinds that go on, besides what is absent or of no kind
  std::string_view instead = "";  ///< what to name
  std::string_view of_file = "";  ///< what to do with a file
  bool may_be_declared = false;   ///< that it declares something is not asked
};

/// Throws E for a path of another kind than is wanted.
template <class E>
void refuse_other(const std::string& path, const Wanted& wanted) {
  const auto kind = kind_of_path(path);
  const auto folder = folder_around(path);
  const bool is_part = kind == PathKind::file || kind == PathKind::tokenizer, is_taken = contains(wanted.taken, kind);
  std::string mend;
  for (const auto part : {wanted.instead, kind == PathKind::file ? wanted.of_file : words_of(kind).use})
    if (!part.empty()) mend += "; " + filled(part, path);
  if (is_part && !is_taken && contains(wanted.taken, kind_of_path(folder)))
    mend = "; name the folder that it is in, " + folder;
  else if (!wanted.may_be_declared)
    refuse_declared_as<E>(path, Declared::nothing, wanted.name);
  require<E>(is_taken || kind == PathKind::absent || kind == PathKind::other, path, ": is ", words_of(kind).name,
             ", not ", wanted.name, mend);
}

/// The runs in a folder, by name.
std::vector<std::string> runs_in(const std::string& folder) {
  std::vector<std::string> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (kind_of_path(entry.path().string()) == PathKind::run)
      runs.push_back((without_slash(folder) / entry.path().filename()).string());
  std::sort(runs.begin(), runs.end());
  return runs;
}

/// Whether a folder holds checkpoints, as that of a run does which lost its run.yaml.
bool holds_steps(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (kind_of_path(entry.path().string()) == PathKind::step) return true;
  return false;
}

/// Refuses a folder that holds runs.
void check_is_no_folder_of_runs(const std::string& path, RunCount count) {
  const auto runs = runs_in(path);
  if (runs.empty()) return;
  const auto several = (without_slash(path) / "*").string();
  fail<CheckpointError>(path, ": is a folder of runs, not a run; name ",
                        runs.size() == 1             ? "the one in it, " + runs[0]
                        : count == RunCount::several ? "its runs, " + several
                                                     : "one of them, such as " + runs[0]);
}

/// `; did you mean 'PATH'?` for the folder of a kind next to `path`, or in runs/, with the most similar name; or empty.
std::string near_folder(const std::string& path, PathKind kind) {
  const auto wanted = without_slash(path);
  std::vector<std::string> names;
  std::map<std::string, std::string> paths;  // by their last component: of the same folder, else of runs/
  std::error_code error;
  for (const auto& folder : {wanted.has_parent_path() ? wanted.parent_path() : fs::path("."), fs::path("runs")})
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (kind_of_path(entry.path().string()) == kind)
        paths.emplace(entry.path().filename().string(), entry.path().lexically_normal().string());
  for (const auto& [name, folder] : paths) names.push_back(name);
  const auto near = nearest(wanted.filename().string(), names);
  return near.empty() ? "" : "; did you mean '" + paths[near] + "'?";
}

/// The file that a word names: itself, or the task, the config or the study of that name that ships; empty for others.
std::string file_of_word(const std::string& path) {
  const auto kind = kind_of_path(path);
  if (kind != PathKind::absent) return kind == PathKind::file ? path : "";
  for (auto file : {task_of_name(path), config_of_name(path), config_of_name("studies/" + path)})
    if (!file.empty()) return file;
  return "";
}

/// A file with the keys of its base; without them where the base cannot be read, which who opens the file says.
ConfigNode with_base(const std::string& file, const ConfigNode& alone) {
  try {
    return ConfigTree::load(file).root();
  } catch (const Error&) {
    return alone;
  }
}

Declared declared_in(const std::string& file) {
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) return Declared::nothing;
  try {
    auto root = ConfigTree::load_alone(file).root();
    const auto has_one_of = [&](std::initializer_list<const char*> keys) {
      return std::ranges::any_of(keys, [&](const char* key) { return root.find(key) != nullptr; });
    };
    const auto has_word = [&](const char* key) {
      const auto* found = root.find(key);
      return found != nullptr && found->type == ConfigNode::Type::scalar;
    };
    const bool is_yaml = file.ends_with(".yaml") || file.ends_with(".yml");  // a task may be written in JSON
    if (is_yaml && has_one_of({"study", "arms", "sweep", "space", "tune"})) return Declared::study;
    if (is_yaml && has_word("batch_size")) return Declared::recipe;
    if (has_word("base")) root = with_base(file, root);  // it may be the base alone that says what this is
    if (has_word("task") || has_word("kind")) return Declared::task;
    if (is_yaml && has_one_of({"base", "like", "model", "objectives", "data", "optimizer", "train"}))
      return Declared::config;
  } catch (const Error&) {  // too large, or no YAML
  }
  return Declared::nothing;
}

}  // namespace

Declared declared_by(const std::string& path) { return declared_in(file_of_word(path)); }

std::string words_on_declared(const std::string& path) {
  const auto stem = fs::path(path).stem().string();
  switch (declared_by(path)) {
    case Declared::config:
      return concat("the config of a run; `cloze pretrain ", path, "` trains it");
    case Declared::task:
      return concat("a task; `cloze finetune RUN ", path, "` trains a run on it");
    case Declared::study:
      return concat("a study; `cloze study run ", path, "` trains its runs");
    case Declared::recipe:
      return concat("a recipe; `cloze finetune RUN TASK --like ",
                    shipped_configs("recipes").contains(stem) ? stem : shell_word(path), "` takes it");
    case Declared::nothing:
      break;
  }
  return "";
}

void refuse_declared(const std::string& path, Declared own, const std::string& wanted) {
  refuse_declared_as<ConfigError>(path, own, wanted);
}

PathKind kind_of_path(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return PathKind::absent;
  if (!fs::is_directory(path, ignored)) return PathKind::file;
  if (has(path, "run.yaml")) return PathKind::run;
  if (is_step_folder(path)) return PathKind::step;
  if (has(path, "manifest.json")) return PathKind::tokens;
  if (has(path, "config.json")) return PathKind::huggingface;
  for (const auto* file : {"tokenizer.json", "vocab.txt", "spiece.model", "vocab.json"})
    if (has(path, file)) return PathKind::tokenizer;
  return PathKind::other;
}

std::string run_of_step(const std::string& path) { return fs::path(located_step(path)).parent_path().string(); }

std::string near_run(const std::string& path) { return near_folder(path, PathKind::run); }

void check_run_path(const std::string& path, RunCount count) {
  using enum PathKind;
  refuse_other<CheckpointError>(path, {.name = "a run", .taken = {run, step}, .of_file = "name the folder of a run"});
  const auto kind = kind_of_path(path);
  if (kind == other) check_is_no_folder_of_runs(path, count);
  if (kind != absent) return;  // opened, or refused, by who reads it
  const auto near = near_run(path);
  fail<CheckpointError>(path, ": no such run directory",
                        near.empty() ? "; name one that `cloze pretrain` or `cloze import` made" : near);
}

bool is_run_path(const std::string& path) {
  const auto kind = kind_of_path(path);
  return kind == PathKind::run || kind == PathKind::step;
}

void check_run_first(const std::string& path, const std::vector<std::string>& others) {
  const auto run = std::ranges::find_if(others, is_run_path);
  require<CheckpointError>(is_run_path(path) || run == others.end(), "'", shortened(path), "' is no run, and ", *run,
                           " is one; the run stands first");
  check_run_path(path);
}

void check_whole_run_path(const std::string& path, RunCount count) {
  check_run_path(path, count);
  refuse_other<CheckpointError>(path, {.name = "a run", .taken = {PathKind::run}});
  require<CheckpointError>(
      kind_of_path(path) == PathKind::run || holds_steps(path), path,
      ": is not a run directory (it has no run.yaml); name one that `cloze pretrain` or `cloze import` made");
}

void check_training_path(const std::string& path) {
  refuse_other<ConfigError>(path, {.name = "the folder of a run",
                                   .taken = {PathKind::run},
                                   .instead = "name another with --run",
                                   .may_be_declared = true});
}

namespace {

/// The YAML files of a folder, without that ending.
std::vector<std::string> configs_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Of a YAML file without its ending.
std::string did_you_mean_file(const fs::path& file) {
  return "; did you mean '" + file.lexically_normal().string() + ".yaml'?";
}

/// `a.yaml, b.yaml or c.yaml`: the configs of a folder.
std::string files_of(const fs::path& folder) {
  auto names = configs_in(folder);
  for (auto& name : names) name += ".yaml";
  return listed(names, "or");
}

/// `; did you mean one of FOLDER: a.yaml or b.yaml?`; empty for a folder without configs.
std::string one_of_folder(const fs::path& folder) {
  const auto files = files_of(folder);
  return files.empty() ? "" : "; did you mean one of " + folder.lexically_normal().string() + ": " + files + "?";
}

/// `; did you mean 'FILE'?` of the YAML file whose name is most like `path`, here, in configs/ or installed: a folder
/// of that name, then a mistyped file, then a mistyped folder; empty without one.
std::string near_config(const std::string& path) {
  auto wanted = without_slash(path);
  if (wanted.empty()) return "";
  const auto name = wanted.replace_extension().filename().string();
  const auto roots = config_roots();
  for (const auto& root : roots) {
    if (const auto near = one_of_folder(root / wanted); !near.empty()) return near;
    const auto folder = (root / wanted).parent_path();
    if (const auto near = nearest(name, configs_in(folder)); !near.empty()) return did_you_mean_file(folder / near);
  }
  std::error_code error;
  for (size_t i = 1; i < roots.size() && !wanted.is_absolute(); ++i) {
    std::vector<std::string> folders;
    for (const auto& entry : fs::directory_iterator(roots[i], error))
      if (contains(configs_in(entry.path()), name)) folders.push_back(entry.path().filename().string());
    const auto near = nearest(wanted.begin()->string(), folders);
    if (!near.empty()) return did_you_mean_file(roots[i] / near / name);
  }
  return "";
}

/// Whether a file has the name of a text, or of data.
bool is_called_text(const std::string& path) {
  const std::vector<std::string> endings{".txt", ".md", ".gz", ".xz", ".jsonl", ".tsv", ".csv"};
  return contains(endings, fs::path(path).extension().string());
}

/// Whether a file of JSON has sections of a config of Cloze.
bool has_sections(const std::string& path) {
  constexpr size_t most_bytes = 1 << 20;
  std::error_code unknown;
  if (fs::file_size(path, unknown) > most_bytes || unknown) return false;
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto has_key = [&](const char* key) { return text.find(key) != std::string::npos; };
  return has_key("\"model\"") || has_key("\"base\"") || has_key("\"data\"") || has_key("\"train\"");
}

/// Refuses a file of JSON that was written into a folder of a kind.
void check_is_no_part(const std::string& path) {
  const auto name = fs::path(path).filename().string(), folder = folder_around(path);
  const auto kind = name == "config.json" && !has_sections(path) ? PathKind::huggingface : kind_of_path(folder);
  const bool is_json = name.ends_with(".json") || name.ends_with(".jsonl");
  const bool is_part = kind == PathKind::huggingface ? name == "config.json"
                       : kind == PathKind::tokens || kind == PathKind::step
                           ? is_json && is_kept_file(name)
                           : is_json && kind == PathKind::run && is_run_file(name);
  const auto words = words_of(kind);
  require<ConfigError>(!is_part, path, ": is a file of ", words.name, ", not a config; ", filled(words.use, folder));
}

/// ` (FOLDER has some)`: where configs are, here or installed; empty where there are none.
std::string place_of_configs() {
  const auto roots = config_roots();
  std::error_code error;
  const auto has_some = [&](const fs::path& root) { return fs::is_directory(root, error); };
  const auto root = std::find_if(roots.begin() + 1, roots.end(), has_some);
  return root == roots.end() ? "" : " (" + root->string() + "/ has some)";
}

}  // namespace

std::string config_file(const std::string& path, Declared own) {
  refuse_declared(path, own, own == Declared::task ? "a task" : own == Declared::study ? "a study" : "a config");
  refuse_other<ConfigError>(path, {.name = "a config", .taken = {PathKind::file}, .may_be_declared = true});
  const auto kind = kind_of_path(path);
  if (kind == PathKind::file) check_is_no_part(path);
  require<ConfigError>(kind != PathKind::file || !is_called_text(path), path,
                       ": is a text, not a config; prepare it with `cloze prepare ", path,
                       " --out tokens`, then name a config, and the text by --set data.tokens=tokens");
  if (kind == PathKind::other) {
    const auto files = files_of(path);
    fail<ConfigError>(path, ": is a folder; name a YAML config in it", files.empty() ? "" : ", ", files);
  }
  if (kind != PathKind::absent) return path;
  if (auto named = config_of_name(path); !named.empty()) {
    log_info("config", concat(path, ": ", named));
    return named;
  }
  const bool is_value = path.find('=') != std::string::npos;
  require<ConfigError>(!is_value, path, ": no such file; a value is set after the config, by --set ", path);
  const auto near = near_config(path);
  fail<ConfigError>(path, ": no such file",
                    !near.empty()            ? near
                    : own == Declared::task  ? ", and no ready task; name a task file, TASK.yaml, or a ready task, sst2"
                    : own == Declared::study ? "; name the YAML file of a study"
                                             : "; name a YAML config" + place_of_configs());
}

std::string study_file(const std::string& path) {
  refuse_declared(path, Declared::study, "a study");
  if (kind_of_path(path) != PathKind::absent) return config_file(path, Declared::study);
  const auto ready = config_of_name("studies/" + path);
  const auto near = ready.empty() && near_config(path).empty() ? near_config("studies/" + path) : "";
  require<ConfigError>(near.empty(), path, ": no such file, and no ready study", near);
  if (ready.empty()) return config_file(path, Declared::study);
  log_info("config", concat(path, ": ", ready));
  return ready;
}

std::string task_file(const std::string& name) {
  const auto kind = kind_of_path(name);
  if (kind == PathKind::file) return name;
  const auto shipped = task_of_name(name);
  const char* other = kind == PathKind::absent ? "" : ", not the folder of that name here";
  if (!shipped.empty()) log_info("config", concat(name, ": ", shipped, other));
  return shipped;
}

void check_task_name(const std::string& name, bool is_task) {
  auto lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const auto near = kind_of_path(name) == PathKind::absent ? did_you_mean_task(lower) : "";
  require<ConfigError>(near.empty(), name, ": no such file or run, and no ready task", near);
  const bool is_word = kind_of_path(name) == PathKind::absent && name.find_first_of("./") == std::string::npos;
  require<ConfigError>(!is_task || !is_word, name, ": no such file, and no ready task; those are ",
                       listed(names_of_tasks()));
}

void check_task_file(const std::string& path) {
  const auto has_ending = [&](std::initializer_list<const char*> endings) {
    return std::ranges::any_of(endings, [&](const char* ending) { return path.ends_with(ending); });
  };
  refuse_declared(path, Declared::task, "a task");
  const bool is_called_items = has_ending({".tsv", ".csv", ".jsonl", ".conll", ".parquet"}),
             may_be_task = has_ending({".json", ".txt"});
  require<ConfigError>(kind_of_path(path) == PathKind::file || !(is_called_items || may_be_task), path,
                       ": no such file; name a task file: cloze finetune RUN TASK.yaml");
  const bool has_items = is_called_items || (may_be_task && declared_by(path) != Declared::task);
  require<ConfigError>(!has_items, path,
                       ": is no task file, but may hold items of a task; write a file of a few "
                       "lines, `task: NAME`, `kind: classification` and `data: {train: ",
                       path, ", text: COLUMN, label: COLUMN}`, and name that: cloze finetune RUN TASK.yaml");
}

void check_items_path(const std::string& path) {
  using enum PathKind;
  if (path == "-") return;
  refuse_declared(path, Declared::nothing, "a file of items");
  constexpr auto instead = "name a file with items";
  require<DataError>(kind_of_path(path) != absent, path, ": no such file; ", instead, ", or - for standard input");
  refuse_other<DataError>(path, {.name = "items", .taken = {file, tokenizer, huggingface}, .instead = instead});
}

void check_tokens_path(const std::string& path) {
  refuse_other<DataError>(path, {.name = "prepared text",
                                 .taken = {PathKind::tokens},
                                 .instead = "name a folder that `cloze prepare` made",
                                 .of_file = "`cloze prepare {path} --out DIR` makes that of a text"});
}

void check_tokens_paths(const DataConfig& data) {
  if (!data.tokens.empty()) check_tokens_path(data.tokens);
  for (const auto& part : data.mixture) check_tokens_path(part.tokens);
}

void check_text_path(const std::string& path) {
  using enum PathKind;
  if (kind_of_path(path) == absent) refuse_declared_as<DataError>(path, Declared::nothing, "plain text");
  refuse_other<DataError>(path, {.name = "plain text",
                                 .taken = {file, tokenizer, huggingface},
                                 .instead = "name files of text",
                                 .may_be_declared = true});
}

namespace {

/// Whether a word of the first lines of a file is followed by another: no token of a vocabulary has a space in it.
bool has_sentences(const std::string& path) {
  constexpr int few = 50;
  LogLines lines(path);
  std::string line;
  for (int i = 0; i < few && lines.next(line); ++i) {
    const auto first = line.find_first_not_of(' '), last = line.find_last_not_of(" \r");
    if (first != std::string::npos && line.substr(first, last - first).find(' ') != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void check_points_path(const std::string& path) {
  const auto ending = fs::path(path).extension();
  const auto kind = kind_of_path(path);
  if (kind == PathKind::absent && ending.empty() && path != "-") check_run_path(path, RunCount::several);
  refuse_declared(path, Declared::study, "a study");
  if (ending == ".csv" || ending == ".yaml" || ending == ".yml") return;
  const auto folder = folder_around(path);
  const auto around = kind_of_path(folder);
  const bool is_of_run = kind == PathKind::file && (around == PathKind::run || around == PathKind::step);
  require<DataError>(!is_of_run, path, ": is a file of ", words_of(around).name,
                     ", not a table of runs; name the run, ", around == PathKind::step ? run_of_step(folder) : folder);
}

std::string tokenizer_of(const std::string& path) {
  const auto kind = kind_of_path(path);
  if (kind == PathKind::run || kind == PathKind::tokens) return path + "/tokenizer";
  return kind == PathKind::step ? path + "/../tokenizer" : path;
}

void check_tokenizer_path(const std::string& path) {
  refuse_declared_as<DataError>(path, Declared::nothing, "a tokenizer");
  const bool is_text = kind_of_path(path) == PathKind::file && is_called_text(path) &&
                       (fs::path(path).extension() != ".txt" || has_sentences(path));
  require<DataError>(!is_text, path,
                     ": is a text, not a tokenizer; name a tokenizer file or folder, or a run or prepared text");
  if (is_run_path(path) && !fs::exists(tokenizer_of(path)))
    fail<CheckpointError>(path, ": ", no_tokenizer(kind_of_path(path) == PathKind::run ? path : run_of_step(path)));
}

namespace {

/// ORGANIZATION/MODEL of an address of the hub, or of a path that may be one; empty for others.
std::string hub_name(const std::string& path) {
  for (const std::string host : {"huggingface.co/", "hf.co/"})
    if (const auto at = path.find(host); at != std::string::npos) {
      const auto rest = path.substr(at + host.size());
      return rest.substr(0, rest.find_first_of("/?#", rest.find('/') + 1));
    }
  const auto name = without_slash(path);
  const bool may_be_one = path.find_first_of("/.") != 0 && path.find(':') == std::string::npos;
  return may_be_one && std::distance(name.begin(), name.end()) <= 2 ? path : "";
}

}  // namespace

void check_import_path(const std::string& path) {
  using enum PathKind;
  refuse_other<CheckpointError>(path, {.name = "a Hugging Face folder",
                                       .taken = {huggingface},
                                       .instead = "name one that `save_pretrained` made, with config.json"});
  if (kind_of_path(path) != absent || path.empty()) return;
  const auto name = hub_name(path), near = near_folder(path, huggingface);
  const bool is_address = !name.empty() && name != path;
  require<ConfigError>(near.empty() || is_address, path, ": no such folder", near);
  const auto model = without_slash(name).filename().string();
  require<ConfigError>(
      name.empty(), path, ": no such folder, and nothing is downloaded; fetch the model with `hf download ", name,
      " --local-dir ", model, "` (of the Python package huggingface_hub), then `cloze import ", model, " --out DIR`");
  require<ConfigError>(path.find("://") == std::string::npos, path,
                       ": nothing is downloaded; fetch the folder of the model, then `cloze import FOLDER --out DIR`");
}

void check_case_path(const std::string& path) {
  if (has(path, "config.json")) return;
  constexpr auto parts = "with config.json and model, inputs and expected .safetensors";
  require<CheckpointError>(kind_of_path(path) != PathKind::absent, path,
                           ": no such folder; name that of a golden case, ", parts,
                           ", such as tests/parity/bert in the source of Cloze");
  const auto instead = concat("name the folder of one, ", parts);
  refuse_other<CheckpointError>(path, {.name = "a golden case", .instead = instead, .may_be_declared = true});
}

void check_overwritten(const std::string& option, const std::string& path) {
  std::error_code ignored;
  require<ConfigError>(!fs::is_directory(path, ignored), option, " ", path, ": is a folder; name a file");
  if (!fs::exists(path, ignored)) return;
  require<ConfigError>(fs::is_regular_file(path, ignored), option, " ", path, ": is not a regular file; name another");
  const auto folder = fs::path(path).parent_path().string();
  const auto kind = kind_of_path(folder.empty() ? "." : folder);
  const auto name = fs::path(path).filename().string();
  const bool is_of_run = kind == PathKind::run && is_run_file(name);
  const bool is_kept = kind == PathKind::step || kind == PathKind::tokens || kind == PathKind::tokenizer;
  require<ConfigError>(!is_of_run && !(is_kept && is_kept_file(name)), option, " ", path, ": is a file of ",
                       words_of(kind).name, ", which would lose it; name another");
}

void check_output_file(const std::string& option, const std::string& path, const std::vector<std::string>& read) {
  std::error_code ignored;
  const auto folder = fs::path(path).parent_path();
  require<ConfigError>(folder.empty() || fs::is_directory(folder, ignored), option, " ", path, ": there is no folder ",
                       folder.string(), "; make it, or name another");
  check_overwritten(option, path);
  for (const auto& file : read)
    require<ConfigError>(!fs::equivalent(path, file, ignored), option, " ", path,
                         ": is a file that is read, which would be lost; name another");
}

}  // namespace cloze
