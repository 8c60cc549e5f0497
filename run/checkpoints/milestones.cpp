#include "run/checkpoints/milestones.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "run/folder.h"
#include "run/run.h"

namespace cloze {

namespace fs = std::filesystem;

std::vector<int64_t> reached(const std::vector<int64_t>& at_words, double before, double after) {
  std::vector<int64_t> milestones;
  for (const int64_t words : at_words)
    if (before < static_cast<double>(words) && static_cast<double>(words) <= after) milestones.push_back(words);
  std::sort(milestones.begin(), milestones.end());
  return milestones;
}

std::optional<std::vector<int64_t>> kept_for(const std::string& step_folder) {
  nlohmann::json state;
  try {
    state = parse_json(read_text(step_folder + "/state.json", 1 << 20));
  } catch (const Error&) {
    return std::nullopt;
  }
  if (!state.is_object()) return std::nullopt;
  std::vector<int64_t> milestones;
  if (!state.contains("at_words") || !state["at_words"].is_array()) return milestones;
  for (const auto& words : state["at_words"])
    if (words.is_number_integer()) milestones.push_back(words.get<int64_t>());
  return milestones;
}

std::vector<std::string> steps_without_state(const std::string& run) {
  std::vector<std::string> steps;
  for (const auto& name : step_folders(run))
    if (!kept_for(run + "/" + name)) steps.push_back(run + "/" + name);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<Milestone> all_milestones_of(const std::string& run) {
  std::map<int64_t, std::string> first;  // the step folder of each number
  for (const auto& name : step_folders(run))
    for (const int64_t words : kept_for(run + "/" + name).value_or(std::vector<int64_t>{})) first[words] = name;
  std::vector<Milestone> milestones;
  for (const auto& [words, name] : first) milestones.push_back({words, run + "/" + name});
  return milestones;
}

std::vector<Milestone> milestones_of(const std::string& run) {
  std::map<std::string, bool> intact;  // of each step folder
  std::vector<Milestone> milestones;
  for (const auto& milestone : all_milestones_of(run)) {
    const auto [at, fresh] = intact.emplace(milestone.checkpoint, false);
    const auto name = fs::path(milestone.checkpoint).filename().string();
    if (fresh) at->second = !find_checkpoint(run, std::to_string(step_of_folder(name))).empty();
    if (at->second) milestones.push_back(milestone);
  }
  return milestones;
}

std::string revision_of(int64_t words) {
  constexpr int64_t thousand = 1'000, million = 1'000'000;
  if (words % million == 0) return "chck_" + std::to_string(words / million) + "M";
  if (words % thousand == 0) return "chck_" + std::to_string(words / thousand) + "k";
  return "chck_" + std::to_string(words);
}

}  // namespace cloze
