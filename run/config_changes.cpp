#include "run/config_changes.h"

#include <algorithm>

#include "run/config_io.h"

namespace cloze {

std::vector<std::string> changed_keys(const RunConfig& before, const RunConfig& now) {
  const auto a = entries(before), b = entries(now);
  std::vector<std::string> found;
  for (const auto& entry : b) {
    if (!entry.leaf || entry.path.rfind("train.budget", 0) == 0 || entry.path == "data.tokens" ||
        entry.path.rfind("checkpoint.", 0) == 0 || entry.path == "train.workers" || entry.path == "train.threads")
      continue;
    const auto other = std::find_if(a.begin(), a.end(), [&](const auto& e) { return e.path == entry.path; });
    if (other == a.end() || other->value != entry.value)
      found.push_back(entry.path + ": " + (other == a.end() ? "absent" : other->value) + " -> " + entry.value);
  }
  if (a.size() != b.size() && found.empty()) found.emplace_back("objectives");
  return found;
}

}  // namespace cloze
