#pragma once
// Names of evaluation suites.
#include <filesystem>
#include <string>

#include "core/report/score.h"

namespace cloze {

/// The name of a suite: that of its file or folder without the folders before it and the endings of JSON lines, of
/// compression and of tables.
inline std::string suite_name(const std::string& path) {
  auto normal = std::filesystem::path(path).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();  // of a path that ends in a slash
  auto name = normal.filename().string();
  for (const std::string ending : {".gz", ".xz", ".jsonl", ".json", ".tsv", ".csv", ".txt", ".yaml"})
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

}  // namespace cloze
