#include "run/records/history.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

using nlohmann::json;

/// The step of an entry; 0 where it is damaged.
int64_t step_of(const json& entry) {
  const auto step = value_at(entry, "/step");
  return step.is_number_integer() ? step.get<int64_t>() : 0;
}

/// The entries of a history; an empty list where there is none.
json entries_in(const json& provenance) {
  auto history = value_at(provenance, "/history");
  return history.is_array() ? history : json::array();
}

constexpr size_t most_changed = 1000;  // keys of a config, each of which is compared with all before it

Changes changes_in(const json& entry) {
  Changes changes{.step = step_of(entry)};
  changes.budget_counts = value_at(entry, "/budget_counts") == true;
  const auto changed = value_at(entry, "/changed");
  if (!changed.is_array()) return changes;
  for (const auto& one : changed) {
    ChangedKey key{string_at(one, "/key"), string_at(one, "/was"), string_at(one, "/is")};
    if (!key.key.empty() && key.was != key.is) changes.keys.push_back(std::move(key));
    if (changes.keys.size() == most_changed) break;
  }
  return changes;
}

/// Adds changes to those of the same step: a key that has its first value again did not change.
void merge(Changes& sum, const Changes& more) {
  sum.budget_counts = sum.budget_counts || more.budget_counts;
  for (const auto& changed : more.keys) {
    const auto same =
        std::find_if(sum.keys.begin(), sum.keys.end(), [&](const auto& k) { return k.key == changed.key; });
    if (same != sum.keys.end())
      same->is = changed.is;
    else if (sum.keys.size() < most_changed)
      sum.keys.push_back(changed);
  }
  std::erase_if(sum.keys, [](const ChangedKey& key) { return key.was == key.is; });
}

constexpr auto dirty = "-dirty";  // at the end of a commit: the source had changes besides

bool is_dirty(const std::string& commit) { return commit.ends_with(dirty); }

/// Program with its commit, LibTorch and processor of a process; empty where it does not say.
std::string maker_of(const json& entry) {
  const auto version = string_at(entry, "/cloze");
  const auto commit = string_at(entry, "/commit");
  constexpr size_t shown = 12;  // digits
  const auto of_commit = commit.empty() ? "" : " at " + commit.substr(0, shown) + (is_dirty(commit) ? dirty : "");
  return version.empty() ? ""
                         : concat("cloze ", version, of_commit, ", LibTorch ", string_at(entry, "/libtorch"), ", ",
                                  string_at(entry, "/machine/processor"));
}

}  // namespace

std::string to_text(const Changes& changes) {
  std::string list;
  for (const auto& [key, was, is] : changes.keys)
    list += concat(list.empty() ? "" : ", ", key, " ", is, " (was ", was, ")");
  return list.empty() ? "" : concat("step ", changes.step, " with ", list);
}

Changes telling(const Changes& changes) {
  auto shown = changes;
  std::erase_if(shown.keys, [&](const ChangedKey& changed) {
    const bool counts = changes.budget_counts && changed.key.starts_with("train.budget.");
    return changes.step == 0 || (may_change(changed.key) && !counts);
  });
  return shown;
}

void add_to_history(json& provenance, json entry, const Changes& changes) {
  auto history = entries_in(provenance);
  for (auto& earlier : history)
    if (step_of(earlier) > changes.step) earlier["step"] = changes.step;
  auto changed = json::array();
  for (const auto& [key, was, is] : changes.keys) changed.push_back({{"key", key}, {"was", was}, {"is", is}});
  entry["step"] = changes.step;
  entry["changed"] = changed;
  if (changes.budget_counts) entry["budget_counts"] = true;
  history.push_back(std::move(entry));
  provenance["history"] = std::move(history);
}

json history_until(const json& provenance, int64_t step) {
  auto shared = json::array();
  for (const auto& entry : entries_in(provenance))
    if (step_of(entry) <= step) shared.push_back(entry);
  return shared;
}

History history_of(const json& provenance) {
  History history{.made_by = maker_of(provenance), .is_dirty = is_dirty(string_at(provenance, "/commit"))};
  auto last = history.made_by;
  for (const auto& entry : entries_in(provenance)) {
    const auto changes = changes_in(entry);
    if (!history.changes.empty() && history.changes.back().step == changes.step)
      merge(history.changes.back(), changes);
    else
      history.changes.push_back(changes);
    const auto maker = maker_of(entry);
    history.is_dirty = history.is_dirty || is_dirty(string_at(entry, "/commit"));
    if (maker.empty() || maker == last) continue;
    history.made_by += concat(history.made_by.empty() ? "" : "; ", "from step ", changes.step, " on ", maker);
    last = maker;
  }
  for (auto& changes : history.changes) changes = telling(changes);
  std::erase_if(history.changes, [](const Changes& changes) { return changes.keys.empty(); });
  return history;
}

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
  if (key == "train.budget.count") return false;  // FLOPs of two counts have no sum
  return key.starts_with("train.budget.") || key.starts_with("checkpoint.") || names_text(key) ||
         key == "train.workers" || key == "train.threads" || key == "train.device" || key == "train.on_divergence";
}

}  // namespace cloze
