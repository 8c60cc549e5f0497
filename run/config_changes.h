#pragma once
// The keys in which a run's config has changed since the run began.
#include <string>
#include <vector>

#include "run/config.h"

namespace cloze {

/// A key with its values in two configs; `absent` in one that has no such key.
struct ChangedKey {
  std::string key, was, is;
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

}  // namespace cloze
