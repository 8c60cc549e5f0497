#include "cli/paths.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "core/config/config_tree.h"
#include "core/config/named_config.h"
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

/// What is said of a path of a kind, where another belongs. In a sentence {path} stands for the path, {folder} for the
/// folder that it is in, {run} for the run of the checkpoint that one of the two is, {wanted} for what belongs there.
struct PathMistake {
  PathKind kind;
  std::string_view sentence;
  PathKind inside = PathKind::absent;  ///< of the folder that it is in; absent: any
};

std::string filled(std::string_view sentence, const std::string& path, std::string_view wanted) {
  std::string text;
  while (!sentence.empty()) {
    const auto open = std::min(sentence.find('{'), sentence.size()), close = sentence.find('}', open);
    text += sentence.substr(0, open);
    if (open == sentence.size()) break;
    const auto name = sentence.substr(open + 1, close - open - 1);
    if (name == "path") text += path;
    if (name == "folder") text += folder_around(path);
    if (name == "run") text += run_of_step(kind_of_path(path) == PathKind::step ? path : folder_around(path));
    if (name == "wanted") text += wanted;
    sentence.remove_prefix(close + 1);
  }
  return text;
}

/// Throws E with the first sentence that fits a path; none may.
template <class E>
void refuse_path(const std::string& path, std::initializer_list<PathMistake> mistakes, std::string_view wanted = "") {
  const auto kind = kind_of_path(path);
  for (const auto& mistake : mistakes)
    if (mistake.kind == kind &&
        (mistake.inside == PathKind::absent || mistake.inside == kind_of_path(folder_around(path))))
      fail<E>(path, ": ", filled(mistake.sentence, path, wanted));
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
  for (const auto& [name, found] : paths) names.push_back(name);
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

template <class E>
void refuse_declared_as(const std::string& path, Declared own, const std::string& wanted) {
  if (declared_by(path) == own) return;
  if (const auto words = words_on_declared(path); !words.empty())
    fail<E>(path, ": is ", words.substr(0, words.find(';')), ", not ", wanted, words.substr(words.find(';')));
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

namespace {

/// How --like names a recipe.
std::string recipe_word(const std::string& path) {
  const auto name = fs::path(path).stem().string();
  return shipped_configs("recipes").contains(name) ? name : shell_word(path);
}

}  // namespace

std::string words_on_declared(const std::string& path) {
  switch (declared_by(path)) {
    case Declared::config:
      return concat("the config of a run; `cloze pretrain ", path, "` trains it");
    case Declared::task:
      return concat("a task; `cloze finetune RUN ", path, "` trains a run on it");
    case Declared::study:
      return concat("a study; `cloze study run ", path, "` trains its runs");
    case Declared::recipe:
      return concat("a recipe; `cloze finetune RUN TASK --like ", recipe_word(path), "` takes it");
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
  refuse_path<CheckpointError>(
      path,
      {{tokens,
        "is prepared text, not a run; `cloze verify data` checks it, `cloze pretrain CONFIG --set data.tokens={path}` "
        "trains on it"},
       {tokenizer, "is a tokenizer, not a run; name the folder that it is in, {folder}", run},
       {tokenizer, "is a tokenizer, not a run; name the run directory it belongs to"},
       {huggingface, "is a Hugging Face folder, not a run; make it one with `cloze import {path} --out DIR`"},
       {file, "is a file, not a run; name the folder that it is in, {folder}", run},
       {file, "is a file, not a run; name the folder that it is in, {folder}", step}});
  refuse_declared_as<CheckpointError>(path, Declared::nothing, "a run");
  refuse_path<CheckpointError>(path, {{file, "is a file, not a run; name the folder of a run"}});
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
  refuse_path<CheckpointError>(path, {{PathKind::step, "is one checkpoint of a run; name the run, which is {run}"}});
  require<CheckpointError>(
      kind_of_path(path) == PathKind::run || holds_steps(path), path,
      ": is not a run directory (it has no run.yaml); name one that `cloze pretrain` or `cloze import` made");
}

void check_training_path(const std::string& path) {
  using enum PathKind;
  refuse_path<ConfigError>(
      path,
      {{tokens,
        "is prepared text, not the folder of a run; name another with --run, and the text by --set data.tokens={path}"},
       {tokenizer, "is a tokenizer, not the folder of a run; name another with --run"},
       {huggingface,
        "is a Hugging Face folder, not that of a run; name another with --run, and make this a run with `cloze import "
        "{path} --out DIR`"},
       {step, "is a checkpoint of a run; continue that with --run {run} --resume"},
       {file, "is a file, not the folder of a run; name another with --run"}});
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

std::string did_you_mean_file(const fs::path& file) {
  return "; did you mean '" + file.lexically_normal().string() + "'?";
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

/// The config whose name is most like that of `wanted`, in the folder that it would be in.
std::string near_stem(const fs::path& wanted) {
  const auto folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  const auto near = nearest(wanted.stem().string(), configs_in(folder));
  return near.empty() ? "" : did_you_mean_file(folder / (near + ".yaml"));
}

/// FOLDER, or the config FOLDER/NAME, of configs/ where the name of the folder is mistyped.
std::string near_config_folder(const fs::path& root, const fs::path& wanted) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error))
    if (!configs_in(entry.path()).empty()) folders.push_back(entry.path().filename().string());
  const auto near = nearest(wanted.begin()->string(), folders);
  if (near.empty()) return "";
  if (!wanted.has_parent_path()) return wanted.has_extension() ? "" : one_of_folder(root / near);
  const auto file = (root / near / wanted.filename()).replace_extension(".yaml");
  return fs::exists(file, error) ? did_you_mean_file(file) : "";
}

/// `; did you mean 'FILE'?` of the YAML file whose name is most like `path`, here, in configs/ or installed: FILE
/// itself, then a folder of that name, then a mistyped file, then a mistyped folder; empty without one.
std::string near_config(const std::string& path) {
  const auto wanted = without_slash(path);
  if (wanted.empty()) return "";
  auto named = wanted;
  named.replace_extension(".yaml");
  const auto roots = config_roots();
  std::error_code error;
  for (const auto& root : roots)
    if (fs::exists(root / named, error)) return did_you_mean_file(root / named);
  for (const auto& root : roots)
    if (const auto near = one_of_folder(root / wanted); !near.empty()) return near;
  for (const auto& root : roots)
    if (const auto near = near_stem((root / named).lexically_normal()); !near.empty()) return near;
  if (wanted.is_absolute()) return "";
  for (size_t i = 1; i < roots.size(); ++i)
    if (const auto near = near_config_folder(roots[i], wanted); !near.empty()) return near;
  return "";
}

/// Whether a file has the name of a text, or of data.
bool is_called_text(const std::string& path) {
  static const std::set<std::string> endings{".txt", ".md", ".gz", ".xz", ".jsonl", ".tsv", ".csv"};
  return endings.count(fs::path(path).extension().string()) > 0;
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
  const auto kind = kind_of_path(folder);
  const bool is_json = name.ends_with(".json") || name.ends_with(".jsonl");
  if (is_json && kind == PathKind::tokens && is_kept_file(name))
    fail<ConfigError>(path, name == "manifest.json" ? ": is the manifest of" : ": is a file of",
                      " prepared text, not a config; name a config, and the text by --set data.tokens=", folder);
  if (is_json && kind == PathKind::run && is_run_file(name))
    fail<ConfigError>(path, name == "summary.json" ? ": is the summary of" : ": is a file of",
                      " a run, not a config; its config is ", folder, "/run.yaml, and `cloze pretrain --run ", folder,
                      " --resume` continues it");
  if (is_json && kind == PathKind::step && is_kept_file(name))
    fail<ConfigError>(path, ": is a file of a checkpoint, not a config; the config of its run is ", run_of_step(folder),
                      "/run.yaml");
  if (name == "config.json" && !has_sections(path))
    fail<ConfigError>(path, ": is a file of a Hugging Face folder, not a config; make it a run with `cloze import ",
                      folder, " --out DIR`, then name a config, and that run by --set init.from=DIR");
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
  using enum PathKind;
  refuse_declared(path, own, own == Declared::task ? "a task" : own == Declared::study ? "a study" : "a config");
  refuse_path<ConfigError>(
      path,
      {{tokens, "is prepared text, not a config; name a config, and the text by --set data.tokens={path}"},
       {run,
        "is a run, not a config; its config is {path}/run.yaml, and `cloze pretrain --run {path} --resume` continues "
        "it"},
       {step,
        "is a checkpoint, not a config; the config of its run is {run}/run.yaml, and `cloze pretrain --run {run} "
        "--resume` continues that"},
       {huggingface,
        "is a Hugging Face folder, not a config; make it a run with `cloze import {path} --out DIR`, then name a "
        "config, and that run by --set init.from=DIR"},
       {tokenizer, "is a tokenizer, not a config; name a config, and prepared text by --set data.tokens=FOLDER"}});
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
  refuse_path<DataError>(path,
                         {{absent, "no such file; {wanted}, or - for standard input"},
                          {run, "is a run, not items; {wanted}"},
                          {step, "is a checkpoint, not items; {wanted}"},
                          {tokens, "is prepared text, not items; {wanted}"}},
                         "name a file with items");
}

void check_tokens_path(const std::string& path) {
  using enum PathKind;
  refuse_path<DataError>(
      path,
      {{run,
        "is a run, not prepared text; name a folder that `cloze prepare` made; `cloze verify run {path}` checks a run"},
       {step,
        "is a checkpoint, not prepared text; name a folder that `cloze prepare` made; `cloze verify run {run}` checks "
        "the checkpoints of its run"},
       {huggingface, "is a Hugging Face folder, not prepared text; `cloze prepare` makes that"},
       {tokenizer, "is a tokenizer, not prepared text; name the folder that it is in, {folder}", tokens},
       {tokenizer,
        "is a tokenizer, not prepared text; `cloze prepare TEXT --tokenizer {path} --out DIR` makes that with it"},
       {file, "is a file, not prepared text; name the folder that it is in, {folder}", tokens}});
  refuse_declared_as<DataError>(path, Declared::nothing, "prepared text");
  refuse_path<DataError>(
      path, {{file, "is a file, not prepared text; `cloze prepare {path} --out DIR` makes that of a text"}});
}

void check_tokens_paths(const DataConfig& data) {
  if (!data.tokens.empty()) check_tokens_path(data.tokens);
  for (const auto& part : data.mixture) check_tokens_path(part.tokens);
}

void check_text_path(const std::string& path) {
  using enum PathKind;
  if (kind_of_path(path) == absent) refuse_declared_as<DataError>(path, Declared::nothing, "text");
  refuse_path<DataError>(path,
                         {{tokens, "is prepared text; `cloze pretrain CONFIG --set data.tokens={path}` trains on it"},
                          {run, "is a run, not text; name files of text"},
                          {step, "is a run, not text; name files of text"}});
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
  refuse_path<DataError>(
      path, {{PathKind::file, "is a file of a run, not a table of runs; name the run, {folder}", PathKind::run},
             {PathKind::file, "is a file of a checkpoint, not a table of runs; name its run, {run}", PathKind::step}});
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

/// ORGANIZATION/MODEL of an address of the hub; empty for other paths.
std::string hub_name(const std::string& path) {
  const std::string schemes = "://";
  const auto scheme = path.find(schemes);
  auto rest = scheme == std::string::npos ? path : path.substr(scheme + schemes.size());
  for (const std::string host : {"huggingface.co/", "www.huggingface.co/", "hf.co/"}) {
    if (!rest.starts_with(host)) continue;
    rest = rest.substr(host.size());
    const auto model = rest.find('/');
    const auto end = model == std::string::npos ? model : rest.find_first_of("/?#", model + 1);
    return rest.substr(0, end);
  }
  return "";
}

[[noreturn]] void refuse_download(const std::string& path, const std::string& name) {
  const auto folder = without_slash(name).filename().string();
  fail<ConfigError>(path, ": no such folder, and nothing is downloaded; fetch the model with `hf download ", name,
                    " --local-dir ", folder, "` (of the Python package huggingface_hub), then `cloze import ", folder,
                    " --out DIR`");
}

}  // namespace

void check_import_path(const std::string& path) {
  using enum PathKind;
  refuse_declared_as<CheckpointError>(path, Declared::nothing, "a Hugging Face folder");
  refuse_path<CheckpointError>(
      path,
      {{run, "is a run already; `cloze pretrain --run {path} --resume` continues it"},
       {step, "is a checkpoint of a run; `cloze pretrain --run {run} --resume` continues that"},
       {tokens,
        "is prepared text, not a Hugging Face folder; {wanted}; `cloze pretrain CONFIG --set data.tokens={path}` "
        "trains a model on the text"},
       {tokenizer,
        "is a tokenizer, not a Hugging Face folder; {wanted}; `cloze prepare TEXT --tokenizer {path} --out DIR` takes "
        "the tokenizer alone"},
       {file, "is a file, not a Hugging Face folder; name the folder that it is in, {folder}", huggingface},
       {file, "is a file, not a Hugging Face folder; {wanted}"}},
      "name one that `save_pretrained` made, with config.json");
  if (kind_of_path(path) != absent || path.empty()) return;
  if (const auto name = hub_name(path); !name.empty()) refuse_download(path, name);
  require<ConfigError>(path.find("://") == std::string::npos, path,
                       ": nothing is downloaded; fetch the folder of the model, then `cloze import FOLDER --out DIR`");
  const auto near = near_folder(path, PathKind::huggingface);
  require<ConfigError>(near.empty(), path, ": no such folder", near);
  if (path[0] == '/' || path[0] == '.') return;
  const auto name = fs::path(path).lexically_normal();
  if (std::distance(name.begin(), name.end()) > 2) return;  // more than ORGANIZATION/MODEL
  refuse_download(path, path);
}

void check_case_path(const std::string& path) {
  using enum PathKind;
  if (has(path, "config.json")) return;
  refuse_path<CheckpointError>(
      path,
      {{absent,
        "no such folder; name that of a golden case, with config.json and model, inputs and expected .safetensors, "
        "such as tests/parity/bert in the source of Cloze"},
       {file, "is a file, {wanted}"},
       {run, "is a run, {wanted}; `cloze verify run {path}` checks a run"},
       {step, "is a checkpoint, {wanted}; `cloze verify run {run}` checks those of its run"},
       {tokens, "is prepared text, {wanted}; `cloze verify data {path}` checks prepared text"},
       {tokenizer, "is a tokenizer, {wanted}"}},
      "not a golden case; name the folder of one, with config.json and model, inputs and expected .safetensors");
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
  const auto* owner = kind == PathKind::run      ? "run"
                      : kind == PathKind::step   ? "checkpoint"
                      : kind == PathKind::tokens ? "prepared text"
                                                 : "tokenizer";
  require<ConfigError>(!is_of_run && !(is_kept && is_kept_file(name)), option, " ", path, ": is a file of the ", owner,
                       ", which would lose it; name another");
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
