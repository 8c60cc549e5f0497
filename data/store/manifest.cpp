#include "data/store/manifest.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/stopwatch.h"
#include "data/reading/prepared_folder.h"
#include "data/reading/reader.h"

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

namespace {

constexpr size_t hashed_block_bytes = 1 << 20;

/// How much of files has been read, shown twice a second once that has taken half a second, and removed at the end.
class ReadingProgress {
 public:
  explicit ReadingProgress(const std::vector<std::string>& files) {
    std::error_code ignored;
    for (const auto& file : files)
      if (const auto size = std::filesystem::file_size(file, ignored); !ignored) total_ += size;
  }
  ReadingProgress(const ReadingProgress&) = delete;
  ReadingProgress& operator=(const ReadingProgress&) = delete;
  ~ReadingProgress() {
    if (shown_ > 0) erase_progress();
  }
  void add(const std::string& file, size_t size) {
    done_ += size;
    const double passed = seconds_since(start_);
    if (passed - shown_ < 0.5) return;
    shown_ = passed;
    const double fraction = static_cast<double>(done_) / static_cast<double>(std::max<uint64_t>(total_, 1));
    log_progress(Progress{{"[data]    noting what the files hold", file}, fraction}, false);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  uint64_t done_ = 0, total_ = 0;
  double shown_ = 0;
};

/// The hash of the bytes of a file, compressed as they are.
std::string xxh3_of(const std::string& file, ReadingProgress* progress = nullptr) {
  std::ifstream in(file, std::ios::binary);
  require<DataError>(in.is_open(), file, ": cannot be read (", system_reason(), ")");
  StreamHash hash;
  std::vector<char> block(hashed_block_bytes);
  while (in) {
    if (interrupted) throw Interrupted(concat("stopped while ", file, " was read again; run the same command again"));
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    const auto size = static_cast<size_t>(in.gcount());
    hash.add(block.data(), size);
    if (progress) progress->add(file, size);
  }
  require<DataError>(!in.bad(), file, ": cannot be read (", system_reason(), ")");
  return hex_of(hash.value());
}

std::map<std::string, json> by_path(const json& facts) {
  std::map<std::string, json> by_path;
  if (!facts.is_array()) return by_path;
  for (const auto& fact : facts)
    if (fact.is_object()) by_path.emplace(fact.value("path", ""), fact);
  return by_path;
}

bool differ_in_time_alone(json one, json other) {
  for (const auto* time : {"mtime", "mtime_ns"}) {
    one.erase(time);
    other.erase(time);
  }
  return one == other;
}

std::string change_of(const json& was, const json& is) {
  const auto before = was.value("bytes", uint64_t{0}), now = is.value("bytes", uint64_t{0});
  if (before != now) return concat("other size (", thousands(before), " bytes before, ", thousands(now), " now)");
  return was.contains("mtime") && is.contains("mtime") ? "modified since" : "other content";
}

}  // namespace

json file_facts(const std::vector<std::string>& inputs, const std::map<std::string, Spooled>& spooled) {
  json list = json::array();
  for (const auto& file : expand_inputs(inputs)) {
    if (const auto copy = spooled.find(file); copy != spooled.end()) {
      list.push_back({{"path", file}, {"bytes", copy->second.bytes}, {"xxh3", copy->second.xxh3}});
      continue;
    }
    struct stat info{};
    stat(file.c_str(), &info);
    list.push_back(
        {{"path", file}, {"bytes", info.st_size}, {"mtime", info.st_mtim.tv_sec}, {"mtime_ns", info.st_mtim.tv_nsec}});
  }
  return list;
}

json contents_of(const std::vector<std::string>& files) {
  json contents = json::object();
  ReadingProgress progress(files);
  for (const auto& file : files)
    if (!contents.contains(file)) contents[file] = xxh3_of(file, &progress);
  return contents;
}

json with_known_times(json facts, const json& was, const json& contents) {
  const auto known = by_path(was);
  for (auto& fact : facts) {
    const auto path = fact.value("path", "");
    const auto recorded = known.find(path);
    if (recorded == known.end() || recorded->second == fact) continue;
    if (!contents.contains(path) || !std::filesystem::exists(path) || !differ_in_time_alone(fact, recorded->second))
      continue;
    if (contents.at(path) == json(xxh3_of(path))) fact = recorded->second;
  }
  return facts;
}

std::vector<std::string> changed_files(const json& was, const json& is) {
  const auto before = by_path(was), after = by_path(is);
  std::vector<std::string> changes;
  for (const auto& [path, fact] : after) {
    const auto entry = before.find(path);
    if (entry == before.end())
      changes.push_back(input_name(path) + ": is new");
    else if (entry->second != fact)
      changes.push_back(input_name(path) + ": " + change_of(entry->second, fact));
  }
  for (const auto& [path, fact] : before)
    if (!after.contains(path)) changes.push_back(input_name(path) + ": is missing");
  if (changes.empty()) changes.emplace_back("the files have another order");
  return changes;
}

}  // namespace cloze
