#include "run/checkpoints/checksums.h"

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string fingerprint_of(json content) {
  content.erase("fingerprint");
  return hash_hex(json_text(content));
}

bool has_own_fingerprint(const json& content) {
  if (content.contains("fingerprint")) return content["fingerprint"] == fingerprint_of(content);
  return content.value("format", json()) == "cloze-checkpoint" && content.value("version", json()) == 1;
}

/// The step folder that the file `best` of a run names, or the newest; empty without any.
std::string best_or_newest(const std::string& run) {
  std::error_code unknown;
  const auto pointer = run + "/best";
  std::string best = fs::is_regular_file(pointer, unknown) ? read_text(pointer, 4096) : "";
  while (!best.empty() && std::isspace(static_cast<unsigned char>(best.back()))) best.pop_back();
  const bool is_there = is_step_name(best) && fs::is_directory(run + "/" + best, unknown);
  return is_there ? run + "/" + best : newest_step(run);
}

}  // namespace

std::string file_hash(const std::string& path) {
  std::FILE* in = std::fopen(path.c_str(), "rb");
  require<CheckpointError>(in != nullptr, path, ": cannot be read (", system_reason(), ")");
  StreamHash hash;
  std::vector<char> buffer(1 << 20);
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), in)) > 0;) hash.add(buffer.data(), n);
  const bool is_read = std::ferror(in) == 0;
  const auto reason = system_reason();
  std::fclose(in);
  require<CheckpointError>(is_read, path, ": cannot be read (", reason, ")");
  return hex_of(hash.value());
}

std::string weights_fingerprint(const std::string& path) {
  const auto step = is_step_folder(path) ? path : best_or_newest(path);
  const auto manifest = step + "/manifest.json";
  if (!fs::exists(manifest)) return "";
  return string_at(parse_json(read_text(manifest, 64 << 20)), "/files/weights.safetensors/xxh3");
}

void write_checksums(const std::string& folder, const std::string& name, json facts) {
  auto& files = facts["files"] = json::object();
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto file = entry.path().lexically_relative(folder).generic_string();
    if (file == name || file == "README.md" || entry.is_directory()) continue;
    files[file] = {{"bytes", fs::file_size(entry.path())}, {"xxh3", file_hash(entry.path().string())}};
  }
  facts["fingerprint"] = fingerprint_of(facts);
  write_atomic(folder + "/" + name, json_text(facts, 2) + "\n");
}

std::string checksums_fault(const std::string& folder, const std::string& name) {
  const auto path = folder + "/" + name;
  if (!fs::exists(path)) return name + " is missing";
  const auto content = parse_json(read_text(path, 64 << 20));
  const bool is_intact = content.is_object() && content.contains("files") && content["files"].is_object() &&
                         !content["files"].empty() && has_own_fingerprint(content);
  if (!is_intact) return name + " is damaged";
  for (const auto& [listed, facts] : content["files"].items()) {
    const auto file = folder + "/" + listed;
    std::error_code none;  // a damaged list can name anything
    if (!fs::is_regular_file(file, none)) return listed + " is missing";
    if (!facts.is_object() || facts.value("bytes", json()) != fs::file_size(file, none))
      return concat(listed, " differs in size from its entry in ", name);
    if (facts.value("xxh3", json()) != file_hash(file)) return listed + " does not match its checksum";
  }
  std::error_code unknown;
  if (content.contains("fingerprint"))
    for (const auto& entry : fs::directory_iterator(folder, unknown)) {
      const auto file = entry.path().filename().string();
      if (file != name && is_kept_file(file) && !content["files"].contains(file))
        return concat(file, " is not in ", name, ", so that it is of something else");
    }
  return "";
}

}  // namespace cloze
