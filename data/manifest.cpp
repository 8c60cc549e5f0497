#include "data/manifest.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/spelling.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string hash_of(const json& content) { return hash_hex(json_text(content)); }

/// What the tokens are: the same text has the same fingerprint, whatever else is noted of its files.
std::string fingerprint_of(json content) {
  for (const auto* key : {"fingerprint", "contents", "contents_fingerprint"}) content.erase(key);
  return hash_of(content);
}

bool is_intact(const json& content) {
  return content.value("fingerprint", json()) == fingerprint_of(content) &&
         content.contains("contents") == content.contains("contents_fingerprint") &&
         (!content.contains("contents") || content.at("contents_fingerprint") == hash_of(content.at("contents")));
}

/// `; did you mean 'PATH'?` for the prepared text next to a folder with the most similar name; or empty.
std::string near_store(const std::string& folder) {
  auto wanted = fs::path(folder).lexically_normal();
  if (!wanted.has_filename()) wanted = wanted.parent_path();  // with a slash at its end
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(wanted.has_parent_path() ? wanted.parent_path() : fs::path("."), error))
    if (is_token_store(entry.path().string())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  const auto near = nearest(wanted.filename().string(), names);
  return near.empty() ? "" : "; did you mean '" + (wanted.parent_path() / near).string() + "'?";
}

/// Throws DataError for a folder that does not exist, and for one that is not prepared text.
void require_store(const std::string& folder) {
  std::error_code unknown;
  if (!fs::exists(folder, unknown) && !unknown) {
    const auto near = near_store(folder);
    fail<DataError>(folder, ": no such folder", near.empty() ? "; create it with `cloze prepare`" : near);
  }
  require<DataError>(fs::exists(folder + "/manifest.json", unknown) || unknown, folder,
                     ": is not prepared text (it has no manifest.json); create it with `cloze prepare`");
}

/// Whether what `prepare` compares and counts has the types that it writes.
bool is_as_written(const Manifest& m) {
  const auto is_count = [](const json& value) { return value.is_null() || value.is_number_unsigned(); };
  if (!m.made_from.is_object() || !m.report.is_object() || !m.contents.is_object()) return false;
  for (const auto* name : {"documents", "tokens", "sentences", "valid_documents", "valid_tokens"})
    if (!is_count(value_at(m.report, concat("/", name).c_str()))) return false;
  for (const auto& list : m.made_from) {
    if (!list.is_array()) continue;
    for (const auto& fact : list) {
      const auto path = value_at(fact, "/path");
      if (!(path.is_null() || path.is_string()) || !is_count(value_at(fact, "/bytes"))) return false;
    }
  }
  return true;
}

}  // namespace

SplitText split_text(const Manifest& manifest, const std::string& split) {
  SplitText text;
  auto facts = manifest.tokenizer_fingerprint;
  for (const auto& shard : manifest.splits.at(split)) {
    facts += concat(" ", shard.tokens, " ", shard.documents, " ", shard.xxh3);
    text.documents += shard.documents;
  }
  text.fingerprint = hash_hex(facts);
  return text;
}

void write_manifest(const std::string& folder, const Manifest& m) {
  json content = m;
  content["format"] = "cloze-tokens";
  content["version"] = 1;
  if (m.splits.empty()) content.erase("splits");
  content["fingerprint"] = fingerprint_of(content);
  if (!m.contents.empty()) {
    content["contents"] = m.contents;
    content["contents_fingerprint"] = hash_of(content["contents"]);
  }
  write_atomic(folder + "/manifest.json", json_text(content, 1) + "\n");
}

bool is_token_store(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  try {
    return read_text(path).find("\"cloze-tokens\"") != std::string::npos;
  } catch (const Error&) {
    return false;  // unreadable, or longer than a manifest
  }
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  require_store(folder);
  std::string text;
  try {
    text = read_text(path, uint64_t{1} << 30);
  } catch (const Error& e) {
    throw DataError(e.what());
  }
  const auto content = parse_json(text);
  const auto damaged = [&] { fail<DataError>(path, ": is damaged; prepare the text again"); };
  if (!content.is_object() || content.value("format", json()) != "cloze-tokens" || !is_intact(content)) damaged();
  if (!content.contains("version")) damaged();
  require<DataError>(content["version"] == 1, path, ": was made by another version of Cloze; prepare the text again");
  Manifest m;
  try {
    m = content.get<Manifest>();
  } catch (const json::exception&) {
    damaged();
  }
  m.contents = content.value("contents", json::object());
  m.fingerprint = content["fingerprint"];
  if (!is_as_written(m)) damaged();
  return m;
}

}  // namespace cloze
