#pragma once
// What the published BabyLM program says of made-up data: published.json, which make_published.py wrote.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"

inline const nlohmann::json& published() {
  static const nlohmann::json read = [] {
    std::ifstream file(SOURCE_DIR "/tests/evaluation/babylm/published.json");
    return nlohmann::json::parse(file);
  }();
  return read;
}

/// Writes files, by their names, into a folder.
inline void write_files(const TempDir& dir, const std::string& folder, const nlohmann::json& files) {
  for (const auto& [name, content] : files.items()) dir.write(folder + "/" + name, content.get<std::string>());
}
