#pragma once
// What the runs of a study are going to cost, measured on a few training steps of each arm.
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "study/plan/plan.h"

namespace cloze {

/// What one evaluation of a suite costs.
struct AnswersCost {
  double flops = 0, seconds = 0;
};

/// A few training steps on this machine, as `cloze benchmark --json` gives them.
struct Probe {
  int64_t parameters = 0;
  double checkpoint_bytes = 0;
  double memory_bytes = 0;   ///< peak resident set
  double seconds = 0;        ///< of a step where no other process wants the cores, like the next one
  double start_seconds = 0;  ///< of the process, besides its steps
  double tokens = 0;         ///< of a step, like the next two
  double predicted_tokens = 0;
  double flops = 0;
  double sequences_per_epoch = 0;         ///< 0 without prepared tokens
  double words_per_epoch = 0;             ///< 0 without prepared tokens, or where they were prepared without the count
  double held_out_tokens = 0;             ///< that exist; 0 without prepared tokens
  std::set<uint64_t> scored_documents{};  ///< of the held-out text, by the first loss; empty without prepared tokens
  std::map<std::string, std::vector<std::string>> suite_metrics{};  ///< that its suites give, by suite
  AnswersCost suites{};                                             ///< of one evaluation of all of them
};

/// What one run uses up.
struct RunCost {
  double steps = 0, tokens = 0, predicted_tokens = 0, words = 0, epochs = 0, flops = 0;
  double evaluation_flops = 0, evaluation_seconds = 0;  ///< of the held-out evaluations, on top
  double suite_flops = 0, suite_seconds = 0;            ///< of the answers to suites, on top
  double seconds = 0;                                   ///< with both
  double disk_bytes = 0;                                ///< of its folder
};

/// The config with masking rates that change along the run replaced by their means over it, which is what its steps
/// cost on average.
RunConfig with_mean_masking(const RunConfig& config);

/// The cost of a run of `config` whose steps are like those of the probe.
RunCost cost_of_run(const RunConfig& config, const Probe& probe);

/// Held-out documents that are scored, and those of them that a search chooses on; zeros: not known.
struct DocumentCounts {
  int64_t all = 0, development = 0;
};
DocumentCounts count_scored(const std::vector<Probe>& probes);

/// Throws ConfigError where a search would choose on too few of the documents that are scored.
void check_scored(const Plan& plan, const std::vector<Probe>& probes);

/// Throws ConfigError where a suite lacks a score by which arms are compared.
void check_metrics(const Plan& plan, const std::vector<Probe>& probes);

/// Throws ConfigError where one step of an arm uses up more than the budget, so that other arms would train on less.
void check_budgets(const Plan& plan, const std::vector<Probe>& probes);

/// What probes configs. Those that were probed before are read from ROOT/probes.json, ROOT the folder of the whole
/// study, where new ones are kept if there is such a folder.
class Prober {
 public:
  using Note = std::function<void(const std::string&)>;

  /// program, threads   `cloze`, and its threads where a config names none
  /// note               is given the name of what is being probed
  Prober(const std::string& root, const std::string& program, int64_t threads, const Note& note);

  /// The probe of a config, without what does not change its steps. Weights are drawn, whatever `init.from` says. Of a
  /// fine-tuning the folder of its rows does not count: their fingerprint stands for them.
  /// name   `arm 'wide'`, for messages
  /// Throws ConfigError with the name and the reason where the config is refused, Error where its steps fail, DataError
  /// for a damaged probes.json.
  Probe probe(const RunConfig& config, const std::string& name);

 private:
  std::string path_, program_;
  int64_t threads_;
  Note note_;
  nlohmann::json known_{};  ///< what `cloze benchmark` printed, by what it measured
};

/// The probe of every arm, in their order. Throws as Prober::probe.
std::vector<Probe> probe_arms(const Plan& plan, Prober& prober);

/// A key that is not the same in all arms, with its value in each.
struct DifferingKey {
  std::string key;
  std::vector<std::string> values;  ///< one for each arm
};
/// The keys in which configs differ. `absent`: the value of a config that has no such key.
std::vector<DifferingKey> differing_keys(const std::vector<RunConfig>& configs, const std::string& absent);
/// Those of the arms of a plan, the seed left out.
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

/// What one fine-tuning of a run of an arm costs, about.
struct FinetuningCost {
  std::string arm{}, task{}, like{};
  double items = 0;  ///< of the training part
  double steps = 0, tokens = 0, flops = 0;
  double seconds = 0;  ///< with its start, its rows, and what it judges
  double disk_bytes = 0;
};

/// The costs of the fine-tunings of a study: of each task, with the network of each arm, a probe of its own on the rows
/// of at most a thousand items a part, whose lengths stand for those of all. Arms with the same network share it. With
/// a search of keys of `train` the mean over its combinations. Opens the tasks, and throws as `open_task` and
/// Prober::probe, and ConfigError for a config that no fine-tuning can have and for a score that a task lacks.
///
/// trained  the runs that are fine-tuned
std::vector<FinetuningCost> finetuning_costs(const Plan& trained, Prober& prober);

/// How many fine-tunings of a plan each of the costs is of.
double finetunings_each(const Plan& plan, const std::vector<FinetuningCost>& costs);

/// Fine-tunings, recipe and costs by task, for `study plan`.
std::string task_plan_text(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs, int64_t columns);

/// Fine-tunings of a search, their costs, and the tries of each arm, for `study plan`.
std::string task_tuning_text(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs, int64_t columns);

}  // namespace cloze
