#include "data/prepare/sources.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "data/reading/reader.h"

namespace cloze {

namespace {

using PathParts = std::vector<std::string>;

PathParts parts_of(const std::string& path) {
  PathParts parts;
  for (const auto& part : std::filesystem::path(input_name(path)).lexically_normal())
    if (!part.empty()) parts.push_back(part.string());
  return parts;
}

/// How many folders the paths begin with alike.
size_t shared_folders(const std::vector<PathParts>& paths) {
  size_t shared = paths.front().size() - 1;  // the last part names the file
  for (const auto& path : paths) {
    const size_t most = std::min(shared, path.size() - 1);
    shared = static_cast<size_t>(std::mismatch(path.begin(), path.begin() + most, paths.front().begin()).first -
                                 path.begin());
  }
  return shared;
}

}  // namespace

FoundFiles find_files(const std::vector<std::string>& inputs, const std::vector<std::string>& own) {
  FoundFiles all;
  for (const auto& input : inputs)
    for (const auto& file : expand_inputs({input}, own)) {
      all.files.push_back(file);
      all.input_of.emplace(file, input);
    }
  return all;
}

std::map<std::string, std::string> name_sources(const FoundFiles& files) {
  std::set<std::string> inputs;
  for (const auto& [file, input] : files.input_of) inputs.insert(input);
  const bool is_single = inputs.size() == 1;
  std::vector<PathParts> paths;
  for (const auto& [file, input] : files.input_of) paths.push_back(parts_of(is_single ? file : input));
  std::map<std::string, std::string> sources;
  if (paths.size() < 2) return sources;
  const size_t shared = shared_folders(paths);
  auto path = paths.begin();
  for (const auto& [file, input] : files.input_of) {
    std::filesystem::path name = path->at(shared);
    for (size_t i = shared + 1; !is_single && i < path->size(); ++i) name /= path->at(i);
    sources.emplace(file, name.string());
    ++path;
  }
  const auto is_first = [&](const auto& one) { return one.second == sources.begin()->second; };
  if (std::ranges::all_of(sources, is_first)) sources.clear();
  return sources;
}

void name_copies(const std::map<std::string, Spooled>& copies, std::map<std::string, std::string>& sources) {
  for (const auto& [name, copy] : copies)
    if (const auto source = sources.find(name); source != sources.end()) sources.emplace(copy.path, source->second);
}

std::vector<std::string> names_in_order(const std::vector<std::string>& files,
                                        const std::map<std::string, std::string>& sources) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const auto& file : files) {
    const auto source = sources.find(file);
    if (source != sources.end() && seen.insert(source->second).second) names.push_back(source->second);
  }
  return names;
}

}  // namespace cloze
