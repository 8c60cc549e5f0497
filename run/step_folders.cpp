#include "run/step_folders.h"

#include <algorithm>
#include <filesystem>

#include "run/run.h"

namespace cloze {

namespace fs = std::filesystem;

std::vector<std::string> step_folders(const std::string& run) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    const auto name = entry.path().filename().string();
    if (is_step_name(name)) found.push_back(name);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

int64_t step_of_folder(const std::string& name) { return std::stoll(name.substr(name.find('-') + 1)); }

}  // namespace cloze
