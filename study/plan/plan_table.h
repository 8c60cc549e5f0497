#pragma once
// The plan of a study as text: what every run costs, and in what arms are equal.
#include <string>
#include <vector>

#include "study/plan/probe.h"

namespace cloze {

/// A budget in words: `20,000,000 tokens`.
std::string budget_words(const BudgetConfig& budget);

/// A key that is not the same in all arms, with its value in each.
struct DifferingKey {
  std::string key;
  std::vector<std::string> values;  ///< one for each arm; `-` where the arm has no such key
};
/// The keys in which the resolved configs of the arms differ, the seed left out.
std::vector<DifferingKey> differing_keys(const Plan& plan);

/// A line `label     text` of a plan, continued below the text where it is longer than `columns`.
std::string labelled(const std::string& label, const std::string& text, int64_t columns);

/// Arms with parameters, FLOPs, tokens, time and disk of a run, the sums of the study with `jobs` runs at once, and
/// what is equal and what is not. `probes` empty: without costs.
std::string plan_table(const Plan& plan, const std::vector<Probe>& probes, int64_t jobs, int64_t columns);

/// Disk space that the runs of a plan need [bytes].
double disk_bytes_of(const Plan& plan, const std::vector<Probe>& probes);

/// Throws Error with both sizes where the runs in `folder` need more disk than is free [bytes].
void require_disk(const std::string& folder, double needed, double free);

}  // namespace cloze
