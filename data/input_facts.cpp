#include "data/input_facts.h"

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
#include "core/log.h"
#include "core/stopwatch.h"
#include "data/reader.h"

namespace cloze {

using nlohmann::json;

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
  std::map<std::string, json> found;
  if (!facts.is_array()) return found;
  for (const auto& fact : facts)
    if (fact.is_object()) found.emplace(fact.value("path", ""), fact);
  return found;
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

json facts_of(const std::vector<std::string>& inputs, const std::map<std::string, Spooled>& spooled) {
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
    const auto found = known.find(path);
    if (found == known.end() || found->second == fact) continue;
    if (!contents.contains(path) || !std::filesystem::exists(path) || !differ_in_time_alone(fact, found->second))
      continue;
    if (contents.at(path) == json(xxh3_of(path))) fact = found->second;
  }
  return facts;
}

std::vector<std::string> changed_files(const json& was, const json& is) {
  const auto before = by_path(was), after = by_path(is);
  std::vector<std::string> changes;
  for (const auto& [path, fact] : after) {
    const auto found = before.find(path);
    if (found == before.end())
      changes.push_back(input_name(path) + ": is new");
    else if (found->second != fact)
      changes.push_back(input_name(path) + ": " + change_of(found->second, fact));
  }
  for (const auto& [path, fact] : before)
    if (!after.contains(path)) changes.push_back(input_name(path) + ": is missing");
  if (changes.empty()) changes.emplace_back("the files have another order");
  return changes;
}

}  // namespace cloze
