#include "run/config_changes.h"

#include <algorithm>

#include "run/config_io.h"

namespace cloze {

namespace {

constexpr const char* absent = "absent";

/// The value of a key; `absent` where there is none.
std::string value_in(const std::vector<config_detail::Entry>& all, const std::string& key) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.leaf && e.path == key; });
  return found == all.end() ? absent : found->value;
}

}  // namespace

std::string to_text(const ChangedKey& changed) { return changed.key + ": " + changed.was + " -> " + changed.is; }

std::vector<ChangedKey> changed_keys(const RunConfig& before, const RunConfig& now) {
  const auto a = entries(before), b = entries(now);
  std::vector<ChangedKey> keys;
  for (const auto& entry : b)
    if (const auto was = value_in(a, entry.path); entry.leaf && was != entry.value)
      keys.push_back({entry.path, was, entry.value});
  for (const auto& entry : a)
    if (entry.leaf && value_in(b, entry.path) == absent) keys.push_back({entry.path, entry.value, absent});
  return keys;
}

bool names_text(const std::string& key) {
  return key == "data.tokens" || (key.starts_with("data.mixture.") && key.ends_with(".tokens"));
}

bool may_change(const std::string& key) {
  return key.starts_with("train.budget.") || key.starts_with("checkpoint.") || names_text(key) ||
         key == "train.workers" || key == "train.threads" || key == "train.on_divergence";
}

}  // namespace cloze
