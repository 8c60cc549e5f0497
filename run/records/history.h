#pragma once
// The processes that trained a run, each with what it changed: `history` in provenance.json.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "run/config/config.h"

namespace cloze {

/// A key with its values in two configs; `absent` in one that has no such key.
struct ChangedKey {
  std::string key, was, is;
  /// False where only one of the kinds that another key chooses has it.
  bool is_in_both() const { return was != "absent" && is != "absent"; }
  bool operator==(const ChangedKey&) const = default;
};

/// `train.seed: 1 -> 2`.
std::string to_text(const ChangedKey& changed);

/// The differences of two configs.
std::vector<ChangedKey> changed_keys(const RunConfig& before, const RunConfig& now);

/// Whether a key is the folder of a prepared text: data.tokens, or that of a text of data.mixture.
bool names_text(const std::string& key);

/// Whether a run may go on with another value of a key as it is: budget, threads, checkpoints, paths and what is done
/// about divergence.
bool may_change(const std::string& key);

/// What a process that goes on with a run changed.
struct Changes {
  int64_t step = 0;  ///< from which on it trained
  std::vector<ChangedKey> keys{};
  bool budget_counts = false;  ///< the steps so far would have been others under the budget that it changed to
};

/// The key that stands for the text of a run.
inline constexpr const char* text_key = "data.fingerprint";

/// `step 40 with optimizer.learning_rate 0.001 (was 0.0005)`; empty without changes.
std::string to_text(const Changes& changes);

/// Those of its keys by which the weights are not those of a run that had the new values from its start.
Changes telling(const Changes& changes);

/// Adds the entry of a process that trains from `step` on to the history in a provenance. What an earlier process
/// changed after that step, whose checkpoints are lost, counts from there.
void add_to_history(nlohmann::json& provenance, nlohmann::json entry, const Changes& changes);

/// The history that a branch at `step` shares with its run.
nlohmann::json history_until(const nlohmann::json& provenance, int64_t step);

/// What provenance.json says of how a run was made.
struct History {
  /// Telling changes in the midst of the run, those of one step together, without those that were undone.
  std::vector<Changes> changes{};
  /// Program with its commit, LibTorch and processor, and those that took over; empty where it does not say.
  std::string made_by{};
  bool is_dirty = false;  ///< a program was made from a source with changes that no commit has
};
History history_of(const nlohmann::json& provenance);

}  // namespace cloze
