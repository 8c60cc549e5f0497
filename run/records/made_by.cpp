#include "run/records/made_by.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "run/config/load_config.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// What the provenance.json of a run says that made its checkpoints, the last one now; empty where it says nothing.
json recorded_makers(const std::string& run) {
  const auto path = run + "/provenance.json";
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown)) return json::array();
  const auto recorded = parse_json(read_text(path, 16 << 20));
  const auto makers = recorded.is_object() ? recorded.value("made_by", json()) : json();
  return makers.is_array() ? makers : json::array();
}

/// What the last of them says of `key`; empty where it says nothing.
std::string last_recorded(const json& makers, const char* key) {
  const auto last = makers.empty() || !makers.back().is_object() ? json() : makers.back().value(key, json());
  return last.is_string() ? last.get<std::string>() : "";
}

bool is_recorded(const json& makers, const char* key, const std::string& value) {
  return std::any_of(makers.begin(), makers.end(),
                     [&](const json& one) { return one.is_object() && one.value(key, json()) == value; });
}

/// Whether a key says what the weights of a checkpoint are: the network, its losses, the task and the score by which
/// the best ones were chosen. Where the file of a task lies and which recipe it had may change.
bool says_what_was_made(const std::string& key) {
  return key.starts_with("model.") || key.starts_with("objectives.") || key == "task.name" || key == "task.metric" ||
         key == "task.fingerprint";
}

/// The values of these keys of a config.
std::map<std::string, std::string> made_values(const ConfigTree& tree) {
  std::map<std::string, std::string> values;
  for (const auto& entry : entries(decode<RunConfig>(tree)))
    if (entry.leaf && says_what_was_made(entry.path)) values[entry.path] = entry.value;
  return values;
}

/// The first of these keys in which run.yaml is not the config that made a checkpoint: `model.hidden_act: gelu ->
/// relu`; empty where it is.
std::string changes_since(const std::string& made, const std::string& run_yaml) {
  const auto tree = load_run_config(run_yaml);
  auto now = made_values(tree), before = now;
  try {
    before = made_values(load_run_config(made));
  } catch (const ConfigError&) {
    return "";  // with a value that this version forbids, which has made it all the same
  }
  const std::string end_of_text = "model.eos_token_id";  // earlier versions did not record it for encoders
  if (!tree.find(end_of_text)) now[end_of_text] = before[end_of_text];
  std::set<std::string> keys;
  for (const auto* values : {&before, &now})
    for (const auto& [key, value] : *values) keys.insert(key);
  constexpr size_t shown = 5;
  size_t differences = 0;
  std::string list;
  const auto value_of = [](const auto& values, const std::string& key) {
    const auto at = values.find(key);
    return at == values.end() ? "absent" : at->second;
  };
  for (const auto& key : keys) {
    const auto was = value_of(before, key), is = value_of(now, key);
    if (was == is || ++differences > shown) continue;
    list += concat(list.empty() ? "" : ", ", key, ": ", was, " -> ", is);
  }
  return differences > shown ? concat(list, " and ", differences - shown, " more") : list;
}

/// The fingerprint of the tokenizer in the manifest of a checkpoint; empty where it has none.
std::string tokenizer_of_checkpoint(const std::string& checkpoint) {
  const auto manifest = parse_json(read_text(checkpoint + "/manifest.json", 64 << 20));
  const auto tokenizer = manifest.is_object() ? manifest.value("tokenizer", json()) : json();
  return tokenizer.is_string() ? tokenizer.get<std::string>() : "";
}

}  // namespace

void record_made_by(const std::string& run, const MadeBy& now) {
  auto makers = recorded_makers(run);
  const json last{{"config", hash_hex(now.config)}, {"tokenizer", now.tokenizer}};
  if (!makers.empty() && makers.back() == last) return;
  makers.push_back(last);
  const auto path = run + "/provenance.json";
  auto provenance = parse_json(read_text(path, 16 << 20));
  if (!provenance.is_object()) provenance = json::object();
  provenance["made_by"] = makers;
  write_atomic(path, json_text(provenance, 2) + "\n");
}

std::string config_file_of(const std::string& run, const std::string& checkpoint) {
  const auto now = run + "/run.yaml", made = checkpoint + "/config.yaml";
  const auto recorded = last_recorded(recorded_makers(run), "config");
  const bool is_edited = !recorded.empty() && recorded != hash_hex(read_text(now));
  return is_edited && !checkpoint.empty() && fs::exists(made) ? made : now;
}

void require_made_by(const std::string& run, const std::string& checkpoint, const std::optional<Tokenizer>& tokenizer) {
  const auto made = checkpoint + "/config.yaml", run_yaml = run + "/run.yaml";
  if (!fs::exists(made)) return;
  const auto makers = recorded_makers(run);
  const auto of_tokenizer = tokenizer_of_checkpoint(checkpoint);
  const bool is_its_own = !tokenizer || of_tokenizer.empty() || tokenizer->has_fingerprint(of_tokenizer);
  require<CheckpointError>(is_its_own || (tokenizer->has_fingerprint(last_recorded(makers, "tokenizer")) &&
                                          is_recorded(makers, "tokenizer", of_tokenizer)),
                           run, "/tokenizer: is not the tokenizer by which ", checkpoint, " was trained; restore it");
  const auto changes = changes_since(made, run_yaml);
  if (changes.empty()) return;
  const bool was_allowed = last_recorded(makers, "config") == hash_hex(read_text(run_yaml)) &&
                           is_recorded(makers, "config", hash_hex(read_text(made)));
  require<CheckpointError>(was_allowed, run_yaml, ": is not the config by which ", checkpoint, " was trained (",
                           changes,
                           "); restore it, such as from config.yaml there, or allow the change with `cloze pretrain "
                           "--run ",
                           run, " --resume --allow-config-change`");
}

}  // namespace cloze
